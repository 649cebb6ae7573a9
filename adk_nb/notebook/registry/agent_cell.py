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
from adk_nb.notebook.place import Note
from adk_nb.notebook.registry import team_cell
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.templates import Template, read, uses
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset


class Lookup(Protocol):
    """What such an agent asks its notebook."""

    def tools_named(self, names: Sequence[str], /) -> Sequence[BaseTool | BaseToolset]: ...
    def is_key(self, name: str, /) -> bool: ...


class CellAgent(LlmAgent):
    """An LlmAgent in all respects. What is assigned to its `tools` or `instruction` in Python counts from then on."""

    _names: Lookup | None = PrivateAttr(default=None)
    _tool_names: tuple[str, ...] = PrivateAttr(default=())
    _found: list[Any] | None = PrivateAttr(default=None)
    """The tools as last looked up; other ones in `tools` were put there by hand."""
    _source: str = PrivateAttr(default="")
    _written: Template | None = PrivateAttr(default=None)

    def bind(self, names: Lookup, tools: Sequence[str], written: Template | None) -> Self:
        """Look `tools` up in `names` from now on, and fill `written` in instead of the instruction."""
        self._names, self._tool_names, self._found = names, tuple(tools), self.tools
        self._source, self._written = str(self.instruction), written
        if written and written.attached and not self.static_instruction:  # an instruction alone is text
            self.static_instruction = types.Content(role="user", parts=[*written.attached])
        return self

    def clone(self, update: Mapping[str, Any] | None = None) -> Self:
        copy = super().clone(update)
        if self.tools is self._found and "tools" not in (update or {}):
            copy._found = copy.tools  # it looks its tools up by their names, too
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
        if self._names and self.tools is self._found:
            self.tools = self._found = list[Any](self._names.tools_named(self._tool_names))

    @property
    def as_written(self) -> Template | None:
        """What its cell says, variables put in; None if the cell's braces mean nothing, or Python has changed it."""
        return self._written if self.instruction == self._source else None

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        if self._names and self._written and self.instruction == self._source:
            return await self._written.filled(ctx, self._names.is_key), True
        return await super().canonical_instruction(ctx)


class Knows(Protocol):
    """What has to be known of the notebook."""

    strict: bool
    sessions: Any

    def has_tool(self, name: str, /) -> bool: ...
    def node_like(self, name: str, /) -> Any: ...
    def is_key(self, name: str, /) -> bool: ...
    @property
    def tool_names(self) -> Sequence[str]: ...
    @property
    def agent_names(self) -> Sequence[str]: ...
    @property
    def node_names(self) -> Sequence[str]: ...


def introduced(wanted: AgentDefinition) -> str:
    """The first version of an agent in a line."""
    told = [f"{wanted.name} v{wanted.version}"]
    if wanted.kind != "llm":
        return f"{told[0]} · {wanted.kind}"
    told.append(f"model {wanted.model or wanted.default_model}")
    if wanted.tools:
        told.append("tools " + ", ".join(wanted.tools))
    if wanted.members:
        told.append("agents " + ", ".join(wanted.members))
    if wanted.mode:
        told.append(wanted.mode)
    told += [f"{name} {one.text:.60}" for name, one in wanted.fields.items()]
    return " · ".join(told)


def notes_of(knows: Knows, wanted: AgentDefinition, template: Template | None) -> list[str]:
    """What its author should know of an agent's cell, a line each.

    Raises:
        InputError: Something that it names is not there, and `strict` says that it has to be.
    """
    notes = list(template.notes) if template else []
    later = [one for one in wanted.tools if not knows.has_tool(one)]
    later += [one for one in wanted.members if knows.node_like(one) is None]
    if later:
        meant = _meant(knows, wanted, later)
        if knows.strict:
            raise InputError(f"{wanted.name} names what is not defined: {', '.join(later)}{meant or _STRICT}")
        notes.append(f"not defined yet: {', '.join(later)}; define before you ask {wanted.name}{meant}")
    if wanted.kind == "llm" and team_cell.is_team(wanted.instruction, knows.agent_names):
        notes.append(f"these are names of agents; a team of them is %%agent {wanted.name} --kind sequential")
    if template and (open_ones := _no_keys(knows, template)):
        if knows.strict:
            raise InputError(f"{wanted.name} names what is no key of the state: {', '.join(open_ones)}{_STRICT}")
        notes.append(f"left as text until the state has a key of that name: {', '.join(open_ones)}")
    return [*(_taken(knows, template) if template else ()), *map(Note, notes)]


