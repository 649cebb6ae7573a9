"""Load what a notebook, a Python file or a folder defines, in IPython's own shell: no server, no kernel."""

import ast
import importlib
import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from IPython.core.interactiveshell import InteractiveShell
from traitlets import TraitError
from traitlets.config import Config

from adk_nb import google_adk
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.command_line.definitions import Selection
from adk_nb.errors import AgentNotFoundError, InputError, UserError, closest
from adk_nb.lazy import require
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics.config import FILE_PREFIX
from adk_nb.notebook.magics.extension import AdkMagics, load_ipython_extension
from adk_nb.notebook.magics.output import Host
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.redaction import hidden
from adk_nb.yaml_agents import from_config

YAML_FILE = "root_agent.yaml"
_RUN, _SKIP, _MAY_FAIL = "run", "skip", "raises-exception"
"""Tags of a cell: it runs whatever it does; it does not run; it runs, and may fail."""
_IN_CODE = re.compile(r"\s*\(<?[^()]*(?:, |,)line \d+\)$")
"""What Python adds to a SyntaxError: `(<ipython-input-2-...>, line 3)`."""
_MAX_CAUSE = 500
"""Characters of the error of a cell."""


@dataclass(frozen=True)
class LeftOut:
    """A part of a cell that did not run."""

    cell: int
    """Its place in the notebook, counted from 1, text cells included."""
    reason: str
    source: str


@dataclass
class Loaded:
    """The definitions of a source, in the shell that ran it."""

    path: Path
    shell: Any
    host: Host
    started_in: Path
    """The folder in which the command was typed."""
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    notes: list[str] = field(default_factory=list[str])

    @property
    def notebook(self) -> Notebook:
        """Its definitions and sessions."""
        return self.host.notebook

    def keep_sessions_in(self, address: str) -> None:
        """Keep sessions in a file or a database, in place of where the notebook has them.

        Raises:
            UserError: It cannot be used.
        """
        path = address.removeprefix(FILE_PREFIX)
        if path != address:
            address = f"{FILE_PREFIX}{self.started_in / Path(path).expanduser()}"
        with silence():
            try:
                self.host.settings.sessions = address
            except TraitError as error:
                raise InputError(str(error)) from None

    def summary(self, besides: Collection[str] = ()) -> str:
        """What did not run, in a line; empty if all did. `besides`: reasons of what runs later."""
        cells = dict[str, list[str]]()
        for one in (one for one in self.left_out if one.reason not in besides):
            cells.setdefault(one.reason, []).append(str(one.cell))
        named = [f"{reason} in {', '.join(numbers)}" for reason, numbers in cells.items()]
        return f"{self.path.name}: left out of its cells: {'; '.join(named)}" if named else ""

    def addressee(self, name: str | None = None) -> str:
        """The name of an agent, an app or a runner that can be asked.

        Raises:
            InputError: There is none, there are several and `name` is None, or two are named so.
            AgentNotFoundError: There is none of that name.
        """
        names = self.notebook.addressees
        if not names:
            raise InputError(f"{self.path} defines no agent; in a notebook begin a cell with %%agent NAME")
        if name is None:
            if self.notebook.root is None and len(self.notebook.root_names) > 1:
                raise InputError(f"{self.path.name} has several agents; name one of {', '.join(names)}")
            return self.notebook.agent_for_text()[0]
        if name in names:
            return name
        own = [one for one in names if self.notebook.agent(one).name == name]
        if len(own) > 1:
            raise InputError(f"{len(own)} agents are named {name!r}, in {', '.join(own)}; give one of these names")
        if own:
            return own[0]
        raise AgentNotFoundError("agent", name, names)


