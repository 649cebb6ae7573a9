"""The calls of a session, read event by event: by id, those of the present turn, and the open tasks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runtime.branches import calls_to, is_under, is_within
from adk_nb.runtime.interrupts import TOOL_INFO

NOT_RUN = "not_run"
"""Metadata key: ids of the calls of an event with results that a callback answered in place of their tool."""
SAME_CALL = "same_call"
"""Metadata key: call id -> `call`, the id of an equal call earlier in the turn; `count`, the number of equal calls with
equal results; `refused`, true if it was not made for that reason."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call and the event that made it."""

    call: types.FunctionCall
    event: Event
    event_index: int
    """Index of the event in `History.events`."""


class _Answer(NamedTuple):
    """A response in a user's message."""

    event_index: int
    invocation_id: str
    is_last: bool
    """The response is complete (`will_continue` is not set)."""


class Calls:
    """The calls of one session, by id. Other programs write sessions with several calls under one id."""

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

    def add_response(self, response: types.FunctionResponse, event: Event, event_index: int) -> None:
        """Index a response of the next event, after the event's calls."""
        key = response.id or ""
        # In a user's message it is an answer: the message's run continues the run of the call.
        if event.author == "user" and (run := self._run_of.get(key)):
            self._first_run.setdefault(event.invocation_id, run)
            answer = _Answer(event_index, event.invocation_id, not response.will_continue)
            self._answers.setdefault(key, []).append(answer)
        self._open.pop(key, None)
        self._responded.add(key)
        # A placeholder is a response for the model, but not the call's result.
        if not event.actions.is_placeholder_for(key):
            self._settled.add(key)

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

    def has_response(self, key: str | None) -> bool:
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
class TurnCall:
    """A call of the present turn."""

    call: types.FunctionCall
    event: Event
    """The event that made it."""
    final_texts_before: int
    """Number of final texts of its agent before it in this turn."""
    result: types.FunctionResponse | None = None
    """None: not known yet. A placeholder is no result."""
    result_event: Event | None = None
    is_held: bool = False
    """It waits, or waited, for an approval or a credential."""
    decision: dict[str, Any] | None = None
    """The answer to the request for its approval, as the client sent it. None: no answer."""
    asked_of: str | None = None
    """Fingerprint of the tool that the decision is on; None if unknown."""
    identity: str = ""
    """Equal for equal calls; empty until the call is compared."""

    @property
    def key(self) -> str:
        """Its id."""
        return self.call.id or ""

    def metadata(self, name: str) -> Any:
        """A value in the metadata of the event with the result."""
        return ((self.result_event and self.result_event.custom_metadata) or {}).get(name)


class TurnCalls:
    """The calls since the user's last words, of all agents: what the models of one turn have called already."""

    def __init__(self) -> None:
        self._by_id: dict[str, TurnCall] = {}
        self._by_name: dict[str, list[TurnCall]] = {}
        self._final_texts: dict[tuple[str, str | None], int] = {}
        """Author and branch -> number of texts without a call."""

    def read(self, event: Event, responses: Sequence[types.FunctionResponse], *, has_text: bool) -> None:
        """Read the next event."""
        if event.author == "user":
            if (has_text and not responses) or (event.input_transcription and not event.partial):
                # A new turn. Calls that still wait for a person run in the turn that answers them.
                waiting = [
                    call
                    for call in self._by_id.values()
                    if call.result is None and (call.is_held or call.call.name == APPROVAL_REQUEST)
                ]
                self._by_id, self._by_name, self._final_texts = {}, {}, {}
                for call in waiting:
                    self._add(call)
            for response in responses:
                if response.name == APPROVAL_REQUEST:
                    self._read_decision(response)
        for response in responses:
            if call := self._by_id.get(response.id or ""):
                if event.actions.is_placeholder_for(response.id):
                    call.is_held = True
                else:
                    call.result, call.result_event = response, event
        origin, is_final = (event.author, event.branch), has_text
        for part in event.parts:
            if function_call := part.function_call:
                is_final = False
                self._add(TurnCall(function_call, event, self._final_texts.get(origin, 0)))
        if is_final and event.author != "user" and not responses:
            self._final_texts[origin] = self._final_texts.get(origin, 0) + 1

    def _add(self, call: TurnCall) -> None:
        self._by_id[call.key] = call
        self._by_name.setdefault(call.call.name or "", []).append(call)

    def _read_decision(self, response: types.FunctionResponse) -> None:
        # A decision names the request, or the call itself.
        call, tool_info = self._by_id.get(response.id or ""), None
        if call and call.call.name == APPROVAL_REQUEST:
            args: dict[str, Any] = call.call.args or {}
            original, tool_info = args.get("originalFunctionCall"), args.get(TOOL_INFO)
            key = cast(dict[str, Any], original).get("id") if isinstance(original, dict) else None
            call = self._by_id.get(key) if isinstance(key, str) else None
        if call:
            call.decision = response.response or {}
            call.asked_of = cast(dict[str, Any], tool_info).get("tool") if isinstance(tool_info, dict) else None

    def get(self, key: str | None) -> TurnCall | None:
        """The call with that id. None: it is not of this turn."""
        return self._by_id.get(key or "")

    def of(self, name: str) -> Sequence[TurnCall]:
        """The calls of that function, oldest first."""
        return self._by_name.get(name, ())


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
