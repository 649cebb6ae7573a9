"""Going back in a conversation: what a rewind undoes, in words, and the session that is rewound."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook.past_turns import PastTurn, turn_of_id, turns_of
from adk_nb.notebook.view.plain_text import json_text, one_line, shortened
from adk_nb.runtime import approvals, credentials
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.rewind import undoing
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session

_OWN = (*REQUESTS, INPUT_REQUEST, "transfer_to_agent", "finish_task", "set_model_response", "exit_loop")
"""Tools that do nothing outside of the session."""
_STATE = 60
"""Characters of a value."""


@dataclass(frozen=True, kw_only=True)
class Rewound:
    """What a rewind undoes, or would; shows itself at the end of a cell."""

    session: str
    turns: list[PastTurn]
    """Oldest first."""
    state: dict[str, tuple[Any, Any]]
    """Key -> its value, and its value after; `DELETED` for none."""
    files: list[str]
    """Files that are as before."""
    closed: list[str]
    """Ids of what waits in it, and does not any more."""
    tools: list[str]
    """What was called in it; what a tool has done outside of the session is not undone."""
    dry_run: bool
    """Nothing was done."""

    @property
    def message(self) -> Any:
        """What the user said in the oldest of the turns, to be said again."""
        return self.turns[0].message

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self)}

    def _lines(self) -> list[str]:
        count = "1 turn" if len(self.turns) == 1 else f"{len(self.turns)} turns"
        events = sum(len(turn.events) for turn in self.turns)
        is_done = "would be undone" if self.dry_run else "undone"
        lines = [f"{is_done}: {count} of session {self.session!r}, {events} event{'s' if events != 1 else ''}"]
        lines += [f"    you > {turn.question}" for turn in self.turns]
        lines += [f"state: {_change(key, *values)}" for key, values in self.state.items()]
        lines += [f"file: {one_line(name, 100)} as it was before" for name in self.files]
        if self.closed:
            lines.append(f"closed: {len(self.closed)} that waited for an answer")
        if self.tools:
            lines.append(f"not undone: whatever was done outside of the session by {', '.join(self.tools)}")
        return lines


def _change(key: str, now: Any, then: Any) -> str:
    before, after = (_value(value) for value in (now, then))
    return f"{one_line(key, 100)} is deleted" if then == DELETED else f"{one_line(key, 100)} {before} -> {after}"


def _value(value: Any) -> str:
    return "(none)" if value == DELETED else shortened(json_text(value), _STATE)


def first_undone(history: History, to: int | str, session: str) -> PastTurn:
    """The oldest turn that a rewind undoes.

    Args:
        history: Of the session.
        to: How many turns of the user's are undone, counted from the last; or the id of an event or a run, with whose
            turn it begins.
        session: Its id, for errors.

    Raises:
        InputError: There are not so many, or none of that id, or it is undone already.
    """
    turns = turns_of(history)
    if isinstance(to, str):
        turn = turn_of_id(turns, to, session, "how many turns are undone, such as 1, or a whole id, see %trace")
        if turn.undone:
            raise InputError(f"the turn {turn.question!r} of session {session!r} is undone already; see %trace")
        return turn
    left = [turn for turn in turns if not turn.undone]
    if not 1 <= to <= len(left):
        some = {0: "no turn", 1: "one turn"}.get(len(left), f"{len(left)} turns")
        not_so = f", and not {to}; write 1 for the last turn, 2 for the last two" if left else ""
        raise InputError(f"session {session!r} has {some} to undo{not_so}; see %trace")
    return left[-to]


async def rewind(
    session: Session,
    service: BaseSessionService,
    artifacts: BaseArtifactService | None,
    to: int | str,
    *,
    dry_run: bool = False,
) -> Rewound:
    """Undo turns of a session, or only tell what that would undo. `to`: as for `first_undone`.

    Raises:
        InputError: As `first_undone`.
        SessionBusyError: Another run works on the session.
    """
    first = first_undone(history_of(session), to, session.id)
    told = await _told(session, first, dry_run=dry_run)
    if not dry_run:
        await service.append_event(session, await undoing(session, first.invocation_id, artifacts))
    return told


async def _told(session: Session, first: PastTurn, *, dry_run: bool) -> Rewound:
    history = history_of(session)
    left, start = history.events, history.began(first.invocation_id) or 0
    gone, kept = left[start:], left[:start]
    after = (await undoing(session, first.invocation_id, None)).actions.state_delta
    now = {key: session.state.get(key, dict(DELETED)) for key in after}
    open_then = {interrupt.id for interrupt in History(kept).interrupts()}
    return Rewound(
        session=session.id,
        turns=[turn for turn in turns_of(history) if turn.number >= first.number and not turn.undone],
        state={key: (now[key], after[key]) for key in after if now[key] != after[key]},
        files=sorted({name for event in gone for name in event.actions.artifact_delta if not name.startswith("user:")}),
        closed=[interrupt.id for interrupt in history.interrupts() if interrupt.id not in open_then],
        tools=_called(gone),
        dry_run=dry_run,
    )


def _called(events: Sequence[Event]) -> list[str]:
    """The tools that answered, by name; what only changes the session, or asks, is left out."""
    told = [
        response.name or ""
        for event in events
        if event.author != "user"
        for response in event.get_function_responses()
        if not (approvals.is_placeholder(event, response) or credentials.is_waiting(event, response))
    ]
    return list(dict.fromkeys(f"{one_line(name, 100)}()" for name in told if name not in _OWN))


def free(name: str, taken: Container[str]) -> str:
    """`name`, or that with a number behind it."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}-{count}"
    return found
