"""Write the agents and tools of a notebook as one file of Python."""

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError, UserError
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.export import agents, teams, tools
from adk_nb.notebook.export.code import Piece, is_data, joined
from adk_nb.notebook.export.scope import Scope
from adk_nb.notebook.export.statements import (
    Rewriter,
    Statement,
    imports_of,
    is_function,
    names_in,
    without_tool_decorators,
)
from adk_nb.notebook.export.target import Target
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.redaction import redacted
from adk_nb.tools.function_tool import FunctionTool

_HELPERS = {
    "_choose": (teams.CHOOSE, ("re", "Any")),
    "_from_state": (agents.FROM_STATE, ("json", "Any")),
    "_named": (tools.NAMED, ("types", "Any")),
}
"""Functions that are written beside the cells' own -> the text, and what it needs."""
_STANDARD = {
    "Any": ("typing", "Any"),
    "AsyncGenerator": ("collections.abc", "AsyncGenerator"),
    "json": ("json", ""),
    "Path": ("pathlib", "Path"),
    "re": ("re", ""),
    "types": ("types", ""),
}
"""What the written code needs of Python itself."""
_OF_TARGET = {
    "BaseAgent": "agents",
    "DEFAULT_ROUTE": "workflow",
    "Event": "events",
    "EventActions": "events",
    "FunctionTool": "tools",
    "InvocationContext": "agents.invocation_context",
    "JoinNode": "workflow",
    "LlmAgent": "agents",
    "LongRunningFunctionTool": "tools",
    "LoopAgent": "agents",
    "McpToolset": "tools.mcp_tool",
    "OpenAPIToolset": "tools.openapi_tool.openapi_spec_parser.openapi_toolset",
    "ParallelAgent": "agents",
    "SequentialAgent": "agents",
    "SseConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "StreamableHTTPConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "Workflow": "workflow",
}
"""What the written code needs of the target -> its module, the same in both packages."""


@dataclass(frozen=True)
class Written:
    """The Python of an export."""

    code: str
    root: str
    """The variable of the root agent."""
    agents: list[str]
    notes: list[str]
    """What differs from the notebook, a line each."""


def write(
    notebook: Notebook,
    statements: Sequence[Statement],
    target: Target,
    folder: Path,
    agents: Sequence[str],
    *,
    imports: Mapping[str, tuple[str, str]],
) -> Written:
    """The file for one target.

    Args:
        notebook: What is exported.
        statements: The Python of its cells, in the order in which they ran.
        target: The package it is written for.
        folder: The folder of the file.
        agents: The root agent first. Of the others, one that cannot be written is a note.
        imports: Names to import besides -> module, and name in it.

    Raises:
        InputError: The root agent, or what it needs, cannot be written.
    """
    finder = _Finder(Scope(notebook, statements, target, folder))
    finder.imports |= imports
    scope, order = finder.scope, _Order(finder.find)
    root, *others = agents
    order.add(root, "%export")
    written = [root]
    for name in others:
        try:
            order.add_or_leave(name, "%export")
            written.append(name)
        except UserError as error:
            scope.note(f"{name} is left out: {error}")
    if models := dict.fromkeys(scope.other_models + finder.rewriter.other_models):
        scope.note(f"{', '.join(models)}: the model is {GEMINI_MODEL} there; google-adk does not have the notebook's")
    texts = [_import_lines(finder.imports, target), *(piece.text for piece in order.pieces), f"root_agent = {root}"]
    code = joined(texts) + "\n"
    _refuse_secrets(code)
    return Written(code, root, written, [*scope.notes])


