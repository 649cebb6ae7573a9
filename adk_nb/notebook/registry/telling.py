"""What is said when a cell has defined something: what it is, what is missing, and what earlier turns make of it."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from adk_nb.errors import InputError, UserError, closest
from adk_nb.events.event import Event
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.note import Note
from adk_nb.notebook.registry import team_cell
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.templates import Template, uses
from adk_nb.tools.base_tool import BaseTool


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
