"""Export a notebook's agents: a package that google-adk runs, or one script."""

import keyword
from collections.abc import Mapping
from pathlib import Path

from adk_nb.errors import InputError, StorageError
from adk_nb.notebook.export.statements import Statement
from adk_nb.notebook.export.target import ADK_NB, GOOGLE_ADK
from adk_nb.notebook.export.writer import write
from adk_nb.notebook.place import check_folder_above
from adk_nb.notebook.registry.notebook import Notebook

_MARK = "written by %export of adk_nb"
"""In the first line of each file: such a file may be overwritten."""
_MAIN = """

def _ask_in_terminal() -> None:
    chat = Chat(root_agent)
    reply = chat.ask(" ".join(sys.argv[1:]) or input("you: "))
    while approvals := [interrupt for interrupt in reply.interrupts if interrupt.is_approval]:
        asked = approvals[0]
        words = f"may {asked.call.name} run with {asked.call.args}? [y/N] "
        yes = input(words).strip().lower() in ("y", "yes")
        reply = chat.approve(asked.id) if yes else chat.reject(asked.id)
    print(reply.text or reply.error or "")


if __name__ == "__main__":
    _ask_in_terminal()
"""
_MAIN_NEEDS = {"sys": ("sys", ""), "Chat": ("adk_nb", "Chat")}
_NO_PACKAGE = ("google", "adk", "adk_nb", "test", "user")


def export(notebook: Notebook, statements: list[Statement], place: str, folder: Path) -> list[str]:
    """Write the notebook's agents and tools; returns a report, a line each.

    Args:
        notebook: What is exported.
        statements: The Python of its cells, in the order in which they ran.
        place: A path that ends in `.py`: a script. Any other: the folder of a package.
        folder: Where a relative path starts.

    Raises:
        InputError: There is no agent or no clear root, something cannot be written as Python, or the path is no place
            for an export; nothing was written.
        StorageError: A file cannot be written.
    """
    root = _root(notebook)
    agents = [root, *(name for name in notebook.agent_names if name != root)]
    path = folder / Path(place).expanduser()
    is_script = path.suffix == ".py"
    if not is_script:
        _check_package(path)
    check_folder_above(path)
    target, beside = (ADK_NB, path.parent) if is_script else (GOOGLE_ADK, path)
    written = write(notebook, statements, target, beside, agents, imports=_MAIN_NEEDS if is_script else {})
    if is_script:
        more = f"\n\npython {path.name} your question\n"
        files = {path: _head(f"The agent {root}", more) + written.code + _MAIN}
    else:
        init = _head(f"The agent {root}") + "from . import agent as agent\n"
        files = {
            path / "__init__.py": init,
            path / "agent.py": _head(f"The agent {root}, for google-adk") + written.code,
        }
    _put(files)
    others = [name for name in written.agents if name != root]
    members = f", with {', '.join(others)}" if others else ""
    near = _relative(path, folder)
    command = (
        f"python {near} your question" if is_script else f"adk run {near}, or adk web {_relative(path.parent, folder)}"
    )
    return [
        f"wrote {', '.join(_relative(file, folder) for file in files)}: root_agent is {root}{members}",
        *(f"note: {note}" for note in written.notes),
        f"next, in a terminal: {command}",
    ]


def _root(notebook: Notebook) -> str:
    """The agent that is marked as the root, the only one, or the only one that is under no other."""
    names = notebook.agent_names
    if not names:
        raise InputError("%export: no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    if notebook.root:
        return notebook.root
    under = {member for definition in notebook.definitions.values() for member in definition.members}
    under |= {member.name for name in names for member in notebook.agent(name).sub_agents}
    top = [name for name in names if name not in under]
    if len(top) != 1:
        raise InputError(
            f"%export: which agent is the root? add --root to the cell of one of {', '.join(top or names)}"
        )
    return top[0]


def _check_package(path: Path) -> None:
    name = path.name
    if not name.isidentifier() or keyword.iskeyword(name) or name in _NO_PACKAGE:
        raise InputError(
            f"%export: {name!r} cannot be the name of a package; write a folder such as my_agents, or a script agent.py"
        )


def _head(about: str, more: str = "") -> str:
    return f'"""{about}; {_MARK}.{more}"""\n\n'


def _put(files: Mapping[Path, str]) -> None:
    for path in files:
        if path.exists() and not _is_ours(path):
            raise InputError(f"%export: {path} exists and %export did not write it; choose another place, or move it")
    for path, code in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        except OSError as error:
            raise StorageError(f"%export: {path} cannot be written: {error.strerror}; choose another place") from error


def _is_ours(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return _MARK in file.readline()
    except (OSError, UnicodeDecodeError):
        return False


def _relative(path: Path, folder: Path) -> str:
    """As the user types it in the folder of the notebook."""
    try:
        return str(path.resolve().relative_to(folder.resolve()))
    except ValueError:
        return str(path)
