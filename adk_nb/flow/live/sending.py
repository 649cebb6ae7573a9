"""Send to the model of a live conversation: its settings, the user's messages and audio, tool results."""

from functools import partial
from itertools import count
from typing import Any

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import REQUESTS
from adk_nb.flow.live.inbox import Inbox, UserEvent
from adk_nb.flow.live.recording import LiveRecording
from adk_nb.flow.live.streams import LiveStreams
from adk_nb.flow.model_call import check_hook_result, response_event
from adk_nb.flow.spec import LlmSpec, agent_event, hooks_of
from adk_nb.models.base_llm_connection import BaseLlmConnection
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import Context
from adk_nb.runtime.credentials import take_secrets
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.live_request_queue import LiveRequest, LiveRequestQueue, MarkedRequest
from adk_nb.runtime.run_config import RunConfig
from adk_nb.tools.media import for_model
from adk_nb.wire import copy_model

_conversation_numbers = count()


class _ToolResults(LiveRequest):
    """Tool results on their way to the model."""

    conversation: int
    """Number of the conversation with the calls."""


class LiveSender:
    """Sends the requests of the queue, over one connection after the other."""

    def __init__(self, ctx: InvocationContext, spec: LlmSpec, queue: LiveRequestQueue, inbox: Inbox) -> None:
        self.streams = LiveStreams(partial(self.send_results, is_streamed=True))
        self.recording = LiveRecording(ctx)
        self._ctx, self._spec, self._queue, self._inbox = ctx, spec, queue, inbox
        self._unsent: LiveRequest | None = None
        """The request taken from the queue that is not known to be sent; the next connection sends it."""
        self._held_results: list[_ToolResults] | None = None
        """Streamed results while their calls have no response yet, which must be sent first."""
        self.vendor_ids: dict[str | None, str] = {}
        """Id of a call in the session -> its id at the service, where the service reused one."""
        self._conversation = next(_conversation_numbers)
        """Number of the conversation; a restart changes it."""

    def hold_streams(self) -> None:
        """Hold streamed results back until the calls have their responses."""
        self._held_results = []

    def release_streams(self) -> None:
        """Send the results that were held back."""
        held_results, self._held_results = self._held_results or [], None
        for result in held_results:
            self._queue.send(result)

    def send_results(self, content: types.Content, *, is_streamed: bool = False) -> None:
        """Send the results of calls; one that a tool streams waits while it is held back."""
        result = _ToolResults(content=content, partial=is_streamed, conversation=self._conversation)
        if is_streamed and self._held_results is not None:
            self._held_results.append(result)
        else:
            self._queue.send(result)

    def restart(self) -> None:
        """Begin a new conversation: messages so far are in its history, and are not sent again."""
        self._conversation = next(_conversation_numbers)
        if self._unsent and self._unsent.content and not self._unsent.partial:
            self._unsent = None

    async def send(self, connection: BaseLlmConnection, request: LlmRequest) -> None:
        """Send requests until the user closes the queue."""
        while True:
            if self._unsent is None:
                # Until it is sent: if this connection breaks, the next one sends it.
                self._unsent = await self._queue.get()
                self._record(self._unsent)
            live_request = self._unsent
            if live_request.close:
                self._unsent = None
                await connection.close()
                return
            # Results of a call before the last restart are in the history.
            is_history = (
                isinstance(live_request, _ToolResults)
                and not live_request.partial
                and live_request.conversation != self._conversation
            )
            if not is_history and await self._is_allowed(live_request, request):
                if signal := live_request.activity_start or live_request.activity_end:
                    await connection.send_realtime(signal)
                elif live_request.audio_stream_end:
                    await connection.send_realtime(types.LiveClientRealtimeInput(audio_stream_end=True))
                elif live_request.blob:
                    await connection.send_realtime(live_request.blob)
                elif content := self._with_vendor_ids(live_request.content):
                    options: dict[str, Any] = {"partial": True} if live_request.partial else {}
                    await connection.send_content(for_model(content), **options)
            self._unsent = None

    def _with_vendor_ids(self, content: types.Content | None) -> types.Content | None:
        """`content` with the call ids of the service."""
        if not (content and content.parts and self.vendor_ids):
            return content
        parts = list(content.parts)
        for index, part in enumerate(parts):
            response = part.function_response
            if response and response.id in self.vendor_ids:
                own_response = copy_model(response, id=self.vendor_ids[response.id])
                parts[index] = copy_model(part, function_response=own_response)
        return copy_model(content, parts=parts)

    def _record(self, live_request: LiveRequest) -> None:
        """Record a request of the user before the model can answer it."""
        if isinstance(live_request, _ToolResults):
            return
        self.streams.forward(live_request)
        self.recording.add_user_audio(live_request.blob)
        content = None if live_request.partial else live_request.content
        if content or live_request.state_delta:
            actions = EventActions(state_delta=live_request.state_delta or {})
            content = take_secrets(self._ctx, content) if content else None
            event = Event(author="user", invocation_id=self._ctx.invocation_id, content=content, actions=actions)
            if isinstance(live_request, MarkedRequest):
                event.custom_metadata = live_request.custom_metadata
            self._inbox.put(UserEvent(event))

    async def _is_allowed(self, live_request: LiveRequest, request: LlmRequest) -> bool:
        """False if a callback answered for the model, or if the content answers a request to the user."""
        content = live_request.content
        results = [part.function_response for part in (content and content.parts) or () if part.function_response]
        if not content or results:
            return not any(result.name in REQUESTS for result in results)
        blocked = await self.block_response(content, request)
        if blocked:
            self._inbox.put(blocked)
        return blocked is None

    async def block_response(self, content: types.Content, request: LlmRequest) -> Event | None:
        """The response of a before_model callback to the user's message, as an event that ends the turn."""
        if not (hooks := hooks_of(self._ctx, self._spec, "before_model")):
            return None
        context = Context(self._ctx)
        # The new message alone: the service has the earlier ones.
        callback_request = request.model_copy(update={"contents": [content.model_copy(deep=True)]})
        result = await first_result(hooks, callback_context=context, llm_request=callback_request)
        context.state.settle()
        if result is None:
            if context.actions != EventActions():  # the callback changed the state
                self._inbox.put(agent_event(self._ctx, self._spec, actions=context.actions))
            return None
        response = check_hook_result(result, "before_model_callback")
        event = response_event(self._ctx, self._spec, response, clock.new_id(), context.actions)
        event.turn_complete = True
        return event


