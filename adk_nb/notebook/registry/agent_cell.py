"""The agent that a `%%agent` cell defines, and the notes its author reads below the cell."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from pydantic import PrivateAttr

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, ToolNotFoundError, UserError, closest
from adk_nb.events.event import Event
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.team_cell import is_team
from adk_nb.notebook.registry.templates import Template, read, uses
from adk_nb.notebook.view.document import Note
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset


class Registry(Protocol):
    """What an agent of a cell and its notes need of the notebook."""

    strict: bool
    sessions: Any

    def tools_named(self, names: Sequence[str], /) -> Sequence[BaseTool | BaseToolset]: ...
    def has_tool(self, name: str, /) -> bool: ...
    def node_like(self, name: str, /) -> Any: ...
    def is_key(self, name: str, /) -> bool: ...
    @property
    def tool_names(self) -> Sequence[str]: ...
    @property
    def agent_names(self) -> Sequence[str]: ...
    @property
    def node_names(self) -> Sequence[str]: ...


class CellAgent(LlmAgent):
    """An LlmAgent that looks its tools up by name; `tools` or `instruction` assigned in Python win from then on."""

    _registry: Registry | None = PrivateAttr(default=None)
    _tool_names: tuple[str, ...] = PrivateAttr(default=())
    _looked_up: list[Any] | None = PrivateAttr(default=None)
    """The tools as last looked up; another list in `tools` was assigned in Python."""
    _source: str = PrivateAttr(default="")
    _template: Template | None = PrivateAttr(default=None)

    def bind(self, registry: Registry, tools: Sequence[str], template: Template | None) -> Self:
        """Look `tools` up in `registry` from now on, and fill `template` in instead of the instruction."""
        self._registry, self._tool_names, self._looked_up = registry, tuple(tools), self.tools
        self._source, self._template = str(self.instruction), template
        if template and template.attached and not self.static_instruction:  # an instruction alone is text
            self.static_instruction = types.Content(role="user", parts=[*template.attached])
        return self

    def clone(self, update: Mapping[str, Any] | None = None) -> Self:
        copy = super().clone(update)
        if self.tools is self._looked_up and "tools" not in (update or {}):
            copy._looked_up = copy.tools  # the copy looks its tools up, too
        return copy

    async def canonical_tools(self, ctx: ReadonlyContext | None = None, /) -> list[BaseTool]:
        """Its tools as they are defined now.

        Raises:
            ToolNotFoundError: One is not defined.
        """
        self._look_up()
        return await super().canonical_tools(ctx)

    def tools_now(self) -> list[BaseTool]:
        """Its tools as they are defined now; as they were last, if one is not."""
        with suppress(ToolNotFoundError):
            self._look_up()
        return super().tools_now()

    def _look_up(self) -> None:
        if self._registry and self.tools is self._looked_up:
            self.tools = self._looked_up = list[Any](self._registry.tools_named(self._tool_names))

    @property
    def as_written(self) -> Template | None:
        """The instruction of the cell, variables put in; None: braces mean nothing, or Python has changed it."""
        return self._template if self.instruction == self._source else None

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        if self._registry and (template := self.as_written):
            return await template.filled(ctx, self._registry.is_key), True
        return await super().canonical_instruction(ctx)


def introduced(definition: AgentDefinition) -> str:
    """The first version of an agent in a line."""
    parts = [f"{definition.name} v{definition.version}"]
    if definition.kind != "llm":
        return f"{parts[0]} · {definition.kind}"
    parts.append(f"model {definition.model or definition.default_model}")
    if definition.tools:
        parts.append("tools " + ", ".join(definition.tools))
    if definition.members:
        parts.append("agents " + ", ".join(definition.members))
    if definition.mode:
        parts.append(definition.mode)
    parts += [f"{name} {field.text:.60}" for name, field in definition.fields.items()]
    return " · ".join(parts)


# ---- notes below a cell


_STRICT = "; define it in a cell above, or type %config AdkNb.strict = False"


def notes_of(registry: Registry, definition: AgentDefinition, template: Template | None) -> list[str]:
    """What the author of an agent's cell should know, a line each.

    Raises:
        InputError: The cell names what is not defined, and `strict` forbids that.
    """
    name = definition.name
    notes = list(template.notes) if template else []
    undefined = [tool for tool in definition.tools if not registry.has_tool(tool)]
    undefined += [member for member in definition.members if registry.node_like(member) is None]
    if undefined:
        near = _near(registry, definition, undefined)
        if registry.strict:
            raise InputError(f"{name} names what is not defined: {', '.join(undefined)}{near or _STRICT}")
        notes.append(f"not defined yet: {', '.join(undefined)}; define before you ask {name}{near}")
    if definition.kind == "llm" and is_team(definition.instruction, registry.agent_names):
        notes.append(f"these are names of agents; a team of them is %%agent {name} --kind sequential")
    if template is None:
        return [*map(Note, notes)]
    state = registry.sessions.state()
    keys = [key for key in template.keys if not (key.scoped or key.optional or key.name in state)]
    unknown = dict.fromkeys(key.spelled for key in keys if not registry.is_key(key.name))
    if unknown and registry.strict:
        raise InputError(f"{name} names what is no key of the state: {', '.join(unknown)}{_STRICT}")
    if unknown:
        notes.append(f"left as text until the state has a key of that name: {', '.join(unknown)}")
    used = uses(template, lambda key: key in state or registry.is_key(key))
    return [*filter(None, [used]), *map(Note, notes)]


def _near(registry: Registry, definition: AgentDefinition, undefined: Sequence[str]) -> str:
    known = registry.node_names
    if definition.kind == "llm":
        known = [*registry.tool_names, *(registry.agent_names if definition.members else ())]
    near = [match for name in undefined if (match := closest(name, known, cutoff=0.75))]
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""


def unfit_history(new: AgentDefinition, old: AgentDefinition, events: Sequence[Event]) -> Iterator[str]:
    """Warnings that a new version of an agent may not be able to continue a session of the old one."""
    if not any(event.author != "notebook" for event in events):
        return
    way_out = "start over with %chat --new, or go back with %rewind"
    if new.kind != old.kind:
        kind = {"llm": "single agent", "workflow": "workflow"}.get(old.kind, f"{old.kind} team")
        yield f"the session was held with a {kind} of that name; if it goes wrong, {way_out}"
        return
    now, then = _model_family(new), _model_family(old)
    if now != then and any(part.thought_signature for event in events for part in event.parts):
        yield f"the session holds thoughts signed by {then}, which {now} cannot read; if it goes wrong, {way_out}"


def _model_family(definition: AgentDefinition) -> str:
    if definition.model_object is not None:
        return type(definition.model_object).__name__
    try:
        return LLMRegistry.resolve(definition.model or definition.default_model).__name__
    except UserError:
        return definition.model


def lost_parameters(name: str, new: Any, old: Any, events: Sequence[Event]) -> Iterator[str]:
    """A warning that earlier calls use parameters which a tool does not have any more."""
    if not (isinstance(new, BaseTool) and isinstance(old, BaseTool)):
        return
    lost = _parameters(old) - _parameters(new)
    calls = [call for event in events for call in event.get_function_calls() if call.name == name]
    if used := sorted(lost & {parameter for call in calls for parameter in call.args or {}}):
        yield f"earlier calls in this session use {', '.join(used)}, which {name} does not take any more"


def _parameters(tool: BaseTool) -> set[str]:
    schema: Any = (tool.declaration and tool.declaration.parameters_json_schema) or {}
    return set(schema.get("properties", {}))


def stale_in(definition: AgentDefinition, variables: Mapping[str, Any]) -> list[str]:
    """The variables, as the cell writes them, that have another value than when the cell ran."""
    stale = [path for path, text in definition.variables.items() if _text_now(path, variables) != text]
    objects = {definition.model: definition.model_object} if definition.model_object is not None else {}
    objects |= {field.variable: field.value for field in definition.fields.values() if field.variable}
    return [*stale, *(name for name, value in objects.items() if variables.get(name) is not value)]


def _text_now(path: str, variables: Mapping[str, Any]) -> str | None:
    """The text of `{{path}}`; None: it cannot be read."""
    try:
        return read(f"{{{{{path}}}}}", variables, keys=False).variables.get(path)
    except UserError:
        return None
