"""The agent that a `%%agent` cell defines: its fields and YAML front matter, and the notes below the cell."""

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args, get_origin

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, ToolNotFoundError, UserError, closest, did_you_mean, yaml_reason
from adk_nb.events.event import Event
from adk_nb.lazy import require
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.json_schemas import flat_schema
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.cells.definitions import AgentDefinition, FieldValue
from adk_nb.notebook.cells.names import Names
from adk_nb.notebook.cells.session_store import count_events
from adk_nb.notebook.cells.team_cell import is_team
from adk_nb.notebook.cells.templates import Template, parse
from adk_nb.notebook.variables import user_variables
from adk_nb.notebook.view.document import Note
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool


class CellAgent(LlmAgent):
    """An LlmAgent that looks up its tools by name, until Python assigns `tools`; the same holds for `instruction`."""

    _names: Names | None = PrivateAttr(default=None)
    _tool_names: tuple[str, ...] = PrivateAttr(default=())
    _added_tools: Sequence[Any] = PrivateAttr(default=())
    """Tools of the options that extensions add."""
    _found_tools: list[Any] | None = PrivateAttr(default=None)
    """The list that the last lookup put into `tools`; another list there was assigned in Python."""
    _source: str = PrivateAttr(default="")
    _template: Template | None = PrivateAttr(default=None)

    def bind(
        self, names: Names, tools: Sequence[str], template: Template | None, added_tools: Sequence[Any] = ()
    ) -> Self:
        """Look `tools` up in `names` from now on, beside `added_tools`, and use `template` as the instruction."""
        self._added_tools = added_tools
        self._names, self._tool_names, self._found_tools = names, tuple(tools), self.tools
        self._source, self._template = str(self.instruction), template
        if template and template.attachments and not self.static_instruction:  # an instruction alone is text
            self.static_instruction = types.Content(role="user", parts=[*template.attachments])
        return self

    def clone(self, update: Mapping[str, Any] | None = None) -> Self:
        copy = super().clone(update)
        if self.tools is self._found_tools and "tools" not in (update or {}):
            copy._found_tools = copy.tools  # the copy looks its tools up, too
        return copy

    async def canonical_tools(self, ctx: ReadonlyContext | None = None, /) -> list[BaseTool]:
        """Its tools as they are defined now.

        Raises:
            ToolNotFoundError: One is not defined.
        """
        self._look_up()
        return await super().canonical_tools(ctx)

    def tools_now(self) -> list[BaseTool]:
        """Its tools as they are defined now; if one is not defined, those of the last lookup."""
        with suppress(ToolNotFoundError):
            self._look_up()
        return super().tools_now()

    def variables_now(self) -> dict[str, Any]:
        """The values of the variables in its instruction, for those that are defined."""
        if not (self._names and self._template):
            return {}
        values = self._names.variables
        return {name: values[name] for name in self._template.variables if name in values}

    def _look_up(self) -> None:
        if self._names and self.tools is self._found_tools:
            self.tools = self._found_tools = [*self._names.tools_named(self._tool_names), *self._added_tools]

    @property
    def cell_template(self) -> Template | None:
        """The instruction of the cell; None if it is raw text, or was assigned in Python."""
        return self._template if self.instruction == self._source else None

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        if self._names and (template := self.cell_template):
            return await template.fill(ctx, self._names.is_key), True
        return await super().canonical_instruction(ctx)


def notes_on(definition: AgentDefinition, template: Template | None, names: Names) -> list[str]:
    """Notes for the author of an agent's cell, a line each.

    Raises:
        InputError: The cell names what is not defined, and `strict` forbids that.
    """
    name = definition.name
    notes = list(template.notes) if template else []
    undefined = [tool for tool in definition.tools if not names.has_tool(tool)]
    undefined += [member for member in definition.members if names.node_like(member) is None]
    if undefined:
        candidates = names.node_names
        if definition.kind == "llm":
            candidates = [*names.tool_names, *(names.agent_names if definition.members else ())]
        matches = [match for word in undefined if (match := closest(word, candidates, cutoff=0.75))]
        hint = f"; did you mean {', '.join(map(repr, matches))}?" if matches else ""
        _refuse_if_strict(names, f"{name} names tools or agents that are not defined: {', '.join(undefined)}", hint)
        notes.append(f"not defined yet: {', '.join(undefined)}; define before you ask {name}{hint}")
    if definition.kind == "llm" and is_team(definition.instruction, names.agent_names):
        notes.append(f"these are names of agents; a team of them is %%agent {name} --kind sequential")
    if template is None:
        return [*map(Note, notes)]
    state = names.state_of(name)
    unscoped = [piece for piece in template.keys if not (piece.is_scoped or piece.optional or piece.key in state)]
    unknown = dict.fromkeys(piece.source for piece in unscoped if not names.is_key(piece.key))
    if unknown:
        _refuse_if_strict(names, f"{name} names keys that the state does not have: {', '.join(unknown)}")
        notes.append(f"not in the state yet, so left as text: {', '.join(unknown)}")
    sources = template.describe_sources(lambda key: key in state or names.is_key(key))
    return [*filter(None, [sources]), *map(Note, notes)]


