"""The read model of one session: calls, results, interrupts, tasks and runs, kept up to date as events are appended."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.runtime.branches import is_under
from adk_nb.runtime.calls import Calls
from adk_nb.runtime.interrupts import Interrupt, Kind
from adk_nb.runtime.open_interrupts import OpenInterrupts, callers_of
from adk_nb.runtime.open_tasks import OpenTasks
from adk_nb.runtime.rewind import surviving
from adk_nb.sessions.session import Session

CHECKPOINT = "workflow"
"""Key of an event's agent_state: the checkpoint of a graph that waits."""
RUN_KEY = "adk_nb_run"
"""In `RunConfig.custom_metadata`: a run whose key its session has seen is that run, and is resumed. Its message is not
said again."""
_VIEW = "history"


def history_of(session: Session) -> "History":
    """The read model of a session; only events that came since the last look are read.

    It belongs to whoever works on the session: for other threads make a `History` of its events.
    """
    return _kept(session).update(session.events)


def reading(session: Session) -> Iterator[None]:
    """Read a session for `history_of`, an event at each step: a long one is read between other work."""
    return _kept(session).steps(session.events)


def _kept(session: Session) -> "History":
    known = session.views.get(_VIEW)
    if not isinstance(known, History):
        known = session.views[_VIEW] = History()
    return known


@dataclass
class Turn:
    """A message of the user that is no yes or no, and all that came of it, the answers to approvals included."""

    message: types.Content
    events: list[Event] = field(default_factory=list[Event])
    """Oldest first, that of the message included."""
    undone: bool = False


