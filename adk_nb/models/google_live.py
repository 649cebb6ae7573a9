"""Gemini's live conversations, over google-genai's websocket.

Source: https://ai.google.dev/api/live, and google-adk 2.13 for the responses to each message.
"""

import os
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Protocol

from google.genai.errors import APIError
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, SecurityError

from adk_nb import types
from adk_nb.errors import ModelConnectionLost, ModelError, ModelHTTPError, ModelTimeoutError
from adk_nb.models.base_llm_connection import BaseLlmConnection, RealtimeInput
from adk_nb.models.google_requests import prepare_content
from adk_nb.models.http_address import redacted_excerpt, redirect_hint
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.vendor_facts import GOOGLE, gemini_family

_NORMAL = 1000
_LOST_CODES = {_NORMAL, 1001, 1006, 1011, 1012, 1013}
"""Close codes of a lost connection. Source: RFC 6455, 7.4.1, and IANA's list of close codes."""
_CONTINUE = "."
"""Realtime text after a history that ends with a user message, which Gemini 3 does not answer by itself.

Source: https://ai.google.dev/gemini-api/docs/live-guide.
"""

_REALTIME_KINDS = {"audio": "audio", "image": "video", "video": "video"}
"""Type of a chunk -> argument of google-genai's `send_realtime_input`."""


class WithoutRedirects(ClientConnection):
    """A websocket that follows no redirect: websockets would send `x-goog-api-key` on to another host."""

    async def handshake(self, *args: Any, **kwargs: Any) -> None:
        """Open the connection; raises SecurityError for a redirect."""
        try:
            await super().handshake(*args, **kwargs)
        except InvalidStatus as error:
            if hint := redirect_hint(error.response):
                raise SecurityError(f"HTTP {error.response.status_code}: {hint}") from None
            raise


class LiveSession(Protocol):
    """The used methods of google-genai's AsyncSession, which is only partly typed."""

    async def send_client_content(self, *, turns: list[types.Content], turn_complete: bool) -> None:
        """Send turns in order; the model answers after `turn_complete`."""
        ...

    async def send_realtime_input(self, **arguments: Any) -> None:
        """Send one chunk of audio, video or text, or a signal."""
        ...

    async def send_tool_response(self, *, function_responses: list[types.FunctionResponse]) -> None:
        """Send the results of calls."""
        ...

    def receive(self) -> AsyncGenerator[types.LiveServerMessage, None]:
        """Receive the messages of one turn."""
        ...

    async def close(self) -> None:
        """Close the websocket."""
        ...


def live_settings(
    llm_request: LlmRequest, client_options: types.HttpOptions | None, *, vertex: bool
) -> types.LiveConnectConfig:
    """The settings to send: a copy, since google-genai changes them.

    Without a version in `client_options` or GOOGLE_GENAI_API_VERSION, the newest API version is used, as in google-adk:
    live features appear there first.
    """
    settings = (llm_request.live_connect_config or types.LiveConnectConfig()).model_copy()
    if not (client_options and client_options.api_version) and not os.environ.get("GOOGLE_GENAI_API_VERSION"):
        newest = types.HttpOptions(api_version="v1beta1" if vertex else "v1alpha")
        settings.http_options = settings.http_options or newest
    resumption = settings.session_resumption
    if vertex and resumption and resumption.handle and resumption.transparent is None:
        settings.session_resumption = resumption.model_copy(update={"transparent": True})  # only Vertex AI takes it
    return settings


