"""The tools and agents that a request offers, and the calls that match a message."""

import re
from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.models.json_schemas import allowed_functions, calling_config, parameters_schema
from adk_nb.models.llm_request import LlmRequest
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
