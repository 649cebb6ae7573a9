"""Indexes of a session's calls: by id, with authors, branches and results; and the open tasks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runtime.branches import calls_to, is_under, is_within


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call and the event that made it."""

    call: types.FunctionCall
    event: Event
    event_index: int
    """Index of the event in `History.events`."""


class _Answer(NamedTuple):
    event_index: int
    invocation_id: str
    is_last: bool
    """The response is complete (`will_continue` is not set)."""


class Calls:
    """The calls of one session, by id. Sessions stored by 0.1.0 may have several calls under one id."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[CallRecord]] = {}
        self._open: dict[str, CallRecord] = {}
        self._responded: set[str] = set()
        """Ids with a response, which may be a placeholder."""
        self._settled: set[str] = set()
        """Ids with a result."""
        self._first_run: dict[str, str] = {}
        """Invocation of an answer -> the first of the chain of invocations that it continues."""
        self._run_of: dict[str, str] = {}
        """Call id -> the first invocation of its chain."""
        self._answers: dict[str, list[_Answer]] = {}

    def add_call(self, call: types.FunctionCall, event: Event, event_index: int) -> None:
        """Index a call of the next event."""
        key, record = call.id or "", CallRecord(call, event, event_index)
        self._by_id.setdefault(key, []).append(record)
        self._run_of[key] = self._first_run.get(event.invocation_id, event.invocation_id)
        # Approval requests and long-running calls wait on purpose: no run has to close them.
        if key and call.name != APPROVAL_REQUEST and key not in (event.long_running_tool_ids or ()):
            self._open[key] = record

    def add_response(self, response: types.FunctionResponse, event: Event) -> None:
        """Index a response of the next event, after the event's calls."""
        key = response.id or ""
        self._open.pop(key, None)
        self._responded.add(key)
        actions = event.actions
        # A placeholder answers the call for the model, but is not its result.
        if key not in actions.requested_tool_confirmations and key not in actions.requested_auth_configs:
            self._settled.add(key)

    def add_answer(self, response: types.FunctionResponse, event: Event, event_index: int) -> None:
        """Index a response in a user's message: the message's run continues the run of the call."""
        key = response.id or ""
        if run := self._run_of.get(key):
            self._first_run.setdefault(event.invocation_id, run)
            answer = _Answer(event_index, event.invocation_id, not response.will_continue)
            self._answers.setdefault(key, []).append(answer)

    def all(self, key: str | None) -> list[CallRecord]:
        """The calls of that id, oldest first."""
        return self._by_id.get(key or "", [])

    def newest(self, key: str | None, *, under: str | None = None) -> CallRecord | None:
        """The newest call with that id on the branch `under` or below it."""
        return next((record for record in reversed(self.all(key)) if is_under(record.event.branch, under)), None)

    def newest_of(
        self, agent: str, key: str, branch: str | None, *, name: str | None = None, until_index: int | None = None
    ) -> CallRecord | None:
        """The newest call with that id that an agent made itself on `branch`.

        Args:
            agent: Its name.
            key: The id.
            branch: Calls on branches of tool calls below it do not count.
            name: Of the called function; None: any.
            until_index: Only calls of events up to this index; None: all.
        """
        for record in reversed(self.all(key)):
            is_own = record.event.author == agent and is_within(record.event.branch, branch)
            if (
                is_own
                and name in (None, record.call.name)
                and (until_index is None or record.event_index <= until_index)
            ):
                return record
        return None

    def open(self) -> Iterator[CallRecord]:
        """The calls without a response, oldest first; without approval requests and long-running calls."""
        return iter(self._open.values())

    def is_answered(self, key: str | None) -> bool:
        """True if the call has a response, which may be a placeholder."""
        return (key or "") in self._responded

    def without_result(self, keys: Iterable[str]) -> set[str]:
        """The ids among `keys` that have no result yet; a placeholder is not a result."""
        return set(keys) - self._settled

    def answered_in(self, key: str | None) -> Sequence[str]:
        """The invocations in which a user's message answered a call."""
        return [answer.invocation_id for answer in self._answers.get(key or "", ())]

    def runs_with_last_answer(self, key: str, *, since: int) -> Iterator[str]:
        """The invocations in which a user's message after event index `since` completed the answer to a call."""
        answers = self._answers.get(key, ())
        return (answer.invocation_id for answer in answers if answer.is_last and answer.event_index > since)

    def run_of(self, key: str | None) -> str | None:
        """Id of the run that made a call: the first of a chain of invocations, each continued by an answer.

        None: there is no such call.
        """
        return self._run_of.get(key or "")


@dataclass(slots=True)
class _Task:
    agent: str
    branch: str
    has_spoken: bool
    invocation_id: str
    question: Event | None
    """The event with its last message to the user. None: it is working."""


class OpenTasks:
    """Open tasks by call id; the most recently active is last."""

    def __init__(self) -> None:
        self._open: dict[str, _Task] = {}

    @property
    def is_empty(self) -> bool:
        """True: no task is open."""
        return not self._open

    def read(self, event: Event, responses: Sequence[types.FunctionResponse]) -> None:
        """Read the next event."""
        for response in responses if self._open else ():
            self._open.pop(response.id or "", None)
        key = event.isolation_scope
        if event.author == "user" and key in self._open and not responses:
            self._open[key].question = None
        if not key or event.author == "user" or not event.branch:
            return
        callers = calls_to(event.branch)
        # An event of the agent itself, not of an agent that it calls.
        if callers and callers[-1][1] == key:
            # Removed and added again, to be the last: the most recently active.
            previous = self._open.pop(key, None)
            has_question = is_message_to_user(event)
            has_spoken = has_question or (previous is not None and previous.has_spoken)
            self._open[key] = _Task(
                callers[-1][0], event.branch, has_spoken, event.invocation_id, event if has_question else None
            )

    def newest_question(self) -> tuple[str, str, Event] | None:
        """Call id, agent and message of the task that waits for the user's text. None: no task waits."""
        key, task = next(reversed(self._open.items()), ("", None))
        return (key, task.agent, task.question) if task and task.question else None

    def matching(
        self, agents: Collection[str], branch: str | None, *, has_spoken: bool, run: str | None
    ) -> dict[str, str]:
        """Call id -> branch of the matching tasks; see `History.tasks`."""
        return {
            key: task.branch
            for key, task in self._open.items()
            if task.agent in agents
            and is_under(task.branch, branch)
            and (task.has_spoken or not has_spoken)
            and run in (None, task.invocation_id)
        }


def is_message_to_user(event: Event) -> bool:
    """True if an event is a final text for the user."""
    return bool(event.text) and not event.error_code and event.is_final_response()
