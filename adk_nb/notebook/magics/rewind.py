"""`%rewind`: undo turns of a session, and send again what was said there."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.chat import turn_runner
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.past_turns import Rewound, event_at, first_undone
from adk_nb.notebook.registry.definitions import agent_of_run
from adk_nb.notebook.registry.notebook import Notebook

REWIND = Grammar(
    "rewind",
    "Undo the last turns of the conversation: agents no longer see them, state and files are as before.",
    examples=["%rewind", "%rewind 2 --dry-run", "%rewind 1 --rerun", "%rewind --at 7"],
    arguments=[Argument("N", "how many turns of yours (1); or the id of an event or a run, as RUN of %trace")],
    options=[
        Option("--at EVENT", "to before the turn of this event: its number in %trace, or its id"),
        Option("--dry-run", "only say what would be undone"),
        Option("--rerun", "and say again what you said there; %session fork first keeps what is there now"),
        SESSION_OPTION,
    ],
    twin="chat.rewind(1), chat.rewind(event), chat.rerun(event), chat.fork()",
)

_ID = 5
"""Digits that are no count of turns any more, but may be how an id begins."""


def rewind(host: Host, line: str, cell: str | None) -> Any:
    """Undo turns; what was undone, or the reply to the message that was sent again.

    Raises:
        InputError: The line contradicts itself, or there is no such turn, or one is under way.
        SessionBusyError: Another kernel is at work in the session.
    """
    args, notebook = REWIND.parse(line, cell), host.notebook
    if args.rerun and args.dry_run:
        raise InputError("%rewind: --dry-run does nothing, so there is nothing to --rerun; choose one")
    if args.at and args.n:
        raise InputError("%rewind: N and --at both say how far to go back; choose one")
    session = args.session or notebook.sessions.current
    to = _to(notebook, args, session)
    if not args.rerun:
        return _rewound(notebook, to, session, dry_run=args.dry_run)
    history = notebook.sessions.history(args.session)
    first = first_undone(history, to, session)
    then = agent_of_run(first.invocation_id, history).name
    name = then if then in notebook.addressees else notebook.agent_for_text()
    chat = notebook.chat(
        name, session, show=host.settings.display
    )  # an agent that is not ready is told of before anything is undone
    return turn_runner(chat).repeat(_rewound(notebook, to, session).message)


def _to(notebook: Notebook, args: Any, session: str) -> int | str:
    if args.at:
        found = event_at(notebook.sessions.events(args.session), args.at, session)
        if not found.invocation_id:
            raise InputError(f"event {args.at} of session {session!r} is of no turn; give one that an agent made")
        return found.id
    if args.n is None:
        return 1
    if args.n.startswith("-"):
        raise InputError(f"%rewind counts the turns that it undoes; write %rewind {args.n.lstrip('-') or 1}")
    return int(args.n) if args.n.isdecimal() and len(args.n) < _ID else args.n


def _rewound(notebook: Notebook, to: int | str, session: str, *, dry_run: bool = False) -> Rewound:
    runners = [turn_runner(chat) for chat in notebook.chats_in(session)]
    for runner in runners:
        runner.refuse_while_busy()
    undone = notebook.sessions.rewind(to, session, dry_run=dry_run)
    for runner in () if dry_run else runners:
        runner.cards.undone(undone.closed)
    return undone
