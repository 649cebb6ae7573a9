"""What `%session` does: list sessions, take another, begin, save or load one, let a run of one go on that was cut."""

import shlex
from collections.abc import Callable
from typing import Any

from adk_nb.errors import AgentNotFoundError, InputError, PendingError, closest
from adk_nb.notebook.interrupted_runs import cut_in_brief, edited_words
from adk_nb.notebook.magics import reports
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.past_turns import event_at
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.registry.session_store import counted
from adk_nb.notebook.registry.versions import of_run
from adk_nb.notebook.view.display import Mode
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import check_name


def show_or_change(notebook: Notebook, asked: Any, show: Mode) -> Any:
    """Do what the line of `%session` asks for.

    Raises:
        InputError: It asks for what there is not, or leaves open what it asks for.
        SessionNotFoundError: There is no session of that name.
        StorageError: A file cannot be read or written.
    """
    word = asked.do or "list"
    if word not in _DOES:
        raise InputError(_no_such_word(notebook, asked))
    for option, goes_with in _OPTIONS.items():
        if getattr(asked, option) and word not in goes_with:
            raise InputError(f"%session {word} has no --{option}; it goes with %session {goes_with[0]}")
    if asked.name and word in ("list", "resume", "drop"):
        raise InputError(_takes_no_name(word, shlex.quote(asked.name)))
    if asked.name is None and word in _LACKS:
        raise InputError(f"%session {word} needs {_LACKS[word](notebook)}")
    asked.show = show
    return _DOES[word](notebook, asked)


def _resume(notebook: Notebook, asked: Any) -> Any:
    run, found = _last_cut(notebook, asked)
    name = _asked_then(notebook, run, found)
    then = of_run(run.id, notebook.sessions.history(found.id)).digest
    if then and notebook.digest_of(name) != then and not asked.edited:
        raise PendingError(edited_words(name, notebook.confirm_magic(found.id)))
    reply = notebook.chat(name, found.id, show=asked.show).resume(edited=asked.edited)
    return reply if reply.events else said("the run had come to its end; nothing was left to do")


def _drop(notebook: Notebook, asked: Any) -> Shown:
    run, found = _last_cut(notebook, asked)
    notebook.sessions.drop(found, run)
    after = notebook.sessions.find(found.id)
    _, *waits = _about(notebook, after) if after else [""]
    return said(f"the run is left as it is; session {found.id!r} goes on without it", ", ".join(waits))


def _last_cut(notebook: Notebook, asked: Any) -> tuple[Run, Session]:
    found = notebook.sessions.find(asked.session)
    runs = notebook.sessions.cut(found) if found else []
    if found is None or not runs:
        name = asked.session or notebook.sessions.current
        _, *waits = _about(notebook, found) if found else [""]
        raise InputError(f"no run of session {name!r} was cut; {', '.join(waits) or 'nothing is left to go on with'}")
    return runs[-1], found


def _asked_then(notebook: Notebook, run: Run, found: Session) -> str:
    """Who was spoken to in the run, or the agent that worked in it."""
    history = notebook.sessions.history(found.id)
    authors = (event.author for event in history.run(run.id))
    named = of_run(run.id, history).name or next((author for author in authors if author != "user"), "")
    name = named if named in notebook.addressees else notebook.name_of(named)
    if name is None:
        raise AgentNotFoundError(
            "agent", named, notebook.addressees, hint="this run was asked of it: run the cell that defines it"
        )
    return name


def found_again(notebook: Notebook) -> list[str]:
    """That the current session is one from before, and what waits in it; nothing of one in memory, or a new one."""
    store = notebook.sessions
    found = store.find() if store.kept_in else None
    if found is None or not found.events:
        return []
    return [f"session {found.id!r} goes on: {', '.join(_about(notebook, found))}"]


def _list(notebook: Notebook, asked: Any) -> Shown:
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
    open_ = history_of(found).interrupts()
    if approvals := _approvals(found):
        count = "1 approval is" if len(approvals) == 1 else f"{len(approvals)} approvals are"
        told.append(f"{count} open, see {notebook.confirm_magic(found.id)}")
    if notebook.sessions.cut(found):
        told.append(cut_in_brief(notebook.confirm_magic(found.id)))
    if run := notebook.sessions.at_work(found):
        told.append(f"a run is at work: {run.owner}")
    if len(open_) > len(approvals):
        told.append(f"an answer is waited for, see {notebook.confirm_magic(found.id)}")
    return told


