"""The turns of a session so far: how to find one, and how to undo them."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb import types
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook.view.plain_text import json_text, one_line, shortened
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runtime.approvals import fate_of
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.rewind import rewind_event
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session

_SESSION_TOOLS = (*REQUESTS, INPUT_REQUEST, "transfer_to_agent", "finish_task", "set_model_response", "exit_loop")
"""Tools that change only the session, so that undoing their turn undoes them."""
_HAD_EFFECT = ("ran", "in doubt", "not repeated")
"""What became of calls that took effect, or may have."""
_MAX_VALUE = 60
"""Characters of a value in the state."""
_MAX_QUESTION = 60
"""Characters of a message."""
_MIN_ID = 4
"""Characters that the beginning of an id needs; a number with more digits is an id."""


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """A message of the user and the events that followed, answers to approvals included."""

    number: int
    """1 for the first of the session, undone ones counted."""
    message: types.Content
    """The user's message."""
    events: list[Event]
    """Oldest first, that of the message included."""
    undone: bool

    @property
    def invocation_id(self) -> str:
        """Of its first event."""
        return self.events[0].invocation_id

    @property
    def invocation_ids(self) -> list[str]:
        """Ids of its runs; a turn that paused has several."""
        return list(dict.fromkeys(event.invocation_id for event in self.events))

    @property
    def question(self) -> str:
        """The text of the message on one line, shortened."""
        return one_line(typed_text(self.message), _MAX_QUESTION)


def typed_text(message: types.Content) -> str:
    """The text that the user typed, without the attachments behind it."""
    return next((part.text for part in message.parts or () if part.text), "")


def with_text(message: types.Content, text: str) -> types.Content:
    """The message with another text; its attachments stay."""
    parts = list(message.parts or ())
    at = next((number for number, part in enumerate(parts) if part.text), len(parts))
    return types.Content(role="user", parts=[*parts[:at], types.Part(text=text), *parts[at + 1 :]])


def turns_of(history: History) -> list[PastTurn]:
    """All turns of a session, oldest first."""
    return [
        PastTurn(number=number, message=turn.message, events=list(turn.events), undone=turn.undone)
        for number, turn in enumerate(history.turns, 1)
    ]


def find_turn(turns: Sequence[PastTurn], which: str, session: str) -> PastTurn:
    """Find a turn by its number (-1 the last, 1 the first), or by the id, or its beginning, of an event or a run.

    Raises:
        InputError: There is none.
    """
    if not turns:
        raise InputError(f"session {session!r} has no messages yet")
    if not is_number(which.removeprefix("-")):
        return turn_of_id(turns, which, session, "-1 for the last turn, -2, or a whole id")
    number = int(which)
    if not 1 <= abs(number) <= len(turns):
        some = "one turn" if len(turns) == 1 else f"{len(turns)} turns"
        raise InputError(f"session {session!r} has {some}, and no turn {which}; -1 is the last, 1 the first")
    return turns[number - 1 if number > 0 else number]


def is_number(which: str) -> bool:
    """True for a number; a longer one may be the beginning of an id."""
    return which.isdecimal() and len(which) <= _MIN_ID


def turn_of_id(turns: Sequence[PastTurn], which: str, session: str, else_type: str) -> PastTurn:
    """The turn with an event or a run whose id is `which`, or begins with it.

    Raises:
        InputError: There is none, or several; `else_type`: what to write instead.
    """
    matches = [
        turn
        for turn in turns
        if any(event.id.startswith(which) or event.invocation_id.startswith(which) for event in turn.events)
    ]
    if len(matches) != 1 or len(which) < _MIN_ID:
        fault = "several turns have events" if len(matches) > 1 else "no turn has an event or a run"
        raise InputError(f"{fault} called {which!r} in session {session!r}; write {else_type}")
    return matches[0]


def event_at(events: Sequence[Event], which: str, session: str) -> Event:
    """Find an event by its number in `%trace`, by its id or by the beginning of its id.

    The number of a call gives the event with its result, since `%trace` shows both in one row.

    Raises:
        InputError: There is none, or several.
    """
    if is_number(which):
        rows = rows_of(events)
        if not 1 <= int(which) <= len(rows):
            raise InputError(f"there is no event {which} in session {session!r}; there are {len(rows)}, see %trace")
        event_id = rows[int(which) - 1]["id"].partition("/")[0]
        caller = next(event for event in events if event.id == event_id)
        calls = {call.id for call in caller.get_function_calls()}
        results = [event for event in events if any(answer.id in calls for answer in event.get_function_responses())]
        return results[-1] if results else caller
    matches = [event for event in events if event.id.startswith(which)] if len(which) >= _MIN_ID else []
    if len(matches) != 1:
        fault = "several events have ids that begin" if matches else "no event has an id that begins"
        raise InputError(f"{fault} with {which!r} in session {session!r}; write its number in %trace, or its whole id")
    return matches[0]


