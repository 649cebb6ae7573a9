"""Definitions of agents and tools as their cells write them, and how one version differs from the last."""

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.registry.agent_options import FieldValue
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.conditions import Decides

Kind = Literal["llm", "sequential", "parallel", "loop", "workflow"]


@dataclass(frozen=True, kw_only=True)
class AgentDefinition:
    """One version of an agent."""

    name: str
    kind: Kind = "llm"
    version: int = 1
    cell: int
    """n of `In[n]`."""
    instruction: str
    """The text below the line: of a team the names of its agents, of a workflow its edges."""
    members: tuple[str, ...] = ()
    """Names of the agents in a team, the nodes of a workflow, or the agents under any other."""
    mode: str | None = None
    """How it works under another agent."""
    model: str = ""
    default_model: str = ""
    """The model of agents that name none, when its cell ran."""
    model_object: BaseLlm | None = None
    """The model itself, where a variable was named."""
    tools: tuple[str, ...] = ()
    description: str = ""
    output_key: str | None = None
    max_iterations: int | None = None
    """Model calls in one turn; of a loop, passes."""
    max_concurrency: int | None = None
    raw: bool = False
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The notebook variables in the instruction, as text."""
    fields: Mapping[str, FieldValue] = field(default_factory=dict[str, FieldValue])
    """Other fields of the agent -> what they are set to."""
    source: str = ""
    """The whole cell, as typed."""

    @property
    def digest(self) -> str:
        """Equal for cells that define the same behaviour."""
        objects: list[Any] = [self.model_object, *(field.value for field in self.fields.values() if field.variable)]
        return digest([self.lasting_digest, *(str(id(value)) for value in objects)])

    @property
    def lasting_digest(self) -> str:
        """The same in another kernel: a model that a variable holds counts by the variable's name."""
        return digest(
            [
                self.instruction, self.model, *self.tools, self.description,
                str(self.output_key), str(self.max_iterations), str(self.raw),
                self.kind, *self.members, str(self.max_concurrency), str(self.mode),
                *(f"{key}={text}" for key, text in self.variables.items()),
                *(f"{key}={field.text}" for key, field in sorted(self.fields.items())),
            ]
        )  # fmt: skip

    def changes_from(self, old: "AgentDefinition") -> str:
        """The differences from `old`, as text; empty if there are none."""
        if self.kind != old.kind:
            return f"{old.kind} → {self.kind}"
        changes: list[str] = []
        if self.instruction != old.instruction:
            body = {"llm": "instruction", "workflow": "edges"}.get(self.kind, "agents")
            changes.append(f"{body} {_lines_changed(old.instruction, self.instruction)}")
        if model := self.model_change(old):
            changes.append(model)
        if self.tools != old.tools:
            changes.append(f"tools {_names_changed(old.tools, self.tools)}")
        if self.kind == "llm" and self.members != old.members:
            changes.append(f"agents {_names_changed(old.members, self.members)}")
        changes += [f"{{{{{path}}}}}" for path, text in self.variables.items() if old.variables.get(path, text) != text]
        for option in ("description", "mode", "output_key", "max_iterations", "max_concurrency", "raw"):
            if getattr(self, option) != getattr(old, option):
                changes.append(option.replace("_", "-"))
        fields = sorted({*self.fields, *old.fields})
        changes += [field for field in fields if self.fields.get(field) != old.fields.get(field)]
        return ", ".join(changes)

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
    cell: int | None
    """n of `In[n]`; None if it was not made in a `%%tool` or `%tool` cell."""
    digest: str
    """Of its source and options."""
    place: "ToolsetPlace | None" = None
    """Of a toolset: what its line says."""


@dataclass(frozen=True, kw_only=True)
class ToolsetPlace:
    """Where a toolset comes from, and what is taken of it."""

    kind: Literal["openapi", "mcp"]
    address: str
    """The path of a document, or the address of a server."""
    confirm: Decides = False
    only: tuple[str, ...] = ()

    @property
    def is_sse(self) -> bool:
        """Whether the server speaks the older way, as such addresses say by their end."""
        return self.kind == "mcp" and self.address.rstrip("/").endswith("/sse")


def digest(parts: Iterable[str]) -> str:
    """Of all parts, in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _lines_changed(old: str, new: str) -> str:
    changes = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    more = sum(line.startswith("+ ") for line in changes)
    less = sum(line.startswith("- ") for line in changes)
    return " ".join([f"+{more}"] * bool(more) + [f"-{less}"] * bool(less)) + (" lines" if more + less != 1 else " line")


def _names_changed(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    changes = [f"+{name}" for name in new if name not in old] + [f"-{name}" for name in old if name not in new]
    return " ".join(changes) or "in another order"