_RUN_FIELDS = (
    "response_modalities",
    "speech_config",
    "output_audio_transcription",
    "input_audio_transcription",
    "realtime_input_config",
    "explicit_vad_signal",
    "translation_config",
    "enable_affective_dialog",
    "proactivity",
    "history_config",
    "context_window_compression",
    "avatar_config",
)
_AGENT_FIELDS = (
    "system_instruction",
    "tools",
    "temperature",
    "top_p",
    "top_k",
    "max_output_tokens",
    "seed",
    "media_resolution",
    "thinking_config",
)


def live_connect_config(run_config: RunConfig, request: LlmRequest, handle: str | None) -> types.LiveConnectConfig:
    """The settings of a live connection.

    Args:
        run_config: The run's settings; not changed.
        request: The agent's settings, and the history to send after the connection is open.
        handle: Of the conversation to resume, whose history the service has. None: a new one.
    """
    settings: dict[str, Any] = {name: getattr(run_config, name) for name in _RUN_FIELDS}
    settings |= {name: getattr(request.config, name) for name in _AGENT_FIELDS}
    settings["response_modalities"] = settings["response_modalities"] or [types.Modality.AUDIO]
    if handle or run_config.session_resumption:
        resumption = run_config.session_resumption or types.SessionResumptionConfig()
        settings["session_resumption"] = resumption.model_copy(update={"handle": handle})
    if request.contents and not handle:
        history = run_config.history_config or types.HistoryConfig()
        # Gemini Live: marks the first client content as history, which gets no answer.
        if history.initial_history_in_client_content is None:
            history = history.model_copy(update={"initial_history_in_client_content": True})
        settings["history_config"] = history
    return types.LiveConnectConfig(**{name: value for name, value in settings.items() if value is not None})


def without_handle(run_config: RunConfig) -> RunConfig:
    """Drop the resumption handle: it belongs to one agent's connection, and the next agent reads the session."""
    resumption = run_config.session_resumption
    if not (resumption and resumption.handle):
        return run_config
    return run_config.model_copy(update={"session_resumption": resumption.model_copy(update={"handle": None})})
