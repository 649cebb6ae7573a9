"""`%session`: list, choose, create, fork, save and load sessions, resume or drop a run. `%rewind`: undo turns."""

from collections.abc import Callable
from typing import Any

from adk_nb.errors import AgentNotFoundError, InputError, PendingError, closest
from adk_nb.notebook.cells.definitions import agent_of_run
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.session_store import events_label, name_of, speakers_in
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.chat.conversation import edited_notice, short_interrupted_notice
from adk_nb.notebook.chat.past import Rewound, event_at, is_number, oldest_to_undo
from adk_nb.notebook.magics.confirm import list_open
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option, unknown_choice
from adk_nb.notebook.magics.output import Host, Output, table, text
from adk_nb.notebook.view.plain_text import quoted
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import APPROVALS, Interrupt
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import check_name

SESSION = Grammar(
    "session",
    "List the sessions; choose, create, copy, save or load one; resume or drop an interrupted run. Each agent has a "
    "session of its own, in which its team speaks, too; the current one is that of the agent asked last.",
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
            "list (the default), use, new, fork, save, load; resume or drop an interrupted run",
            choices=("list", "use", "new", "fork", "save", "load", "resume", "drop"),
        ),
        Argument(
            "NAME",
            "use, new: the session; fork: the copy; save, load: the file, in readable JSON",
            names_after={"use": "session", "save": "file", "load": "file"},
        ),
    ],
    options=[
        Option("--as NAME", "load: a new name for the session"),
        Option("-s, --session NAME", "fork, save, resume, drop: another session than the current one", names="session"),
        Option("--at EVENT", "fork: the last event to copy: its number in %trace, or its id"),
        Option("--replace", "save: overwrite the file, whatever it has"),
        Option("--edited", "resume: even if the agent or its tools were edited since"),
    ],
    twin='chat = Chat(planner, session="second", session_service=SqliteSessionService("nb.db")), '
    'chat.fork("third"), chat.save("trip.json"), chat.load("trip.json"), chat.resume(edited=False), chat.drop()',
)


def session(host: Host, line: str, cell: str | None) -> Any:
    """Run the command that the first word of the line names.

    Raises:
        InputError: There is no such command, or an argument is wrong or missing.
        SessionNotFoundError: There is no session of that name.
        StorageError: A file cannot be read or written.
    """
    args, notebook = SESSION.parse(line, cell), host.notebook
    command = args.do or "list"
    if command in notebook.sessions.names and command not in _COMMANDS:
        raise InputError(f"%session: to use session {command!r}, type: %session use {quoted(command)}")
    if command not in _COMMANDS:
        if near := _SYNONYMS.get(command.lower()) or closest(command.lower(), _COMMANDS):
            rest = f" {quoted(args.name)}" if args.name else ""
            raise InputError(f"%session has no command {command!r}; type: %session {near}{rest}")
        fault = unknown_choice("command", command, SESSION.arguments[0].choices)
        raise InputError(f"%session: {fault}, see %session?")
    for option, commands in _OPTION_COMMANDS.items():
        if getattr(args, option) and command not in commands:
            raise InputError(f"%session {command} has no --{option}; use it with %session {commands[0]}")
    if args.name and command in ("list", "resume", "drop"):
        name = quoted(args.name)
        raise InputError(
            f"%session {command} takes no name; type %session "
            + (f"use {name}" if command == "list" else f"{command} -s {name}")
        )
    if args.name is None and command in _MISSING_NAMES:
        raise InputError(f"%session {command} needs {_MISSING_NAMES[command](notebook)}")
    args.show = host.settings.display
    return _COMMANDS[command](notebook, args)


# ---- interrupted runs


def _resume(notebook: Notebook, args: Any) -> Any:
    session = notebook.sessions.find(args.session)
    if session and not notebook.sessions.interrupted_runs(session) and history_of(session).interrupts():
        return list_open(notebook, args.session, args.show)  # it was not interrupted: it waits for the user
    run, session = _last_interrupted(notebook, args)
    history = notebook.sessions.history(name_of(session))
    addressed = agent_of_run(run.id, history)
    # The agent that got the message of the run, or the first author in it.
    authors = (event.author for event in history.run(run.id) if event.author != "user")
    agent = addressed.name or next(authors, "")
    name = agent if agent in notebook.addressees else notebook.name_of(agent)
    if name is None:
        raise AgentNotFoundError("agent", agent, notebook.addressees, hint="to resume, run the cell that defines it")
    if addressed.digest and notebook.digest_of(name) != addressed.digest and not args.edited:
        raise PendingError(edited_notice(name, notebook.confirm_magic(name_of(session))))
    reply = notebook.chat(name, name_of(session), show=args.show).resume(edited=args.edited)
    return reply if reply.events else text("the run was complete already; there was nothing left to do")


def _drop(notebook: Notebook, args: Any) -> Output:
    run, session = _last_interrupted(notebook, args)
    notebook.sessions.drop_run(session, run)
    open_ = _facts(notebook, notebook.sessions.find(name_of(session)))[1:]
    return text(f"the run of session {name_of(session)!r} was dropped", ", ".join(open_))


