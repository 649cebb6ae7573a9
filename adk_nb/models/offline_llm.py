"""The model without a key: picks tools by keywords; not a language model."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.default_model import servers_seen
from adk_nb.models.json_schemas import allowed_functions, calling_config, parameters_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.offline_arguments import (
    CHANGING,
    NEGATIONS,
    STOP,
    ArgumentReader,
    Parameter,
    Plan,
    likeness,
    stem,
    tokenize,
    words_of,
)
from adk_nb.models.offline_wording import MAX_ROWS, describe_result

# ---- the tools that a request offers, and which of them a message asks for

TRANSFER = "transfer_to_agent"
_LOOKUP = re.compile(r"\b(info|information|facts?|details?|look(s|ed)? ?up|lookup)\b", re.IGNORECASE)
_EXAMPLES = re.compile(r"\b(for example|for instance|e\.g\.|such as)[^.;)]*", re.IGNORECASE)
_CLAUSES = re.compile(r"[.?!;\n]\s+|\s*,?\s+(?:and\s+then|then|and\s+also|and|also)\s+", re.IGNORECASE)


class Tool:
    """A tool, or an agent that can take over."""

    def __init__(self, name: str, description: str, parameters: list[Parameter], *, is_agent: bool = False) -> None:
        self.name, self.parameters, self.is_agent, self.words = name, parameters, is_agent, words_of(name)
        self.purpose = " ".join(description.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        self.topic = [*self.words, *words_of(_EXAMPLES.sub("", self.purpose))]
        self.verb = next((term for term in self.words[:2] if term in CHANGING and self.words[0] not in STOP), "")
        """The word of its name that names a change."""
        # A lookup tool that does not list its facts may know any fact about a name.
        self.looks_up = not self.verb and "," not in self.purpose and bool(_LOOKUP.search(" ".join(self.topic)))
        details = " ".join([description, *(parameter.description for parameter in parameters)])
        names = " ".join(f"{parameter.name} {parameter.values}" for parameter in parameters)
        texts = {details: 0.7, names: 1.0, " ".join(self.topic): 1.5, name: 3.0}
        # Weights rise from text to text, so a stem in several has the highest.
        self.weights = {stem(term): weight for text, weight in texts.items() for term in {*words_of(text)} - STOP}
        """Weight of each stem in the choice of this tool."""

    @property
    def signature(self) -> str:
        """Name and parameters; optional ones have a question mark."""
        parameters = ", ".join(
            parameter.name if parameter.required else f"{parameter.name}?" for parameter in self.parameters
        )
        return f"the agent `{self.name}`" if self.is_agent else f"`{self.name}({parameters})`"

    @property
    def example(self) -> str:
        """Example of a message that calls the tool."""
        arguments = [
            f"{parameter.name} = {parameter.values[0] if parameter.values else '…'}"
            for parameter in self.parameters
            if parameter.required
        ]
        return ", ".join([" ".join(self.words), *arguments])

    def plan(self, message: str) -> Plan:
        """Read the arguments of the tool from a message."""
        return ArgumentReader(self.parameters, self.topic, message).plan(self.name)


def offered_tools(request: LlmRequest) -> list[Tool]:
    """The tools of `request`, then the agents, which its instruction lists as `- name: description`."""
    tools: list[Tool] = []
    descriptions = dict(re.findall(r"^- (\w+): (.*)$", str(request.config.system_instruction), re.MULTILINE))
    for declaration in (
        [] if calling_config(request).mode == types.FunctionCallingConfigMode.NONE else allowed_functions(request)
    ):
        schema, name = parameters_schema(declaration), declaration.name or ""
        resolved = {key: _resolved(value, schema.get("$defs", {})) for key, value in schema["properties"].items()}
        parameters = [Parameter(key, value, required=key in schema["required"]) for key, value in resolved.items()]
        agents = [enum for parameter in parameters for enum in parameter.values] if name == TRANSFER else []
        tools += [Tool(agent, descriptions.get(agent, ""), [], is_agent=True) for agent in agents]
        tools += [Tool(name, declaration.description or "", parameters)] if name != TRANSFER else []
    return sorted(tools, key=lambda tool: tool.is_agent)


def plans(tools: Sequence[Tool], message: str) -> list[Plan]:
    """Plans of the calls for `message`, in its order; a plan with missing arguments is the only one."""
    clauses = [_best_plan(tools, clause) for clause in _CLAUSES.split(message) if clause.strip()]
    complete = [plan for plan in clauses if plan and not plan.missing]
    if len({plan.tool for plan in complete}) > 1:
        return complete
    if best := _best_plan(tools, message):
        return [best]
    if message.lower().startswith("who ") or not NEGATIONS.isdisjoint(message.lower().split()):
        return []
    # No word matches: take the only tool whose arguments are the whole message, or the only lookup of a name in it.
    candidates = [(tool, tool.plan(message)) for tool in tools if not tool.verb]
    candidates = [
        (tool, plan) for tool, plan in candidates if plan.used and not plan.missing and "text" not in plan.used
    ]
    full_plans = [
        plan for _, plan in candidates if not plan.spare and (len(plan.values) > 1 or "word" not in plan.used)
    ]
    first_word = words_of(message)[:1]  # may be a verb: `Sing me a song`
    candidates = [(tool, plan) for tool, plan in candidates if tool.looks_up and "word" not in plan.used]
    matches = full_plans or [
        plan for _, plan in candidates if words_of(str(next(iter(plan.values.values()))[0]))[:1] != first_word
    ]
    return matches if len(matches) == 1 else []


def _best_plan(tools: Sequence[Tool], message: str) -> Plan | None:
    """Plan of the tool that shares most words with `message` and uses most of its values; None below a threshold."""
    best: tuple[float, Plan | None] = (0.25, None)
    for tool in tools:
        if (score := _score(tool, message, tools)) >= 0.5:
            plan = tool.plan(message)
            unused = 0 if tool.is_agent else sum(kind != "word" for kind in plan.spare)
            score += 0.5 * len(plan.values) - 1.25 * len(plan.missing) - unused
            best = max(best, (score, plan), key=lambda pair: pair[0])
    return best[1]


def _score(tool: Tool, message: str, tools: Sequence[Tool]) -> float:
    """Score of a tool for `message`; a word that other tools have, too, counts less."""
    tokens = [(kind, text.lower()) for kind, text in tokenize(message) if kind != "quoted" and text not in ".,;:?!"]
    positions = {
        term: n for n, (kind, text) in enumerate(tokens) if kind != "stop" for term in words_of(text) or [text]
    }
    weights = [*tool.weights.items(), ("", 0)]
    total, mentions_verb, name = 0.0, not tool.verb, set(map(stem, tool.words))
    for term, n in positions.items():
        weight, best_term = max((weight * likeness(term, tool_term), tool_term) for tool_term, weight in weights)
        if weight and best_term in name and not NEGATIONS.isdisjoint(text for _, text in tokens[max(0, n - 2) : n]):
            return 0.0
        mentions_verb |= bool(tool.verb and likeness(term, tool.verb))
        total += weight / max(1, sum(best_term in candidate.weights for candidate in tools)) ** 0.5
    return total if mentions_verb else 0.0


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Resolve the reference of `schema`, or its first alternative that is not null; in its items, too."""
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"] or [{}]
    resolved = schema | definitions.get(str(options[0].get("$ref", "")).rpartition("/")[2], options[0])
    if isinstance(resolved.get("items"), dict):
        resolved |= {"items": _resolved(resolved["items"], definitions)}
    return resolved


# ---- the model


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


_STREAM_SECONDS = 0.25
"""The most that all pauses of an answer take."""


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
    """Pause between two streamed words, in seconds, so that a reader sees a stream; shorter in a long answer."""

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
            pieces: list[str] = re.findall(r"\S+\s*|\s+", answer) if stream else []
            pause = min(self.pace_seconds, _STREAM_SECONDS / max(1, len(pieces)))
            for piece in pieces:
                content = types.Content(role="model", parts=[types.Part(text=piece)])
                yield LlmResponse(content=content, partial=True, model_version=NAME)
                await asyncio.sleep(pause)
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
