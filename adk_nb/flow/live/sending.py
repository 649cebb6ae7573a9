"""What goes to the model in a live conversation: the user's words and sound, and what tools came to."""

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Any

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import REQUESTS
from adk_nb.flow.live.recording import LiveRecording
from adk_nb.flow.live.streams import LiveStreams
from adk_nb.flow.model_call import checked, event_of
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context
from adk_nb.runtime.credentials import take_secrets
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue
from adk_nb.tools.content_blocks import for_model
from adk_nb.wire import copy_model


@dataclass
class Said:
    """Something that the user sent, which is written down in its place among what the model says."""

    event: Event


Item = Said | Event | LlmResponse | asyncio.Task[None]
"""What happened next: the user said something, a callback answered it, the model spoke, or one of the two tasks that
keep the connection has ended."""


_CONVERSATIONS = count()


class _Results(LiveRequest):
    """What the agent's tools came to, on its way to the model."""

    conversation: int
    """The number of the one that asked for it, of those that the service took for new ones."""


class LiveSending:
    """Takes from the queue and sends, over one connection after the other."""

    def __init__(
        self, ctx: InvocationContext, spec: LlmSpec, queue: LiveRequestQueue, inbox: asyncio.Queue[Item]
    ) -> None:
        self.streams = LiveStreams(self._stream)
        self.recording = LiveRecording(ctx)
        self._ctx, self._spec, self._queue, self._inbox = ctx, spec, queue, inbox
        self._unsent: LiveRequest | None = None
        """What was taken from the queue, and perhaps not sent before the connection broke."""
        self._held: list[_Results] | None = None
        """What tools streamed while their call is not answered yet; the model hears of that first."""
        self.vendor_ids: dict[str | None, str] = {}
        """Id of a call in the session -> its id at the service, where that has used one again."""
        self._begun = next(_CONVERSATIONS)
        """The number of the conversation, another one each time that it begins anew."""

    def hold_streams(self) -> None:
        """Calls are about to be answered."""
        self._held = []

    def let_streams_go(self) -> None:
        """The calls are answered."""
        held, self._held = self._held or [], None
        for result in held:
            self._queue.send(result)

    def answer(self, content: types.Content) -> None:
        """Send the results of calls."""
        self._queue.send(_Results(content=content, conversation=self._begun))

    def _stream(self, content: types.Content) -> None:
        result = _Results(content=content, partial=True, conversation=self._begun)
        if self._held is None:
            self._queue.send(result)
        else:
            self._held.append(result)

    def begin_anew(self) -> None:
        """What was said so far is history, and needs not be sent again."""
        self._begun = next(_CONVERSATIONS)
        if self._unsent and self._unsent.content and not self._unsent.partial:
            self._unsent = None

    async def send(self, connection: BaseLlmConnection, request: LlmRequest) -> None:
        """Send what comes, until the user closes the queue."""
        while True:
            if self._unsent is None:
                self._unsent = await self._queue.get()
                self._note(self._unsent)
            said = self._unsent
            if said.close:
                self._unsent = None
                await connection.close()
                return
            if not self._is_history(said) and await self._let_through(said, request):
                await _deliver(connection, said, self._as_the_service_numbers(said.content))
            self._unsent = None

    def _as_the_service_numbers(self, content: types.Content | None) -> types.Content | None:
        """`content`, its results under the ids that the service gave the calls."""
        parts = (content and content.parts) or ()
        if not content or not any(part.function_response for part in parts):
            return content
        return copy_model(content, parts=[self._result(part) for part in parts])

    def _result(self, part: types.Part) -> types.Part:
        response = part.function_response
        if not response or response.id not in self.vendor_ids:
            return part
        return copy_model(part, function_response=copy_model(response, id=self.vendor_ids[response.id]))

    def _is_history(self, said: LiveRequest) -> bool:
        """True for the result of a call that was made before the conversation began anew, and was told then."""
        return isinstance(said, _Results) and not said.partial and said.conversation != self._begun

    def _note(self, said: LiveRequest) -> None:
        """Put down what the user sent, before the model can answer it."""
        if isinstance(said, _Results):
            return
        self.streams.hear(said)
        self.recording.hear(said.blob)
        content = None if said.partial else said.content
        if content or said.state_delta:
            actions = EventActions(state_delta=said.state_delta or {})
            content = take_secrets(self._ctx, content) if content else None
            event = Event(author="user", invocation_id=self._ctx.invocation_id, content=content, actions=actions)
            self._inbox.put_nowait(Said(event))

    async def _let_through(self, said: LiveRequest, request: LlmRequest) -> bool:
        """False if a callback answers in the model's place, or if it answers a request, no model's business."""
        content = said.content
        results = [part.function_response for part in (content and content.parts) or () if part.function_response]
        if not content or results:
            return not any(result.name in REQUESTS for result in results)
        blocked = await self.blocked(content, request)
        if blocked:
            self._inbox.put_nowait(blocked)
        return blocked is None

    def _wrote(self, context: Context) -> Event:
        """What a callback wrote, where nothing is said with it."""
        ctx = self._ctx
        return Event(
            author=self._spec.name, invocation_id=ctx.invocation_id, branch=ctx.branch, actions=context.actions
        )

    async def blocked(self, content: types.Content, request: LlmRequest) -> Event | None:
        """What a before_model callback answers to the user's words, as an event that ends the turn."""
        hooks = [*self._ctx.plugin_manager.hooks("before_model"), *self._spec.hooks("before_model")]
        if not hooks:
            return None
        context = Context(self._ctx)
        asked = request.model_copy(update={"contents": [content.model_copy(deep=True)]})
        answer = await first_result(hooks, callback_context=context, llm_request=asked)
        context.state.settle()
        if answer is None:
            if context.actions != EventActions():
                self._inbox.put_nowait(self._wrote(context))
            return None
        response = checked(answer, "before_model_callback")
        event = event_of(self._ctx, self._spec, response, clock.new_id(), context.actions)
        event.turn_complete = True
        return event


async def _deliver(connection: BaseLlmConnection, said: LiveRequest, content: types.Content | None) -> None:
    if signal := said.activity_start or said.activity_end:
        await connection.send_realtime(signal)
    elif said.audio_stream_end:
        await connection.send_realtime(types.LiveClientRealtimeInput(audio_stream_end=True))
    elif said.blob:
        await connection.send_realtime(said.blob)
    elif content:
        more: dict[str, Any] = {"partial": True} if said.partial else {}
        await connection.send_content(for_model(content), **more)