def _last_interrupted(notebook: Notebook, args: Any) -> tuple[Run, Session]:
    session = notebook.sessions.find(args.session)
    runs = notebook.sessions.interrupted_runs(session) if session else []
    if session is None or not runs:
        name = args.session or notebook.sessions.current
        open_ = ", ".join(_facts(notebook, session)[1:])
        raise InputError(f"no run of session {name!r} was interrupted; {open_ or f'there is nothing to {args.do}'}")
    return runs[-1], session


# ---- facts

_MOST_CONTINUED = 8
"""Stored sessions that are looked at for agents that go on in them."""


def resumed_note(notebook: Notebook) -> list[str]:
    """Return a line about each session that an earlier kernel stored and agents go on in; none for those in memory."""
    store = notebook.sessions
    if not store.address:
        return []
    newest = store.names[: -_MOST_CONTINUED - 1 : -1]
    names = dict.fromkeys([store.current, *newest])
    stored = [session for name in names if (session := store.find(name)) and session.events]
    known = [each for each in stored if (name := name_of(each)) == store.current or name in speakers_in(each.events)]
    return [f"session {name_of(session)!r} continues: {', '.join(_facts(notebook, session))}" for session in known]


def _facts(notebook: Notebook, session: Session | None) -> list[str]:
    """Return the number of events, then each open interrupt or run, with what to type."""
    if session is None:
        return ["0 events"]
    facts, magic = [events_label(session.events)], notebook.confirm_magic(name_of(session))
    approvals = _approvals(session)
    if approvals:
        count = "1 approval is" if len(approvals) == 1 else f"{len(approvals)} approvals are"
        facts.append(f"{count} open, see {magic}")
    if notebook.sessions.interrupted_runs(session):
        facts.append(short_interrupted_notice(magic))
    if run := notebook.sessions.active_run(session):
        facts.append(f"a run is active: {run.owner}")
    if len(history_of(session).interrupts()) > len(approvals):
        facts.append(f"an answer is pending, see {magic}")
    return facts


def _approvals(session: Session) -> list[Interrupt]:
    return history_of(session).interrupts(kinds=APPROVALS)


# ---- commands


