"""The live side of an LLM agent: user and model may speak at the same time, over as many connections as it takes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError, ModelConnectionLost
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.live_recording import LiveRecording
from adk_nb.flow.live_settings import live_connect_config
from adk_nb.flow.live_streams import LiveStreams, with_a_way_to_stop
from adk_nb.flow.model_call import checked, event_of, in_place_of, mark_long_running
from adk_nb.flow.request import build_request
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import answer_calls
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.approvals import take_answers
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.hooks import Hook, first_answer
from adk_nb.runtime.invocation_context import APPROVAL_REQUEST, InvocationContext
from adk_nb.runtime.invoke import commit
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.tools.base_tool import BaseTool

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
"""Connections that may be lost one after the other before anything came."""
_PAUSE = 0.1
"""Seconds before the second of them; each later pause is twice as long."""


async def run_live(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """One activation of an agent as a live conversation, until the queue is closed or the model hangs up.

    Yields:
        What is heard and said, in pieces (`partial=True`) and then whole: transcripts, words, sound, which no session
        keeps; `interrupted` and `turn_complete`; calls, and after them their results.

    Raises:
        ModelConnectionLost: The connection broke, and there is no handle to go on with, or it broke again and again.
    """
    if ctx.live_request_queue is None:
        raise ConfigurationError("a live conversation needs a LiveRequestQueue; write Runner.run_live(...)")
    if spec.output_shape:
        logger.warning("agent %r: output_schema means nothing in a live conversation", spec.name)
    conversation = _Conversation(ctx, spec, ctx.live_request_queue)
    try:
        async with aclosing(conversation.events()) as events:
            async for event in events:
                yield event
    finally:
        await conversation.streams.close()


@dataclass
class _Said:
    """Something that the user sent, which is written down in its place among what the model says."""

    event: Event


class _Results(LiveRequest):
    """What the agent's tools came to, on its way to the model."""


_Item = _Said | Event | LlmResponse | asyncio.Task[None]
"""What happened next: the user said something, a callback answered it, the model spoke, or one of the two tasks that
keep the connection has ended."""
_Next = Literal["listen", "restart", "end"]


