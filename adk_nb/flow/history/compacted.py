"""A session's events with their summaries in place: what stands for the whole conversation now."""

from bisect import bisect_left
from collections.abc import Iterable

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventCompaction
from adk_nb.runtime.rewind import surviving
from adk_nb.sessions.session import Session


def standing(session: Session) -> "Standing":
    """What stands for the session; only events that came since the last call are looked at."""
    kept = session.views.get("standing")
    if kept is None or kept.seen > len(session.events):
        kept = session.views["standing"] = Standing()
    kept.look(session.events)
    return kept


class Standing:
    """The events that count, kept up to date as events are appended."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.seen = 0
        self.events: list[Event] = []
        """Oldest first: events that no summary covers and, in the place of the others, their summaries."""
        self._ends: list[float] = []
        """The latest moment that the events up to each are about: what a range cannot reach is found without a look."""
        self._calls: dict[str, Event] = {}
        """Call id -> the covered event that made the call."""
        self._responses: dict[str, types.Part] = {}
        """Call id -> the newest covered response."""

    def look(self, events: list[Event]) -> None:
        """Take in the events that came since the last look; all that count, if some of them were undone meanwhile."""
        new = events[self.seen :]
        if any(event.actions.rewind_before_invocation_id for event in new):
            self._begin()
            new = surviving(events)
        for event in new:
            if event.actions.compaction:
                self._put(event, event.actions.compaction)
            else:
                self._append(event)
        self.seen = len(events)

    def replaced_by(self, compaction: EventCompaction, scope: str | None) -> list[Event]:
        """The events, older summaries among them, that a summary of that range would take the place of."""
        return [event for event in self.events[self._first(compaction) :] if _covers(compaction, scope, event)]

    def call(self, key: str | None) -> Event | None:
        """The event that made a call, if a summary covers it."""
        return self._calls.get(key or "")

    def responses_beside(self, key: str | None, calls: Event) -> list[types.Part]:
        """What the other calls of that event were answered, as far as a summary covers it."""
        others = [call.id or "" for call in calls.get_function_calls() if call.id != key]
        return [self._responses[other] for other in others if other in self._responses]

    def _put(self, summary: Event, compaction: EventCompaction) -> None:
        """A summary covers only what came before it, and nothing if an older one covers more than it does."""
        scope, first = summary.isolation_scope, self._first(compaction)
        reached = self.events[first:]
        if any(_within(compaction, scope, other) for other in reached):
            return
        gone = self.replaced_by(compaction, scope)
        self._remember(gone)
        covered = {id(event) for event in gone}
        left = [event for event in reached if id(event) not in covered]
        later = (at for at, event in enumerate(left) if reach(event)[1] > compaction.end_timestamp)
        left.insert(next(later, len(left)), summary)
        del self.events[first:], self._ends[first:]
        for event in left:
            self._append(event)

    def _append(self, event: Event) -> None:
        end = reach(event)[1]
        self.events.append(event)
        self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    def _first(self, compaction: EventCompaction) -> int:
        """Index of the first event that such a range may reach, or that may reach as far."""
        return bisect_left(self._ends, compaction.start_timestamp)

    def _remember(self, covered: Iterable[Event]) -> None:
        for event in covered:
            for part in event.parts:
                if part.function_call and part.function_call.id:
                    self._calls[part.function_call.id] = event
                    self._responses.pop(part.function_call.id, None)  # an id used again
                elif part.function_response and part.function_response.id:
                    self._responses[part.function_response.id] = part


def reach(event: Event) -> tuple[float, float]:
    """First and last moment that an event, or what it sums up, is about."""
    told = event.actions.compaction
    return (told.start_timestamp, told.end_timestamp) if told else (event.timestamp, event.timestamp)


def _covers(compaction: EventCompaction, scope: str | None, event: Event) -> bool:
    start, end = reach(event)
    inside = compaction.start_timestamp <= start and end <= compaction.end_timestamp
    return inside and event.isolation_scope == scope


def _within(compaction: EventCompaction, scope: str | None, other: Event) -> bool:
    """True if `other` is a summary of all this and more."""
    mine = compaction.start_timestamp, compaction.end_timestamp
    if not (other.actions.compaction and other.isolation_scope == scope) or reach(other) == mine:
        return False
    start, end = reach(other)
    return start <= mine[0] and mine[1] <= end
