"""The model without a key: picks tools by keywords; not a language model."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.local_servers import servers_seen
from adk_nb.models.offline_arguments import Plan
from adk_nb.models.offline_tools import TRANSFER, Tool, offered_tools, plans
from adk_nb.models.offline_wording import MAX_ROWS, describe_result


def _model_hint() -> str:
    """How to get a language model; on this machine, if %doctor or Tab has found one."""
    if names := [name for server in servers_seen() for name in server.names[:1]]:
        return f"A language model answered on this machine: write -m {names[0]}"
    return "For a language model type %key gemini, %key openai or %key anthropic, or start Ollama."


def introduction(tools: Sequence[Tool], *, greeted: bool) -> str:
    """List the tools, and say how to get a language model."""
    start = "I am not a language model: I only pick a tool by the words of your message"
    if not tools:
        then = "" if servers_seen() else " Agents without a model then use it."
        return f"{start}, and this agent has no tools. {_model_hint()}{then}"
    lines = [f"{start}{'.' if greeted else ', and no tool matches it.'} The tools are:"]
    lines += [f"- {tool.signature}: {tool.purpose[:200]}".removesuffix(": ") for tool in tools[:MAX_ROWS]]
    lines += [f"- and {len(tools) - MAX_ROWS} more"] if len(tools) > MAX_ROWS else []
    return "\n".join([*lines, "", f"Ask in a tool's own words, for example: {tools[0].example}", "", _model_hint()])


def missing_arguments(tool: Tool, plan: Plan) -> str:
    """Name the missing arguments."""
    details = {
        parameter.name: f"one of {parameter.values}" if parameter.values else parameter.description.rstrip(".")
        for parameter in plan.missing
    }
    arguments = ", ".join(f"`{name}` ({text[:200]})" if text else f"`{name}`" for name, text in details.items())
    return f"To use `{tool.name}` I need {arguments}. Ask again in one message, for example: {tool.example}"


NAME = "offline"
_GREETING = re.compile(
    r"\W*(help|hi|hello|hey|good \w+|thanks|thank you|cancel|never ?mind|stop|wh(o|at) are you"
    r"|what can (you|i) (do|ask).*|what tools.*)?\W*",
    re.IGNORECASE,
)
_QUOTED = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>"
"""Marks a description of another agent's events."""


class OfflineLlm(BaseLlm):
    """A small deterministic stand-in that really calls tools: for readers without a key, and for tutorials.

    It picks the tool whose name, description and parameters share most words with the last message, and reads the
    arguments from it by type: names, numbers, quotes, dates, enum values. It asks for missing required arguments.
    Of a result with several facts it reports those that the message names, in a sentence made from the names of the
    tool, its arguments and the facts. Several values, or several clauses, make several calls. It calls nothing because
    of a result or of another agent, so neither can inject instructions. Agents that can take over are chosen like
    tools, by their names and descriptions.

    It is not a language model: it knows nothing, reads no instruction, writes no prose and fills in no output schema.
    It reads the first 1,000 characters of a message.
    """

    model: str = NAME
    pace_seconds: float = Field(default=0.02, ge=0, allow_inf_nan=False)
    """Pause between two streamed words, in seconds, so that a reader sees a stream."""

    @classmethod
    def supported_models(cls) -> list[str]:
        """The only name, `offline`."""
        return [NAME]

    @property
    def notice(self) -> str | None:
        """Shown with each answer."""
        seen = "".join(f" One answered on this machine: -m {server.names[0]}" for server in servers_seen()[:1])
        return f"Offline stand-in: picks tools by keywords. No language model.{seen}"

    @property
    def capabilities(self) -> LlmCapabilities:
        """The defaults, without tools that a service runs itself."""
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with calls, or with text, streamed word by word."""
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
    """The calls for the last message, or the text of the answer. After the results of calls nothing is called."""
    # None stands for the message of a request without one: then `last` is 0, and `later` are all contents.
    contents = [None, *request.contents]
    last = max(n for n, content in enumerate(contents) if not content or _is_message(content))
    message, later = _text(contents[last]), request.contents[last:]
    if results := _results([part for content in later for part in content.parts or []]):
        purposes = {tool.name: tool.purpose for tool in offered_tools(request)}
        texts = [
            describe_result(name, purposes.get(name, ""), args, response, message) for name, args, response in results
        ]
        # A few sentences are a paragraph; more of them, or longer texts, a list.
        is_short = len(texts) == 1 or (
            len(texts) <= 3 and not any("\n" in text or text[-1] not in ".!?" for text in texts)
        )
        return " ".join(texts) if is_short else "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
    # After a transfer the new agent answers: it does not transfer on, or back.
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
    """True for the user's own message: neither a tool result nor a description of another agent's events."""
    is_result = any(part.function_response for part in content.parts or [])
    return content.role in (None, "user") and not is_result and bool(_text(content)) and _QUOTED not in _text(content)


def _text(content: types.Content | None) -> str:
    parts = (content and content.parts) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _results(parts: Sequence[types.Part]) -> list[tuple[str, Mapping[str, Any], Any]]:
    """Tool, arguments and latest result of each call, in order."""
    answers = [part.function_response for part in parts if part.function_response]
    results: list[tuple[str, Mapping[str, Any], Any]] = []
    for call in [part.function_call for part in parts if part.function_call]:
        # Some services send no ids: then the first response of that name belongs to this call.
        if matches := [
            response
            for response in answers
            if response.name == call.name and (response.id or call.id) == (call.id or response.id)
        ]:
            answers.remove(answer := matches[-1 if call.id else 0])
            results.append((call.name or "", call.args or {}, answer.response))
    return results
