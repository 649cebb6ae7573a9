"""The live side of an LLM agent: user and model may speak at the same time, over as many connections as it takes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Literal

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError, ModelConnectionLost
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.live.sending import Item, LiveSending, Said
from adk_nb.flow.live.settings import live_connect_config
from adk_nb.flow.live.streams import with_a_way_to_stop
from adk_nb.flow.model_call import checked, event_of, in_place_of, mark_long_running
from adk_nb.flow.progress import Progress
from adk_nb.flow.request import build_request
from adk_nb.flow.resumption import take
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import answer_calls
from adk_nb.flow.toolset_authentication import authenticate_toolsets
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.hooks import Hook, first_result
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.invoke import commit
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.task_completed_tool import NAME as COMPLETED
from adk_nb.tools.task_completed_tool import TaskCompletedTool

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


_Next = Literal["listen", "restart", "over", "end"]
"""What follows: `over`: nothing, since another agent takes over."""


class _Conversation:
    def __init__(self, ctx: InvocationContext, spec: LlmSpec, queue: LiveRequestQueue) -> None:
        self._ctx, self._spec, self._queue = ctx, spec, queue
        self._inbox: asyncio.Queue[Item] = asyncio.Queue()
        self._sending = LiveSending(ctx, spec, queue, self._inbox)
        ctx.streams = self.streams = self._sending.streams
        self._tools: dict[str, BaseTool] = {}
        self._next: _Next = "listen"
        self._lost = 0
        self._spoken = ""
        """What the model's voice said so far in this turn."""
        self._context: Context | None = None
        """What callbacks wrote to while pieces came; it lands on the next whole event."""
        self._ids: dict[str, str] = {}
        """Ids of the events whose pieces are coming."""
        if not ctx.live_session_resumption_handle and (resumption := ctx.run_config.session_resumption):
            ctx.live_session_resumption_handle = resumption.handle

    async def events(self) -> AsyncGenerator[Event, None]:
        ctx, spec = self._ctx, self._spec
        model = spec.canonical_live_model
        asks, _ = await authenticate_toolsets(ctx, spec)
        for event in asks:
            yield event
        if asks:
            return
        offered = with_a_way_to_stop(list(await spec.canonical_tools(ReadonlyContext(ctx))), self.streams)
        if ctx.is_live_turn and not any(tool.name == COMPLETED for tool in offered):
            offered = [*offered, TaskCompletedTool()]
        self._tools = {tool.name: tool for tool in offered}
        while self._next not in ("end", "over"):
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
        for kept in await self._sending.recording.rest():
            yield kept

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
        mouth = asyncio.create_task(self._sending.send(connection, request))
        ear.add_done_callback(self._inbox.put_nowait)
        mouth.add_done_callback(self._inbox.put_nowait)
        try:
            while self._next == "listen":
                item = await self._inbox.get()
                if isinstance(item, asyncio.Task):
                    self._ended(item, ear, mouth)
                    continue
                async with aclosing(self._take(item, request)) as events:
                    async for event in events:
                        yield event
        finally:
            ear.cancel()
            mouth.cancel()
            await asyncio.gather(ear, mouth, return_exceptions=True)
        if self._next in ("restart", "over"):
            async with aclosing(self._begin_anew(request)) as events:
                async for event in events:
                    yield event

    def _ended(self, task: asyncio.Task[None], ear: asyncio.Task[None], mouth: asyncio.Task[None]) -> None:
        """One of the two has ended, or one that kept an earlier connection. Raises what ended it."""
        if task is mouth and not isinstance(task.exception(), ModelConnectionLost):
            task.result()  # of a connection that is gone the ear says why
        if task is ear:
            task.result()
            self._next = "end"
            if self._ctx.live_session_resumption_handle and not self._queue.closed:
                raise ModelConnectionLost("the service ended the live connection")

    async def _begin_anew(self, request: LlmRequest) -> AsyncGenerator[Event, None]:
        """Forget what the model would still say. What the user said becomes history, and needs not be sent again."""
        self._sending.begin_anew()
        self._ctx.live_session_resumption_handle = None
        self._spoken = ""
        for item in [self._inbox.get_nowait() for _ in range(self._inbox.qsize())]:
            if isinstance(item, Said | Event):
                async with aclosing(self._take(item, request)) as events:
                    async for event in events:
                        yield event

    async def _receive(self, connection: BaseLlmConnection) -> None:
        heard = True
        while heard:
            heard = False
            async with aclosing(connection.receive()) as responses:
                async for response in responses:
                    heard = True
                    self._inbox.put_nowait(response)

    async def _take(self, item: Said | Event | LlmResponse, request: LlmRequest) -> AsyncGenerator[Event, None]:
        if isinstance(item, Said):
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
        """Run what a person has approved, or let in, just now."""
        self._ctx.user_content = said.content or self._ctx.user_content
        if not (said.content and self._ctx.answers_requests):
            return
        if calls := await take(self._ctx):
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
        context = self._context or Context(self._ctx)
        self._context = context if response.partial else None
        response = await self._as_callbacks_say(response, context)
        for kept in await self._sending.recording.follow(response):
            yield kept
        event = self._event(response, context)
        yield event
        if heard := _whole(response.input_transcription):
            spoken = types.Content(role="user", parts=[types.Part(text=heard)])
            if blocked := await self._sending.blocked(spoken, request):
                self._next = "restart"
                yield blocked
        elif calls := event.get_function_calls():
            async with aclosing(self._answers(calls)) as events:
                async for one in events:
                    yield one

    def _leave(self) -> None:
        """Change the connection before the service ends it."""
        if self._queue.closed:
            return
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
        other = await first_result(hooks, callback_context=context, llm_response=shown)
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
        for call, kept in zip(response.get_function_calls(), event.get_function_calls(), strict=True):
            if call.id and call.id != kept.id:
                self._sending.vendor_ids[kept.id] = call.id
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
        self._sending.hold_streams()
        answering = Progress(self._ctx, answer_calls(self._ctx, self._spec, calls, self._tools))
        async with aclosing(answering.events()) as events:
            async for event in events:
                yield event
        answers = answering.outcome
        for event in answers.events:
            yield event
            if event.actions.transfer_to_agent or self._completes(event):
                self._hand_over()
            elif event.content and event.get_function_responses():
                self._sending.answer(event.content)
        self._sending.let_streams_go()
        answers.end_the_turn()  # for what it raises: a live turn ends when the model says so

    def _completes(self, event: Event) -> bool:
        return self._ctx.is_live_turn and any(one.name == COMPLETED for one in event.get_function_responses())

    def _hand_over(self) -> None:
        """The next agent has a connection of its own, and reads what was said in the session."""
        self._next = "over"
        run = self._ctx.run_config
        if run.session_resumption and run.session_resumption.handle:
            anew = run.session_resumption.model_copy(update={"handle": None})
            self._ctx.run_config = run.model_copy(update={"session_resumption": anew})

    def _hooks(self, name: str) -> list[Hook]:
        return [*self._ctx.plugin_manager.hooks(name), *self._spec.hooks(name)]


def _whole(told: types.Transcription | None) -> str | None:
    return told.text if told and told.finished else None


def _worded(response: LlmResponse) -> bool:
    return any(part.inline_data is None for part in response.parts)
