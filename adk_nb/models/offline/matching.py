"""The tools and agents that a request offers, and those that a message means."""

import re
from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.models.json_schemas import allowed_functions, calling_config, parameters_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.offline.arguments import Parameter, Plan, Reader
from adk_nb.models.offline.words import CHANGING, NEGATIONS, STOP, likeness, stem, tokenize, words_of

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
        self.verb = next((word for word in self.words[:2] if word in CHANGING and self.words[0] not in STOP), "")
        """The word of its name that says that it changes something."""
        # One that does not list what it knows may know any fact of a name.
        self.looks_up = not self.verb and "," not in self.purpose and bool(_LOOKUP.search(" ".join(self.topic)))
        details = " ".join([description, *(parameter.description for parameter in parameters)])
        names = " ".join(f"{parameter.name} {parameter.values}" for parameter in parameters)
        texts = {details: 0.7, names: 1.0, " ".join(self.topic): 1.5, name: 3.0}
        self.weights = {stem(word): weight for text, weight in texts.items() for word in {*words_of(text)} - STOP}
        """How much each stem speaks for it."""

    @property
    def signature(self) -> str:
        """As a model's author reads it; optional arguments have a question mark."""
        parameters = ", ".join(
            parameter.name if parameter.required else f"{parameter.name}?" for parameter in self.parameters
        )
        return f"the agent `{self.name}`" if self.is_agent else f"`{self.name}({parameters})`"

    @property
    def example(self) -> str:
        """A message that calls it."""
        arguments = [
            f"{parameter.name} = {parameter.values[0] if parameter.values else '…'}"
            for parameter in self.parameters
            if parameter.required
        ]
        return ", ".join([" ".join(self.words), *arguments])

    def plan(self, message: str) -> Plan:
        """The arguments that a message has for it."""
        return Reader(self.parameters, self.topic, message).plan(self.name)


def offered_tools(request: LlmRequest) -> list[Tool]:
    """What `request` allows to call; then the agents, which its instruction describes as `- name: description`."""
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
    """The calls for `message`, in its order; a plan that lacks arguments is the only one."""
    clauses = [_best_plan(tools, clause) for clause in _CLAUSES.split(message) if clause.strip()]
    complete = [plan for plan in clauses if plan and not plan.missing]
    if len({plan.tool for plan in complete}) > 1:
        return complete
    if best := _best_plan(tools, message):
        return [best]
    if message.lower().startswith("who ") or not NEGATIONS.isdisjoint(message.lower().split()):
        return []
    # No word fits: the one tool whose arguments are all that the message has, or the one that looks up what it names.
    found = [(tool, tool.plan(message)) for tool in tools if not tool.verb]
    found = [(tool, plan) for tool, plan in found if plan.used and not plan.missing and "text" not in plan.used]
    whole = [plan for _, plan in found if not plan.spare and (len(plan.values) > 1 or "word" not in plan.used)]
    begin = words_of(message)[:1]  # may be a verb: `Sing me a song`
    found = [(tool, plan) for tool, plan in found if tool.looks_up and "word" not in plan.used]
    fitting = whole or [plan for _, plan in found if words_of(str(next(iter(plan.values.values()))[0]))[:1] != begin]
    return fitting if len(fitting) == 1 else []


def _best_plan(tools: Sequence[Tool], message: str) -> Plan | None:
    """The tool that shares most words with `message`, if these are enough, and uses most of its values."""
    best: tuple[float, Plan | None] = (0.25, None)
    for tool in tools:
        if (score := _score(tool, message, tools)) >= 0.5:
            plan = tool.plan(message)
            unused = 0 if tool.is_agent else sum(kind != "word" for kind in plan.spare)
            score += 0.5 * len(plan.values) - 1.25 * len(plan.missing) - unused
            best = max(best, (score, plan), key=lambda pair: pair[0])
    return best[1]


def _score(tool: Tool, message: str, tools: Sequence[Tool]) -> float:
    """How much the words of `message` speak for a tool; a word that others have, too, speaks less."""
    tokens = [(kind, text.lower()) for kind, text in tokenize(message) if kind != "quoted" and text not in ".,;:?!"]
    places = {word: n for n, (kind, text) in enumerate(tokens) if kind != "stop" for word in words_of(text) or [text]}
    total, is_meant, name = 0.0, not tool.verb, set(map(stem, tool.words))
    for word, n in places.items():
        weight, known = max((weight * likeness(word, each), each) for each, weight in [*tool.weights.items(), ("", 0)])
        if weight and known in name and not NEGATIONS.isdisjoint(text for _, text in tokens[max(0, n - 2) : n]):
            return 0.0
        is_meant |= bool(tool.verb and likeness(word, tool.verb))
        total += weight / max(1, sum(known in other.weights for other in tools)) ** 0.5
    return total if is_meant else 0.0


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its reference followed, and of alternatives the first that is not null; in its items, too."""
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"] or [{}]
    found = schema | definitions.get(str(options[0].get("$ref", "")).rpartition("/")[2], options[0])
    return found | {"items": _resolved(found["items"], definitions)} if isinstance(found.get("items"), dict) else found