def load(source: str) -> Loaded:
    """Run the definitions of a notebook (.ipynb), a Python file, or a folder with an agent as `adk run` takes it.

    The current folder becomes that of the file, as in Jupyter. Where google-adk is not installed, its name means
    adk_nb.

    Raises:
        InputError: There is no such file, it cannot be read, or a cell fails; the message names cell and line.
    """
    path = Path(source).expanduser().absolute()
    if not path.exists():
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        near = closest(path.name, beside, cutoff=0.8)
        raise InputError(f"there is no file {source!r}; {f'did you mean {near!r}?' if near else 'see the path'}")
    suffix = path.suffix.lower()
    if not (path.is_dir() or suffix in (".ipynb", ".py", ".yaml", ".yml")):
        raise InputError(f"{source!r} is no notebook (.ipynb), Python file (.py), agent in YAML, or folder of an agent")
    cells = _cells(path) if suffix == ".ipynb" else []
    loaded = new_shell(path)
    with silence():
        google_adk.stand_in_for_google_adk()
        if suffix == ".ipynb":
            _run_cells(loaded, cells)
        else:
            _import_agents(loaded, path)
    return loaded


class _Shell(InteractiveShell):
    """IPython's shell, without a history file."""

    def mainloop(self) -> None:
        """Nothing reads cells here. That there is a main loop is what tells a terminal from a script."""


def new_shell(path: Path | None = None) -> Loaded:
    """A shell with the magics, in which nothing is defined yet. `path`: of what it will load."""
    started_in = Path.cwd()
    if path is not None:
        os.chdir(path if path.is_dir() else path.parent)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Minimal"
    shell = cast(Any, _Shell).instance(config=config)
    sys.path.insert(0, os.getcwd())
    with silence():
        load_ipython_extension(shell)
    magics = shell.magics_manager.registry[AdkMagics.__name__]
    return Loaded(path or started_in, shell, magics, started_in)


@contextmanager
def silence() -> Generator[None]:
    """Within this nothing that is printed is shown, and nothing that is piped in can be taken."""
    piped = sys.stdin
    with open(os.devnull, encoding="utf-8") as nothing, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        sys.stdin = nothing
        try:
            yield
        finally:
            sys.stdin = piped


# ---- notebooks


@dataclass(frozen=True)
class _Cell:
    number: int
    source: str
    tags: frozenset[str]

    @property
    def head(self) -> str:
        """The cell in a few words: its number, and its first line if that is a magic."""
        first = self.source.lstrip().partition("\n")[0]
        return f"cell {self.number} ({one_line(first, 40)})" if first.startswith("%%") else f"cell {self.number}"


def _cells(path: Path) -> list[_Cell]:
    """The code cells of a notebook file.

    Raises:
        InputError: The file is no notebook of this version, or of another language.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        reason = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"{path.name} is no notebook: it is not JSON ({reason})") from error
    fields: Mapping[str, Any] = cast(Any, content) if isinstance(content, dict) else {}
    cells: Any = fields.get("cells")
    if not isinstance(cells, list):
        advice = "it is of version 3: open it in Jupyter and save it" if "worksheets" in fields else "it has no cells"
        raise InputError(f"{path.name} is no notebook: {advice}")
    metadata: Any = fields.get("metadata") or {}
    kernel: Any = metadata.get("kernelspec") or metadata.get("language_info") or {}
    language: Any = kernel.get("language", kernel.get("name", "python")) or "python"
    if "python" not in str(language).lower():
        raise InputError(f"{path.name} is a notebook of {language}, not of Python")
    found = list[_Cell]()
    for number, cell in enumerate(cast(list[Any], cells), 1):
        if not isinstance(cell, dict) or cast(Any, cell).get("cell_type") != "code":
            continue
        code = cast(Any, cell)
        text = "".join(code.get("source") or "")  # a text, or its lines
        about: Any = code.get("metadata") or {}
        if text.strip():
            found.append(_Cell(number, text, frozenset(map(str, about.get("tags") or ()))))
    return found


class _Filter(ast.NodeTransformer):
    """Takes statements out of the cell that IPython has parsed."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.place = ""
        self.runs_all = False
        self.reasons: list[str] = []
        self.kept: list[ast.stmt] = []
        """The statements of the cell that run."""

    def visit(self, node: Any) -> Any:
        """The module of a cell, or of code that a magic runs in it."""
        if isinstance(node, ast.Module) and self.place:
            if self.runs_all:
                self._selection.run_all(node)
            else:
                self.reasons += self._selection.choose(node, self.place)
            self.kept = [*node.body]
            self.place = ""  # a module within is of a magic, which was let in
        return node