class _Conversation:
    def __init__(self, ctx: InvocationContext, spec: LlmSpec, queue: LiveRequestQueue) -> None:
        self._ctx, self._spec, self._queue = ctx, spec, queue
        self._recording = LiveRecording(ctx)
        self.streams = LiveStreams(self._send_result)
        ctx.streams = self.streams
        self._tools: dict[str, BaseTool] = {}
        self._inbox: asyncio.Queue[_Item] = asyncio.Queue()
        self._unsent: LiveRequest | None = None
        """What was taken from the queue, and perhaps not sent before the connection broke."""
        self._held: list[_Results] | None = None
        """What tools streamed while their call is not answered yet; the model hears of that first."""
        self._next: _Next = "listen"
        self._lost = 0
        self._spoken = ""
        """What the model's voice said so far in this turn."""
        self._ids: dict[str, str] = {}
        """Ids of the events whose pieces are coming."""
        if not ctx.live_session_resumption_handle and (resumption := ctx.run_config.session_resumption):
            ctx.live_session_resumption_handle = resumption.handle

    async def events(self) -> AsyncGenerator[Event, None]:
        ctx, spec = self._ctx, self._spec
        model = spec.canonical_live_model
        offered = with_a_way_to_stop(list(await spec.canonical_tools(ReadonlyContext(ctx))), self.streams)
        self._tools = {tool.name: tool for tool in offered}
        while self._next != "end":
            request = await self._request(model.model, offered)
            self._next = "listen"
            try:
                async with (
                    model.connect(request) as connection,
                    aclosing(self._over(connection, request)) as events,
                ):
                    async for event in events:
                        yield event
            except ModelConnectionLost as error:
                await self._pause(error)
                self._next = "listen"

    async def _request(self, model: str, offered: Sequence[BaseTool]) -> LlmRequest:
        ctx = self._ctx
        request = await build_request(ctx, self._spec, offered, Context(ctx))
        request.model = model
        request.live_connect_config = live_connect_config(ctx.run_config, request, ctx.live_session_resumption_handle)
        return request

    async def _pause(self, error: ModelConnectionLost) -> None:
        """Wait before the next attempt. Raises `error` if there is to be none."""
        self._lost += 1
        if not self._ctx.live_session_resumption_handle or self._queue.closed or self._lost > _ATTEMPTS:
            raise error
        logger.info("a live connection was lost and is taken up again: %s", error)
        await asyncio.sleep(_PAUSE * 2 ** (self._lost - 2) if self._lost > 1 else 0)

    async def _over(self, connection: BaseLlmConnection, request: LlmRequest) -> AsyncGenerator[Event, None]:
        """What happens over one connection; `_next` says why it ended."""
        if request.contents and not self._ctx.live_session_resumption_handle:
            await connection.send_history(request.contents)
        ear = asyncio.create_task(self._receive(connection))
        mouth = asyncio.create_task(self._send(connection, request))
        try:
            for task in (ear, mouth):
                task.add_done_callback(self._inbox.put_nowait)
            while self._next == "listen":
                item = await self._inbox.get()
                if isinstance(item, asyncio.Task):
                    self._ended(item, ear, mouth)
                    continue
                async with aclosing(self._take(item, request)) as events:
                    async for event in events:
                        yield event
        finally:
            for task in (ear, mouth):
                task.cancel()
            await asyncio.gather(ear, mouth, return_exceptions=True)
        if self._next == "restart":
            self._start_anew()

    def _ended(self, task: asyncio.Task[None], ear: asyncio.Task[None], mouth: asyncio.Task[None]) -> None:
        """One of the two has ended, or one that kept an earlier connection. Raises what ended it."""
        if task is mouth and not isinstance(task.exception(), ModelConnectionLost):
            task.result()  # of a connection that is gone the ear says why
        if task is ear:
            task.result()
            self._next = "end"
            if self._ctx.live_session_resumption_handle and not self._queue.closed:
                raise ModelConnectionLost("the service ended the live connection")

    def _start_anew(self) -> None:
        """Forget what the model would still say; what the user said stays."""
        self._ctx.live_session_resumption_handle = None
        self._spoken = ""
        kept = [self._inbox.get_nowait() for _ in range(self._inbox.qsize())]
        for item in kept:
            if isinstance(item, _Said | Event):
                self._inbox.put_nowait(item)

    # What the user sends

    def _send_result(self, content: types.Content) -> None:
        result = _Results(content=content, partial=True)
        if self._held is None:
            self._queue.send(result)
        else:
            self._held.append(result)

    async def _send(self, connection: BaseLlmConnection, request: LlmRequest) -> None:
        while True:
            if self._unsent is None:
                self._unsent = await self._queue.get()
                self._note(self._unsent)
            said = self._unsent
            if said.close:
                self._unsent = None
                await connection.close()
                return
            if await self._let_through(said, request):
                await _deliver(connection, said)
            self._unsent = None

    def _note(self, said: LiveRequest) -> None:
        """Put down what the user sent, before the model can answer it."""
        if isinstance(said, _Results):
            return
        self.streams.hear(said)
        self._recording.hear(said.blob)
        content = None if said.partial else said.content
        if content or said.state_delta:
            actions = EventActions(state_delta=said.state_delta or {})
            invocation_id = self._ctx.invocation_id
            self._inbox.put_nowait(
                _Said(Event(author="user", invocation_id=invocation_id, content=content, actions=actions))
            )

    async def _let_through(self, said: LiveRequest, request: LlmRequest) -> bool:
        """False if a callback answers in the model's place, or if it is an approval, which is no model's business."""
        content = said.content
        results = [part.function_response for part in (content and content.parts) or () if part.function_response]
        if not content or results:
            return not any(result.name == APPROVAL_REQUEST for result in results)
        blocked = await self._blocked(content, request)
        if blocked:
            self._inbox.put_nowait(blocked)
        return blocked is None

    async def _blocked(self, content: types.Content, request: LlmRequest) -> Event | None:
        """What a before_model callback answers to the user's words, as an event."""
        if not (hooks := self._hooks("before_model")):
            return None
        context = Context(self._ctx)
        asked = request.model_copy(update={"contents": [content.model_copy(deep=True)]})
        answer = await first_answer(hooks, callback_context=context, llm_request=asked)
        return None if answer is None else self._answered(checked(answer, "before_model_callback"), context)

    def _answered(self, response: LlmResponse, context: Context) -> Event:
        """A callback's answer, which ends the turn."""
        context.state.settle()
        event = event_of(self._ctx, self._spec, response, clock.new_id(), context.actions)
        event.turn_complete = True
        return event

    # What the model says

    async def _receive(self, connection: BaseLlmConnection) -> None:
        heard = True
        while heard:
            heard = False
            async with aclosing(connection.receive()) as responses:
                async for response in responses:
                    heard = True
                    self._inbox.put_nowait(response)

    async def _take(self, item: _Said | Event | LlmResponse, request: LlmRequest) -> AsyncGenerator[Event, None]:
        if isinstance(item, _Said):
            await commit(self._ctx, item.event)
            async with aclosing(self._decided(item.event)) as events:
                async for event in events:
                    yield event
        elif isinstance(item, Event):
            yield item
        else:
            async with aclosing(self._heard(item, request)) as events:
                async for event in events:
                    yield event
        if self._ctx.end_invocation:
            self._next = "end"

    async def _decided(self, said: Event) -> AsyncGenerator[Event, None]:
        """Run what a person has approved just now."""
        self._ctx.user_content = said.content or self._ctx.user_content
        if said.content and self._ctx.answers_approvals and (calls := take_answers(self._ctx)):
            async with aclosing(self._answers(calls)) as events:
                async for event in events:
                    yield event

    async def _heard(self, response: LlmResponse, request: LlmRequest) -> AsyncGenerator[Event, None]:
        if response.go_away:
            self._leave()
            return
        self._lost = 0
        if (update := response.live_session_resumption_update) and update.new_handle:
            self._ctx.live_session_resumption_handle = update.new_handle
        context = Context(self._ctx)
        response = await self._as_callbacks_say(response, context)
        for kept in await self._recording.follow(response):
            yield kept
        event = self._event(response, context)
        yield event
        if heard := _whole(response.input_transcription):
            spoken = types.Content(role="user", parts=[types.Part(text=heard)])
            if blocked := await self._blocked(spoken, request):
                self._next = "restart"
                yield blocked
        elif calls := event.get_function_calls():
            async with aclosing(self._answers(calls)) as events:
                async for one in events:
                    yield one

    def _leave(self) -> None:
        """Change the connection before the service ends it."""
        if self._ctx.live_session_resumption_handle:
            raise ModelConnectionLost("the service is about to end the live connection")
        self._next = "restart"  # with the history as it stands here

    async def _as_callbacks_say(self, response: LlmResponse, context: Context) -> LlmResponse:
        """The response, or what an after_model callback puts in its place.

        Of a voice they are asked with all that it said so far in the turn; what they answer then ends it.
        """
        if response.turn_complete or response.interrupted or _whole(response.output_transcription):
            self._spoken = ""
        piece = response.output_transcription.text if response.output_transcription else None
        if not (hooks := self._hooks("after_model")) or not (piece or _worded(response)):
            return response
        shown = response
        if piece and response.partial:
            self._spoken += piece
            so_far = types.Transcription(text=self._spoken, finished=False)
            shown = response.model_copy(update={"output_transcription": so_far})
        other = await first_answer(hooks, callback_context=context, llm_response=shown)
        if other is None:
            return response
        other = checked(other, "after_model_callback")
        if not piece:
            return in_place_of(response, other)
        self._next = "restart"
        return other.model_copy(update={"turn_complete": True, "partial": None})

    def _event(self, response: LlmResponse, context: Context) -> Event:
        """A response as an event; the pieces and the whole of one thing share an id."""
        kind = "heard" if response.input_transcription else "spoken" if response.output_transcription else "words"
        event_id = clock.new_id()
        if response.input_transcription or response.output_transcription or response.text:
            event_id = self._ids.setdefault(kind, event_id)
        actions = EventActions()
        if not response.partial:
            self._ids.pop(kind, None)
            context.state.settle()
            actions = context.actions
        event = event_of(self._ctx, self._spec, response, event_id, actions)
        if response.input_transcription or (response.content and response.content.role == "user"):
            event.author = "user"
        elif not response.partial:
            self._settle(event)
        return event

    def _settle(self, event: Event) -> None:
        mark_long_running(event, {name for name, tool in self._tools.items() if tool.is_long_running})
        if (key := self._spec.output_key) and event.text and event.is_final_response():
            event.actions.state_delta[key] = event.text

    async def _answers(self, calls: Sequence[types.FunctionCall]) -> AsyncGenerator[Event, None]:
        """Run the calls, tell what they came to, and send it to the model."""
        held: list[_Results] = []
        self._held = held
        answers = await answer_calls(self._ctx, self._spec, calls, self._tools)
        for event in answers.events:
            yield event
            if event.content and event.get_function_responses():
                self._queue.send(_Results(content=event.content))
        self._held = None
        for result in held:
            self._queue.send(result)
        answers.end_the_turn()  # for what it raises: a live turn ends when the model says so

    def _hooks(self, name: str) -> list[Hook]:
        return [*self._ctx.plugins.hooks(name), *self._spec.hooks(name)]


async def _deliver(connection: BaseLlmConnection, said: LiveRequest) -> None:
    if signal := said.activity_start or said.activity_end:
        await connection.send_realtime(signal)
    elif said.audio_stream_end:
        await connection.send_realtime(types.LiveClientRealtimeInput(audio_stream_end=True))
    elif said.blob:
        await connection.send_realtime(said.blob)
    elif said.content:
        more: dict[str, Any] = {"partial": True} if said.partial else {}
        await connection.send_content(said.content, **more)


def _whole(told: types.Transcription | None) -> str | None:
    return told.text if told and told.finished else None


def _worded(response: LlmResponse) -> bool:
    return any(part.inline_data is None for part in response.parts)
