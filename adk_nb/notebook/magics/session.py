"""`%session`: list sessions, take, begin, copy, save or load one, resume or drop an interrupted run."""

import shlex
from collections.abc import Callable
from typing import Any

from adk_nb.errors import AgentNotFoundError, InputError, PendingError, closest
from adk_nb.notebook.interrupted_runs import edited_notice, short_interrupted_notice
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option, unknown_choice
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
    arguments=[
        Argument(
            "DO",
            "list (as without a word), use, new, fork, save, load; resume or drop an interrupted run",
            choices=("list", "use", "new", "fork", "save", "load", "resume", "drop"),
        ),
        Argument(
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
    for option, words in _OPTION_WORDS.items():
        if getattr(args, option) and word not in words:
            raise InputError(f"%session {word} has no --{option}; it goes with %session {words[0]}")
    if args.name and word in ("list", "resume", "drop"):
        name = shlex.quote(args.name)
        hint = f"to take that one, type: %session use {name}" if word == "list" else f"write %session {word} -s {name}"
        raise InputError(f"%session {word} takes no name; {hint}")
    if args.name is None and word in _MISSING_NAMES:
        raise InputError(f"%session {word} needs {_MISSING_NAMES[word](notebook)}")
    args.show = host.settings.display
    return _ACTIONS[word](notebook, args)


# ---- interrupted runs


def _resume(notebook: Notebook, args: Any) -> Any:
    run, session = _last_interrupted(notebook, args)
    name = _agent_of(notebook, run, session)
    digest = agent_of_run(run.id, notebook.sessions.history(session.id)).digest
    if digest and notebook.digest_of(name) != digest and not args.edited:
        raise PendingError(edited_notice(name, notebook.confirm_magic(session.id)))
    reply = notebook.chat(name, session.id, show=args.show).resume(edited=args.edited)
    return reply if reply.events else text("the run had come to its end; nothing was left to do")


def _drop(notebook: Notebook, args: Any) -> Output:
    run, session = _last_interrupted(notebook, args)
    notebook.sessions.drop_run(session, run)
    left = _facts(notebook, notebook.sessions.find(session.id))[1:]
    return text(f"the run was given up; session {session.id!r} goes on without it", ", ".join(left))


def _last_interrupted(notebook: Notebook, args: Any) -> tuple[Run, Session]:
    session = notebook.sessions.find(args.session)
    runs = notebook.sessions.interrupted_runs(session) if session else []
    if session is None or not runs:
        name = args.session or notebook.sessions.current
        open_ = ", ".join(_facts(notebook, session)[1:])
        raise InputError(f"no run of session {name!r} was interrupted; {open_ or 'nothing is left to go on with'}")
    return runs[-1], session


def _agent_of(notebook: Notebook, run: Run, session: Session) -> str:
    """The agent that got the message of the run, or the first that worked in it."""
    history = notebook.sessions.history(session.id)
    authors = (event.author for event in history.run(run.id) if event.author != "user")
    named = agent_of_run(run.id, history).name or next(authors, "")
    name = named if named in notebook.addressees else notebook.name_of(named)
    if name is None:
        raise AgentNotFoundError(
            "agent", named, notebook.addressees, hint="this run was asked of it: run the cell that defines it"
        )
    return name


# ---- what is in a session


def resumed_note(notebook: Notebook) -> list[str]:
    """Return a line on a current session that an earlier kernel stored; none if it is in memory, or new."""
    session = notebook.sessions.find() if notebook.sessions.address else None
    if session is None or not session.events:
        return []
    return [f"session {session.id!r} goes on: {', '.join(_facts(notebook, session))}"]


def _facts(notebook: Notebook, session: Session | None) -> list[str]:
    """How many events there are, then what is open, with what to type."""
    if session is None:
        return ["0 events"]
    facts, magic = [events_label(session.events)], notebook.confirm_magic(session.id)
    approvals = _approvals(session)
    if approvals:
        count = "1 approval is" if len(approvals) == 1 else f"{len(approvals)} approvals are"
        facts.append(f"{count} open, see {magic}")
    if notebook.sessions.interrupted_runs(session):
        facts.append(short_interrupted_notice(magic))
    if run := notebook.sessions.active_run(session):
        facts.append(f"a run is at work: {run.owner}")
    if len(history_of(session).interrupts()) > len(approvals):
        facts.append(f"an answer is waited for, see {magic}")
    return facts


def _approvals(session: Session) -> list[Interrupt]:
    return history_of(session).interrupts(kinds=APPROVALS)


# ---- the words of %session


def _list(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    new = {store.current, *store.opened}.difference(store.names)
    names = [*sorted(new), *store.names[::-1]]
    if names == [store.current] and not store.events():
        return text(f"session {store.current!r} is the current one, and nothing was said in it yet; type %chat")
    rows: list[list[str]] = []
    for name in names:
        count, *open_ = _facts(notebook, None if name in new else store.find(name))
        rows.append([name, "current" if name == store.current else "", count.split()[0], ", ".join(open_)])
    return table(["session", "", "events", "waits for"], rows, optional=("waits for",))


def _use(notebook: Notebook, args: Any) -> Output:
    notebook.sessions.use(args.name)
    session = notebook.sessions.find()
    facts = _facts(notebook, session) if session else [_EMPTY]
    return text(f"session {args.name!r} is the current one: {', '.join(facts)}")


def _new(notebook: Notebook, args: Any) -> Output:
    if args.name in notebook.sessions.names:
        raise InputError(
            f"there is a session {args.name!r} already; to go on in it, type: %session use {shlex.quote(args.name)}"
        )
    name = notebook.sessions.start_fresh(_checked_name(args))
    return text(f"session {name!r} is the current one: {_EMPTY}")


def _checked_name(args: Any) -> str | None:
    return None if args.name is None else check_name(args.name)


def _fork(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    at = args.at and event_at(store.events(args.session), args.at, args.session or store.current).id
    old, new = store.fork(_checked_name(args), args.session, at=at)
    session = store.find(new)
    facts = ", ".join(_facts(notebook, session))
    both = "an open approval counts once in each copy of a session: say yes in one, and no in the others"
    return text(
        f"session {new!r} is a copy of {old!r}, and the current one: {facts}; {old!r} stays as it is",
        both if session and _approvals(session) else "",
    )


def _save(notebook: Notebook, args: Any) -> Output:
    session, was_there = notebook.sessions.save(args.name, args.session, replace=args.replace)
    instead = ", in place of what was saved there" if was_there else ""
    stays = "its open approvals stay here: a session that is loaded from the file asks for them again"
    return text(
        f"session {session.id!r} ({events_label(session.events)}) is saved in {args.name}{instead}",
        stays if _approvals(session) else "",
    )


def _load(notebook: Notebook, args: Any) -> Output:
    name, shared, dropped = notebook.sessions.load(args.name, getattr(args, "as"))
    lines = [
        f"session {name!r} is loaded, and the current one: {', '.join(_facts(notebook, notebook.sessions.find()))}"
    ]
    if shared:
        lines.append(f"other sessions see {', '.join(shared)} too: the values stay as they were here")
    if dropped:
        count = (
            "1 approval or credential request was"
            if dropped == 1
            else f"{dropped} approval or credential requests were"
        )
        lines.append(f"{count} open in the file and did not come along: no file approves a call; ask for it again")
    return text(*lines)


_EMPTY = "nothing was said in it yet"
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
_OPTION_WORDS = {
    "as": ("load",),
    "at": ("fork",),
    "session": ("fork", "save", "resume", "drop"),
    "replace": ("save",),
    "edited": ("resume",),
}
_MISSING_NAMES: dict[str, Callable[[Notebook], str]] = {
    "use": lambda notebook: f"a name; there is {', '.join(notebook.sessions.names) or 'none but the current one'}",
    "save": lambda notebook: f"a file; write %session save {shlex.quote(notebook.sessions.current + '.json')}",
    "load": lambda notebook: "a file; write %session load FILE.json",
}
_SYNONYMS = {
    "ls": "list", "show": "list",
    "switch": "use", "open": "use", "go": "use", "select": "use",
    "create": "new", "begin": "new", "start": "new",
    "copy": "fork", "branch": "fork", "clone": "fork",
    "export": "save", "write": "save", "dump": "save",
    "import": "load", "read": "load", "restore": "load",
    "continue": "resume", "recover": "resume",
    "abandon": "drop", "forget": "drop",
}  # fmt: skip
"""Words of other tools -> ours."""


def _unknown_word(notebook: Notebook, args: Any) -> str:
    word = args.do
    if word in notebook.sessions.names:
        return f"%session: to take session {word!r}, type: %session use {shlex.quote(word)}"
    if near := _SYNONYMS.get(word.lower()) or closest(word.lower(), _ACTIONS):
        rest = f" {shlex.quote(args.name)}" if args.name else ""
        return f"%session cannot {word!r}; type: %session {near}{rest}"
    return f"%session: {unknown_choice('word', word, SESSION.arguments[0].choices)}, see %session?"
