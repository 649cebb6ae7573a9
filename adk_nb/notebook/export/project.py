"""The files of an export: a folder that google-adk runs, or one script."""

import keyword
from collections.abc import Mapping
from pathlib import Path

from adk_nb.errors import InputError, StorageError
from adk_nb.notebook.export.statements import Statement
from adk_nb.notebook.export.target import ADK_NB, GOOGLE_ADK
from adk_nb.notebook.export.writer import Writer, Written
from adk_nb.notebook.place import check_folder_above
from adk_nb.notebook.registry.notebook import Notebook

_MARK = "written by %export of adk_nb"
"""In the first line of each file: what has it may be written anew."""
_HEAD = '"""{about}; {mark}.{more}"""\n\n'
_MAIN = """

def _ask_in_terminal() -> None:
    chat = Chat(root_agent)
    reply = chat.ask(" ".join(sys.argv[1:]) or input("you: "))
    while reply.pending:
        asked = reply.pending[0]
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
    """Write the notebook's agents and tools, and say what came of it, a line each.

    Args:
        notebook: Of which.
        statements: The Python of its cells, in the order in which they ran.
        place: A path that ends in `.py`: a script. Any other: the folder of a package.
        folder: What the path is relative to.

    Raises:
        InputError: There is no agent, nobody knows which is the root, something cannot be written as Python, there is
            no such folder, or another file is in the way; nothing was written.
        StorageError: The disk does not take it.
    """
    root = _root(notebook)
    others = [one for one in notebook.agent_names if one != root]
    path = folder / Path(place).expanduser()
    is_script = path.suffix == ".py"
    if not is_script:
        _check_package(path)
    check_folder_above(path)
    writer = Writer(notebook, statements, ADK_NB if is_script else GOOGLE_ADK, path.parent if is_script else path)
    written = writer.write(root, others, also=_MAIN_NEEDS if is_script else {})
    files = _script(written, path) if is_script else _package(written, path)
    _put(files)
    told = [f"wrote {', '.join(_near(one, folder) for one in files)}: {_agents(written)}"]
    near = _near(path, folder)
    runs = f"python {near} your question" if is_script else f"adk run {near}, or adk web {_near(path.parent, folder)}"
    return [*told, *(f"note: {one}" for one in written.notes), f"next, in a terminal: {runs}"]


def _root(notebook: Notebook) -> str:
    """Who is asked: the agent that is marked so, the only one, or the only one that is under no other."""
    names = notebook.agent_names
    if not names:
        raise InputError("%export: no agent is defined yet; begin a cell with %%agent NAME, see %%agent?")
    if notebook.root:
        return notebook.root
    under = {member for one in notebook.definitions.values() for member in one.members}
    under |= {sub.name for name in names for sub in notebook.agent(name).sub_agents}
    top = [one for one in names if one not in under]
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


def _package(written: Written, path: Path) -> Mapping[Path, str]:
    about = f"The agent {written.root}, for google-adk"
    head = _HEAD.format(about=about, mark=_MARK, more="")
    init = _HEAD.format(about=f"The agent {written.root}", mark=_MARK, more="") + "from . import agent as agent\n"
    return {path / "__init__.py": init, path / "agent.py": head + written.code}


def _script(written: Written, path: Path) -> Mapping[Path, str]:
    more = f"\n\npython {path.name} your question\n"
    head = _HEAD.format(about=f"The agent {written.root}", mark=_MARK, more=more)
    return {path: head + written.code + _MAIN}


def _put(files: Mapping[Path, str]) -> None:
    for path in files:
        if path.exists() and not _is_ours(path):
            raise InputError(
                f"%export: {path} is there, and %export did not write it; choose another place, or move it"
            )
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


def _near(path: Path, folder: Path) -> str:
    """As one types it in the folder of the notebook."""
    try:
        return str(path.resolve().relative_to(folder.resolve()))
    except ValueError:
        return str(path)


def _agents(written: Written) -> str:
    others = [one for one in written.agents if one != written.root]
    return f"root_agent is {written.root}" + (f", with {', '.join(others)}" if others else "")