@contextmanager
def live_errors(model: str, *, closed: bool = False, may_end: bool = False) -> Generator[None, None, None]:
    """Convert the errors of a websocket.

    Args:
        model: Name for the message.
        closed: This side closed the connection: no error is raised for its end.
        may_end: A normal close by the service is not an error either.
    """
    try:
        yield
    except (APIError, ConnectionClosed) as error:
        # 1006 is never sent: it stands for a connection that ended without a close frame. Source: RFC 6455, 7.1.5.
        code = error.code if isinstance(error, APIError) else (error.rcvd.code if error.rcvd else 1006)
        if not closed and not (may_end and code == _NORMAL):
            reason = redacted_excerpt(str(error))
            if code in _LOST_CODES:
                raise ModelConnectionLost(
                    f"the live connection to model {model!r} broke ({reason}); "
                    "write RunConfig(session_resumption=types.SessionResumptionConfig()) to reconnect automatically"
                ) from None
            hint = "check the model's name and the RunConfig"
            hint = f"check {GOOGLE.key_variables[0]}" if "API key" in reason else hint
            raise ModelError(f"the service of model {model!r} ended the live conversation ({reason}); {hint}") from None
    except InvalidStatus as error:
        # `from None`, here and below: the cause's own text is not redacted.
        body = redacted_excerpt((error.response.body or b"").decode(errors="replace"))
        raise ModelHTTPError(error.response.status_code, body, model) from None
    except SecurityError as error:
        raise ModelError(f"the service of model {model!r} answered {redacted_excerpt(str(error))}") from None
    except TimeoutError as error:
        raise ModelTimeoutError(
            f"no live connection to the service of model {model!r} in time; check the network"
        ) from error
    except (OSError, InvalidHandshake) as error:
        reason = f"{type(error).__name__}: {redacted_excerpt(str(error))}"
        raise ModelConnectionLost(
            f"the service of model {model!r} cannot be reached ({reason}); check the network and base_url"
        ) from None


