"""Export a notebook's agents and tools: a package that google-adk runs, or one script of adk_nb."""

import ast
import builtins
import keyword
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from adk_nb.errors import InputError, StorageError, UserError
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.cells.definitions import AgentDefinition
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.extensions.export import agents, tools
from adk_nb.notebook.extensions.export.models import lite_llm_code
from adk_nb.notebook.extensions.export.scope import Piece, Scope, is_data, join_code
from adk_nb.notebook.extensions.export.statements import (
    Rewriter,
    Statement,
    imports_of,
    is_function,
    names_in,
    without_tool_decorators,
)
from adk_nb.notebook.extensions.export.target import ADK_NB, GOOGLE_ADK
from adk_nb.notebook.place import check_folder_above
from adk_nb.notebook.view.plain_text import with_escapes
from adk_nb.redaction import redacted
from adk_nb.tools.function_tool import FunctionTool

_MARK = "written by %export of adk_nb"
"""In the first line of each file: such a file may be overwritten."""
_MAIN_CODE = """

def _ask_in_terminal() -> None:
    chat = Chat(root_agent)
    reply = chat.ask(" ".join(sys.argv[1:]) or input("you: "))
    while approvals := [interrupt for interrupt in reply.interrupts if interrupt.is_approval]:
        approval = approvals[0]
        for title, text in approval.documents.items():
            print(f"---- {title}\\n{text}\\n----")
        question = f"may {approval.call.name} run with {approval.call.args}? [y/N] "
        yes = input(question).strip().lower() in ("y", "yes")
        reply = chat.approve(approval.id) if yes else chat.reject(approval.id)
    print(reply.text or reply.error or "")


if __name__ == "__main__":
    _ask_in_terminal()
"""
_MAIN_IMPORTS = {"sys": ("sys", ""), "Chat": ("adk_nb", "Chat")}
_RESERVED_PACKAGES = ("google", "adk", "adk_nb", "test", "user")
_HELPERS = {
    "_choose": Piece(agents.CHOOSE_CODE, ("re", "Any")),
    "_take": Piece(agents.TAKE_CODE, ("functools", "inspect", "Any", "Event")),
    "_from_state": Piece(agents.FROM_STATE_CODE, ("json", "Any")),
    "_named": Piece(tools.RENAMED_CODE, ("types", "Any")),
}
"""Functions that are written beside the cells' own."""
_STANDARD = {
    "Any": ("typing", "Any"),
    "AsyncGenerator": ("collections.abc", "AsyncGenerator"),
    "functools": ("functools", ""),
    "inspect": ("inspect", ""),
    "json": ("json", ""),
    "os": ("os", ""),
    "Path": ("pathlib", "Path"),
    "re": ("re", ""),
    "types": ("types", ""),
}
"""Names of Python itself in the written code -> module, and name in it (empty: the module itself)."""
_OF_TARGET = {
    "agents": ("BaseAgent", "LlmAgent", "LoopAgent", "ParallelAgent", "SequentialAgent"),
    "agents.invocation_context": ("InvocationContext",),
    "code_executors": ("UnsafeLocalCodeExecutor",),
    "events": ("Event", "EventActions"),
    "models.lite_llm": ("LiteLlm",),
    "skills": ("load_skill_from_dir",),
    "tools": ("FunctionTool", "LongRunningFunctionTool"),
    "tools.mcp_tool": ("McpToolset",),
    "tools.mcp_tool.mcp_session_manager": ("SseConnectionParams", "StreamableHTTPConnectionParams"),
    "tools.openapi_tool.openapi_spec_parser.openapi_toolset": ("OpenAPIToolset",),
    "tools.skill_toolset": ("SkillDiscoveryMode", "SkillToolset"),
    "workflow": ("DEFAULT_ROUTE", "JoinNode", "Workflow"),
}
"""Module -> its names in the written code, the same in both packages."""


# ---- the files


def export(
    notebook: Notebook, statements: list[Statement], place: str, folder: Path, *, root: str | None = None
) -> list[str]:
    """Write the notebook's agents and tools; returns a report, a line each.

    Args:
        notebook: The notebook.
        statements: The Python of its cells, in the order in which they ran.
        place: A path that ends in `.py`: a script. Any other: the folder of a package.
        folder: Where a relative path starts.
        root: The root agent. None: the only one that can be it.

    Raises:
        InputError: There is no agent or no clear root, something cannot be Python, or the path cannot take an
            export; nothing was written.
        StorageError: A file cannot be written.
    """
    root = root or _root(notebook, place)
    path = folder / Path(place).expanduser()
    is_script = path.suffix == ".py"
    if not is_script and (
        not path.name.isidentifier() or keyword.iskeyword(path.name) or path.name in _RESERVED_PACKAGES
    ):
        raise InputError(
            f"%export: {path.name!r} cannot be the name of a package; write a folder such as my_agents, or a script "
            "agent.py"
        )
    check_folder_above(path)
    target, code_folder = (ADK_NB, path.parent) if is_script else (GOOGLE_ADK, path)
    module = _Module(Scope(notebook, statements, target, code_folder), _MAIN_IMPORTS if is_script else {})
    code = module.write(root, [name for name in notebook.agent_names if name != root])
    if is_script:
        usage = f"\n\npython {path.name} your question\n"
        files = {path: _header(f"The agent {root}", usage) + code + _MAIN_CODE}
    else:
        files = {
            path / "__init__.py": _header(f"The agent {root}") + "from . import agent as agent\n",
            path / "agent.py": _header(f"The agent {root}, for google-adk") + code,
        }
    _write(files)
    members = f", with {', '.join(module.other_agents)}" if module.other_agents else ""
    near = _relative(path, folder)
    command = (
        f"python {near} your question" if is_script else f"adk run {near}, or adk web {_relative(path.parent, folder)}"
    )
    return [
        f"wrote {', '.join(_relative(file, folder) for file in files)}: root_agent is {root}{members}",
        *(f"note: {note}" for note in module.scope.notes),
        f"next, in a terminal: {command}",
    ]


