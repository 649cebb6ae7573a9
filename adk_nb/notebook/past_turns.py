"""The turns of a conversation so far: where each began, what came of it, and whether it was undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runtime.history import History

_ASKED = 60
_FEW = 4
"""Characters of an id that are too few to go by."""


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """What the user said, and all that came of it, the answers to approvals included."""

    number: int
    """1 for the first of the session, undone ones counted."""
    message: types.Content
    """What the user said."""
    events: list[Event]
    """Oldest first, that one included."""
    undone: bool

    @property
    def invocation_id(self) -> str:
        """Of its first event."""
        return self.events[0].invocation_id

    @property
    def invocation_ids(self) -> list[str]:
        """All of its own; one that waited for a person has several."""
        return list(dict.fromkeys(event.invocation_id for event in self.events))

    @property
    def question(self) -> str:
        """The words of the message on one line."""
        return one_line(words_of(self.message), _ASKED)


def words_of(message: types.Content) -> str:
    """What the user typed: what goes with it stands behind it."""
    return next((part.text for part in message.parts or () if part.text), "")


def turns_of(history: History) -> list[PastTurn]:
    """All turns of a session, oldest first."""
    return [
        PastTurn(number=number, message=turn.message, events=list(turn.events), undone=turn.undone)
        for number, turn in enumerate(history.turns, 1)
    ]


def one_turn(turns: Sequence[PastTurn], which: str, session: str) -> PastTurn:
    """The turn that is meant by -1 (the last), -2, 1 (the first), or by the id of an event or a run, or its beginning.

    Raises:
        InputError: There is none.
    """
    if not turns:
        raise InputError(f"nothing was said in session {session!r} yet")
    try:
        number = int(which)
    except ValueError:
        return turn_of_id(turns, which, session, "-1 for the last turn, -2, or a whole id")
    if not 1 <= abs(number) <= len(turns):
        some = "one turn" if len(turns) == 1 else f"{len(turns)} turns"
        raise InputError(f"session {session!r} has {some}, and none is {which}; -1 is the last, 1 the first")
    return turns[number - 1 if number > 0 else number]


def turn_of_id(turns: Sequence[PastTurn], which: str, session: str, else_type: str) -> PastTurn:
    """The turn of the event or the run with that id, or with one that begins so.

    Raises:
        InputError: There is none, or several; `else_type`: what to write instead.
    """
    found = [turn for turn in turns if any(_is_called(event, which) for event in turn.events)]
    if len(found) != 1 or len(which) < _FEW:
        what = "several turns have events" if len(found) > 1 else "no turn has an event or a run"
        raise InputError(f"{what} called {which!r} in session {session!r}; write {else_type}")
    return found[0]


def _is_called(event: Event, which: str) -> bool:
    return event.id.startswith(which) or event.invocation_id.startswith(which)


def event_at(events: Sequence[Event], which: str, session: str) -> Event:
    """The event of that number in `%trace`, or of that id, or with an id that begins so; a call's with its result.

    Raises:
        InputError: There is none.
    """
    if which.isdecimal() and len(which) < _FEW + 1:
        rows = rows_of(events)
        if not 1 <= int(which) <= len(rows):
            raise InputError(f"there is no event {which} in session {session!r}; there are {len(rows)}, see %trace")
        return _with_results(events, rows[int(which) - 1]["id"].partition("/")[0])
    found = [event for event in events if event.id.startswith(which)] if len(which) >= _FEW else []
    if len(found) != 1:
        what = "several events have ids that begin" if found else "no event has an id that begins"
        raise InputError(f"{what} with {which!r} in session {session!r}; write its number in %trace, or its whole id")
    return found[0]


def _with_results(events: Sequence[Event], key: str) -> Event:
    """The event of that id, or the last one with a result of its calls: in %trace they are one."""
    made = next(event for event in events if event.id == key)
    calls = {call.id for call in made.get_function_calls()}
    results = [event for event in events if any(told.id in calls for told in event.get_function_responses())]
    return results[-1] if results else made
