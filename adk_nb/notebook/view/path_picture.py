"""The picture of a run that is over: the team's drawing, with the way that the run took through it."""

from collections.abc import Iterator, Sequence

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.notebook.view.drawing import drawing_of
from adk_nb.notebook.view.drawing_path import Marks, VisitedPath
from adk_nb.notebook.view.drawing_svg import svg
from adk_nb.notebook.view.safe_html import Html


def path_picture(agent: BaseAgent, events: Sequence[Event], history: Sequence[Event], status: str) -> Html:
    """The same on every run, as it is made of the events alone; empty for an agent that has nobody beside it.

    Args:
        agent: Who was asked.
        events: Of the turn, oldest first, the user's included.
        history: The session before it, where the turn goes on with what was begun there.
        status: How the turn ended: `done`, `pending`, `cancelled` or `error`.
    """
    drawing = drawing_of(agent)
    if not drawing.has_picture:
        return Html()
    path, marks = VisitedPath(drawing), Marks()
    turns = [*_turns(_begun(history)), list(events)]
    for number, turn in enumerate(turns, 1):
        marks |= path.begin()
        for event in turn:
            marks |= path.feed(event)
        marks |= path.end(status if number == len(turns) else "pending")
    return svg(drawing, marks)


def _begun(history: Sequence[Event]) -> Sequence[Event]:
    """What belongs to the run that paused: all since the user's last message that answers nothing."""
    starts = [at for at, event in enumerate(history) if _is_users(event) and not event.get_function_responses()]
    return history[starts[-1] :] if starts else history


def _turns(events: Sequence[Event]) -> Iterator[list[Event]]:
    turn: list[Event] = []
    for event in events:
        if _is_users(event) and turn:
            yield turn
            turn = []
        turn.append(event)
    if turn:
        yield turn


def _is_users(event: Event) -> bool:
    return event.author == "user" and event.content is not None
