"""`%session`: list sessions, take, begin, copy, save or load one, resume or drop an interrupted run."""

import shlex
from collections.abc import Callable
from typing import Any

from adk_nb.errors import AgentNotFoundError, InputError, PendingError, closest
from adk_nb.notebook.interrupted_runs import cut_in_brief, edited_words
from adk_nb.notebook.magics.grammar import Grammar, Option, Word, unknown_choice
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, table, text
from adk_nb.notebook.past_turns import event_at
from adk_nb.notebook.registry.definitions import agent_of_run
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.registry.session_store import events_label
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import check_name

SESSION = Grammar(
    "session",
    "List the sessions, take another, begin or copy one, save one to a file, or load one. All agents share the "
    "current one.",
    examples=[
        "%session",
        "%session use second",
        "%session new second",
        "%session fork",
        "%session fork by_train --at 7",
        "%session save trip.json",
        "%session load trip.json --as trip",
        "%session resume",
        '%config AdkNb.sessions = "sqlite:///nb.db"',
    ],
    words=[
        Word(
            "DO",
            "list (as without a word), use, new, fork, save, load; resume or drop an interrupted run",
            choices=("list", "use", "new", "fork", "save", "load", "resume", "drop"),
        ),
        Word(
            "NAME",
            "use, new: of the session; fork: of the copy; save, load: of the file, JSON that people can read",
            names_after={"use": "session", "save": "file", "load": "file"},
        ),
    ],
    options=[
        Option("--as NAME", "load: what the session is called here; else as in the file"),
        Option("-s, --session NAME", "fork, save, resume, drop: another than the current one", names="session"),
        Option("--at EVENT", "fork: the last event that is copied: its number in %trace, or its id"),
        Option("--replace", "save: the file may be written over, whatever is in it"),
        Option("--edited", "resume: also if the agent or its tools were edited since"),
    ],
    twin='chat = Chat(planner, session="second", session_service=SqliteSessionService("nb.db")), '
    'chat.fork("third"), chat.save("trip.json"), chat.load("trip.json"), chat.resume(edited=False), chat.drop()',
)


def session(host: Host, line: str, cell: str | None) -> Any:
    """Do the first word of the line.

    Raises:
        InputError: There is no such word, or it lacks something.
        SessionNotFoundError: There is no session of that name.
        StorageError: A file cannot be read or written.
    """
    args, notebook = SESSION.parse(line, cell), host.notebook
    word = args.do or "list"
    if word not in _ACTIONS:
        raise InputError(_unknown_word(notebook, args))
    for option, goes_with in _OPTIONS.items():
        if getattr(args, option) and word not in goes_with:
            raise InputError(f"%session {word} has no --{option}; it goes with %session {goes_with[0]}")
    if args.name and word in ("list", "resume", "drop"):
        name = shlex.quote(args.name)
        hint = f"to take that one, type: %session use {name}" if word == "list" else f"write %session {word} -s {name}"
        raise InputError(f"%session {word} takes no name; {hint}")
    if args.name is None and word in _LACKS:
        raise InputError(f"%session {word} needs {_LACKS[word](notebook)}")
    args.show = host.settings.display
    return _ACTIONS[word](notebook, args)


def _resume(notebook: Notebook, args: Any) -> Any:
    run, found = _last_cut(notebook, args)
    name = _agent_of_run(notebook, run, found)
    then = agent_of_run(run.id, notebook.sessions.history(found.id)).digest
    if then and notebook.digest_of(name) != then and not args.edited:
        raise PendingError(edited_words(name, notebook.confirm_magic(found.id)))
    reply = notebook.chat(name, found.id, show=args.show).resume(edited=args.edited)
    return reply if reply.events else text("the run had come to its end; nothing was left to do")


def _drop(notebook: Notebook, args: Any) -> Output:
    run, found = _last_cut(notebook, args)
    notebook.sessions.drop_run(found, run)
    after = notebook.sessions.find(found.id)
    _, *waits = _about(notebook, after) if after else [""]
    return text(f"the run is left as it is; session {found.id!r} goes on without it", ", ".join(waits))


def _last_cut(notebook: Notebook, args: Any) -> tuple[Run, Session]:
    found = notebook.sessions.find(args.session)
    runs = notebook.sessions.interrupted_runs(found) if found else []
    if found is None or not runs:
        name = args.session or notebook.sessions.current
        _, *waits = _about(notebook, found) if found else [""]
        raise InputError(f"no run of session {name!r} was cut; {', '.join(waits) or 'nothing is left to go on with'}")
    return runs[-1], found


def _agent_of_run(notebook: Notebook, run: Run, found: Session) -> str:
    """Who was spoken to in the run, or the agent that worked in it."""
    history = notebook.sessions.history(found.id)
    authors = (event.author for event in history.run(run.id))
    named = agent_of_run(run.id, history).name or next((author for author in authors if author != "user"), "")
    name = named if named in notebook.addressees else notebook.name_of(named)
    if name is None:
        raise AgentNotFoundError(
            "agent", named, notebook.addressees, hint="this run was asked of it: run the cell that defines it"
        )
    return name


