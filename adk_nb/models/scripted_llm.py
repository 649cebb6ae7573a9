"""A model that answers from a script: for tests and for teaching."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.errors import ConfigurationError, ModelConnectionLost, UnexpectedModelAnswer
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.base_llm_connection import BaseLlmConnection, RealtimeInput
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse

Item = str | types.Part | LlmResponse | Exception
Answer = Item | Sequence[Item]
"""A text, a part, several of both in one answer; or complete responses and errors to raise, one or several in order."""
Turn = Sequence[LlmResponse | Exception]
"""Responses to one message; an error is raised in its place, and ends the connection."""


def call(tool: str, /, **args: Any) -> types.Part:
    """A part in which the model calls `tool`."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=args))


class ScriptedConnection(BaseLlmConnection):
    """Sends the script's next answer after each message, function response or end of speech of the user."""

    def __init__(self, next_turn: Callable[[], Turn]) -> None:
        self.sent: list[types.Content | RealtimeInput] = []
        """Everything that was sent, with the history, oldest first."""
        self.closed = False
        self._next_turn = next_turn
        self._turns: asyncio.Queue[Turn] = asyncio.Queue()

    async def send_history(self, history: Sequence[types.Content]) -> None:
        """Record the history; answer it if it ends with a user turn."""
        self.sent.extend(history)
        if history and history[-1].role == "user":
            self._answer()

    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        """Record a content; answer it unless it is partial."""
        self._record(content)
        if not partial:
            self._answer()

    async def send_realtime(self, blob: RealtimeInput) -> None:
        """Record a realtime input; answer the end of speech."""
        self._record(blob)
        stops = isinstance(blob, types.LiveClientRealtimeInput) and blob.audio_stream_end
        if stops or isinstance(blob, types.ActivityEnd):
            self._answer()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """Yield the responses to one message; none after the end."""
        if self.closed:
            return
        for item in await self._turns.get():
            if isinstance(item, Exception):
                self.closed = True
                raise item
            yield item

    async def close(self) -> None:
        """End `receive`."""
        self.closed = True
        # An empty turn wakes a reader that waits in `receive`.
        self._turns.put_nowait(())

    def _record(self, message: types.Content | RealtimeInput) -> None:
        if self.closed:
            raise ModelConnectionLost("the script has ended this connection")
        self.sent.append(message)

    def _answer(self) -> None:
        self._turns.put_nowait(self._next_turn())


class ScriptedLlm(BaseLlm):
    """Returns its answers in order and records every request.

    Streaming yields text word by word, or the strings of an answer with several as they are. A live conversation gets
    the next answer after each user message: texts and parts streamed, followed by `turn_complete` unless there is a
    call; responses as they are given.
    """

    model: str = "scripted"
    _answers: list[Answer] = PrivateAttr(default_factory=list[Answer])
    _answered: int = 0
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])
    _connections: list[ScriptedConnection] = PrivateAttr(default_factory=list[ScriptedConnection])

    def __init__(self, *answers: Answer, model: str = "scripted") -> None:
        for answer in answers:
            _check(answer)
        super().__init__(model=model)
        self._answers = list(answers)

    @property
    def requests(self) -> list[LlmRequest]:
        """Requests so far, oldest first; their contents as they were then."""
        return self._requests

    @property
    def connections(self) -> list[ScriptedConnection]:
        """Live conversations so far, oldest first, with everything that was sent in each."""
        return self._connections

    @property
    def capabilities(self) -> LlmCapabilities:
        """The defaults, without tools that a service runs itself."""
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with the script's next entry; UnexpectedModelAnswer after the last."""
        self._log_request(llm_request)
        answer = self._next()
        if isinstance(answer, Exception):
            raise answer
        for item in _verbatim(answer) or _responses(answer, turn_complete=True, stream=stream):
            if isinstance(item, Exception):
                raise item
            yield item

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[ScriptedConnection, None]:
        """Open a connection that is recorded in `connections`."""
        self._log_request(llm_request)
        connection = ScriptedConnection(self._next_turn)
        self._connections.append(connection)
        try:
            yield connection
        finally:
            await connection.close()

    def _log_request(self, llm_request: LlmRequest) -> None:
        # With a list of its own: the flow goes on appending to the request's.
        self._requests.append(llm_request.model_copy(update={"contents": list(llm_request.contents)}))

    def _next_turn(self) -> Turn:
        try:
            answer = self._next()
        except UnexpectedModelAnswer as error:
            # As a turn: `receive` raises it in the reader, where a service's error would come.
            return [error]
        if items := _verbatim(answer):
            return items
        responses = _responses(answer, turn_complete=None, stream=True)
        return responses if responses[-1].get_function_calls() else [*responses, LlmResponse(turn_complete=True)]

    def _next(self) -> Answer:
        self._answered += 1
        count, requests = len(self._answers), self._answered
        if requests > count:
            raise UnexpectedModelAnswer(
                f"The script has {count} {'answer' if count == 1 else 'answers'} but was asked "
                f"{'once' if requests == 1 else 'twice' if requests == 2 else f'{requests} times'}. "
                "Add the missing answer, or find out why the agent asked again"
            )
        return self._answers[self._answered - 1]


def _check(answer: Any) -> None:
    if isinstance(answer, list | tuple):
        for item in cast(Sequence[Any], answer):
            _check(item)
    elif not isinstance(answer, Item):
        raise ConfigurationError(
            f"a script takes texts, parts, LlmResponses and errors, got {answer!r:.80}; "
            "write ScriptedLlm('Hello', call('tool', key='value'))"
        )


def _verbatim(answer: Answer) -> list[LlmResponse | Exception]:
    """Responses and errors of an answer, which are returned as they are; empty if it has texts and parts."""
    return [item for item in _items(answer) if isinstance(item, LlmResponse | Exception)]


def _responses(answer: Answer, *, turn_complete: bool | None, stream: bool) -> list[LlmResponse]:
    """Texts and parts as a model's responses: streamed if asked to, then complete."""
    items = [item for item in _items(answer) if isinstance(item, str | types.Part)]
    pieces = [types.Content(role="model", parts=[types.Part(text=text)]) for text in _pieces(items)] if stream else []
    text = "".join(item for item in items if isinstance(item, str))
    parts = [*([types.Part(text=text)] if text else ()), *(item for item in items if isinstance(item, types.Part))]
    complete = types.Content(role="model", parts=parts)
    return [
        *(LlmResponse(content=piece, partial=True) for piece in pieces),
        LlmResponse(content=complete, turn_complete=turn_complete),
    ]


def _items(answer: Answer) -> Sequence[Item]:
    return [answer] if isinstance(answer, str | types.Part | LlmResponse | Exception) else answer


def _pieces(items: list[types.Part | str]) -> list[str]:
    """Pieces of a streamed answer: several strings as they are, a single one word by word."""
    texts = [item for item in items if isinstance(item, str)]
    return texts if len(texts) > 1 else [piece for text in texts for piece in re.findall(r"\S+\s*|\s+", text)]