class _Finder:
    """Finds what makes a name."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.imports: dict[str, tuple[str, str]] = {}
        """Name -> module, and name in it (empty: the module itself)."""
        package = scope.target.package
        self._known_imports = _STANDARD | {name: (f"{package}.{module}", name) for name, module in _OF_TARGET.items()}
        self._wrappers: dict[str, Piece] = {}
        for variable, tool in scope.variables.items():
            if not isinstance(tool, FunctionTool) or variable[0] == "_" or not scope.is_function_of_a_cell(variable):
                continue
            if piece := tools.wrapper(tool, variable, scope):
                scope.renamed[variable] = f"{variable}_tool"
                self._wrappers[f"{variable}_tool"] = piece
        self.rewriter = Rewriter(scope.target, scope.variables, scope.renamed)
        # The body of a function calls other functions by their names, not the tools made of them.
        self._body_rewriter = Rewriter(scope.target, scope.variables, {})

    def find(self, name: str, needed_by: str) -> Iterator[Piece]:
        """The pieces that make a name, in their order; none for a name of Python or of an import."""
        scope = self.scope
        if name in scope.notebook.definitions and scope.notebook.is_of_its_cell(name):
            definition = scope.notebook.definitions[name]
            yield self._agent(definition)
            yield from self._changes(name, after=(definition.cell, 0, 0))
        elif name in self._wrappers:
            yield self._wrappers[name]
        elif toolset := self._toolset(name):
            yield toolset
        elif name in _HELPERS:
            yield Piece(*_HELPERS[name])
        elif statement := scope.binding(name):
            yield from self._of_statement(statement, name, needed_by)
            yield from self._changes(name, after=statement.place)
        elif name in self._known_imports:
            self.imports[name] = self._known_imports[name]
        elif not (hasattr(builtins, name) or name.startswith("__")):
            yield from self._of_value(name, needed_by)

    def _agent(self, definition: AgentDefinition) -> Piece:
        if missing := [name for name in definition.members if self.scope.notebook.node_like(name) is None]:
            raise InputError(
                f"%export: {missing[0]} is not defined, and {definition.name} needs it; run its cell first"
            )
        kinds = {"llm": agents.llm_agent, "workflow": teams.workflow}
        return kinds.get(definition.kind, teams.team)(definition, self.scope)

    def _toolset(self, name: str) -> Piece | None:
        """The toolset of a `%tool` line; None: the name is something else."""
        defined = self.scope.notebook.tools.get(name)
        if defined is None or defined.origin is None or self.scope.variables.get(name) is not defined.tool:
            return None
        return tools.toolset(name, defined.origin, self.scope)

    def _changes(self, name: str, *, after: tuple[int, int, int]) -> Iterator[Piece]:
        for statement in self.scope.statements:
            if name in statement.changes and statement.place > after and not statement.is_magic:
                yield self._piece(statement)

    def _of_statement(self, statement: Statement, name: str, needed_by: str) -> Iterator[Piece]:
        if imported := imports_of(statement):
            self.imports[name] = self.scope.target.place_of(*imported.get(name, (name, "")))
        elif statement.is_magic:
            yield from self._of_value(name, needed_by)
        else:
            yield self._piece(statement)

    def _piece(self, statement: Statement) -> Piece:
        if is_function(statement):
            text = self._body_rewriter.rewritten(without_tool_decorators(statement.text, self.scope.variables))
        else:
            text = self.rewriter.rewritten(statement.text)
            self.scope.notes |= dict.fromkeys(self.rewriter.notes)
        early, late, _ = names_in(text)
        return Piece(text, sorted(early), sorted(late - early))

    def _of_value(self, name: str, needed_by: str) -> Iterator[Piece]:
        """A name that no cell binds in Python: data is written as it is now, what a module has is imported."""
        if name not in self.scope.variables:
            self.scope.note(f"{needed_by} uses {name}, which is not defined in this notebook")
            return
        value = self.scope.variables[name]
        if is_data(value):
            yield Piece(f"{name} = {value!r}")
        elif isinstance(value, type(sys)):
            self.imports[name] = value.__name__, ""
        elif place := _importable(value):
            self.imports[name] = self.scope.target.place_of(*place)
        else:
            raise InputError(
                f"%export: {needed_by} needs {name!r}, a {type(value).__name__} that no cell makes in Python; "
                f"write a cell that says {name} = ..., or take it out of {needed_by}"
            )


class _Order:
    """The pieces that some names need, in an order in which they run."""

    def __init__(self, find: Callable[[str, str], Iterable[Piece]]) -> None:
        self.pieces: dict[Piece, None] = {}
        self._find = find
        self._pieces_of: dict[str, list[Piece]] = {}

    def add(self, name: str, needed_by: str) -> None:
        """Write what makes `name`, after all that it needs."""
        if name in self._pieces_of:  # a circle: those that need it only when called come after it
            self.pieces |= dict.fromkeys(self._pieces_of[name])
            return
        self._pieces_of[name] = []
        self._pieces_of[name] = list(self._find(name, needed_by))
        for piece in self._pieces_of[name]:
            for early in piece.early:
                if early != name:
                    self.add(early, name)
            for late in piece.late:
                if late not in self._pieces_of:
                    self.add(late, name)
            self.pieces[piece] = None

    def add_or_leave(self, name: str, needed_by: str) -> None:
        """As `add`; if it raises, nothing is added."""
        before = dict(self.pieces), dict(self._pieces_of)
        try:
            self.add(name, needed_by)
        except Exception:
            self.pieces, self._pieces_of = before
            raise


def _import_lines(imports: Mapping[str, tuple[str, str]], target: Target) -> str:
    """Imports of Python and other packages, then those of the target."""
    lines: list[str] = []
    names: dict[str, list[str]] = {}
    for bound, (module, name) in imports.items():
        if name:
            names.setdefault(module, []).append(name if bound == name else f"{name} as {bound}")
        else:
            lines.append(f"import {module}" if bound == module.partition(".")[0] else f"import {module} as {bound}")
    lines = sorted(lines) + [
        f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(names.items())
    ]
    groups = [[line for line in lines if (target.package in line) is own] for own in (False, True)]
    return "\n\n".join("\n".join(group) for group in groups if group)


def _importable(value: Any) -> tuple[str, str] | None:
    """Module and name under which anybody can import a value."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", "")
    if not isinstance(module, str) or module in ("__main__", "builtins"):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def _refuse_secrets(code: str) -> None:
    if redacted(code) == code:
        return
    line = next((line for line in code.splitlines() if redacted(line) != line), "")
    raise InputError(
        f"%export: the file would hold what looks like a key or a token: {redacted(line).strip():.120}; "
        'read it from the environment instead: os.environ["NAME"]'
    )
