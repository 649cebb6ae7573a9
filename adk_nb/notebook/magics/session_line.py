"""What `%session` does: list the sessions of a notebook, take another, begin one, save one to a file, load one."""

import shlex
from collections.abc import Callable
from typing import Any

from adk_nb.errors import InputError, closest
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.session_store import counted
from adk_nb.notebook.magics import reports
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.runtime import credentials, inputs
from adk_nb.runtime.approvals import pending
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import check_name


def show_or_change(notebook: Notebook, asked: Any) -> Shown:
    """Do what the line of `%session` asks for.

    Raises:
        InputError: It asks for what there is not, or leaves open what it asks for.
        SessionNotFoundError: There is no session of that name.
        StorageError: A file cannot be read or written.
    """
    word = asked.do or "list"
    if word not in _DOES:
        raise InputError(_no_such_word(notebook, asked))
    for option, goes_with in (("as", "load"), ("session", "save"), ("replace", "save")):
        if getattr(asked, option) and word != goes_with:
            raise InputError(f"%session {word} has no --{option}; it goes with %session {goes_with}")
    if asked.name is None and word in _LACKS:
        raise InputError(f"%session {word} needs {_LACKS[word](notebook)}")
    return _DOES[word](notebook, asked)


def found_again(notebook: Notebook) -> list[str]:
    """That the current session is one from before, and what waits in it; nothing of one in memory, or a new one."""
    store = notebook.sessions
    found = store.find() if store.kept_in else None
    if found is None or not found.events:
        return []
    return [f"session {found.id!r} goes on: {', '.join(_about(notebook, found))}"]


def _list(notebook: Notebook, asked: Any) -> Shown:
    if asked.name:
        raise InputError(f"%session list takes no name; to take that one, type: %session use {shlex.quote(asked.name)}")
    store = notebook.sessions
    names = store.names
    if store.current not in names:
        names.append(store.current)
    rows = [_row(notebook, name) for name in reversed(names)]
    headers = ["session", "", "events", "waits for"]
    shown = [at for at, header in enumerate(headers) if header != "waits for" or any(row[at] for row in rows)]
    return reports.in_a_table([headers[at] for at in shown], [[row[at] for at in shown] for row in rows])


def _row(notebook: Notebook, name: str) -> list[str]:
    found = notebook.sessions.find(name)
    count, *waits = _about(notebook, found) if found else ["0 events"]
    is_current = name == notebook.sessions.current
    return [name, "current" if is_current else "", count.split()[0], ", ".join(waits)]


def _about(notebook: Notebook, found: Session) -> list[str]:
    """How many events it has, then what waits in it, with what to type."""
    told = [counted(found.events)]
    if waiting := pending(found.events):
        count = "1 approval is" if len(waiting) == 1 else f"{len(waiting)} approvals are"
        told.append(f"{count} open, see {notebook.confirm_magic(found.id)}")
    if credentials.pending(found.events) or inputs.pending(found.events):
        told.append(f"an answer is waited for, see {notebook.confirm_magic(found.id)}")
    return told


def _use(notebook: Notebook, asked: Any) -> Shown:
    notebook.sessions.use(asked.name)
    found = notebook.sessions.find()
    about = _about(notebook, found) if found else ["nothing was said in it yet"]
    return said(f"session {asked.name!r} is the current one: {', '.join(about)}")


def _new(notebook: Notebook, asked: Any) -> Shown:
    store = notebook.sessions
    if asked.name and asked.name in store.names:
        raise InputError(
            f"there is a session {asked.name!r} already; to go on in it, type: %session use {shlex.quote(asked.name)}"
        )
    name = store.start_fresh(asked.name and check_name(asked.name))
    return said(f"session {name!r} is the current one: nothing was said in it yet")


def _save(notebook: Notebook, asked: Any) -> Shown:
    saved, was_there = notebook.sessions.save(asked.name, asked.session, replace=asked.replace)
    again = ", in place of what was saved there" if was_there else ""
    return said(f"session {saved.id!r} ({counted(saved.events)}) is saved in {asked.name}{again}")


def _load(notebook: Notebook, asked: Any) -> Shown:
    name, kept = notebook.sessions.load(asked.name, getattr(asked, "as"))
    found = notebook.sessions.find(name)
    about = _about(notebook, found) if found else []
    stays = f"other sessions see {', '.join(kept)} too: the values stay as they were here" if kept else ""
    return said(f"session {name!r} is loaded, and the current one: {', '.join(about)}", stays)


_DOES: dict[str, Callable[[Notebook, Any], Shown]] = {
    "list": _list,
    "use": _use,
    "new": _new,
    "save": _save,
    "load": _load,
}
_LACKS: dict[str, Callable[[Notebook], str]] = {
    "use": lambda notebook: f"a name; there is {', '.join(notebook.sessions.names) or 'none but the current one'}",
    "save": lambda notebook: f"a file; write %session save {shlex.quote(notebook.sessions.current + '.json')}",
    "load": lambda notebook: "a file; write %session load FILE.json",
}


def _no_such_word(notebook: Notebook, asked: Any) -> str:
    word = asked.do
    rest = f" {shlex.quote(asked.name)}" if asked.name else ""
    if word in notebook.sessions.names:
        return f"%session: to take session {word!r}, type: %session use {shlex.quote(word)}"
    if near := _MEANT.get(word.lower()) or closest(word.lower(), _DOES):
        return f"%session cannot {word!r}; type: %session {near}{rest}"
    return f"%session cannot {word!r}; write list, use, new, save or load, see %session?"


_MEANT = {
    "switch": "use",
    "open": "use",
    "go": "use",
    "select": "use",
    "ls": "list",
    "show": "list",
    "create": "new",
    "begin": "new",
    "start": "new",
    "export": "save",
    "write": "save",
    "dump": "save",
    "import": "load",
    "read": "load",
    "restore": "load",
}
"""Words of other tools -> ours."""
