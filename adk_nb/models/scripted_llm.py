"""A model that answers from a list: for tests and for teaching."""

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

Given = str | types.Part | LlmResponse | Exception
Answer = Given | Sequence[Given]
"""Words, a part, several of both in one answer; or whole responses and errors to raise, one or several in order."""
Turn = Sequence[LlmResponse | Exception]
"""All that comes for one thing that was said; an error is raised in its place, and ends the connection."""


def call(tool: str, /, **args: Any) -> types.Part:
    """A part in which the model calls `tool`."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=args))


class ScriptedConnection(BaseLlmConnection):
    """Gives the script's next answer whenever the user has said something: words, results, or the end of speech."""

    def __init__(self, next_turn: Callable[[], Turn]) -> None:
        self.sent: list[types.Content | RealtimeInput] = []
        """What was sent, history included, oldest first."""
        self.closed = False
        self._next_turn = next_turn
        self._turns: asyncio.Queue[Turn] = asyncio.Queue()

    async def send_history(self, history: Sequence[types.Content]) -> None:
        self.sent.extend(history)
        if history and history[-1].role == "user":
            self._answer()

    async def send_content(self, content: types.Content, *, partial: bool = False) -> None:
        self._keep(content)
        if not partial:
            self._answer()

    async def send_realtime(self, blob: RealtimeInput) -> None:
        self._keep(blob)
        stops = isinstance(blob, types.LiveClientRealtimeInput) and blob.audio_stream_end
        if stops or isinstance(blob, types.ActivityEnd):
            self._answer()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        if self.closed:
            return
        for one in await self._turns.get():
            if isinstance(one, Exception):
                self.closed = True
                raise one
            yield one

    async def close(self) -> None:
        self.closed = True
        self._turns.put_nowait(())

    def _keep(self, said: types.Content | RealtimeInput) -> None:
        if self.closed:
            raise ModelConnectionLost("the script has ended this connection")
        self.sent.append(said)

    def _answer(self) -> None:
        self._turns.put_nowait(self._next_turn())


class ScriptedLlm(BaseLlm):
    """Gives its answers in order and keeps every request it was asked.

    When asked to stream, text comes word by word; text given as several strings comes in just those pieces. In a live
    conversation the next answer comes when the user has said something; words and parts as they are streamed, and
    without a call `turn_complete` after them; responses just as they are given.
    """

    model: str = "scripted"
    _answers: list[Answer] = PrivateAttr(default_factory=list[Answer])
    _given: int = 0
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])
    _connections: list[ScriptedConnection] = PrivateAttr(default_factory=list[ScriptedConnection])

    def __init__(self, *answers: Answer, model: str = "scripted") -> None:
        for one in answers:
            _check(one)
        super().__init__(model=model)
        self._answers = list(answers)

    @property
    def requests(self) -> list[LlmRequest]:
        """What it was asked, oldest first; a request's contents as they were then."""
        return self._requests

    @property
    def connections(self) -> list[ScriptedConnection]:
        """The live conversations it held, oldest first, with what was sent in each."""
        return self._connections

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._asked(llm_request)
        answer = self._next()
        if isinstance(answer, Exception):
            raise answer
        for one in _as_given(answer) or _as_said(answer, turn_complete=True, stream=stream):
            if isinstance(one, Exception):
                raise one
            yield one

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[ScriptedConnection, None]:
        self._asked(llm_request)
        connection = ScriptedConnection(self._next_turn)
        self._connections.append(connection)
        try:
            yield connection
        finally:
            await connection.close()

    def _asked(self, llm_request: LlmRequest) -> None:
        self._requests.append(llm_request.model_copy(update={"contents": list(llm_request.contents)}))

    def _next_turn(self) -> Turn:
        try:
            answer = self._next()
        except UnexpectedModelAnswer as error:
            return [error]
        if given := _as_given(answer):
            return given
        said = _as_said(answer, turn_complete=None, stream=True)
        return said if said[-1].get_function_calls() else [*said, LlmResponse(turn_complete=True)]

    def _next(self) -> Answer:
        self._given += 1
        count, asked = len(self._answers), self._given
        if asked > count:
            raise UnexpectedModelAnswer(
                f"The script has {count} {'answer' if count == 1 else 'answers'} but was asked "
                f"{'once' if asked == 1 else 'twice' if asked == 2 else f'{asked} times'}. "
                "Add the missing answer, or look why the agent asked again"
            )
        return self._answers[self._given - 1]


def _check(answer: Any) -> None:
    if isinstance(answer, list | tuple):
        for one in cast(Sequence[Any], answer):
            _check(one)
    elif not isinstance(answer, Given):
        raise ConfigurationError(
            f"a script has texts, parts, LlmResponses and errors, and not {answer!r:.80}; "
            "write ScriptedLlm('Hello', call('tool', key='value'))"
        )


def _as_given(answer: Answer) -> list[LlmResponse | Exception]:
    """What is to come as it is; empty if these are words and parts."""
    return [one for one in _several(answer) if isinstance(one, LlmResponse | Exception)]


def _as_said(answer: Answer, *, turn_complete: bool | None, stream: bool) -> list[LlmResponse]:
    """Words and parts as a model says them: in pieces if it streams, then whole."""
    said = [one for one in _several(answer) if isinstance(one, str | types.Part)]
    pieces = [types.Content(role="model", parts=[types.Part(text=one)]) for one in _pieces(said)] if stream else []
    whole = types.Content(role="model", parts=_whole(said))
    return [
        *(LlmResponse(content=piece, partial=True) for piece in pieces),
        LlmResponse(content=whole, turn_complete=turn_complete),
    ]


def _several(answer: Answer) -> Sequence[Given]:
    return [answer] if isinstance(answer, str | types.Part | LlmResponse | Exception) else answer


def _pieces(given: list[types.Part | str]) -> list[str]:
    """Text as it is streamed: several strings as they are, a single one word by word."""
    texts = [one for one in given if isinstance(one, str)]
    return texts if len(texts) > 1 else [word for text in texts for word in re.findall(r"\S+\s*|\s+", text)]


def _whole(given: list[types.Part | str]) -> list[types.Part]:
    text = "".join(one for one in given if isinstance(one, str))
    parts = [one for one in given if isinstance(one, types.Part)]
    return [types.Part(text=text), *parts] if text else parts