def _root(notebook: Notebook, place: str) -> str:
    """The agent that is marked as the root, the only one, or the only one that is under no other."""
    names = notebook.agent_names
    if not names:
        raise InputError("%export: no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    if notebook.root:
        return notebook.root
    members = {member for definition in notebook.definitions.values() for member in definition.members}
    members |= {member.name for name in names for member in notebook.agent(name).sub_agents}
    roots = [name for name in names if name not in members]
    if len(roots) != 1:
        choices = ", ".join(roots or names)
        raise InputError(f"%export: which agent is the root? type %export {place} NAME, with one of {choices}")
    return roots[0]


def _header(title: str, usage: str = "") -> str:
    return f'"""{title}; {_MARK}.{usage}"""\n\n'


def _write(files: Mapping[Path, str]) -> None:
    for path in files:  # all are checked before any is written
        if path.exists() and not _is_export(path):
            raise InputError(f"%export: {path} exists and %export did not write it; choose another place, or move it")
    for path, code in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"%export: {path} cannot be written: {error.strerror}; choose another place") from error


def _is_export(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return _MARK in file.readline()
    except (OSError, UnicodeDecodeError):
        return False


def _relative(path: Path, folder: Path) -> str:
    """As the user types it in the folder of the notebook."""
    path = path.resolve()
    return str(path.relative_to(folder.resolve())) if path.is_relative_to(folder.resolve()) else str(path)


# ---- the code


class _Module:
    """The code of one file: the pieces that some names need, in an order in which they run.

    Args:
        scope: The notebook and the target; collects notes.
        imports: Name -> module, and name in it (empty: the module itself), in addition to those of the agents.
    """

    def __init__(self, scope: Scope, imports: Mapping[str, tuple[str, str]]) -> None:
        self.scope = scope
        self.other_agents: list[str] = []
        """Agents in the file besides the root."""
        self._imports = dict(imports)
        self._pieces: dict[Piece, None] = {}
        self._pieces_of: dict[str, list[Piece]] = {}
        package = scope.target.package
        self._known_imports = _STANDARD | {
            name: (f"{package}.{module}", name) for module, names in _OF_TARGET.items() for name in names
        }
        self._wrappers: dict[str, Piece] = {}
        for variable, tool in scope.variables.items():
            if not isinstance(tool, FunctionTool) or variable[0] == "_" or not scope.is_function_of_a_cell(variable):
                continue
            if piece := tools.wrapper(tool, variable, scope):
                scope.renamed[variable] = f"{variable}_tool"
                self._wrappers[f"{variable}_tool"] = piece
        self._rewriter = Rewriter(scope.target, scope.variables, scope.renamed, lite_llm_code)
        # The body of a function calls other functions by their names, not the tools made of them.
        self._body_rewriter = Rewriter(scope.target, scope.variables, {}, lite_llm_code)

    def write(self, root: str, agents: Sequence[str]) -> str:
        """The code with a root agent and other agents; one of those that cannot be written becomes a note.

        Raises:
            InputError: The root agent, or something it needs, cannot be written, or looks like a secret.
        """
        self._add(root, "%export")
        for name in agents:
            added = dict(self._pieces), dict(self._pieces_of)  # restored if the agent cannot be written
            try:
                self._add(name, "%export")
                self.other_agents.append(name)
            except UserError as error:
                self._pieces, self._pieces_of = added
                self.scope.note(f"{name} is left out: {error}")
        if models := dict.fromkeys(self.scope.other_models + self._rewriter.other_models):
            names = ", ".join(models)
            self.scope.note(f"{names}: the model is {GEMINI_MODEL} there; google-adk does not have the notebook's")
        code = join_code([self._import_lines(), *(piece.text for piece in self._pieces), f"root_agent = {root}"]) + "\n"
        if redacted(code) != code:
            line = next((line for line in code.splitlines() if redacted(line) != line), "")
            raise InputError(
                f"%export: the file would hold what looks like a key or a token: {redacted(line).strip():.120}; "
                'read it from the environment instead: os.environ["NAME"]'
            )
        # With escapes for invisible characters, which could show a reader another program.
        escaped = with_escapes(code)
        if escaped != code and ast.dump(ast.parse(escaped)) != ast.dump(ast.parse(code)):
            pairs = zip(code.splitlines(), escaped.splitlines(), strict=False)
            line = next((after for before, after in pairs if before != after), "")
            raise InputError(
                f"%export: {line.strip()[:120]} holds an invisible character where Python has no escape for it; "
                "write it as an escape in a string that is not raw"
            )
        return escaped

    def _add(self, name: str, user: str) -> None:
        """Add the pieces that bind `name`, which `user` needs, after all that they need."""
        if name in self._pieces_of:  # a circle: those that need it only when called come after it
            self._pieces |= dict.fromkeys(self._pieces_of[name])
            return
        self._pieces_of[name] = []
        self._pieces_of[name] = list(self._find(name, user))
        for piece in self._pieces_of[name]:
            for early in piece.early:
                if early != name:
                    self._add(early, name)
            for late in piece.late:
                if late not in self._pieces_of:
                    self._add(late, name)
            self._pieces[piece] = None  # after all that it needs: dicts keep their order

    def _find(self, name: str, user: str) -> Iterator[Piece]:
        """The pieces that bind a name, in their order; none for a name of Python or of an import."""
        scope = self.scope
        tool = scope.notebook.tools.get(name)
        if name in scope.notebook.definitions and scope.notebook.is_of_its_cell(name):
            definition = scope.notebook.definitions[name]
            yield self._agent(definition)
            yield from self._changes(name, (definition.cell, 0, 0))
        elif name in self._wrappers:
            yield self._wrappers[name]
        elif tool and tool.origin and scope.variables.get(name) is tool.tool:
            yield tools.toolset(name, tool.origin, scope)
        elif name in _HELPERS:
            yield _HELPERS[name]
        elif statement := scope.binding(name):
            if imports := imports_of(statement):
                self._imports[name] = scope.target.place_of(*imports.get(name, (name, "")))
            elif statement.is_magic:
                yield from self._of_value(name, user)
            else:
                yield self._piece(statement)
            yield from self._changes(name, statement.place)
        elif name in self._known_imports:
            self._imports[name] = self._known_imports[name]
        elif not (hasattr(builtins, name) or name.startswith("__")):
            yield from self._of_value(name, user)

    def _agent(self, definition: AgentDefinition) -> Piece:
        if missing := [name for name in definition.members if self.scope.notebook.node_like(name) is None]:
            raise InputError(
                f"%export: {missing[0]} is not defined, and {definition.name} needs it; run its cell first"
            )
        kinds = {"llm": agents.llm_agent, "workflow": agents.workflow}
        return kinds.get(definition.kind, agents.team)(definition, self.scope)

    def _changes(self, name: str, start: tuple[int, int, int]) -> Iterator[Piece]:
        """The statements that change a value after it was bound at `start`."""
        for statement in self.scope.statements:
            if name in statement.changes and statement.place > start and not statement.is_magic:
                yield self._piece(statement)

    def _piece(self, statement: Statement) -> Piece:
        if is_function(statement):
            text = self._body_rewriter.rewrite(without_tool_decorators(statement.text, self.scope.variables))
        else:
            text = self._rewriter.rewrite(statement.text)
            self.scope.notes |= self._rewriter.notes
        early, late, _ = names_in(text)
        return Piece(text, sorted(early), sorted(late))

    def _of_value(self, name: str, user: str) -> Iterator[Piece]:
        """A name that no cell binds in Python: data is written as it is now, objects of modules are imported."""
        if name not in self.scope.variables:
            self.scope.note(f"{user} uses {name}, which is not defined in this notebook")
            return
        value = self.scope.variables[name]
        module, own_name = getattr(value, "__module__", None), getattr(value, "__name__", "")
        if is_data(value):
            yield Piece(f"{name} = {value!r}")
        elif isinstance(value, type(sys)):
            self._imports[name] = value.__name__, ""
        elif (
            isinstance(module, str)
            and module not in ("__main__", "builtins")
            and getattr(sys.modules.get(module), own_name, None) is value
        ):
            self._imports[name] = self.scope.target.place_of(module, own_name)
        else:
            raise InputError(
                f"%export: {user} needs {name!r}, a {type(value).__name__} that no cell makes in Python; "
                f"write a cell that says {name} = ..., or take it out of {user}"
            )

    def _import_lines(self) -> str:
        """Imports of Python and other packages, then those of the target."""
        lines: list[str] = []
        names: dict[str, list[str]] = {}
        for bound, (module, name) in self._imports.items():
            if name:
                names.setdefault(module, []).append(name if bound == name else f"{name} as {bound}")
            else:
                lines.append(f"import {module}" if bound == module.partition(".")[0] else f"import {module} as {bound}")
        lines.sort()
        lines += [f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)]
        package = self.scope.target.package
        groups = [[line for line in lines if (package in line) is is_target] for is_target in (False, True)]
        return "\n\n".join("\n".join(group) for group in groups if group)
