"""Tools as a request declares them, and the agents that can take over."""

import re
from typing import Any, cast

from adk_nb import types
from adk_nb.models.json_schemas import calling_of, functions_of, parameters_of
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.offline.words import DAYS, STOP, stem, word_set, words_of

TRANSFER = "transfer_to_agent"
_CHANGING = word_set(
    "add approve book borrow buy cancel change create delete deploy drop edit execute insert kill make move order pay "
    "post publish put refund remove rename replace reset restart run save sell send set start stop store submit "
    "transfer update"
)
_READING = word_set("get list find show look read search count describe tell check fetch")
_WEAK = _READING | word_set("give lookup make run compute do use call data value return")
"""Say little about which tool is meant."""
_LOOKUP = re.compile(r"\b(info|information|facts?|details?|look(s|ed)? ?up|lookup)\b", re.IGNORECASE)


class Parameter:
    """One argument of a tool."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool) -> None:
        self.name, self.required, self.words = name, required, words_of(name)
        self.is_list, self.description = schema.get("type") == "array", str(schema.get("description", ""))
        inner: dict[str, Any] = schema.get("items", {}) if self.is_list else schema
        self.kind, self.enum = str(inner.get("type", "any")), cast(list[Any], inner.get("enum", []))
        self.numeric = self.kind in ("integer", "number") and not self.enum
        dated = not {"day", "date", "time"}.isdisjoint(self.words) or str(schema.get("default")).lower() in DAYS
        self.form = str(inner.get("format", "")) or ("day" if dated and self.kind == "string" else "")

    def number(self, text: str) -> int | float | None:
        """`text` as a number of this type, if it is one."""
        if not re.fullmatch(r"[-+]?\d{1,15}(\.\d+)?", text) or ("." in text and self.kind == "integer"):
            return None
        return float(text) if "." in text else int(text)


class OfferedTool:
    """A tool, or an agent that can take over."""

    def __init__(self, name: str, description: str, parameters: list[Parameter], *, is_agent: bool = False) -> None:
        self.name, self.parameters, self.is_agent, self.words = name, parameters, is_agent, words_of(name)
        self.purpose = " ".join(description.split("\n\n")[0].split()).partition(". ")[0].rstrip(".")
        self.changing = next((word for word in self.words if word in _CHANGING and self.words[0] not in _READING), "")
        """The word of its name that says that it changes something."""
        self.looks_up = not self.changing and bool(_LOOKUP.search(f"{' '.join(self.words)} {self.purpose}"))
        enums = " ".join(str(value) for one in parameters for value in one.enum)
        more = " ".join([description, *(one.description for one in parameters)])
        texts = {name: 3.0, self.purpose: 1.5, enums: 1.2, " ".join(one.name for one in parameters): 1.0, more: 0.7}
        said = [(word, weight) for text, weight in reversed(texts.items()) for word in words_of(text)]
        self.weights = {stem(word): 0.6 if word in _WEAK else weight for word, weight in said if word not in STOP}
        """How much each stem says for it."""


def offered_tools(request: LlmRequest) -> list[OfferedTool]:
    """What `request` allows to call; then the agents, which its instruction describes as `- name: description`."""
    offered: list[OfferedTool] = []
    told = dict(re.findall(r"^- (\w+): (.*)$", str(request.config.system_instruction), re.MULTILINE))
    for declared in [] if calling_of(request).mode == types.FunctionCallingConfigMode.NONE else functions_of(request):
        schema, name = parameters_of(declared), declared.name or ""
        resolved = {key: _resolved(one, schema.get("$defs", {})) for key, one in schema["properties"].items()}
        parameters = [Parameter(key, one, required=key in schema["required"]) for key, one in resolved.items()]
        if name == TRANSFER:
            agents = parameters[0].enum if parameters else []
            offered += [OfferedTool(agent, told.get(agent, ""), [], is_agent=True) for agent in agents]
        else:
            offered.append(OfferedTool(name, declared.description or "", parameters))
    return sorted(offered, key=lambda tool: tool.is_agent)


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """`schema` with its reference followed, once, and of alternatives the first that is not null; in its items, too."""
    target = str(schema.get("$ref", "")).rpartition("/")[2]
    others = {name: one for name, one in definitions.items() if name != target}
    options = [one for one in [*schema.get("anyOf", []), definitions.get(target, {})] if one.get("type") != "null"]
    found = _resolved(options[0], others) | schema if options[0] else schema
    return found | {"items": _resolved(found["items"], others)} if isinstance(found.get("items"), dict) else found
