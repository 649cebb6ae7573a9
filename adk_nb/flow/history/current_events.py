"""The current events of a session: its events with summaries in place of those they cover."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventCompaction
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.rewind import surviving
from adk_nb.sessions.session import Session


def current_events(session: Session) -> "CurrentEvents":
    """The session's current events; updates a view that the session caches."""
    view = session.views.get("current_events")
    if view is None or view.read_count > len(session.events):
        view = session.views["current_events"] = CurrentEvents()
    view.update(session.events)
    return view


class CurrentEvents:
    """Current events, updated as events are appended."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.read_count = 0
        self.events: list[Event] = []
        """Oldest first: events that no summary covers, and the summaries of the other events."""
        self._ends: list[float] = []
        """Running maximum of the events' end timestamps, for a binary search by time."""
        self._calls: dict[str, Event] = {}
        """Call id -> the covered event with the call."""
        self._responses: dict[str, types.Part] = {}
        """Call id -> the newest covered response."""

    def update(self, events: list[Event]) -> None:
        """Take in new events; start over with the surviving ones after a rewind."""
        new = events[self.read_count :]
        if any(event.actions.rewind_before_invocation_id for event in new):
            self._reset()
            # A rewind may have removed events that are processed already.
            new = surviving(events)
        for event in new:
            if event.actions.compaction:
                self._insert_summary(event, event.actions.compaction)
            else:
                self._append(event)
        self.read_count = len(events)

    def replaced_by(self, compaction: EventCompaction, scope: str | None) -> list[Event]:
        """The events, older summaries among them, that a summary of that range would replace.

        A call that waits stays, with the responses beside it; it goes with the summary that covers its last response.
        """
        replaced = {
            id(event): event
            for event in self.events[self._first_index(compaction) :]
            if _covers_event(compaction, scope, event)
        }
        if not replaced:
            return []
        for exchange in exchanges(self.events):
            if exchange.call.isolation_scope != scope:
                continue
            last_response = exchange.responses[-1] if exchange.responses else None
            if exchange.waiting:
                for event in (exchange.call, *exchange.responses):
                    replaced.pop(id(event), None)
            elif last_response is not None and id(last_response) in replaced:
                for event in (exchange.call, *exchange.responses):
                    if event.isolation_scope == scope:
                        replaced[id(event)] = event
        return [event for event in self.events if id(event) in replaced]

    def call(self, key: str | None) -> Event | None:
        """The covered event with the call of that id. None: no summary covers it."""
        return self._calls.get(key or "")

    def sibling_responses(self, key: str | None, event: Event) -> list[types.Part]:
        """The covered responses to the other calls of `event`."""
        sibling_ids = [call.id or "" for call in event.get_function_calls() if call.id != key]
        return [self._responses[call_id] for call_id in sibling_ids if call_id in self._responses]

    def _insert_summary(self, summary: Event, compaction: EventCompaction) -> None:
        """Replace the events before a summary that it covers; do nothing if an older summary covers more."""
        scope, start_index = summary.isolation_scope, self._first_index(compaction)
        own_range = compaction.start_timestamp, compaction.end_timestamp
        for event in self.events[start_index:]:
            if event.actions.compaction and event.isolation_scope == scope:
                start, end = time_range(event)
                if start <= own_range[0] and own_range[1] <= end and (start, end) != own_range:
                    return
        replaced = self.replaced_by(compaction, scope)
        for event in replaced:
            for part in event.parts:
                if part.function_call and part.function_call.id:
                    self._calls[part.function_call.id] = event
                    self._responses.pop(part.function_call.id, None)  # an id used again
                elif part.function_response and part.function_response.id:
                    self._responses[part.function_response.id] = part
        covered = {id(event) for event in replaced}
        if replaced:
            start_index = min(start_index, next(i for i, event in enumerate(self.events) if id(event) in covered))
        remaining = [event for event in self.events[start_index:] if id(event) not in covered]
        # Before the calls in its range that wait: they come after what began the conversation.
        later_indexes = (
            index
            for index, event in enumerate(remaining)
            if time_range(event)[1] > compaction.end_timestamp or _covers_event(compaction, scope, event)
        )
        remaining.insert(next(later_indexes, len(remaining)), summary)
        del self.events[start_index:], self._ends[start_index:]
        for event in remaining:
            self._append(event)

    def _append(self, event: Event) -> None:
        end = time_range(event)[1]
        self.events.append(event)
        self._ends.append(max(end, self._ends[-1]) if self._ends else end)

    def _first_index(self, compaction: EventCompaction) -> int:
        """Index of the first event that may lie in the range."""
        return bisect_left(self._ends, compaction.start_timestamp)


@dataclass
class Exchange:
    """The calls of an event, and the events with their responses."""

    call: Event
    responses: list[Event] = field(default_factory=list[Event])
    """Oldest first; placeholders among them."""
    unanswered: set[str] = field(default_factory=set[str])
    """Ids of the calls that have no response, or a placeholder only."""
    waiting: set[str] = field(default_factory=set[str])
    """Those of them that can be answered in a later run: long-running, or waiting for an approval or a credential."""


def exchanges(events: Iterable[Event]) -> list[Exchange]:
    """The exchanges among `events`, oldest first; without the runtime's requests."""
    found: list[Exchange] = []
    newest: dict[str, Exchange] = {}
    """Call id -> exchange; ids may be used again."""
    for event in events:
        for response in event.get_function_responses():
            key = response.id or ""
            if (exchange := newest.get(key)) is None:
                continue
            if event not in exchange.responses[-1:]:
                exchange.responses.append(event)
            if event.actions.is_placeholder_for(response.id):
                exchange.unanswered.add(key)
                exchange.waiting.add(key)
            else:
                exchange.unanswered.discard(key)
                exchange.waiting.discard(key)
        keys = {call.id for call in event.get_function_calls() if call.id and call.name not in REQUESTS}
        if keys:
            waiting = keys.intersection(event.long_running_tool_ids or ())
            found.append(Exchange(event, unanswered=set(keys), waiting=waiting))
            newest.update(dict.fromkeys(keys, found[-1]))
    return found


def time_range(event: Event) -> tuple[float, float]:
    """First and last timestamp of an event, or of the events that it summarizes."""
    compaction = event.actions.compaction
    return (compaction.start_timestamp, compaction.end_timestamp) if compaction else (event.timestamp, event.timestamp)


def _covers_event(compaction: EventCompaction, scope: str | None, event: Event) -> bool:
    start, end = time_range(event)
    inside = compaction.start_timestamp <= start and end <= compaction.end_timestamp
    return inside and event.isolation_scope == scope