@dataclass(frozen=True, kw_only=True)
class Rewound:
    """The turns that a rewind undoes, or would; shows itself at the end of a cell."""

    session: str
    turns: list[PastTurn]
    """Oldest first."""
    state: dict[str, tuple[Any, Any]]
    """Key -> its value before and after the rewind; `DELETED` for none."""
    files: list[str]
    """Names of the artifacts that get their earlier version back."""
    closed: list[str]
    """Ids of the open interrupts that are closed."""
    tools: list[str]
    """Tools that were called; their effects outside of the session stay."""
    dry_run: bool
    """True: nothing was changed."""

    @property
    def message(self) -> Any:
        """The user's message of the oldest turn, to be sent again."""
        return self.turns[0].message

    def __str__(self) -> str:
        count = "1 turn" if len(self.turns) == 1 else f"{len(self.turns)} turns"
        events = sum(len(turn.events) for turn in self.turns)
        is_done = "would be undone" if self.dry_run else "undone"
        lines = [f"{is_done}: {count} of session {self.session!r}, {events} event{'s' if events != 1 else ''}"]
        lines += [f"    you > {turn.question}" for turn in self.turns]
        for key, values in self.state.items():
            before, after = (
                "(none)" if value == DELETED else shortened(json_text(value), _MAX_VALUE) for value in values
            )
            change = "is deleted" if values[1] == DELETED else f"{before} → {after}"
            lines.append(f"state: {one_line(key, 100)} {change}")
        lines += [f"file: {one_line(name, 100)} as it was before" for name in self.files]
        if self.closed:
            lines.append(f"closed: {len(self.closed)} open interrupt{'s' if len(self.closed) != 1 else ''}")
        if self.tools:
            lines.append(f"not undone: effects of {', '.join(self.tools)} outside the session")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self)}


def oldest_to_undo(history: History, to: int | str, session: str) -> PastTurn:
    """The oldest turn that a rewind undoes.

    Args:
        history: Of the session.
        to: How many turns are undone, counted from the last; or the id of an event or a run, whose turn is the
            oldest that is undone.
        session: Its id, for errors.

    Raises:
        InputError: There are fewer turns, or none of that id, or it is undone already.
    """
    turns = turns_of(history)
    if isinstance(to, str):
        turn = turn_of_id(turns, to, session, "how many turns are undone, such as 1, or a whole id, see %trace")
        if turn.undone:
            raise InputError(f"the turn {turn.question!r} of session {session!r} was undone already; see %trace")
        return turn
    left = [turn for turn in turns if not turn.undone]
    if not 1 <= to <= len(left):
        some = {0: "no turn", 1: "one turn"}.get(len(left), f"{len(left)} turns")
        hint = f", and not {to}; write 1 for the last turn, 2 for the last two" if left else ""
        raise InputError(f"session {session!r} has {some} to undo{hint}; see %trace")
    return left[-to]


async def rewind(
    session: Session,
    service: BaseSessionService,
    artifacts: BaseArtifactService | None,
    to: int | str,
    *,
    dry_run: bool = False,
) -> Rewound:
    """Undo turns of a session, or on a `dry_run` only report what that would undo. `to`: as for `oldest_to_undo`.

    Raises:
        InputError: As `oldest_to_undo`.
        SessionBusyError: Another run works on the session.
    """
    history = history_of(session)
    first = oldest_to_undo(history, to, session.id)
    start = history.first_index(first.invocation_id) or 0
    undone, earlier = history.events[start:], history.events[:start]
    # Without artifacts: only what happens to the state. The event that is appended below restores their versions, too.
    after = (await rewind_event(session, first.invocation_id, None)).actions.state_delta
    now = {key: session.state.get(key, dict(DELETED)) for key in after}
    open_before = {interrupt.id for interrupt in History(earlier).interrupts()}
    # Tools that were called, without those that only ask or change the session.
    tools = [
        response.name or ""
        for event in undone
        if event.author != "user"
        for response in event.get_function_responses()
        if not event.actions.is_placeholder_for(response.id) and fate_of(response) in _HAD_EFFECT
    ]
    rewound = Rewound(
        session=session.id,
        turns=[turn for turn in turns_of(history) if turn.number >= first.number and not turn.undone],
        state={key: (now[key], after[key]) for key in after if now[key] != after[key]},
        # Artifacts of the user are shared with other sessions, so a rewind leaves them.
        files=sorted({name for event in undone for name in event.actions.artifact_delta if name[:5] != "user:"}),
        closed=[interrupt.id for interrupt in history.interrupts() if interrupt.id not in open_before],
        tools=list(dict.fromkeys(f"{one_line(name, 100)}()" for name in tools if name not in _SESSION_TOOLS)),
        dry_run=dry_run,
    )
    if not dry_run:
        await service.append_event(session, await rewind_event(session, first.invocation_id, artifacts))
    return rewound


def unused_name(name: str, taken: Container[str]) -> str:
    """`name`, or if it is taken `name-2`, `name-3`, and so on."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}-{count}"
    return candidate