def _run_cells(loaded: Loaded, cells: list[_Cell]) -> None:
    selection, defined_in, failed = Selection(), dict[str, int](), dict[str, InputError]()
    chosen = _Filter(selection)
    loaded.shell.ast_transformers.append(chosen)
    try:
        for cell in cells:
            if _SKIP in cell.tags:
                loaded.left_out.append(LeftOut(cell.number, f"tag {_SKIP}", cell.source))
                continue
            chosen.place, chosen.runs_all, chosen.reasons = f"cell {cell.number}", _RUN in cell.tags, []
            chosen.kept = []
            before = {name: one.version for name, one in loaded.notebook.definitions.items()}
            result = loaded.shell.run_cell(cell.source, store_history=True)
            loaded.left_out += [LeftOut(cell.number, reason, cell.source) for reason in chosen.reasons]
            error = result.error_before_exec or result.error_in_exec
            if error is not None and cell.source.lstrip().startswith("%key") and isinstance(error, UserError):
                loaded.left_out.append(LeftOut(cell.number, "%key, which found none", cell.source))
            elif selection.needed:
                raise failed[selection.needed]
            elif error is not None and _MAY_FAIL not in cell.tags:
                told = _cell_error(loaded, cell, error, selection.unavailable)
                has_talked = any(one.reason[0] in "%" or one.reason.endswith("()") for one in loaded.left_out)
                if not (has_talked and chosen.kept and selection.leave_out_failed(chosen.kept, f"cell {cell.number}")):
                    raise told from error
                failed |= dict.fromkeys(selection.failed - failed.keys(), told)
                loaded.left_out.append(LeftOut(cell.number, type(error).__name__, cell.source))
            for name, one in loaded.notebook.definitions.items():
                if before.get(name) not in (None, one.version):
                    first = defined_in[name]
                    loaded.notes.append(f"{name} is defined in cell {first} and in cell {cell.number}, which counts")
                if before.get(name) != one.version:
                    defined_in[name] = cell.number
    finally:
        loaded.shell.ast_transformers.remove(chosen)


def _cell_error(loaded: Loaded, cell: _Cell, error: BaseException, unavailable: Mapping[str, str]) -> InputError:
    """The error of a cell, in one line."""
    kind = type(error).__name__
    cause = _IN_CODE.sub("", str(error) if isinstance(error, UserError) else f"{kind}: {error}")
    line = _line_of(loaded.shell, error)
    missing = str(getattr(error, "name", ""))
    hint = f"; to leave the cell out give it the tag {_SKIP!r}"
    if isinstance(error, NameError) and missing in unavailable:
        hint = f"; {unavailable[missing]} sets it, and was left out: give that cell the tag {_RUN!r}"
    elif isinstance(error, ModuleNotFoundError):
        hint = "; install it here, as cells with pip are not run"
    elif isinstance(error, EOFError):
        hint = f"; the cell waits for input: give it the tag {_SKIP!r}"
    where = f"{loaded.path.name}, {cell.head}" + (f", line {line}" if line else "")
    return InputError(hidden(f"{where}: {one_line(cause, _MAX_CAUSE)}{hint}"))


def _line_of(shell: Any, error: BaseException) -> int | None:
    """The line of the cell; None for a magic's own error, which is about all of the cell."""
    syntax = error.__cause__ or error.__context__ if isinstance(error, UserError) else error
    if isinstance(syntax, SyntaxError):
        return syntax.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals is shell.user_ns and frame.f_code.co_name in ("<module>", "<cell line: 1>"):
            line = trace.tb_lineno
        trace = trace.tb_next
    return None if isinstance(error, UserError) else line


# ---- Python files, and folders as google-adk has them


def _import_agents(loaded: Loaded, path: Path) -> None:
    """Put the agents of a module, a package or a YAML file into the shell's variables."""
    variables = loaded.shell.user_ns
    variables |= _agents_at(path)
    if isinstance(variables.get("app"), App):
        loaded.notebook.root = "app"
    elif isinstance(variables.get("root_agent"), BaseAgent):
        loaded.notebook.root = "root_agent"