_STRICT = "; define it in a cell above, or type %config AdkNb.strict = False"


def _taken(knows: Knows, template: Template) -> list[str]:
    state = knows.sessions.state()
    told = uses(template, lambda name: name in state or knows.is_key(name))
    return [told] if told else []


def _meant(knows: Knows, wanted: AgentDefinition, later: Sequence[str]) -> str:
    own = [*knows.tool_names, *knows.agent_names] if wanted.members else knows.tool_names
    known = own if wanted.kind == "llm" else knows.node_names
    near = [found for one in later if (found := closest(one, known, cutoff=0.75))]
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""


def _no_keys(knows: Knows, template: Template) -> list[str]:
    """What stands in braces and is no key of the state, as it is written."""
    known = knows.sessions.state()
    keys = (key for key in template.keys if not (key.scoped or key.optional))
    return [*dict.fromkeys(key.spelled for key in keys if key.name not in known and not knows.is_key(key.name))]


def unfit_history(wanted: AgentDefinition, old: AgentDefinition, events: Sequence[Event]) -> Iterator[str]:
    """What a session holds that a new version of an agent cannot go on from as the old one could."""
    if not any(event.author != "notebook" for event in events):
        return
    way = "begin anew with %chat --new, or go back with %rewind"
    if wanted.kind != old.kind:
        yield f"the session was held with a {_called(old)} of that name; if it goes wrong, {way}"
        return
    now, then = _family(wanted), _family(old)
    if now != then and any(part.thought_signature for event in events for part in event.parts):
        yield f"the session holds thoughts that {then} has signed, and {now} cannot read them; if it goes wrong, {way}"


def _called(definition: AgentDefinition) -> str:
    return {"llm": "single agent", "workflow": "workflow"}.get(definition.kind, f"{definition.kind} team")


def _family(definition: AgentDefinition) -> str:
    if definition.model_object is not None:
        return type(definition.model_object).__name__
    try:
        return LLMRegistry.resolve(definition.model or definition.default_model).__name__
    except UserError:
        return definition.model


def lost_parameters(name: str, now: Any, then: Any, events: Sequence[Event]) -> Iterator[str]:
    """That earlier calls name parameters which a tool has lost."""
    if not (isinstance(now, BaseTool) and isinstance(then, BaseTool)):
        return
    lost = _parameters(then) - _parameters(now)
    calls = [call for event in events for call in event.get_function_calls() if call.name == name]
    told = sorted(lost & {key for call in calls for key in call.args or {}})
    if told:
        yield f"earlier calls in this session name {', '.join(told)}, which {name} does not take any more"


def _parameters(tool: BaseTool) -> set[str]:
    schema: Any = (tool.declaration and tool.declaration.parameters_json_schema) or {}
    return set(schema.get("properties", {}))


def stale_in(definition: AgentDefinition, variables: Mapping[str, Any]) -> list[str]:
    """The variables, as the cell writes them."""
    found = [path for path, text in definition.variables.items() if _now(path, variables) != text]
    held = {definition.model: definition.model_object} if definition.model_object is not None else {}
    held |= {one.variable: one.value for one in definition.fields.values() if one.variable}
    return [*found, *(name for name, value in held.items() if variables.get(name) is not value)]


def _now(path: str, variables: Mapping[str, Any]) -> str | None:
    """The text that `{{path}}` would put in; None: it is not there."""
    try:
        return read(f"{{{{{path}}}}}", variables, keys=False).variables.get(path)
    except UserError:
        return None
