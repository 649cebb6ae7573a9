"""The model when there is no key: picks tools by keywords; not a language model."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.offline.answers import describe_result, introduction, missing_arguments
from adk_nb.models.offline.matching import TRANSFER, offered_tools, plans

NAME = "offline"
_GREETING = re.compile(
    r"\W*(help|hi|hello|hey|good \w+|thanks|thank you|cancel|never ?mind|stop|wh(o|at) are you"
    r"|what can (you|i) (do|ask).*|what tools.*)?\W*",
    re.IGNORECASE,
)
_QUOTED = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>"
"""In what another agent did."""


class OfflineLlm(BaseLlm):
    """A small deterministic stand-in that really calls tools: for readers without a key, and for tutorials.

    It picks the tool whose name, description and parameters share most words with the last message, and reads the
    arguments from it by type: names, numbers, quotes, dates, enum values. It asks for a required one that is not there.
    Of a result with several facts it tells those that the message names. Several values, or several clauses, make
    several calls. A result never makes it call anything, so what a tool returns cannot give it orders, and neither can
    another agent. Agents that can take over are chosen like tools, by their names and descriptions.

    It is not a language model: it knows nothing, reads no instruction, writes no prose and fills in no output schema.
    Of a message it reads the first 1,000 characters.
    """

    model: str = NAME
    pace_seconds: float = Field(default=0.02, ge=0, allow_inf_nan=False)
    """Pause between two streamed words, in seconds, so that a reader sees a stream."""

    @classmethod
    def supported_models(cls) -> list[str]:
        return [NAME]

    @property
    def notice(self) -> str | None:
        """What this is, for every view of its answers."""
        return "Offline stand-in: picks tools by keywords. No language model."

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = _answer(llm_request)
        if isinstance(answer, str):
            parts = [types.Part(text=answer)]
            for piece in re.findall(r"\S+\s*|\s+", answer) if stream else ():
                content = types.Content(role="model", parts=[types.Part(text=piece)])
                yield LlmResponse(content=content, partial=True, model_version=NAME)
                await asyncio.sleep(self.pace_seconds)
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in answer]
        content = types.Content(role="model", parts=parts)
        stop = types.FinishReason.STOP
        yield LlmResponse(content=content, turn_complete=True, finish_reason=stop, model_version=NAME)


def _answer(request: LlmRequest) -> str | list[tuple[str, dict[str, Any]]]:
    """The calls to make for the last message, or the answer in words. Once calls have results, nothing is called."""
    contents = [None, *request.contents]
    last = max(n for n, content in enumerate(contents) if not content or _is_message(content))
    message, later = _text(contents[last]), request.contents[last:]
    if results := _results([part for content in later for part in content.parts or []]):
        texts = [describe_result(*result, message) for result in results]
        return texts[0] if len(texts) == 1 else "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
    is_transferred = any(f"called tool `{TRANSFER}`" in _text(content) for content in later)
    tools = [tool for tool in offered_tools(request) if not (is_transferred and tool.is_agent)]
    is_greeting = bool(_GREETING.fullmatch(message))
    found_plans = [] if is_greeting else plans(tools, message)
    if found_plans and found_plans[0].missing:
        return missing_arguments(next(tool for tool in tools if tool.name == found_plans[0].tool), found_plans[0])
    agents = {tool.name for tool in tools if tool.is_agent}
    calls = [call for plan in found_plans if plan.tool not in agents for call in plan.calls()]
    calls += [(TRANSFER, {"agent_name": plan.tool}) for plan in found_plans if plan.tool in agents][:1]
    return [call for n, call in enumerate(calls) if call not in calls[:n]] or introduction(tools, greeted=is_greeting)


def _is_message(content: types.Content) -> bool:
    """Whether the user wrote it: it is no tool's result, and does not tell what another agent did."""
    is_result = any(part.function_response for part in content.parts or [])
    return content.role in (None, "user") and not is_result and bool(_text(content)) and _QUOTED not in _text(content)


def _text(content: types.Content | None) -> str:
    parts = (content and content.parts) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _results(parts: Sequence[types.Part]) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Tool, arguments and latest answer of each call, in the order of the calls."""
    answers = [part.function_response for part in parts if part.function_response]
    results: list[tuple[str, Mapping[str, Any], Any]] = []
    for call in [part.function_call for part in parts if part.function_call]:
        # Without ids, as some services send them, the first answer of that name is this call's.
        if matches := [
            response
            for response in answers
            if response.name == call.name and (response.id or call.id) == (call.id or response.id)
        ]:
            answers.remove(answer := matches[-1 if call.id else 0])
            results.append((call.name or "", call.args or {}, answer.response))
    return results
