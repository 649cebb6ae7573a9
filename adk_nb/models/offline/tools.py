"""What the tools of a request are called and take, read from their JSON schemas; and whom it can be handed over to."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.offline.words import words_of

_MAX_DEPTH = 8
TRANSFER = "transfer_to_agent"
_BOOLEANS = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One argument that a tool takes."""

    name: str
    kind: str
    """JSON Schema's: string, integer, number, boolean, array, object; `any` when it does not say."""
    description: str = ""
    enum: tuple[Any, ...] = ()
    form: str = ""
    """JSON Schema's `format`, such as date."""
    required: bool = False
    default: Any = None
    lowest: float = float("-inf")
    highest: float = float("inf")
    items: "Parameter | None" = None
    """Of an array: what it holds."""
    words: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(words_of(self.name)))

    @property
    def textual(self) -> bool:
        """Any text will do."""
        return self.kind in ("string", "any") and not self.enum

    @property
    def numeric(self) -> bool:
        """Any number will do."""
        return self.kind in ("integer", "number") and not self.enum

    @property
    def sort(self) -> object:
        """Parameters of one sort compete for the same values."""
        return self.enum or ("number" if self.numeric else self.kind)

    def about(self, words: frozenset[str]) -> bool:
        """Its name has one of `words`."""
        return not words.isdisjoint(self.words)

    def typed(self, text: str) -> Any:
        """`text` as a value of its type, or None when it is none."""
        text = text.strip()
        if self.enum:
            return next((one for one in self.enum if str(one).lower() == text.lower()), None)
        if self.kind == "boolean":
            return _BOOLEANS.get(text.lower())
        return self._number(text) if self.numeric else text or None

    def _number(self, text: str) -> int | float | None:
        try:
            number = float(text.replace(",", ""))
        except ValueError:
            return None
        if not math.isfinite(number) or not self.lowest <= number <= self.highest:
            return None
        if number.is_integer() and "." not in text:
            return int(number)
        return None if self.kind == "integer" and not number.is_integer() else number


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool as its declaration tells it."""

    name: str
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    takes_over: bool = False
    """It is no tool but an agent to hand over to."""
    words: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(words_of(self.name)))

    @property
    def purpose(self) -> str:
        """The first sentence of its description."""
        line = " ".join(self.description.split("\n\n")[0].split())
        return line.partition(". ")[0].rstrip(".")


def offered_tools(request: LlmRequest) -> list[OfferedTool]:
    """The tools that `request` offers and its `tool_config` allows, in their order; then the agents that can take over.

    What those are good at is told in the system instruction, a line each: `- name: description`.
    """
    config = to_jsonable_python(request.config, by_alias=False, exclude_none=True, fallback=lambda _: {})
    calling: dict[str, Any] = config.get("tool_config", {}).get("function_calling_config", {})
    if calling.get("mode") == types.FunctionCallingConfigMode.NONE.value:
        return []
    allowed = calling.get("allowed_function_names")
    declared = [one for tool in config.get("tools", []) for one in tool.get("function_declarations", [])]
    found = [_tool(one) for one in declared if one.get("name") and (not allowed or one["name"] in allowed)]
    over = next((one for one in found if one.name == TRANSFER and one.parameters), None)
    if not over:
        return found
    told = str(config.get("system_instruction", ""))
    agents = [_agent(str(name), told) for one in over.parameters for name in one.enum]
    return [*(one for one in found if one is not over), *agents]


def _agent(name: str, told: str) -> OfferedTool:
    line = re.search(rf"^- {re.escape(name)}: (.*)$", told, re.MULTILINE)
    return OfferedTool(name=name, description=line[1] if line else "", takes_over=True)


def _tool(declared: dict[str, Any]) -> OfferedTool:
    schema: dict[str, Any] = declared.get("parameters_json_schema") or declared.get("parameters") or {}
    definitions: dict[str, Any] = schema.get("$defs", schema.get("defs", {}))
    required: Sequence[str] = schema.get("required", [])
    found = [
        _parameter(name, one, definitions, required=name in required)
        for name, one in cast(dict[str, Any], schema.get("properties", {})).items()
    ]
    return OfferedTool(name=declared["name"], description=declared.get("description", ""), parameters=tuple(found))


def _parameter(
    name: str, schema: Any, definitions: dict[str, Any], *, required: bool = False, depth: int = 0
) -> Parameter:
    said = _resolved(schema, definitions)
    kind = said.get("type", "any")
    if isinstance(kind, list):
        kind = next((one for one in cast(list[str], kind) if one != "null"), "any")
    enum = [said["const"]] if "const" in said else said.get("enum", [])
    items = said.get("items")
    inner = _parameter(name, items, definitions, depth=depth + 1) if items and depth < _MAX_DEPTH else None
    return Parameter(
        name=name,
        kind=str(kind).lower(),
        description=str(said.get("description", "")),
        enum=tuple(enum),
        form=str(said.get("format", "")),
        required=required,
        default=said.get("default"),
        lowest=said.get("minimum", said.get("exclusiveMinimum", float("-inf"))),
        highest=said.get("maximum", said.get("exclusiveMaximum", float("inf"))),
        items=inner,
    )


def _resolved(schema: Any, definitions: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """A schema with its reference followed and, of several alternatives, the first that is not null."""
    said: dict[str, Any] = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    if depth > _MAX_DEPTH:
        return {}
    if reference := said.get("$ref", said.get("ref")):
        target = definitions.get(str(reference).rpartition("/")[2], {})
        return {**_resolved(target, definitions, depth + 1), **{key: one for key, one in said.items() if key != "$ref"}}
    for name in ("anyOf", "any_of", "oneOf", "allOf"):
        if not (given := cast(list[Any], said.get(name, []))):
            continue
        options = [_resolved(one, definitions, depth + 1) for one in given]
        kept = [one for one in options if str(one.get("type", "")).lower() != "null"]
        return {**(kept[0] if kept else {}), **{key: one for key, one in said.items() if key != name}}
    return said
