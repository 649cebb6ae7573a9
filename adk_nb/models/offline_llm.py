"""The model when there is no key: calls tools by matching words; not a language model."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.offline.answers import QUESTION, introduction, question_for, result_in_words
from adk_nb.models.offline.choice import FOLLOWS, plans
from adk_nb.models.offline.tools import TRANSFER, offered_tools
from adk_nb.models.offline.words import MAX_CHARS

NAME = "offline"
_PIECE = re.compile(r"\S+\s*|\s+")
_DROPPED = re.compile(r"\W*(cancel|never ?mind|forget (it|that)|stop)\W*", re.IGNORECASE)
_GREETING = re.compile(
    r"\W*(help|hi|hello|hey|good \w+|thanks|thank you|wh(o|at) are you|what can (you|i) (do|ask).*|what tools.*)?\W*",
    re.IGNORECASE,
)
_QUOTED = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>"
"""In what another agent did."""


class OfflineLlm(BaseLlm):
    """A small deterministic stand-in that really calls tools: for readers without a key, and for tutorials.

    It picks the tool whose name, description and parameters share most words with the last message, and reads the
    arguments from it by type: names, numbers, quotes, dates, enum values, yes and no. It asks for a required one that
    is not there. Of a result with several facts it tells those that the message names. Several values, or several
    clauses, make several calls. A result never makes it call anything, so what a tool returns cannot give it orders,
    and neither can another agent. Agents that can take over are chosen like tools, by their names and descriptions.

    It is not a language model. It knows nothing, reads no instruction, writes no prose. It knows English word endings
    and a few hints, such as that "heavy" asks for a mass. It does not plan: a result is never the next call's argument.
    It cannot answer in an output schema. Of a message it reads the first 4,000 characters.
    """

    model: str = NAME
    pace_seconds: float = Field(default=0.02, ge=0, allow_inf_nan=False)
    """Pause between two streamed words, in seconds, so that a reader sees a stream."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return [NAME]

    @property
    def notice(self) -> str | None:
        """What this is, for every view of its words."""
        return "offline: a small matcher that calls tools by their words, not a language model"

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = _Turn(llm_request).answer()
        if isinstance(answer, str):
            parts = [types.Part(text=answer)]
            for piece in _PIECE.findall(answer) if stream else ():
                content = types.Content(role="model", parts=[types.Part(text=piece)])
                yield LlmResponse(content=content, partial=True, model_version=NAME)
                await asyncio.sleep(self.pace_seconds)
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in answer]
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            turn_complete=True,
            finish_reason=types.FinishReason.STOP,
            model_version=NAME,
        )


class _Turn:
    """The last message of a conversation, and the results of the calls made for it."""

    def __init__(self, request: LlmRequest) -> None:
        quoted = [_QUOTED in _text(content) for content in request.contents]
        messages = [n for n, content in enumerate(request.contents) if _text(content, "user") and not quoted[n]]
        last = max(messages, default=-1)
        after = request.contents[last + 1 :]
        self.message = _text(request.contents[last])[:MAX_CHARS] if messages else ""
        self.before = [content for n, content in enumerate(request.contents) if n < last and not quoted[n]]
        while self._was_question() and not _DROPPED.fullmatch(self.message):
            self.message = f"{_text(self.before[-2])} .\n{self.message}"
            self.before = self.before[:-2]
        self.results = _results([part for content in after for part in content.parts or []])
        handed_over = any(f"called tool `{TRANSFER}`" in _text(content) for content in after)
        self.offered = [tool for tool in offered_tools(request) if not (handed_over and tool.is_agent)]

    def answer(self) -> str | list[tuple[str, dict[str, Any]]]:
        """The calls to make, or the words to say. Once calls have results, nothing more is called."""
        if self.results:
            earlier = [text for content in reversed(self.before) if (text := _text(content, "user"))]
            questions = [self.message, *earlier[: bool(FOLLOWS.match(self.message))]]
            texts = [result_in_words(*result, questions) for result in self.results]
            return texts[0] if len(texts) == 1 else "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
        if self._was_question():
            return "Then it is not called."
        greeted = bool(_GREETING.fullmatch(self.message))
        found = [] if greeted else plans(self.offered, self.message, self._calls())
        if found and found[0].missing:
            return question_for(found[0])
        calls = [call for plan in found if not plan.tool.is_agent for call in plan.calls()]
        calls += [(TRANSFER, {"agent_name": plan.tool.name}) for plan in found if plan.tool.is_agent][:1]
        calls = [call for n, call in enumerate(calls) if call not in calls[:n]]
        return calls or introduction(self.offered, greeted=greeted)

    def _was_question(self) -> bool:
        """Whether the last answer asked for an argument."""
        return len(self.before) > 1 and bool(QUESTION.match(_text(self.before[-1], "model")))

    def _calls(self) -> dict[str, Mapping[str, Any]]:
        """The latest arguments of each tool called before, the latest tool first."""
        calls = [part.function_call for content in self.before for part in content.parts or [] if part.function_call]
        names = dict.fromkeys(call.name or "" for call in reversed(calls))
        return {name: next(call.args or {} for call in reversed(calls) if call.name == name) for name in names}


def _text(content: types.Content, role: str = "") -> str:
    """The text of `content`, if it is one of that role and no tool's answer."""
    parts = content.parts or []
    other = role and ((content.role or "user") != role or any(part.function_response for part in parts))
    return "" if other else "\n".join(part.text for part in parts if part.text and not part.thought)


def _results(parts: Sequence[types.Part]) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Tool, arguments and latest answer of each call, in the order of the calls."""
    answers = [part.function_response for part in parts if part.function_response]
    results: list[tuple[str, Mapping[str, Any], Any]] = []
    for call in [part.function_call for part in parts if part.function_call]:
        # Without ids, as some services send them, the first answer of that name is this call's.
        if mine := [one for one in answers if one.name == call.name and (one.id or call.id) == (call.id or one.id)]:
            answers.remove(answer := mine[-1 if call.id else 0])
            results.append((call.name or "", call.args or {}, answer.response))
    return results