def _refuse_if_strict(names: Names, fault: str, hint: str = "") -> None:
    if names.strict:
        hint = hint or "; define it in a cell above, or type %config AdkNb.strict = False"
        raise InputError(fault + hint)


def unfit_history(new: AgentDefinition, old: AgentDefinition, events: Sequence[Event]) -> Iterator[str]:
    """Warnings that a new version of an agent may not be able to continue a session of the old one."""
    if not count_events(events):
        return
    hint = "start over with %chat --new, or go back with %rewind"
    if new.kind != old.kind:
        kind = {"llm": "single agent", "workflow": "workflow"}.get(old.kind, f"{old.kind} team")
        yield f"the session was held with a {kind} of that name; if it goes wrong, {hint}"
        return
    family, old_family = _model_family(new), _model_family(old)
    if family != old_family and any(part.thought_signature for event in events for part in event.parts):
        yield f"the session holds thoughts signed by {old_family}, which {family} cannot read; if it goes wrong, {hint}"


def _model_family(definition: AgentDefinition) -> str:
    if definition.model_object is not None:
        return type(definition.model_object).__name__
    try:
        return LLMRegistry.resolve(definition.model or definition.default_model).__name__
    except UserError:  # such as the name of a model that is an object
        return definition.model or definition.default_model


def lost_parameters(name: str, new: Any, old: Any, events: Sequence[Event]) -> Iterator[str]:
    """A warning that earlier calls use parameters that the tool no longer has."""
    if not (isinstance(new, BaseTool) and isinstance(old, BaseTool)):
        return
    lost = _parameters(old) - _parameters(new)
    calls = [call for event in events for call in event.get_function_calls() if call.name == name]
    if used := sorted(lost & {parameter for call in calls for parameter in call.args or {}}):
        yield f"earlier calls in this session use {', '.join(used)}, which {name} does not take any more"


def _parameters(tool: BaseTool) -> set[str]:
    schema = flat_schema((tool.function_declaration and tool.function_declaration.parameters_json_schema) or {})
    return set(schema.get("properties", {}))


def stale_variables(definition: AgentDefinition, variables: Mapping[str, Any]) -> list[str]:
    """The variables, in braces as in the cell, whose values have changed since the cell ran."""
    objects = {definition.model: definition.model_object} if definition.model_object is not None else {}
    objects |= {field.variable: field.value for field in definition.fields.values() if field.variable}
    stale: list[str] = []
    for path, text in definition.variables.items():
        current = None
        with suppress(UserError):
            current = parse(f"{{{{{path}}}}}", variables, keys=False).variables.get(path)
        if current != text:
            stale.append(path)
    return [*stale, *(name for name, value in objects.items() if variables.get(name) is not value)]


_HINTS = {
    "name": "the name follows %%agent",
    "instruction": "the instruction goes below the line",
    "model": "write --model",
    "tools": "write --tools",
    "sub_agents": "write --sub",
    "mode": "write --mode",
    "description": "write --description",
    "output_key": "write --output-key",
    "output_schema": "write --output-schema",
    "input_schema": "write --input-schema",
    "max_iterations": "write --max-iterations",
    "template": "write --raw",
    "parent_agent": "a parent lists its agents with --sub",
}
"""Fields that `--set` does not take -> what to write instead."""
FIELDS = [field for field in LlmAgent.model_fields if field not in _HINTS]
"""Fields that `--set` takes."""
_FENCE = "---"
_KEY = re.compile(r"([a-z][\w-]*)\s*:(?:\s|$)")


def schema_of(option: str, name: str, variables: Mapping[str, Any]) -> FieldValue:
    """The type or the JSON schema in a variable. `option`: the option that names it, for errors.

    Raises:
        InputError: There is no such variable.
    """
    if not name.isidentifier():
        raise InputError(
            f"{option} takes the name of a variable, got {name!r:.60}; write Wanted = {name:.60} in a "
            f"cell, and {option} Wanted"
        )
    if name not in variables:
        raise _unknown_variable(option, name, variables)
    return FieldValue(name, variables[name], name)


