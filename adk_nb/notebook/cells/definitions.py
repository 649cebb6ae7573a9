"""Versions of agents and tools as their cells define them, and the old versions of tools that runs still need."""

import difflib
import hashlib
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.conditions import Condition
from adk_nb.tools.fingerprint import fingerprint

Kind = Literal["llm", "sequential", "parallel", "loop", "workflow"]

# Keys of `custom_metadata` on the events of a run; stored sessions have them.
_NAME = "spoken_to"
_DIGEST = "defined_as"
_VERSION = "agent_version"
_VERSIONS = "agent_versions"


@dataclass(frozen=True, eq=False)
class FieldValue:
    """The value of a field of an agent."""

    text: str
    """As the cell writes it."""
    value: Any
    variable: str = ""
    """The notebook's variable that holds it; empty for a literal."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldValue):
            return NotImplemented
        is_same = self.value is other.value if self.variable else True
        return (self.text, self.variable) == (other.text, other.variable) and is_same


@dataclass(frozen=True, kw_only=True)
class AddedValue:
    """An option that an extension adds to `%%agent`, as a cell has it."""

    words: tuple[str, ...]
    """As typed; empty for a flag."""
    value: Any
    option: Any
    """Its `AgentOption`."""


@dataclass(frozen=True, kw_only=True)
class AgentDefinition:
    """One version of an agent."""

    name: str
    kind: Kind = "llm"
    build: Callable[["AgentDefinition", Any], BaseAgent] | None = field(default=None, compare=False)
    """Makes the agent, of the definition and the names of the notebook. None: as for a single agent or a team."""
    version: int = 1
    cell: int
    """n of `In[n]`."""
    instruction: str
    """The text below the line: a team's agents by name, or a workflow's edges."""
    members: tuple[str, ...] = ()
    """Names of the agents in a team, the nodes of a workflow, or the agents under any other."""
    mode: str | None = None
    """`single_turn` or `task`, under another agent."""
    model: str = ""
    default_model: str = ""
    """The model of agents that name none, when its cell ran."""
    model_object: BaseLlm | None = None
    """The model itself, where a variable was named."""
    tools: tuple[str, ...] = ()
    options: Mapping[str, AddedValue] = field(default_factory=dict[str, AddedValue])
    """The options that extensions add, by name."""
    description: str = ""
    output_key: str | None = None
    max_iterations: int | None = None
    """Limit of the model calls in one turn; for a loop, of its passes."""
    max_concurrency: int | None = None
    raw: bool = False
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The notebook variables in the instruction, as text."""
    fields: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    """Other fields of the agent."""
    source: str = ""
    """The whole cell, as typed."""

    @property
    def digest(self) -> str:
        """Equal for cells that define the same behaviour."""
        objects: list[Any] = [self.model_object, *(field.value for field in self.fields.values() if field.variable)]
        return digest([self.lasting_digest, *(str(id(value)) for value in objects)])

    @property
    def lasting_digest(self) -> str:
        """Equal in another kernel for the same cell: a model in a variable counts by the variable's name."""
        # Stored sessions have this digest: keep the order of its parts.
        return digest(
            [
                self.instruction, self.model, *self.tools, self.description,
                str(self.output_key), str(self.max_iterations), str(self.raw),
                self.kind, *self.members, str(self.max_concurrency), str(self.mode),
                *(f"{key}={text}" for key, text in self.variables.items()),
                *(f"{key}={field.text}" for key, field in sorted(self.fields.items())),
                *(f"{name}={word}" for name, added in self.options.items() for word in added.words or ("",)),
            ]
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """The first version in a line."""
        parts = [f"{self.name} v{self.version}"]
        if self.kind != "llm":
            return f"{parts[0]} · {self.kind}"
        parts.append(f"model {self.model or self.default_model}")
        if self.tools:
            parts.append("tools " + ", ".join(self.tools))
        parts += [f"{name} {', '.join(added.words)}".rstrip() for name, added in self.options.items()]
        if self.members:
            parts.append("agents " + ", ".join(self.members))
        if self.mode:
            parts.append(self.mode)
        return " · ".join([*parts, *(f"{name} {field.text:.60}" for name, field in self.fields.items())])

    def changes_from(self, old: "AgentDefinition") -> str:
        """The differences from `old`, as text; empty if there are none."""
        if self.kind != old.kind:
            return f"{old.kind} → {self.kind}"
        changes: list[str] = []
        if self.instruction != old.instruction:
            body = {"llm": "instruction", "workflow": "edges"}.get(self.kind, "agents")
            lines = difflib.ndiff(old.instruction.splitlines(), self.instruction.splitlines())
            signs = [line[0] for line in lines if line[0] in "+-"]
            counts = [f"{sign}{signs.count(sign)}" for sign in "+-" if sign in signs]
            changes.append(" ".join([body, *counts, "line" if len(signs) == 1 else "lines"]))
        if model := self.model_change(old):
            changes.append(model)
        if self.tools != old.tools:
            changes.append(f"tools {_names_changed(old.tools, self.tools)}")
        for name in dict.fromkeys([*old.options, *self.options]):
            before, after = (of.options[name].words if name in of.options else None for of in (old, self))
            if before != after:
                changes.append(f"{name} {_names_changed(before or (), after or ())}")
        if self.kind == "llm" and self.members != old.members:
            changes.append(f"agents {_names_changed(old.members, self.members)}")
        changes += [f"{{{{{path}}}}}" for path, text in self.variables.items() if old.variables.get(path, text) != text]
        for option in ("description", "mode", "output_key", "max_iterations", "max_concurrency", "raw"):
            if getattr(self, option) != getattr(old, option):
                changes.append(option.replace("_", "-"))
        fields = sorted({*self.fields, *old.fields})
        return ", ".join([*changes, *(name for name in fields if self.fields.get(name) != old.fields.get(name))])

    def model_change(self, old: "AgentDefinition") -> str:
        """The difference of its model from that of `old`, as text; empty if there is none."""
        if (self.model, id(self.model_object)) != (old.model, id(old.model_object)):
            return f"model {old.model or 'default'} → {self.model or 'default'}"
        if self.kind == "llm" and not self.model and self.default_model != old.default_model:
            return f"model {old.default_model} → {self.default_model}"
        return ""


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """One version of a tool or a toolset."""

    tool: BaseTool | BaseToolset
    version: int = 1
    cell: int
    """n of `In[n]`."""
    digest: str
    """Hash of its source and options."""
    origin: "ToolsetOrigin | None" = None
    """The origin of a toolset, from its `%tool` line; None for a tool."""


@dataclass(frozen=True, kw_only=True)
class ToolsetOrigin:
    """The document or server of a toolset, and the tools taken from it."""

    kind: Literal["openapi", "mcp"]
    address: str
    """The path of a document, or the URL of a server."""
    confirm: Condition = False
    only: tuple[str, ...] = ()

    @property
    def is_sse(self) -> bool:
        """True for a server of MCP's older transport: by convention its URL ends in /sse."""
        return self.kind == "mcp" and self.address.rstrip("/").endswith("/sse")


def digest(parts: Iterable[str]) -> str:
    """A short hash of all parts, in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _names_changed(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    changes = [f"+{name}" for name in new if name not in old] + [f"-{name}" for name in old if name not in new]
    return " ".join(changes) or "in another order"


# ---- versions that runs still need


def approval_of(tool: BaseTool | BaseToolset) -> str:
    """The calls of a tool that need approval: `always`, `if amount > 100`, `by condition`; empty for none."""
    condition = getattr(tool, "require_confirmation", False)
    if isinstance(condition, str):
        return f"if {condition}"
    return "by condition" if callable(condition) else ("always" if condition else "")


def approval_note(tool: BaseTool | BaseToolset) -> str:
    """`approval_of` for the report of a cell, after a semicolon; empty if no call needs approval."""
    condition = approval_of(tool)
    if condition == "by condition":
        condition = "as its condition says"
    calls = "each call" if condition == "always" else f"a call {condition}"
    return f"; asks before {calls}" if condition else ""


@dataclass(frozen=True)
class Addressed:
    """The agent that a run addressed; empty if unknown."""

    name: str = ""
    digest: str = ""
    """Digest of its cells at that time."""


def run_metadata(name: str, digest: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """Metadata for the events of a run of an agent. `versions`: its own, and those of the agents under it."""
    metadata: dict[str, Any] = {_NAME: name}
    if digest:
        metadata |= {_DIGEST: digest, _VERSION: versions[name]}
    return metadata | ({_VERSIONS: dict(versions)} if len(versions) > 1 else {})


def agent_of_call(call_id: str, history: History) -> Addressed:
    """The agent that the run of a call addressed."""
    return _addressed(next((record.event for record in history.calls.all(call_id)), None))


def agent_of_run(invocation_id: str, history: History) -> Addressed:
    """The agent that a run addressed."""
    start = history.first_index(invocation_id)
    return _addressed(None if start is None else history.events[start])


def addressed_in(events: Iterable[Event]) -> set[str]:
    """The names of the agents that were addressed in a session; of those that wrote in it, if it does not say."""
    events = list(events)
    return {name for event in events if (name := _addressed(event).name)} or {event.author for event in events}


def last_addressed(history: History) -> str:
    """The name of the agent that was addressed last; empty if unknown."""
    return next((name for event in history.newest() if (name := _addressed(event).name)), "")


def _addressed(event: Event | None) -> Addressed:
    metadata: dict[str, Any] = (event.custom_metadata if event else None) or {}
    name, digest = metadata.get(_NAME), metadata.get(_DIGEST)
    return Addressed(name if isinstance(name, str) else "", digest if isinstance(digest, str) else "")


_in_force: ContextVar[dict[str, tuple[BaseTool, set[str]]] | None] = ContextVar("earlier tools in force", default=None)
"""Name -> the tool, and the ids of the calls that use it and have no result yet."""


class EarlierTools:
    """Tools as they were before their cells were run again, so that a pending call can still use them."""

    def __init__(self) -> None:
        self._by_fingerprint: dict[str, tuple[BaseTool, str]] = {}
        """The tool, and its version as a label."""

    def keep(self, definition: ToolDefinition) -> None:
        """Remember a version that a new one replaces."""
        if isinstance(definition.tool, BaseTool):
            self._by_fingerprint[fingerprint(definition.tool)] = definition.tool, f"v{definition.version}"

    def label(self, interrupt: Interrupt) -> str:
        """The version that a pending call names, as `v2`; empty if this kernel does not have it."""
        _, label = self._by_fingerprint.get(interrupt.tool_fingerprint or "", (None, ""))
        return label

    @contextmanager
    def as_asked(self, interrupts: Iterable[Interrupt]) -> Generator[None]:
        """Give agents of cells the tools of these calls as they were, until each call has its result.

        Each call must have a `label`.
        """
        tools: dict[str, tuple[BaseTool, set[str]]] = {}
        for interrupt in interrupts:
            tool, _ = self._by_fingerprint[interrupt.tool_fingerprint or ""]
            _, calls = tools.get(interrupt.call.name or "", (tool, set[str]()))
            tools[interrupt.call.name or ""] = tool, {*calls, interrupt.call.id or ""}
        token = _in_force.set(tools)
        try:
            yield
        finally:
            _in_force.reset(token)

    def answered(self, call_id: str) -> None:
        """Note a result; once no call of the earlier tool is open, calls use the tool as it is now."""
        tools = _in_force.get() or {}
        for name, (_, calls) in list(tools.items()):
            calls.discard(call_id)
            if not calls:
                del tools[name]


def tool_in_force(tool: Any) -> Any:
    """`tool`, or its earlier version within `EarlierTools.as_asked`."""
    tools = _in_force.get() or {}
    return tools[tool.name][0] if isinstance(tool, BaseTool) and tool.name in tools else tool