def resumed_note(notebook: Notebook) -> list[str]:
    """That the current session is one from before, and what waits in it; nothing of one in memory, or a new one."""
    store = notebook.sessions
    found = store.find() if store.address else None
    if found is None or not found.events:
        return []
    return [f"session {found.id!r} goes on: {', '.join(_about(notebook, found))}"]


def _list(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    names = store.names
    if store.current not in names:
        names.append(store.current)
    if names == [store.current] and not store.events():
        return text(f"session {store.current!r} is the current one, and nothing was said in it yet; type %chat")
    rows = [_row(notebook, name) for name in reversed(names)]
    return table(["session", "", "events", "waits for"], rows, optional=("waits for",))


def _row(notebook: Notebook, name: str) -> list[str]:
    found = notebook.sessions.find(name)
    count, *waits = _about(notebook, found) if found else ["0 events"]
    is_current = name == notebook.sessions.current
    return [name, "current" if is_current else "", count.split()[0], ", ".join(waits)]


def _about(notebook: Notebook, found: Session) -> list[str]:
    """How many events it has, then what waits in it, with what to type."""
    facts = [events_label(found.events)]
    open_ = history_of(found).interrupts()
    if approvals := _approvals(found):
        count = "1 approval is" if len(approvals) == 1 else f"{len(approvals)} approvals are"
        facts.append(f"{count} open, see {notebook.confirm_magic(found.id)}")
    if notebook.sessions.interrupted_runs(found):
        facts.append(cut_in_brief(notebook.confirm_magic(found.id)))
    if run := notebook.sessions.active_run(found):
        facts.append(f"a run is at work: {run.owner}")
    if len(open_) > len(approvals):
        facts.append(f"an answer is waited for, see {notebook.confirm_magic(found.id)}")
    return facts


def _approvals(found: Session) -> list[Interrupt]:
    return history_of(found).interrupts(kinds=APPROVALS)


def _use(notebook: Notebook, args: Any) -> Output:
    notebook.sessions.use(args.name)
    found = notebook.sessions.find()
    about = _about(notebook, found) if found else ["nothing was said in it yet"]
    return text(f"session {args.name!r} is the current one: {', '.join(about)}")


def _new(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    if args.name and args.name in store.names:
        raise InputError(
            f"there is a session {args.name!r} already; to go on in it, type: %session use {shlex.quote(args.name)}"
        )
    name = store.start_fresh(None if args.name is None else check_name(args.name))
    return text(f"session {name!r} is the current one: nothing was said in it yet")


def _fork(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    name = None if args.name is None else check_name(args.name)
    at = args.at and event_at(store.events(args.session), args.at, args.session or store.current).id
    old, new = store.fork(name, args.session, at=at)
    found = store.find(new)
    copied = ", ".join(_about(notebook, found)) if found else ""
    twice = _COUNTS_IN_EACH if found and _approvals(found) else ""
    return text(f"session {new!r} is a copy of {old!r}, and the current one: {copied}; {old!r} stays as it is", twice)


def _save(notebook: Notebook, args: Any) -> Output:
    saved, was_there = notebook.sessions.save(args.name, args.session, replace=args.replace)
    again = ", in place of what was saved there" if was_there else ""
    done = f"session {saved.id!r} ({events_label(saved.events)}) is saved in {args.name}{again}"
    stays = "its open approvals stay here: a session that is loaded from the file asks for them again"
    return text(done, stays if _approvals(saved) else "")


def _load(notebook: Notebook, args: Any) -> Output:
    name, kept, dropped = notebook.sessions.load(args.name, getattr(args, "as"))
    found = notebook.sessions.find(name)
    about = _about(notebook, found) if found else []
    stays = f"other sessions see {', '.join(kept)} too: the values stay as they were here" if kept else ""
    asks = "1 approval or credential request was" if dropped == 1 else f"{dropped} approval or credential requests were"
    anew = (
        f"{asks} open in the file and did not come along: no file approves a call; ask for it again" if dropped else ""
    )
    return text(f"session {name!r} is loaded, and the current one: {', '.join(about)}", stays, anew)


_COUNTS_IN_EACH = "an open approval counts once in each copy of a session: say yes in one, and no in the others"


_ACTIONS: dict[str, Callable[[Notebook, Any], Any]] = {
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


def _unknown_word(notebook: Notebook, args: Any) -> str:
    word = args.do
    rest = f" {shlex.quote(args.name)}" if args.name else ""
    if word in notebook.sessions.names:
        return f"%session: to take session {word!r}, type: %session use {shlex.quote(word)}"
    if near := _SYNONYMS.get(word.lower()) or closest(word.lower(), _ACTIONS):
        return f"%session cannot {word!r}; type: %session {near}{rest}"
    return f"%session: {unknown_choice('word', word, SESSION.words[0].choices)}, see %session?"


_SYNONYMS = {
    word: action
    for action, words in {
        "list": "ls show",
        "use": "switch open go select",
        "new": "create begin start",
        "fork": "copy branch clone",
        "save": "export write dump",
        "load": "import read restore",
        "resume": "continue recover",
        "drop": "abandon forget",
    }.items()
    for word in words.split()
}
"""Words of other tools -> ours."""
