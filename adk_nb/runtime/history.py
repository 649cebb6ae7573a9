"""The read model of one session: calls, results, interrupts, tasks and runs, kept up to date as events are appended."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.graph_checkpoint import awaited_keys, checkpoint_in
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.calls import Calls, OpenInterrupts, OpenTasks, TurnCalls, callers_of
from adk_nb.runtime.interrupts import Interrupt, Kind
from adk_nb.runtime.rewind import surviving
from adk_nb.sessions.session import Session

RUN_KEY = "adk_nb_run"
"""Key in `RunConfig.custom_metadata`: a run with a key that the session has seen resumes that run, without adding its
message again."""
SENT_BY = "sent_by"
"""Metadata key beside RUN_KEY: the sender of the message, if it is not the user."""
RESTORED = "restored"
"""Metadata key beside SENT_BY: the sender wrote the event, whoever is its author."""
_VIEW_KEY = "history"


def history_of(session: Session) -> "History":
    """The read model of a session, cached on it; reads only the events appended since the last call.

    Not thread-safe: for another thread, make a `History` from the events.
    """
    return _cached_history(session).update(session.events)


def read_stepwise(session: Session) -> Iterator[None]:
    """Prepare `history_of` step by step, one event each, so that a long session does not block the event loop."""
    return _cached_history(session).steps(session.events)


def _cached_history(session: Session) -> "History":
    history = session.views.get(_VIEW_KEY)
    if not isinstance(history, History):
        history = session.views[_VIEW_KEY] = History()
    return history


@dataclass
class Turn:
    """A message of the user and the events up to the next one; answers to approvals belong to the turn."""

    message: types.Content
    events: list[Event] = field(default_factory=list[Event])
    """Oldest first, with the event of the message."""
    undone: bool = False


class History:
    """The read model of one session's events; events hidden by a rewind do not count, except where noted."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        """`events`: oldest first."""
        # Not in `_reset`: an id is never free again.
        self.call_ids: set[str] = set()
        """Ids of all calls, including calls hidden by a rewind."""
        self._reset()
        self.update(events)

    def _reset(self) -> None:
        self.events: list[Event] = []
        """Events that a rewind does not hide, oldest first."""
        self.calls = Calls()
        self.turn_calls = TurnCalls()
        """The calls since the user's last words."""
        self.turns: list[Turn] = []
        """Oldest first, including turns hidden by a rewind."""
        self.branches: dict[str, None] = {}
        """All branches with an event; an ordered set."""
        self._undone_results: dict[str, Event] = {}
        """Call id -> the event with its result, hidden by a rewind."""
        self._seen_runs: set[str] = set()
        """Ids of all invocations, including invocations hidden by a rewind."""
        self._open = OpenInterrupts(self.calls)
        self._tasks = OpenTasks()
        self._read_count = 0
        self._last_read: Event | None = None
        self._first_indexes: dict[str, int] = {}
        """Invocation -> index of its first event."""
        self._by_run_key: dict[str, str] = {}
        self._checkpoint_by_key: dict[str, tuple[int, str]] = {}
        """Call id or node path that a graph waits for -> index and invocation of the newest checkpoint."""
        self._awaited_keys: dict[tuple[str, str | None], list[str]] = {}
        """Path and branch of a graph -> call ids and node paths that its newest checkpoint waits for."""
        self._listening_nodes: dict[str, tuple[str | None, str]] = {}
        """Graph path -> its branch and the path of the node that waits for text; cleared by the user's next text."""
        self._last_text_index = 0
        self._texts: dict[str | None, types.Content] = {}
        """Isolation scope -> the user's last text in it."""
        self._failed_runs: set[str] = set()
        self._pauses: list[int] = []
        """Indices of the events with a graph's checkpoint, or with long-running calls."""

    def update(self, events: Sequence[Event]) -> "History":
        """Read the appended events. If the list was edited otherwise, read all again; an edit is detected by the number
        of events and the last read event.
        """
        for _ in self.steps(events):
            pass
        return self

    @property
    def event_count(self) -> int:
        """Number of events read, including events hidden by a rewind."""
        return self._read_count

    def steps(self, events: Sequence[Event]) -> Iterator[None]:
        """`update` as an iterator, one event per step."""
        if self._read_count and (
            self._read_count > len(events)
            # Not `!=` alone: comparing events is slow.
            or (events[self._read_count - 1] is not self._last_read and events[self._read_count - 1] != self._last_read)
        ):
            self._reset()
        for index in range(self._read_count, len(events)):
            event = events[index]
            self._read_turn(event)
            if event.actions.rewind_before_invocation_id:
                # The rewind hides events that are already in the indexes: build them anew.
                yield from self._read_all(events)
                return
            self._read(event)
            self._read_count, self._last_read = index + 1, event
            yield

    def _read_all(self, events: Sequence[Event]) -> Iterator[None]:
        """Read a session with a rewind in two passes: the indexes have only the events that no rewind hides."""
        self._reset()
        self._read_count = len(events)  # `_last_read` stays None: an abandoned iteration is read again
        for event in events:
            self.call_ids.update(call.id for call in event.get_function_calls() if call.id)
            self._read_turn(event)
            yield
        surviving_ids: set[str] = set()
        for event in surviving(events):
            self._read(event)
            surviving_ids.add(event.id)
            yield
        for event in events:
            for response in event.get_function_responses() if event.id not in surviving_ids else ():
                if response.name not in REQUESTS and not event.actions.is_placeholder_for(response.id):
                    self._undone_results[response.id or ""] = event
        for turn in self.turns:
            # A rewind to a later invocation of the turn leaves the message, and so the turn.
            turn.undone = turn.events[0].id not in surviving_ids
        self._last_read = events[-1]

    def _read_turn(self, event: Event) -> None:
        run = event.invocation_id
        if not run or event.actions.rewind_before_invocation_id:
            return
        if run not in self._seen_runs:
            self._seen_runs.add(run)
            if event.author == "user" and event.content:
                responses = event.get_function_responses()
                # A message, or an answer to a question; an approval or a credential belongs to the turn before.
                if not responses or any(response.name not in REQUESTS for response in responses):
                    self.turns.append(Turn(event.content))
        if self.turns:
            self.turns[-1].events.append(event)

    def _read(self, event: Event) -> None:
        """Add an event to all indexes: first the runs and the calls, which the others look up."""
        index, run = len(self.events), event.invocation_id
        self.events.append(event)
        self._first_indexes.setdefault(run, index)
        if event.branch:
            self.branches[event.branch] = None
        if event.error_code:
            self._failed_runs.add(run)
        key = event.custom_metadata.get(RUN_KEY) if event.custom_metadata else None
        if key and isinstance(key, str):
            self._by_run_key[key] = run
        responses: list[types.FunctionResponse] = []
        has_text = False
        for part in event.parts:
            if response := part.function_response:
                responses.append(response)
            elif call := part.function_call:
                self.calls.add_call(call, event, index)
                self.call_ids.add(call.id or "")  # nobody claims an empty one
            elif part.text and not part.thought:
                has_text = True
        for response in responses:
            self.calls.add_response(response, event, index)
        self.turn_calls.read(event, responses, has_text=has_text)
        if event.long_running_tool_ids:
            self._pauses.append(index)
        if event.long_running_tool_ids or not self._open.is_idle:
            self._open.read(event, responses, index)
        if event.isolation_scope or responses:
            self._tasks.read(event, responses)  # only events of a task have a scope
        if event.actions.agent_state:
            self._read_checkpoint(event, index)
        elif has_text and event.content and event.author == "user":
            self._last_text_index = index
            self._texts[event.isolation_scope] = event.content
            self._listening_nodes.clear()

    def _read_checkpoint(self, event: Event, index: int) -> None:
        state = event.actions.agent_state or {}
        if checkpoint_in(state) is None:
            return
        # `_read` has noted an event with long-running calls as a pause.
        if not event.long_running_tool_ids:
            self._pauses.append(index)
        keys = awaited_keys(event)
        for key in keys:
            self._checkpoint_by_key[key] = index, event.invocation_id
        path, first = event.node_info.path, self.events[self._first_indexes[event.invocation_id]]
        # A run that began with a new message, not with answers, replaces older checkpoints. Those of a resumable app
        # ("nodes") can resume too.
        if "nodes" not in state and first.author == "user" and not first.get_function_responses():
            self._open.withdraw(self._awaited_keys.get((path, event.branch), ()), keys)
        self._awaited_keys[path, event.branch] = keys
        self._listening_nodes.pop(path, None)
        if node := next((key for key in keys if key.startswith(f"{path}/")), None):
            self._listening_nodes[path] = event.branch, node

    def interrupts(
        self, *, kinds: Collection[Kind] = (), under: str | None = None, since: int = 0, run: str | None = None
    ) -> list[Interrupt]:
        """The open interrupts, oldest first.

        Args:
            kinds: Only these kinds; empty for all kinds but tasks, which no function response answers.
            under: Only on this branch or below it.
            since: Only from this event index on.
            run: Only of this invocation; None: of all.
        """
        candidates = self._open.all()
        if "task" in kinds and (task := self._task_interrupt()):
            candidates.append(task)
        return [
            interrupt
            for interrupt in candidates
            if (not kinds or interrupt.kind in kinds)
            and interrupt.event_index >= since
            and run in (None, interrupt.invocation_id)
            and is_under(interrupt.branch, under)
        ]

    def _task_interrupt(self) -> Interrupt | None:
        """The task or node that receives the user's next text, as an interrupt."""
        if node := self.listening_node():
            event = next((event for event in self.newest() if event.node_info.path == node and event.text), None)
            task = (node, event.author, event) if event else None
        else:
            task = self._tasks.newest_question()
        if task is None:
            return None
        key, agent, event = task
        record = self.calls.newest(key)
        return Interrupt(
            id=key,
            kind="task",
            number=self._open.next_number,
            call=record.call if record else types.FunctionCall(id=key, name=agent),
            agent=agent,
            branch=event.branch,
            path=callers_of(event.branch, self.calls),
            invocation_id=event.invocation_id,
            event_index=len(self.events) - 1,
            prompt=event.text,
            asked_at=event.timestamp,
            answer_ids=(key,),
        )

    @property
    def last_text_index(self) -> int:
        """Index of the user's last text; 0 if there is none."""
        return self._last_text_index

    def last_text(self, scope: str | None) -> types.Content | None:
        """The user's last text in an isolation scope."""
        return self._texts.get(scope)

    @property
    def has_scoped_work(self) -> bool:
        """False: no agent works on a call in its caller's session, so there is no open task."""
        return not self._tasks.is_empty

    def tasks(
        self, agents: Collection[str], branch: str | None = None, *, has_spoken: bool = False, run: str | None = None
    ) -> dict[str, str]:
        """The open tasks of the named agents on `branch` and below it; the most recently active is last.

        Args:
            agents: Names.
            branch: None: all branches.
            has_spoken: Only tasks with a message to the user: a run may end while they are open.
            run: Only tasks whose last event is in this invocation.

        Returns:
            Call id -> branch.
        """
        return self._tasks.matching(agents, branch, has_spoken=has_spoken, run=run)

    def listening_node(self, branch: str | None = None) -> str | None:
        """Path of the graph node on `branch` or below it that waits for the user's text. None: there is none."""
        for node_branch, node in reversed(self._listening_nodes.values()):
            if is_under(node_branch, branch):
                return node
        return None

    def checkpoint_waiting_for(self, key: str) -> tuple[int, str] | None:
        """Index and invocation of the newest graph checkpoint that waits for a call id or a node path."""
        return self._checkpoint_by_key.get(key)

    def undone_result(self, key: str) -> Event | None:
        """The newest hidden event with the result of a call. None: there is none."""
        return self._undone_results.get(key)

    def pauses(self) -> Iterator[tuple[int, Event]]:
        """The events with a graph's checkpoint or with long-running calls, newest first, each with its index."""
        return ((index, self.events[index]) for index in reversed(self._pauses))

    def is_answered_since(self, key: str, index: int, *, except_in: str = "") -> bool:
        """True if a run after event `index` had the complete answer to a call and did not fail.

        `except_in`: invocation to ignore.
        """
        runs = self.calls.runs_with_last_answer(key, since=index)
        return any(run != except_in and run not in self._failed_runs for run in runs)

    def run(self, invocation_id: str) -> Sequence[Event]:
        """The events of an invocation, oldest first."""
        first = self.first_index(invocation_id)
        return [] if first is None else [event for event in self.events[first:] if event.invocation_id == invocation_id]

    def run_ids(self) -> list[str]:
        """Ids of the invocations, oldest first."""
        return list(self._first_indexes)

    def first_index(self, invocation_id: str) -> int | None:
        """Index in `events` of the first event of an invocation. None: unknown invocation."""
        return self._first_indexes.get(invocation_id)

    def run_with_key(self, key: str) -> str | None:
        """The newest invocation with an event that has this RUN_KEY."""
        return self._by_run_key.get(key)

    def newest(self) -> Iterator[Event]:
        """`events`, newest first."""
        return reversed(self.events)


def open_interrupts(events: Iterable[Event], kinds: Collection[Kind] = ()) -> list[Interrupt]:
    """The open interrupts in a list of events, as `History.interrupts`."""
    return History(list(events)).interrupts(kinds=kinds)
