"""Run an LLM agent as a live conversation, over as many connections as it takes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError, ModelConnectionLost
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.live.inbox import Inbox, UserEvent
from adk_nb.flow.live.sending import LiveSender, live_connect_config, without_handle
from adk_nb.flow.live.streams import with_stop_tool
from adk_nb.flow.model_call import check_hook_result, mark_long_running, merge_replacement, response_event
from adk_nb.flow.request import build_request
from adk_nb.flow.resumption import authenticate_toolsets, take_answers
from adk_nb.flow.spec import LlmSpec, hooks_of
from adk_nb.flow.tool_calls import Progress, run_calls
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.invoke import commit
from adk_nb.runtime.live_request_queue import LiveRequestQueue
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.finish_task_tool import TASK_COMPLETED, TaskCompletedTool

logger = logging.getLogger(__name__)

_ATTEMPTS = 5
"""Consecutive connections that may be lost before any response."""
_PAUSE = 0.1
"""Seconds before the second attempt; each later pause is twice as long."""


async def run_live(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """Run an agent as a live conversation, until the queue is closed or the model ends it.

    Yields:
        Transcripts and text, in chunks (`partial=True`) and then complete; audio, which no session stores;
        `interrupted` and `turn_complete`; calls, and after them their results.

    Raises:
        ModelConnectionLost: The connection broke, and there is no handle to resume it, or it broke repeatedly.
    """
    if ctx.live_request_queue is None:
        raise ConfigurationError("a live conversation needs a LiveRequestQueue; write Runner.run_live(...)")
    if spec.output_shape:
        logger.warning("agent %r: output_schema is ignored in a live conversation", spec.name)
    conversation = _Conversation(ctx, spec, ctx.live_request_queue)
    try:
        async with aclosing(conversation.events()) as events:
            async for event in events:
                yield event
    finally:
        await conversation.streams.close()


_NextStep = Literal["listen", "restart", "hand_over", "end"]
"""`hand_over`: another agent takes over."""


class _Conversation:
    def __init__(self, ctx: InvocationContext, spec: LlmSpec, queue: LiveRequestQueue) -> None:
        self._ctx, self._spec, self._queue = ctx, spec, queue
        self._inbox = Inbox()
        self._sending = LiveSender(ctx, spec, queue, self._inbox)
        ctx.streams = self.streams = self._sending.streams
        self._tools: dict[str, BaseTool] = {}
        self._next: _NextStep = "listen"
        self._lost_connections = 0
        self._spoken_text = ""
        """The transcript of the model's speech in this turn, so far."""
        self._context: Context | None = None
        """The context of callbacks during chunks; its state changes go to the next complete event."""
        self._event_ids: dict[str, str] = {}
        """Kind -> id of the event whose chunks are arriving."""
        if not ctx.live_session_resumption_handle and (resumption := ctx.run_config.session_resumption):
            ctx.live_session_resumption_handle = resumption.handle

    async def events(self) -> AsyncGenerator[Event, None]:
        ctx, spec = self._ctx, self._spec
        model = spec.canonical_live_model
        credential_requests, _ = await authenticate_toolsets(ctx, spec)
        for event in credential_requests:
            yield event
        if credential_requests:
            return
        tools = with_stop_tool(list(await spec.canonical_tools(ReadonlyContext(ctx))), self.streams)
        if ctx.is_live_turn and not any(tool.name == TASK_COMPLETED for tool in tools):
            tools = [*tools, TaskCompletedTool()]
        self._tools = {tool.name: tool for tool in tools}
        while self._next not in ("end", "hand_over"):
            # Built for each connection: the history has grown since the last.
            request = await build_request(ctx, spec, tools, Context(ctx))
            request.model = model.model
            handle = ctx.live_session_resumption_handle
            request.live_connect_config = live_connect_config(ctx.run_config, request, handle)
            self._next = "listen"
            try:
                async with (
                    model.connect(request) as connection,
                    aclosing(self._run_connection(connection, request)) as events,
                ):
                    async for event in events:
                        yield event
            except ModelConnectionLost as error:
                self._lost_connections += 1
                lost = self._lost_connections
                if not ctx.live_session_resumption_handle or self._queue.closed or lost > _ATTEMPTS:
                    raise
                logger.info("a live connection was lost and is resumed: %s", error)
                # The first attempt follows at once: services close healthy connections, too.
                await asyncio.sleep(_PAUSE * 2 ** (lost - 2) if lost > 1 else 0)
                self._next = "listen"
        for event in await self._sending.recording.save_rest():
            yield event

    async def _run_connection(self, connection: BaseLlmConnection, request: LlmRequest) -> AsyncGenerator[Event, None]:
        """Exchange messages over one connection; sets `_next` at its end."""
        # With a handle, the service restores the history itself.
        if request.contents and not self._ctx.live_session_resumption_handle:
            await connection.send_history(request.contents)
        receiver = asyncio.create_task(self._receive(connection))
        sender = asyncio.create_task(self._sending.send(connection, request))
        # A task that ends puts itself into the inbox, behind everything that it received.
        receiver.add_done_callback(self._inbox.put)
        sender.add_done_callback(self._inbox.put)
        try:
            while self._next == "listen":
                item = await self._inbox.get()
                if not isinstance(item, asyncio.Task):
                    async with aclosing(self._handle(item, request)) as events:
                        async for event in events:
                            yield event
                elif item is sender:
                    if not isinstance(item.exception(), ModelConnectionLost):  # the receiver reports that
                        item.result()
                elif item is receiver:
                    item.result()
                    self._next = "end"
                    if self._ctx.live_session_resumption_handle and not self._queue.closed:
                        raise ModelConnectionLost("the service ended the live connection")
        finally:
            receiver.cancel()
            sender.cancel()
            await asyncio.gather(receiver, sender, return_exceptions=True)
        if self._next not in ("restart", "hand_over"):
            return
        # What the model was about to send is dropped; the user's messages become history, events of callbacks are kept.
        self._sending.restart()
        self._ctx.live_session_resumption_handle = None
        self._spoken_text = ""
        for item in self._inbox.drain():
            if isinstance(item, UserEvent | Event):
                async with aclosing(self._handle(item, request)) as events:
                    async for event in events:
                        yield event

    async def _receive(self, connection: BaseLlmConnection) -> None:
        # receive() ends with each turn; a pass without a response means that the connection is closed.
        has_responses = True
        while has_responses:
            has_responses = False
            async with aclosing(connection.receive()) as responses:
                async for response in responses:
                    has_responses = True
                    await self._inbox.put_response(response)

    async def _handle(self, item: UserEvent | Event | LlmResponse, request: LlmRequest) -> AsyncGenerator[Event, None]:
        ctx = self._ctx
        calls: Sequence[types.FunctionCall] = ()
        if isinstance(item, UserEvent):
            if ctx.yields_input:
                yield item.event  # which stores it
            else:
                await commit(ctx, item.event)
            ctx.user_content = item.event.content or ctx.user_content
            if item.event.content and ctx.requests_answered:
                # The calls that the user has just approved or given credentials for.
                calls = await take_answers(ctx)
        elif isinstance(item, Event):
            yield item
        elif item.go_away:
            self._leave_connection()
        else:
            self._lost_connections = 0
            if (update := item.live_session_resumption_update) and update.new_handle:
                ctx.live_session_resumption_handle = update.new_handle
            context = self._context or Context(ctx)
            self._context = context if item.partial else None
            response = await self._apply_callbacks(item, context)
            for recording_event in await self._sending.recording.add_response(response):
                yield recording_event
            event = self._response_event(response, context)
            yield event
            if transcript := _finished_text(response.input_transcription):
                spoken = types.Content(role="user", parts=[types.Part(text=transcript)])
                if blocked := await self._sending.block_response(spoken, request):
                    self._next = "restart"
                    yield blocked
            else:
                calls = event.get_function_calls()
        if calls:
            async with aclosing(self._run_calls(calls)) as events:
                async for event in events:
                    yield event
        if ctx.end_invocation:
            self._next = "end"

    def _leave_connection(self) -> None:
        """Open the next connection before the service ends this one, as Gemini Live announces."""
        if not self._queue.closed:
            if self._ctx.live_session_resumption_handle:
                raise ModelConnectionLost("the service is about to end the live connection")
            self._next = "restart"  # with the session's history

    async def _apply_callbacks(self, response: LlmResponse, context: Context) -> LlmResponse:
        """The response, or its replacement by an after_model callback.

        For audio, callbacks get the transcript of the turn so far; their replacement ends the turn.
        """
        if response.turn_complete or response.interrupted or _finished_text(response.output_transcription):
            self._spoken_text = ""
        chunk = response.output_transcription.text if response.output_transcription else None
        has_text = any(part.inline_data is None for part in response.parts)
        if not (hooks := hooks_of(self._ctx, self._spec, "after_model")) or not (chunk or has_text):
            return response
        callback_response = response
        if chunk and response.partial:
            self._spoken_text += chunk
            transcription = types.Transcription(text=self._spoken_text, finished=False)
            callback_response = response.model_copy(update={"output_transcription": transcription})
        replacement = await first_result(hooks, callback_context=context, llm_response=callback_response)
        if replacement is None:
            return response
        replacement = check_hook_result(replacement, "after_model_callback")
        if not chunk:
            return merge_replacement(response, replacement)
        self._next = "restart"
        return replacement.model_copy(update={"turn_complete": True, "partial": None})

    def _response_event(self, response: LlmResponse, context: Context) -> Event:
        """A response as an event; chunks and their complete event share an id."""
        kind = "input" if response.input_transcription else "output" if response.output_transcription else "text"
        event_id = clock.new_id()
        if response.input_transcription or response.output_transcription or response.text:
            event_id = self._event_ids.setdefault(kind, event_id)
        actions = EventActions()
        if not response.partial:
            self._event_ids.pop(kind, None)
            context.state.settle()
            actions = context.actions
        event = response_event(self._ctx, self._spec, response, event_id, actions)
        for call, event_call in zip(response.get_function_calls(), event.get_function_calls(), strict=True):
            if call.id and call.id != event_call.id:
                self._sending.vendor_ids[event_call.id] = call.id
        if response.input_transcription or (response.content and response.content.role == "user"):
            event.author = "user"
        elif not response.partial:
            mark_long_running(event, {name for name, tool in self._tools.items() if tool.is_long_running})
            if (key := self._spec.output_key) and event.text and event.is_final_response():
                event.actions.state_delta[key] = event.text
        return event

    async def _run_calls(self, calls: Sequence[types.FunctionCall]) -> AsyncGenerator[Event, None]:
        """Run the calls, yield their results, and send them to the model."""
        self._sending.hold_streams()
        progress = Progress(self._ctx, run_calls(self._ctx, self._spec, calls, self._tools))
        async with aclosing(progress.events()) as events:
            async for event in events:
                yield event
        step = progress.outcome
        for event in step.events:
            yield event
            responses = event.get_function_responses()
            is_done = self._ctx.is_live_turn and any(response.name == TASK_COMPLETED for response in responses)
            if event.actions.transfer_to_agent or is_done:
                # This connection ends: the next agent opens its own, with the session's history.
                self._next = "hand_over"
                self._ctx.run_config = without_handle(self._ctx.run_config)
            elif event.content and responses:
                self._sending.send_results(event.content)
        self._sending.release_streams()
        step.ends_turn()  # only to raise its error: a live turn ends with `turn_complete`


def _finished_text(transcription: types.Transcription | None) -> str | None:
    return transcription.text if transcription and transcription.finished else None


async def run_live_turn(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """Run one turn with `RunConfig.support_cfc`: send the history, and yield the answer with its calls.

    Yields:
        As `run_live`, as text unless the run sets `response_modalities`, until `turn_complete`.

    Raises:
        NotImplementedError: The model has no live connections.
    """
    config = ctx.run_config
    modalities = config.response_modalities or [types.Modality.TEXT]
    live = replace(
        ctx,
        live_request_queue=LiveRequestQueue(),
        run_config=config.model_copy(update={"response_modalities": modalities}),
    )
    ctx.count_llm_call()
    async with aclosing(run_live(live, spec)) as events:
        async for event in events:
            yield event
            if event.turn_complete:
                return