def agents_below(folder: Path) -> tuple[dict[str, App | BaseAgent], list[str]]:
    """The agents of the folders in a folder, or of the folder itself, by its name; and what cannot be loaded, and why.

    Raises:
        InputError: There is none.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    folders = [folder] if _has_agent(folder) else [one for one in sorted(folder.iterdir()) if _has_agent(one)]
    found, problems = dict[str, App | BaseAgent](), list[str]()
    with silence():
        google_adk.stand_in_for_google_adk()
        for one in folders:
            try:
                names = _agents_at(one)
                found[one.name] = next(value for value in _roots(names) if isinstance(value, App | BaseAgent))
            except UserError as error:
                problems.append(f"{one.name} is not served: {error}")
    if not found:
        raise InputError("; ".join([f"{folder} has no agent that can be served", *problems]))
    return found, problems


def _roots(names: Mapping[str, Any]) -> list[Any]:
    return [names.get("app"), names.get("root_agent"), *names.values()]


def _has_agent(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("agent.py", YAML_FILE))


def _agents_at(path: Path) -> dict[str, Any]:
    """The names that a module, a package or a YAML file defines.

    Raises:
        InputError: It has no agent, or fails; the message has the file and the line.
    """
    folder = path if path.is_dir() else path.parent
    _read_dotenv(folder)
    try:
        if path.suffix == ".py":
            return _public(_module_of(path))
        if path.is_file() or (path / YAML_FILE).is_file():
            agent = from_config(path)
            return {agent.name: agent}
        return _package_agents(path)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        place = _place_below(folder, error) or path.name
        cause = one_line(f"{type(error).__name__}: {error}", _MAX_CAUSE)
        raise InputError(hidden(f"{place}: {cause}")) from error


def _module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _package_agents(folder: Path) -> dict[str, Any]:
    """The agents of a folder: `root_agent` or `app` of the package, or of its module `agent`.

    Raises:
        InputError: It has none.
    """
    if not any((folder / name).is_file() for name in ("agent.py", "__init__.py")):
        below = sorted(one.name for one in folder.iterdir() if one.is_dir() and (one / "agent.py").is_file())
        advice = f"its folders have some: {', '.join(below)}" if below else f"write agent.py or {YAML_FILE}"
        raise InputError(f"{folder} has no agent; {advice}")
    sys.path.insert(0, str(folder.parent))
    names = dict[str, Any]()
    modules = (folder.name, f"{folder.name}.agent") if (folder / "agent.py").is_file() else (folder.name,)
    for name in modules:
        module = importlib.import_module(name)
        names |= _public(module)
        if isinstance(getattr(module, "agent", None), ModuleType):
            names |= _public(module.agent)
    if not any(isinstance(names.get(name), BaseAgent | App) for name in ("root_agent", "app")):
        found = names.get("root_agent")
        kind = f"; its root_agent is a {type(found).__module__}.{type(found).__name__}" if found is not None else ""
        raise InputError(f"{folder.name} has no root_agent and no app of adk_nb{kind}")
    return names


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name[0] != "_"}


def _place_below(folder: Path, error: BaseException) -> str:
    """The file and line of a folder in which an error was raised, as `agent.py, line 7`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}, line {error.lineno}"
    place, trace = "", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(folder):
            place = f"{file.relative_to(folder)}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _read_dotenv(folder: Path) -> None:
    """Take the variables of the nearest `.env` that the environment does not have, as google-adk does.

    Raises:
        InputError: It is no text in UTF-8.
        MissingExtraError: There is no python-dotenv to read it; an empty one, as for a new agent, needs none.
    """
    file = next((one / ".env" for one in (folder, *folder.parents) if (one / ".env").is_file()), None)
    if file is None or not file.stat().st_size:
        return
    try:
        require("dotenv", package="adk-nb[keys]").load_dotenv(file, encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text in UTF-8: {error.reason}") from error
