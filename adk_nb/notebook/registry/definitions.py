"""What a cell has defined, as it was written, and in words how one version differs from the last."""

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
    """What stands below the line: of a team the names of its agents, of a workflow its edges."""
    members: tuple[str, ...] = ()
    """The names in it, of a team or a workflow; of any other the agents under it."""
    mode: str | None = None
    """How it works under another agent."""
    model: str = ""
    default_model: str = ""
    """What answered for agents that name no model when its cell ran."""
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
        """Of all that makes it behave as it does: equal for equal cells."""
        held: list[Any] = [self.model_object, *(one.value for one in self.fields.values() if one.variable)]
        return digest([self.lasting_digest, *(str(id(one)) for one in held)])

    @property
    def lasting_digest(self) -> str:
        """The same in another kernel: a model that a variable holds counts by the variable's name."""
        return digest(
            [
                self.instruction, self.model, *self.tools, self.description,
                str(self.output_key), str(self.max_iterations), str(self.raw),
                self.kind, *self.members, str(self.max_concurrency), str(self.mode),
                *(f"{key}={text}" for key, text in self.variables.items()),
                *(f"{key}={one.text}" for key, one in sorted(self.fields.items())),
            ]
        )  # fmt: skip

    def changes_from(self, old: "AgentDefinition") -> str:
        """What is different from `old`, in words; empty if nothing is."""
        told: list[str] = []
        if self.kind != old.kind:
            return f"{old.kind} -> {self.kind}"
        if self.instruction != old.instruction:
            told.append(f"{self._body} {_lines_changed(old.instruction, self.instruction)}")
        if model := self.model_change(old):
            told.append(model)
        if self.tools != old.tools:
            told.append(f"tools {_names_changed(old.tools, self.tools)}")
        if self.kind == "llm" and self.members != old.members:
            told.append(f"agents {_names_changed(old.members, self.members)}")
        told += [f"{{{{{one}}}}}" for one, text in self.variables.items() if old.variables.get(one, text) != text]
        for one in ("description", "mode", "output_key", "max_iterations", "max_concurrency", "raw"):
            if getattr(self, one) != getattr(old, one):
                told.append(one.replace("_", "-"))
        told += [one for one in sorted({*self.fields, *old.fields}) if self.fields.get(one) != old.fields.get(one)]
        return ", ".join(told)

    def model_change(self, old: "AgentDefinition") -> str:
        """How its model differs from that of `old`, in words; empty if it does not."""
        if (self.model, id(self.model_object)) != (old.model, id(old.model_object)):
            return f"model {old.model or 'default'} -> {self.model or 'default'}"
        if self.kind == "llm" and not self.model and self.default_model != old.default_model:
            return f"model {old.default_model} -> {self.default_model}"
        return ""

    @property
    def _body(self) -> str:
        """What its cell holds."""
        return {"llm": "instruction", "workflow": "edges"}.get(self.kind, "agents")


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


def digest_of_tool(source: str, *options: object) -> str:
    """Equal for equal source and options."""
    return digest([source, *map(repr, options)])


def digest(parts: Iterable[str]) -> str:
    """Of all parts, in their order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _lines_changed(old: str, new: str) -> str:
    changes = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    more = sum(line.startswith("+ ") for line in changes)
    less = sum(line.startswith("- ") for line in changes)
    return " ".join([f"+{more}"] * bool(more) + [f"-{less}"] * bool(less)) + (" lines" if more + less != 1 else " line")


def _names_changed(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    told = [f"+{one}" for one in new if one not in old] + [f"-{one}" for one in old if one not in new]
    return " ".join(told) or "in another order"
