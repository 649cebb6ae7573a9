"""An index of the function calls of a session: who made them where, and which have results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runtime.branches import is_under, is_within


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call, and the event that made it."""

    call: types.FunctionCall
    event: Event
    at: int
    """Index of the event among those that count."""


class _Answer(NamedTuple):
    at: int
    invocation_id: str
    is_last: bool
    """No more is to come."""


class Calls:
    """The calls of one session, by id. Sessions stored by 0.1.0 may have several calls under one id."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[CallRecord]] = {}
        self._open: dict[str, CallRecord] = {}
        self._responded: set[str] = set()
        self._settled: set[str] = set()
        self._first_run: dict[str, str] = {}
        self._run_of: dict[str, str] = {}
        self._answers: dict[str, list[_Answer]] = {}

    def add_call(self, call: types.FunctionCall, event: Event, at: int) -> None:
        """Take in a call of the next event."""
        key, record = call.id or "", CallRecord(call, event, at)
        self._by_id.setdefault(key, []).append(record)
        self._run_of[key] = self._first_run.get(event.invocation_id, event.invocation_id)
        if key and call.name != APPROVAL_REQUEST and key not in (event.long_running_tool_ids or ()):
            self._open[key] = record

    def add_response(self, response: types.FunctionResponse, event: Event) -> None:
        """Take in a response of the next event, after the calls of that."""
        key = response.id or ""
        self._open.pop(key, None)
        self._responded.add(key)
        actions = event.actions
        if key not in actions.requested_tool_confirmations and key not in actions.requested_auth_configs:
            self._settled.add(key)

    def add_answer(self, response: types.FunctionResponse, event: Event, at: int) -> None:
        """Take in a response of a user's message: its run continues that of the call."""
        key = response.id or ""
        if run := self._run_of.get(key):
            self._first_run.setdefault(event.invocation_id, run)
            answer = _Answer(at, event.invocation_id, not response.will_continue)
            self._answers.setdefault(key, []).append(answer)

    def all(self, key: str | None) -> list[CallRecord]:
        """The calls of that id, oldest first."""
        return self._by_id.get(key or "", [])

    def newest(self, key: str | None, *, under: str | None = None) -> CallRecord | None:
        """The newest call of that id on the branch `under`, or on one that leads on from there."""
        return next((record for record in reversed(self.all(key)) if is_under(record.event.branch, under)), None)

    def newest_of(
        self, agent: str, key: str, branch: str | None, *, name: str | None = None, until: int | None = None
    ) -> CallRecord | None:
        """The newest call of that id that an agent made itself on `branch`.

        Args:
            agent: Its name.
            key: The id.
            branch: Calls of agents that were called as tools from there do not count.
            name: Of the called function; None: any.
            until: Index of the last event that counts; None: all do.
        """
        for record in reversed(self.all(key)):
            is_own = record.event.author == agent and is_within(record.event.branch, branch)
            if is_own and name in (None, record.call.name) and (until is None or record.at <= until):
                return record
        return None

    def open(self) -> Iterator[CallRecord]:
        """The calls without a response, oldest first; without approval requests and long-running calls."""
        return iter(self._open.values())

    def is_answered(self, key: str | None) -> bool:
        """True if a response to that id is there, be it a placeholder."""
        return (key or "") in self._responded

    def without_result(self, keys: Iterable[str]) -> set[str]:
        """Those of the ids that have no result yet; a placeholder is none."""
        return set(keys) - self._settled

    def answered_in(self, key: str | None) -> Sequence[str]:
        """The invocations in which a user's message answered a call."""
        return [answer.invocation_id for answer in self._answers.get(key or "", ())]

    def runs_with_last_answer(self, key: str, *, since: int) -> Iterator[str]:
        """The invocations in which a user's message after the event `since` answered a call, with no more to come."""
        answers = self._answers.get(key, ())
        return (answer.invocation_id for answer in answers if answer.is_last and answer.at > since)

    def run_of(self, key: str | None) -> str | None:
        """The run in which a call was made: the first invocation of those of which each continues the one before, after
        an answer. None: there is no such call.
        """
        return self._run_of.get(key or "")