def _list(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    new = {store.current, *store.opened}.difference(store.names)
    names = [*sorted(new), *store.names[::-1]]
    sessions = {name: None if name in new else store.find(name) for name in names}
    events = {name: session.events if session else [] for name, session in sessions.items()}
    if names == [store.current] and not events[store.current]:
        return text(f"session {store.current!r} is the current one: {_EMPTY}; type %chat")
    agents = {name: sorted(speakers_in(events[name])) for name in names}
    firsts = [next(iter(agents[name]), "") for name in names]
    names.sort(key=lambda name: firsts.index(next(iter(agents[name]), "")))  # by agent, the one asked last first
    in_use = set(map(notebook.session_of, notebook.root_names))
    rows: list[list[str]] = []
    for name in names:
        count, *open_ = _facts(notebook, sessions[name])
        mark = "current" if name == store.current else "in use" if name in in_use else ""
        rows.append([name, ", ".join(agents[name]), mark, count.split()[0], ", ".join(open_)])
    return table("sessions", ["session", "agent", "", "events", "open"], rows, optional=("agent", "open"))


def _use(notebook: Notebook, args: Any) -> Output:
    notebook.sessions.use(args.name)
    session = notebook.sessions.find()
    facts = _facts(notebook, session) if session else [_EMPTY]
    return text(f"session {args.name!r} is the current one{_for_agents(notebook)}: {', '.join(facts)}")


def _new(notebook: Notebook, args: Any) -> Output:
    if args.name in notebook.sessions.names:
        raise InputError(
            f"session {args.name!r} exists already; to continue it, type: %session use {quoted(args.name)}"
        )
    name = notebook.sessions.start_fresh(_checked_name(args))
    return text(f"session {name!r} is the current one{_for_agents(notebook)}: {_EMPTY}")


def _for_agents(notebook: Notebook) -> str:
    """Who goes on in the current session, where there are several agents, each with its own."""
    if len(notebook.root_names) < 2 or notebook.sessions.shared:
        return ""
    current = notebook.sessions.current
    names = [name for name in notebook.root_names if notebook.session_of(name) == current]
    return f", of {names[0]}" if len(names) == 1 else ", of the agent that is asked next" if names else ""


def _checked_name(args: Any) -> str | None:
    return None if args.name is None else check_name(args.name)


def _fork(notebook: Notebook, args: Any) -> Output:
    store = notebook.sessions
    last = args.at and event_at(store.events(args.session), args.at, args.session or store.current).id
    old, new = store.fork(_checked_name(args), args.session, at=last)
    session = store.find(new)
    facts = ", ".join(_facts(notebook, session))
    warning = "its open approvals are open in both sessions: approve each in one, and reject it in the other"
    return text(
        f"session {new!r} is a copy of {old!r}, and the current one: {facts}; {old!r} is unchanged",
        warning if session and _approvals(session) else "",
    )


def _save(notebook: Notebook, args: Any) -> Output:
    session, existed = notebook.sessions.save(args.name, args.session, replace=args.replace)
    replaced = ", replacing the session that was saved there" if existed else ""
    stays = "its open approvals are not saved: a session loaded from the file asks for them again"
    return text(
        f"session {name_of(session)!r} ({events_label(session.events)}) is saved in {args.name}{replaced}",
        stays if _approvals(session) else "",
    )


def _load(notebook: Notebook, args: Any) -> Output:
    name, shared, dropped = notebook.sessions.load(args.name, getattr(args, "as"))
    lines = [
        f"session {name!r} is loaded, and the current one: {', '.join(_facts(notebook, notebook.sessions.find()))}"
    ]
    if shared:
        lines.append(f"kept the values of {', '.join(shared)}, which other sessions share")
    if dropped:
        count = (
            "1 open approval or credential request was"
            if dropped == 1
            else f"{dropped} open approval or credential requests were"
        )
        lines.append(f"{count} not loaded, as no file may approve a call; ask the agent again")
    return text(*lines)


_EMPTY = "no messages yet"
_COMMANDS: dict[str, Callable[[Notebook, Any], Any]] = {
    "list": _list,
    "use": _use,
    "new": _new,
    "fork": _fork,
    "save": _save,
    "load": _load,
    "resume": _resume,
    "drop": _drop,
}
_OPTION_COMMANDS = {
    "as": ("load",),
    "at": ("fork",),
    "session": ("fork", "save", "resume", "drop"),
    "replace": ("save",),
    "edited": ("resume",),
}
_MISSING_NAMES: dict[str, Callable[[Notebook], str]] = {
    "use": lambda notebook: f"a name; there is {', '.join(notebook.sessions.names) or 'only the current one'}",
    "save": lambda notebook: f"a file; type %session save {quoted(notebook.sessions.current + '.json')}",
    "load": lambda notebook: "a file; type %session load FILE.json",
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
"""Commands of other tools -> ours."""


# ---- %rewind

REWIND = Grammar(
    "rewind",
    "Undo the last turns of the session: agents no longer see them; state and artifacts are as before.",
    examples=["%rewind", "%rewind 2 --dry-run", "%rewind 1 --rerun", "%rewind --at 7"],
    arguments=[Argument("N", "the number of turns to undo (1); or the id of an event or a run, as in %trace")],
    options=[
        Option("--at EVENT", "undo the turn of this event, and later ones: its number in %trace, or its id"),
        Option("--dry-run", "only show what would be undone"),
        Option("--rerun", "then send its message again; type %session fork first to keep a copy"),
        SESSION_OPTION,
    ],
    twin="chat.rewind(1), chat.rewind(event), chat.rerun(event), chat.fork()",
)


def rewind(host: Host, line: str, cell: str | None) -> Any:
    """Undo turns; return what was undone, or the reply to the repeated message.

    Raises:
        InputError: Options exclude each other, there is no such turn, or a turn is running.
        SessionBusyError: Another kernel has a turn running in the session.
    """
    args, notebook = REWIND.parse(line, cell), host.notebook
    if args.rerun and args.dry_run:
        raise InputError("%rewind: --dry-run and --rerun exclude each other; choose one")
    if args.at and args.n:
        raise InputError("%rewind: N and --at exclude each other; choose one")
    session = args.session or notebook.sessions.current
    target: int | str = 1
    if args.at:
        event = event_at(notebook.sessions.events(args.session), args.at, session)
        if not event.invocation_id:
            raise InputError(f"event {args.at} of session {session!r} belongs to no turn; name an event of an agent")
        target = event.id
    elif args.n is not None and args.n.startswith("-"):
        raise InputError(f"%rewind takes the number of turns to undo; type %rewind {args.n.lstrip('-') or 1}")
    elif args.n is not None:
        target = int(args.n) if is_number(args.n) else args.n
    if not args.rerun:
        return _rewound(notebook, target, session, dry_run=args.dry_run)
    history = notebook.sessions.history(args.session)
    first = oldest_to_undo(history, target, session)
    agent = agent_of_run(first.invocation_id, history).name
    if agent and agent not in notebook.addressees:
        raise AgentNotFoundError("agent", agent, notebook.addressees, hint="it got this message; define it again")
    name = agent or notebook.agent_for_text()[0]
    # Before anything is undone: raises if the agent has undefined tools or members.
    chat = notebook.chat(name, session, show=host.settings.display)
    return turn_runner(chat).repeat(_rewound(notebook, target, session).message)


def _rewound(notebook: Notebook, target: int | str, session: str, *, dry_run: bool = False) -> Rewound:
    runners = [turn_runner(chat) for chat in notebook.chats_in(session)]
    for runner in runners:
        runner.refuse_while_busy()
    undone = notebook.sessions.rewind(target, session, dry_run=dry_run)
    if not dry_run:
        for runner in runners:
            runner.desk.undone(undone.closed)
        notebook.sessions.tell_undone(session)
    return undone
