"""What `%rewind` does: undo turns of a session, and say again what was said there."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.past_turns import Rewound, event_at, first_undone
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.registry.versions import of_run
from adk_nb.notebook.view.display import Mode

_ID = 5
"""Digits that are no count of turns any more, but may be how an id begins."""


def run(notebook: Notebook, asked: Any, show: Mode) -> Any:
    """Do what the line asks for: what was undone, or the reply to what was said again.

    Raises:
        InputError: The line contradicts itself, or there is no such turn, or one is under way.
        SessionBusyError: Another kernel is at work in the session.
    """
    if asked.rerun and asked.dry_run:
        raise InputError("%rewind: --dry-run does nothing, so there is nothing to --rerun; choose one")
    if asked.at and asked.n:
        raise InputError("%rewind: N and --at both say how far to go back; choose one")
    session = asked.session or notebook.sessions.current
    to = _to(notebook, asked, session)
    if not asked.rerun:
        return _rewound(notebook, to, session, dry_run=asked.dry_run)
    history = notebook.sessions.history(asked.session)
    first = first_undone(history, to, session)
    then = of_run(first.invocation_id, history).name
    name = then if then in notebook.addressees else notebook.agent_for_text()
    chat = notebook.chat(name, session, show=show)  # an agent that is not ready is told of before anything is undone
    return chat.say_again(_rewound(notebook, to, session).message)


def _to(notebook: Notebook, asked: Any, session: str) -> int | str:
    if asked.at:
        found = event_at(notebook.sessions.events(asked.session), asked.at, session)
        if not found.invocation_id:
            raise InputError(f"event {asked.at} of session {session!r} is of no turn; give one that an agent made")
        return found.id
    if asked.n is None:
        return 1
    if asked.n.startswith("-"):
        raise InputError(f"%rewind counts the turns that it undoes; write %rewind {asked.n.lstrip('-') or 1}")
    return int(asked.n) if asked.n.isdecimal() and len(asked.n) < _ID else asked.n


def _rewound(notebook: Notebook, to: int | str, session: str, *, dry_run: bool = False) -> Rewound:
    chats = notebook.chats_in(session)
    for chat in chats:
        chat.refuse_while_busy()
    told = notebook.sessions.rewind(to, session, dry_run=dry_run)
    for chat in () if dry_run else chats:
        chat.let_go(told)
    return told