def _approvals(found: Session) -> list[Interrupt]:
    return history_of(found).interrupts(kinds=APPROVALS)


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
    name = store.start_fresh(None if asked.name is None else check_name(asked.name))
    return said(f"session {name!r} is the current one: nothing was said in it yet")


def _fork(notebook: Notebook, asked: Any) -> Shown:
    store = notebook.sessions
    name = None if asked.name is None else check_name(asked.name)
    at = asked.at and event_at(store.events(asked.session), asked.at, asked.session or store.current).id
    old, new, _ = store.fork(name, asked.session, at=at)
    found = store.find(new)
    copied = ", ".join(_about(notebook, found)) if found else ""
    twice = _COUNTS_IN_EACH if found and _approvals(found) else ""
    return said(f"session {new!r} is a copy of {old!r}, and the current one: {copied}; {old!r} stays as it is", twice)


def _save(notebook: Notebook, asked: Any) -> Shown:
    saved, was_there = notebook.sessions.save(asked.name, asked.session, replace=asked.replace)
    again = ", in place of what was saved there" if was_there else ""
    done = f"session {saved.id!r} ({counted(saved.events)}) is saved in {asked.name}{again}"
    stays = "its open approvals stay here: a session that is loaded from the file asks for them again"
    return said(done, stays if _approvals(saved) else "")


def _load(notebook: Notebook, asked: Any) -> Shown:
    name, kept, dropped = notebook.sessions.load(asked.name, getattr(asked, "as"))
    found = notebook.sessions.find(name)
    about = _about(notebook, found) if found else []
    stays = f"other sessions see {', '.join(kept)} too: the values stay as they were here" if kept else ""
    asks = "1 approval or credential request was" if dropped == 1 else f"{dropped} approval or credential requests were"
    anew = (
        f"{asks} open in the file and did not come along: no file approves a call; ask for it again" if dropped else ""
    )
    return said(f"session {name!r} is loaded, and the current one: {', '.join(about)}", stays, anew)


_COUNTS_IN_EACH = "an open approval counts once in each copy of a session: say yes in one, and no in the others"


_DOES: dict[str, Callable[[Notebook, Any], Any]] = {
    "list": _list,
    "use": _use,
    "new": _new,
    "fork": _fork,
    "save": _save,
    "load": _load,
    "resume": _resume,
    "drop": _drop,
}
_OPTIONS = {
    "as": ("load",),
    "at": ("fork",),
    "session": ("fork", "save", "resume", "drop"),
    "replace": ("save",),
    "edited": ("resume",),
}
"""Options, and the words that they go with."""
_LACKS: dict[str, Callable[[Notebook], str]] = {
    "use": lambda notebook: f"a name; there is {', '.join(notebook.sessions.names) or 'none but the current one'}",
    "save": lambda notebook: f"a file; write %session save {shlex.quote(notebook.sessions.current + '.json')}",
    "load": lambda notebook: "a file; write %session load FILE.json",
}


def _takes_no_name(word: str, name: str) -> str:
    if word == "list":
        return f"%session list takes no name; to take that one, type: %session use {name}"
    return f"%session {word} takes no name; write %session {word} -s {name}"


def _no_such_word(notebook: Notebook, asked: Any) -> str:
    word = asked.do
    rest = f" {shlex.quote(asked.name)}" if asked.name else ""
    if word in notebook.sessions.names:
        return f"%session: to take session {word!r}, type: %session use {shlex.quote(word)}"
    if near := _MEANT.get(word.lower()) or closest(word.lower(), _DOES):
        return f"%session cannot {word!r}; type: %session {near}{rest}"
    return f"%session cannot {word!r}; write list, use, new, fork, save, load, resume or drop, see %session?"


_MEANT = {
    "continue": "resume",
    "recover": "resume",
    "abandon": "drop",
    "forget": "drop",
    "switch": "use",
    "open": "use",
    "go": "use",
    "select": "use",
    "ls": "list",
    "show": "list",
    "copy": "fork",
    "branch": "fork",
    "clone": "fork",
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
