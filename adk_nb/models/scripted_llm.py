"""A model that answers from a list: for tests and for teaching."""

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.errors import UnexpectedModelAnswer
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse

Answer = str | types.Part | Sequence[types.Part | str] | LlmResponse | Exception
"""Words, a part, several parts of one answer, a whole response, or an error to raise."""


def call(tool: str, /, **args: Any) -> types.Part:
    """A part in which the model calls `tool`."""
    return types.Part(function_call=types.FunctionCall(name=tool, args=args))


class ScriptedLlm(BaseLlm):
    """Gives its answers in order and keeps every request it was asked.

    When asked to stream, text comes word by word; text given as several strings comes in just those pieces.
    """

    model: str = "scripted"
    _answers: list[Answer] = PrivateAttr(default_factory=list[Answer])
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list[LlmRequest])

    def __init__(self, *answers: Answer, model: str = "scripted") -> None:
        super().__init__(model=model)
        self._answers = list(answers)

    @property
    def requests(self) -> list[LlmRequest]:
        """What it was asked, oldest first; a request's contents as they were then."""
        return self._requests

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request.model_copy(update={"contents": list(llm_request.contents)}))
        answer = self._next()
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, LlmResponse):
            yield answer
            return
        given = [answer] if isinstance(answer, str | types.Part) else list(answer)
        if stream:
            for piece in _pieces(given):
                yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=piece)]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=_whole(given)), turn_complete=True)

    def _next(self) -> Answer:
        asked = len(self._requests)
        if asked > len(self._answers):
            raise UnexpectedModelAnswer(
                f"the script has {len(self._answers)} answers and was asked {asked} times; "
                "add the missing answer, or look why the agent asked again"
            )
        return self._answers[asked - 1]


def _pieces(given: list[types.Part | str]) -> list[str]:
    """Text as it is streamed: several strings as they are, a single one word by word."""
    texts = [one for one in given if isinstance(one, str)]
    return texts if len(texts) > 1 else [word for text in texts for word in re.findall(r"\S+\s*|\s+", text)]


def _whole(given: list[types.Part | str]) -> list[types.Part]:
    text = "".join(one for one in given if isinstance(one, str))
    parts = [one for one in given if isinstance(one, types.Part)]
    return [types.Part(text=text), *parts] if text else parts