def field_of(mark: str, name: str, value: Any, variables: Mapping[str, Any]) -> FieldValue:
    """The value of `--set name=value`: JSON or a literal of Python's, else a variable, else text.

    Args:
        mark: As it is typed, for errors.
        name: The field's.
        value: The text; anything else is the value itself.
        variables: The notebook's.

    Raises:
        InputError: There is no such field, it has an option of its own, or the text is nothing that it could be.
    """
    if name in _HINTS:
        raise InputError(f"{mark} is not needed for {name}: {_HINTS[name]}")
    config_fields = types.GenerateContentConfig.model_fields
    if name not in FIELDS and name in config_fields:
        raise InputError(f"{mark}: {name} belongs into generate_content_config; {_config_hint(name, value)}")
    if name not in FIELDS:
        near = closest(name.replace("-", "_"), [*FIELDS, *_HINTS, *config_fields])
        hint = _HINTS.get(near or "") or (f"did you mean {near}?" if near else f"there is {', '.join(FIELDS)}")
        if near in config_fields:
            hint += f" {_config_hint(near, value)}"
        raise InputError(f"{mark}: an agent has no field {name!r}; {hint}")
    if not isinstance(value, str):
        return FieldValue(json.dumps(value, default=str, sort_keys=True), value)
    annotation: Any = LlmAgent.model_fields[name].annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if value in choices:
        return FieldValue(value, value)
    with suppress(ValueError):
        return FieldValue(value, _parse_literal(value))
    if value in variables:
        return FieldValue(value, variables[value], value)
    if choices and all(isinstance(choice, str) for choice in choices):
        near = closest(value, choices)
        hint = f"; did you mean {near}?" if near else ""
        raise InputError(f"{mark}: {name} must be {' or '.join(choices)}, got {value!r:.60}{hint}")
    takes_text = annotation in (str, Any) or str in get_args(annotation)
    if value.isidentifier() and not takes_text:
        raise _unknown_variable(mark, value, variables)
    return FieldValue(value, value)


def _config_hint(name: str, value: Any) -> str:
    with suppress(ValueError):
        value = _parse_literal(value) if isinstance(value, str) else value
    return f"write --set generate_content_config={json.dumps({name: value}, default=str)}"


def _parse_literal(text: str) -> Any:
    """Parse JSON, or else a literal of Python.

    Raises:
        ValueError: It is neither.
    """
    with suppress(ValueError):
        return json.loads(text)
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error


def _unknown_variable(option: str, name: str, variables: Mapping[str, Any]) -> InputError:
    hint = did_you_mean(name, user_variables(variables), "define it in a cell above")
    return InputError(f"{option}: there is no variable {name!r}; {hint}")


@dataclass(frozen=True)
class FrontMatter:
    """Options as YAML between two lines `---` at the beginning of a cell's body."""

    texts: Mapping[str, Any]
    """Key -> text, a list of texts, or a mapping of them: as typed, so that `no` and `0.5` are text."""
    values: Mapping[str, Any]
    """Key -> the same as YAML reads it."""


def split_front_matter(body: str, mark: str) -> tuple[FrontMatter | None, str]:
    """The front matter of a cell's body, None if it has none, and the rest of the body with its line numbers kept.

    `mark`: as the cell begins, for errors.

    Raises:
        InputError: It is not closed, or is not valid YAML of keys.
        MissingExtraError: PyYAML is not installed.
    """
    lines = body.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None or lines[first].rstrip() != _FENCE:
        return None, body
    last = next((index for index in range(first + 1, len(lines)) if lines[index].rstrip() == _FENCE), None)
    if last is None:
        raise InputError(
            f"{mark}: line {first + 2} is ---, so options follow it; close them with another line ---, or begin the "
            "text otherwise"
        )
    matter = _parse_yaml("\n" * (first + 1) + "\n".join(lines[first + 1 : last]), mark)
    return matter, "\n" * (last + 1) + "\n".join(lines[last + 1 :])


def looks_like_options(body: str, keys: Collection[str]) -> bool:
    """True for a body that begins with an option and has no `---` around it."""
    first = next((line for line in body.split("\n") if line.strip()), "")
    match = _KEY.match(first)
    return bool(match) and match[1].replace("_", "-") in keys


def _parse_yaml(text: str, mark: str) -> FrontMatter:
    yaml: Any = require("yaml", package="pyyaml")
    try:
        texts, values = yaml.load(text, yaml.BaseLoader), yaml.load(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        position = getattr(error, "problem_mark", None)
        location = f"line {position.line + 2}" if position else "front matter"
        reason = yaml_reason(error)
        raise InputError(f"{mark}, {location}: {reason}; write one option a line, as model: {GEMINI_MODEL}") from None
    if texts is None or texts == "":
        return FrontMatter({}, {})
    if not isinstance(texts, dict):
        raise InputError(f"{mark}: the lines between --- are options; write them as key: value, one a line")
    return FrontMatter(cast(dict[str, Any], texts), cast(dict[str, Any], values))