class GoogleConnection(BaseLlmConnection):
    """A live conversation with a Gemini model."""

    def __init__(self, session: LiveSession, model: str) -> None:
        self._session = session
        self._model = model
        self._closed = False
        self._turn = _TurnAssembler(model)
        is_live = bool(re.search(r"-live(?!.*translate)", model))
        self._text_is_realtime = is_live and gemini_family(model).text_is_realtime

    async def send_history(self, history: Sequence[types.Content]) -> None:
        """Send the earlier conversation without audio; the model answers if it ends with a user message."""
        prepared = [prepare_content(audioless) for content in history if (audioless := _without_audio(content))]
        turns = [turn for turn in prepared if turn.parts]
        if not turns:
            return
        needs_answer = turns[-1].role == "user"
        with self._errors():
            await self._session.send_client_content(turns=turns, turn_complete=needs_answer)
            if needs_answer and self._text_is_realtime:
                await self._session.send_realtime_input(text=_CONTINUE)

    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        """Send function responses, realtime text (Gemini 3), or a turn."""
        content = prepare_content(content)
        parts = content.parts or []
        results = [part.function_response for part in parts if part.function_response]
        with self._errors():
            if results:
                await self._session.send_tool_response(function_responses=results)
            elif self._text_is_realtime and not partial and len(parts) == 1 and parts[0].text:
                await self._session.send_realtime_input(text=parts[0].text)
            else:
                await self._session.send_client_content(turns=[content], turn_complete=not partial)

    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Send a chunk or a signal."""
        with self._errors():
            match blob:
                case types.ActivityStart():
                    await self._session.send_realtime_input(activity_start=blob)
                case types.ActivityEnd():
                    await self._session.send_realtime_input(activity_end=blob)
                case types.LiveClientRealtimeInput():
                    await self._session.send_realtime_input(audio_stream_end=blob.audio_stream_end)
                case _:
                    kind = _REALTIME_KINDS.get((blob.mime_type or "").partition("/")[0], "media")
                    await self._session.send_realtime_input(**{kind: blob})

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """Yield the responses of one turn; nothing after a normal close."""
        with self._errors(may_end=True):
            async with aclosing(self._session.receive()) as messages:
                async for message in messages:
                    for response in self._turn.responses(message):
                        yield response

    async def close(self) -> None:
        """Close the connection; later errors of it are ignored."""
        self._closed = True
        await self._session.close()

    @contextmanager
    def _errors(self, *, may_end: bool = False) -> Generator[None, None, None]:
        with live_errors(self._model, closed=self._closed, may_end=may_end):
            yield


class _TurnAssembler:
    """Assembles a turn: text and transcripts arrive in pieces and are repeated when they are complete."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text, self._thought = "", False
        self._transcripts = {"input_transcription": "", "output_transcription": ""}
        """Field of a response -> the text of what is spoken now."""
        self._grounding: types.GroundingMetadata | None = None

    def responses(self, message: types.LiveServerMessage) -> Generator[LlmResponse, None, None]:
        """Convert one message of the service to responses."""
        if usage := message.usage_metadata:
            yield self._response(usage_metadata=_usage(usage))
        if content := message.server_content:
            yield from self._content(content)
        # Before the calls: the transcript and the text that they answer.
        if message.tool_call and message.tool_call.function_calls:
            yield from self._finish_transcript("input_transcription")
            yield from self._finish_text()
            yield self._parts([types.Part(function_call=call) for call in message.tool_call.function_calls])
        if update := message.session_resumption_update:
            yield self._response(live_session_resumption_update=update)
        if activity := message.voice_activity:
            yield self._response(voice_activity=activity)
        if away := message.go_away:
            yield self._response(go_away=away)

    def _content(self, content: types.LiveServerContent) -> Generator[LlmResponse, None, None]:
        # Grounding may come with any message of a turn; the next complete text gets it.
        self._grounding = content.grounding_metadata or self._grounding
        for part in (content.model_turn and content.model_turn.parts) or ():
            yield from self._part(part)
        for field in self._transcripts:
            piece: types.Transcription | None = getattr(content, field)
            if piece and piece.text:
                self._transcripts[field] += piece.text
                yield self._response(partial=True, **{field: types.Transcription(text=piece.text, finished=False)})
        ends = bool(content.interrupted or content.turn_complete or content.generation_complete)
        for field in self._transcripts:
            piece = getattr(content, field)
            # The last piece of a transcript may lack the mark `finished`.
            if ends or (piece and piece.finished):
                yield from self._finish_transcript(field)
        if content.interrupted or content.turn_complete:
            responses = list(self._finish_text(interrupted=content.interrupted))
            yield from responses
            if responses and not content.turn_complete:
                return  # the text response has `interrupted`
            yield self._response(
                interrupted=content.interrupted,
                turn_complete=content.turn_complete,
                turn_complete_reason=content.turn_complete_reason,
                grounding_metadata=self._grounding,
            )
            self._grounding = None

    def _part(self, part: types.Part) -> Generator[LlmResponse, None, None]:
        if part.text is None:
            yield from self._finish_text()
            yield self._parts([part])
        elif part.text:
            # A thought ends where the answer begins: the service sends no other mark.
            if bool(part.thought) is not self._thought:
                yield from self._finish_text()
            self._text, self._thought = self._text + part.text, bool(part.thought)
            yield self._parts([part], partial=True)

    def _finish_text(self, interrupted: bool | None = None) -> Generator[LlmResponse, None, None]:
        """The complete text so far."""
        if self._text:
            part = types.Part(text=self._text, thought=self._thought or None)
            yield self._parts([part], interrupted=interrupted, grounding_metadata=self._grounding)
            self._text, self._thought, self._grounding = "", False, None

    def _finish_transcript(self, field: str) -> Generator[LlmResponse, None, None]:
        if text := self._transcripts[field]:
            yield self._response(**{field: types.Transcription(text=text, finished=True)})
            self._transcripts[field] = ""

    def _parts(self, parts: list[types.Part], **fields: Any) -> LlmResponse:
        return self._response(content=types.Content(role="model", parts=parts), **fields)

    def _response(self, **fields: Any) -> LlmResponse:
        set_fields = {name: value for name, value in fields.items() if value is not None}
        return LlmResponse(model_version=self._model, **set_fields)


def _without_audio(content: types.Content) -> types.Content | None:
    """`content` without audio, which the API takes only as realtime input. None if nothing else is left."""
    parts = content.parts or []
    remaining = [
        part for part in parts if not (part.inline_data and (part.inline_data.mime_type or "").startswith("audio/"))
    ]
    if not remaining:
        return None
    return content if len(remaining) == len(parts) else content.model_copy(update={"parts": remaining})


def _usage(usage: types.UsageMetadata) -> types.GenerateContentResponseUsageMetadata:
    """Rename the live token counts to the names of other responses."""
    counts = {name: getattr(usage, name) for name in usage.model_fields_set}
    for live, common in (
        ("response_token_count", "candidates_token_count"),
        ("response_tokens_details", "candidates_tokens_details"),
    ):
        if live in counts:
            counts[common] = counts.pop(live)
    return types.GenerateContentResponseUsageMetadata(**counts)