class History:
    """What the events of a session say. Those that a rewind hides do not count."""

    def __init__(self, events: Sequence[Event] = ()) -> None:
        """`events`: oldest first."""
        self.call_ids: set[str] = set()
        """Ids of all calls, also of those that a rewind hides."""
        self._reset()
        self.update(events)

    def _reset(self) -> None:
        self.events: list[Event] = []
        """Those that count, oldest first."""
        self.calls = Calls()
        self.turns: list[Turn] = []
        """Oldest first, those that a rewind hides included."""
        self.branches: dict[str, None] = {}
        """All branches on which something happened."""
        self._undone_results: dict[str, Event] = {}
        """Id of a call -> the event with its result that a rewind hides."""
        self._seen_runs: set[str] = set()
        """Ids of all invocations, also of those that a rewind hides."""
        self._open = OpenInterrupts(self.calls)
        self._tasks = OpenTasks()
        self._seen = 0
        self._last: Event | None = None
        self._began: dict[str, int] = {}
        """Invocation -> index of its first event."""
        self._by_run_key: dict[str, str] = {}
        self._graph_waits: dict[str, tuple[int, str]] = {}
        """Id of a call, or path of a node, that a graph waits for -> index and invocation of the newest checkpoint."""
        self._waits_of: dict[tuple[str, str | None], list[str]] = {}
        """Path and branch of a graph -> what its newest checkpoint waits for."""
        self._talking: dict[str, tuple[str | None, str]] = {}
        """Path of a graph -> its branch, and the node that waits for the user's words, said since they spoke last."""
        self._text_at = 0
        self._texts: dict[str | None, types.Content] = {}
        """Isolation scope -> the user's last words there."""
        self._failed_runs: set[str] = set()
        self._pauses: list[int] = []
        """Indices of the events with a graph's checkpoint, or with long-running calls."""

    def update(self, events: Sequence[Event]) -> "History":
        """Read what was appended, also of a copy of the events. Events that were changed by hand are all read again; a
        change is noticed by their number and the last of them.
        """
        for _ in self.steps(events):
            pass
        return self

    @property
    def event_count(self) -> int:
        """How many events were read, those that a rewind hides among them."""
        return self._seen

    def steps(self, events: Sequence[Event]) -> Iterator[None]:
        """`update`, an event at each step."""
        if self._seen > len(events) or (self._seen and not _is_same(events[self._seen - 1], self._last)):
            self._reset()
        for at in range(self._seen, len(events)):
            event = events[at]
            self._read_turn(event)
            if event.actions.rewind_before_invocation_id:
                yield from self._read_again(events)
                return
            self._read(event)
            self._seen, self._last = at + 1, event
            yield

    def _read_again(self, events: Sequence[Event]) -> Iterator[None]:
        self._reset()
        self._seen = len(events)  # without the last of them: read again if this is left in its middle
        for event in events:
            self.call_ids.update(call.id for call in event.get_function_calls() if call.id)
            self._read_turn(event)
            yield
        left: set[str] = set()
        for event in surviving(events):
            self._read(event)
            left.add(event.id)
            yield
        self._note_undone(event for event in events if event.id not in left)
        self._last = events[-1]

    def _note_undone(self, events: Iterable[Event]) -> None:
        gone: set[str] = set()
        for event in events:
            gone.add(event.id)
            waiting = {*event.actions.requested_tool_confirmations, *event.actions.requested_auth_configs}
            for response in event.get_function_responses():
                if response.name not in REQUESTS and response.id not in waiting:
                    self._undone_results[response.id or ""] = event
        for turn in self.turns:
            turn.undone = turn.events[0].id in gone

    def _read_turn(self, event: Event) -> None:
        run = event.invocation_id
        if not run or event.actions.rewind_before_invocation_id:
            return
        if run not in self._seen_runs:
            self._seen_runs.add(run)
            if event.author == "user" and event.content and _is_message(event):
                self.turns.append(Turn(event.content))
        if self.turns:
            self.turns[-1].events.append(event)

    def _read(self, event: Event) -> None:
        at = len(self.events)
        self.events.append(event)
        self._read_run(event, at)
        responses, has_text = self._read_parts(event, at)
        if event.long_running_tool_ids:
            self._pauses.append(at)
        if event.long_running_tool_ids or not self._open.is_idle:
            self._open.read(event, responses, at)
        if event.isolation_scope or responses:
            self._tasks.read(event, responses)
        if event.actions.agent_state:
            self._read_checkpoint(event)
        elif has_text and event.content and event.author == "user":
            self._text_at = at
            self._texts[event.isolation_scope] = event.content
            self._talking.clear()

    def _read_run(self, event: Event, at: int) -> None:
        run = event.invocation_id
        self._began.setdefault(run, at)
        if event.branch:
            self.branches[event.branch] = None
        if event.error_code:
            self._failed_runs.add(run)
        if event.custom_metadata and (key := event.custom_metadata.get(RUN_KEY)):
            self._by_run_key[key] = run

    def _read_parts(self, event: Event, at: int) -> tuple[list[types.FunctionResponse], bool]:
        """Its responses, and whether it has text beside calls and responses."""
        responses: list[types.FunctionResponse] = []
        has_text = False
        for part in event.parts:
            if response := part.function_response:
                responses.append(response)
            elif call := part.function_call:
                self.calls.add_call(call, event, at)
                if call.id:
                    self.call_ids.add(call.id)
            elif part.text and not part.thought:
                has_text = True
        for response in responses:
            if event.author == "user":
                self.calls.add_answer(response, event, at)
            self.calls.add_response(response, event)
        return responses, has_text

    def _read_checkpoint(self, event: Event) -> None:
        state = event.actions.agent_state
        if not state or CHECKPOINT not in state:
            return
        if not event.long_running_tool_ids:
            self._pauses.append(len(self.events) - 1)
        keys = waited_for(event)
        for key in keys:
            self._graph_waits[key] = len(self.events) - 1, event.invocation_id
        path = event.node_info.path
        place = path, event.branch
        if self._begins_anew(event):
            self._open.withdraw(self._waits_of.get(place, ()), keys)
        self._waits_of[place] = keys
        self._talking.pop(path, None)
        if node := next((key for key in keys if key.startswith(f"{path}/")), None):
            self._talking[path] = event.branch, node

    def _begins_anew(self, event: Event) -> bool:
        """True for the checkpoint of a graph that a message without answers has begun, where only the newest counts."""
        if "nodes" in (event.actions.agent_state or ()):  # a resumable app: older checkpoints resume too
            return False
        first = self.events[self._began[event.invocation_id]]
        return first.author == "user" and not first.get_function_responses()

    def interrupts(
        self, *, kinds: Collection[Kind] = (), under: str | None = None, since: int = 0, run: str | None = None
    ) -> list[Interrupt]:
        """What waits for an answer, oldest first.

        Args:
            kinds: Of these kinds only; none for all that function responses answer, which are all but tasks.
            under: On this branch, or on one that leads on from there.
            since: Asked at this index or later.
            run: Asked in this invocation; None: in any.
        """
        open_ = [*self._open.all(), *(self._task() if "task" in kinds else ())]
        return [
            interrupt
            for interrupt in open_
            if (not kinds or interrupt.kind in kinds)
            and interrupt.at >= since
            and run in (None, interrupt.invocation_id)
            and is_under(interrupt.branch, under)
        ]

    def _task(self) -> Iterator[Interrupt]:
        """The task that the user's next words go to, if it waits for them."""
        if node := self.talking_node():
            event = next((event for event in self.newest() if event.node_info.path == node and event.text), None)
            asking = (node, event.author, event) if event else None
        else:
            asking = self._tasks.asking()
        if asking is None:
            return
        key, agent, event = asking
        record = self.calls.newest(key)
        yield Interrupt(
            id=key,
            kind="task",
            number=self._open.next_number,
            call=record.call if record else types.FunctionCall(id=key, name=agent),
            agent=agent,
            branch=event.branch,
            path=callers_of(event.branch, self.calls),
            invocation_id=event.invocation_id,
            at=len(self.events) - 1,
            prompt=event.text,
            asked_at=event.timestamp,
            answer_ids=(key,),
        )

    @property
    def last_text_at(self) -> int:
        """Index of the user's last words; 0 if there were none."""
        return self._text_at

    def last_text(self, scope: str | None) -> types.Content | None:
        """The user's last words in that isolation scope."""
        return self._texts.get(scope)

    @property
    def has_scoped_work(self) -> bool:
        """False: no agent works for a call, so there is no task."""
        return not self._tasks.is_empty

    def tasks(
        self, agents: Collection[str], branch: str | None = None, *, talking: bool = False, run: str | None = None
    ) -> dict[str, str]:
        """The open tasks of the named agents on `branch` and under it; who worked last is the last.

        `talking`: only those whose agent has said something to the user: a run may end while they are open. `run`: only
        those that were worked on last in this invocation.

        Returns:
            The branch of each, by the id of the call that gave the task.
        """
        return self._tasks.of(agents, branch, talking=talking, run=run)

    def talking_node(self, branch: str | None = None) -> str | None:
        """Path of a graph's node that waits for the user's words, on `branch` or under it, since they spoke last."""
        for where, node in reversed(self._talking.values()):
            if is_under(where, branch):
                return node
        return None

    def checkpoint_waiting_for(self, key: str) -> tuple[int, str] | None:
        """Index and invocation of the newest checkpoint of a graph that waits for a call, or for words to a node."""
        return self._graph_waits.get(key)

    def undone_result(self, key: str) -> Event | None:
        """The newest event with the result of a call that a rewind hides. None: there is none."""
        return self._undone_results.get(key)

    def pauses(self) -> Iterator[tuple[int, Event]]:
        """The events with a graph's checkpoint or with long-running calls, newest first, each with its index."""
        return ((at, self.events[at]) for at in reversed(self._pauses))

    def is_answered_since(self, key: str, at: int, *, except_in: str = "") -> bool:
        """True if a run after the event of that index has gone on with the last answer to a call, and did not fail.

        `except_in`: the run that does not count.
        """
        runs = self.calls.runs_with_last_answer(key, since=at)
        return any(run != except_in and run not in self._failed_runs for run in runs)

    def run(self, invocation_id: str) -> Sequence[Event]:
        """The events of an invocation, oldest first."""
        began = self._began.get(invocation_id)
        return [] if began is None else [one for one in self.events[began:] if one.invocation_id == invocation_id]

    def run_ids(self) -> list[str]:
        """Ids of the invocations, in the order of their beginning."""
        return list(self._began)

    def began(self, invocation_id: str) -> int | None:
        """Index in `events` of the first event of an invocation. None: there is none."""
        return self._began.get(invocation_id)

    def run_with_key(self, key: str) -> str | None:
        """The newest invocation of which an event has that RUN_KEY."""
        return self._by_run_key.get(key)

    def newest(self) -> Iterator[Event]:
        """The events that count, newest first: for what is found within a few."""
        return reversed(self.events)


def _is_same(event: Event, other: Event | None) -> bool:
    return event is other or event == other


def _is_message(event: Event) -> bool:
    """True for words, and for an answer to a question, but not for a yes or a no."""
    responses = event.get_function_responses()
    return not responses or any(response.name not in REQUESTS for response in responses)


def waited_for(event: Event) -> list[str]:
    """What a graph waits for by its checkpoint: ids of calls, and paths of nodes that wait for words."""
    state = event.actions.agent_state
    graph = state.get(CHECKPOINT) if state else None
    return [key for run in graph["waiting"] for key in run["asked"]] if graph else []


def open_interrupts(events: Iterable[Event], kinds: Collection[Kind] = ()) -> list[Interrupt]:
    """The open interrupts of these kinds in a list of events; no kinds: of all."""
    return History(list(events)).interrupts(kinds=kinds)
