"""The calls of a session, read event by event: by id, those of the present turn, open tasks, and open interrupts."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.runtime.branches import calls_to, is_under, is_within
from adk_nb.runtime.interrupts import TOOL_INFO, Interrupt, WaitingCall, opened_by

NOT_RUN = "not_run"
"""Metadata key: ids of the calls of an event with results that a callback answered in place of their tool."""
RAN_WITH = "ran_with"
"""Metadata key: call id -> a digest of the arguments with which the tool was called, where a callback had changed them.
Not the arguments: callbacks put secrets into them."""
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
    identities: frozenset[str] = frozenset()
    """Digests of its arguments as the model gave them, and as callbacks changed them: equal calls share one. Empty
    until the call is compared."""

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


_Key = tuple[str, str, int]
"""Kind, id and 0; of an approval: kind, call id, and index among the calls with that id."""
_APPROVAL, _CREDENTIAL, _INPUT = "approval", "credential", "input"
_UNKNOWN_CALL = -1
"""Index of a call that no event has."""
Responses = Sequence[types.FunctionResponse]


class OpenInterrupts:
    """The open interrupts, oldest first."""

    def __init__(self, calls: Calls) -> None:
        """`calls`: index of the same session, updated with each event before this."""
        self._calls = calls
        self._open: dict[_Key, Interrupt] = {}
        self._answers: set[tuple[str, str | None]] = set()
        """Invocation id and request id of the answers in users' messages."""
        self._answered_toolsets: list[str] = []
        """Ids of toolset requests answered by the last event; the next event closes them."""
        self._last_number = 0
        self.is_idle = True
        """True: `read` needs only events that open an interrupt."""

    @property
    def next_number(self) -> int:
        """Number of the next interrupt."""
        return self._last_number + 1

    def all(self) -> list[Interrupt]:
        """All open interrupts, oldest first."""
        interrupts: list[Interrupt] = []
        for interrupt in self._open.values():
            if interrupt.kind == "approval":
                call_id = interrupt.call.id or ""
                is_shared = len(self._calls.all(call_id)) > 1
                interrupt = replace(interrupt, answer_ids=(interrupt.id,) if is_shared else (interrupt.id, call_id))
            interrupts.append(interrupt)
        return interrupts

    def read(self, event: Event, responses: Responses, event_index: int) -> None:
        """Read the next event."""
        # Numbers restart with a message, but not while a card shows one: `%confirm 2` must keep its meaning.
        if self._last_number and not self._open and event.author == "user" and event.content and not responses:
            self._last_number = 0
        # A toolset request has no call, so no result closes it: the first event after its answer does.
        for key in self._answered_toolsets:
            self._open.pop((_CREDENTIAL, key, 0), None)
        self._answered_toolsets = []
        for interrupt in opened_by(event) if event.long_running_tool_ids else ():
            key = _INPUT, interrupt.id, 0
            if interrupt.kind == "approval":
                key = self._approval_key(interrupt, event)
            elif interrupt.kind == "credential":
                self._settle({call.call.id for call in interrupt.calls})  # a newer request for the same calls
                key = _CREDENTIAL, interrupt.id, 0
            if key is None:
                continue
            # If it is requested again, it keeps its number and position.
            previous = self._open.get(key)
            self._last_number += previous is None
            number = previous.number if previous else self._last_number
            path = callers_of(interrupt.branch, self._calls)
            self._open[key] = replace(interrupt, number=number, path=path, event_index=event_index)
        if responses and self._open:
            self._close_by(event, responses)
        self.is_idle = not (self._open or self._last_number or self._answered_toolsets)

    def withdraw(self, keys: Iterable[str], remaining: Collection[str]) -> None:
        """Close the interrupts with ids in `keys` but not in `remaining`: a newer checkpoint replaced theirs."""
        withdrawn = {key for key in keys if key not in remaining}
        for key, interrupt in list(self._open.items()) if withdrawn else ():
            if interrupt.id in withdrawn:
                del self._open[key]

    def _approval_key(self, approval: Interrupt, event: Event) -> _Key | None:
        """The key of a requested approval. None: it is about none of the calls with its id."""
        call_id = approval.call.id or ""
        records = self._calls.all(call_id)
        # Where calls share an id, the request is about one with its name and author.
        indices = [
            index
            for index, record in enumerate(records)
            if (record.call.name, record.event.author) == (approval.call.name, event.author)
        ]
        if records and not indices:
            return None
        # Of several such calls: the last one of the same run, or else the last one.
        in_same_run = [index for index in indices if records[index].event.invocation_id == event.invocation_id]
        return _APPROVAL, call_id, (in_same_run or indices or [_UNKNOWN_CALL])[-1]

    def _close_by(self, event: Event, responses: Responses) -> None:
        actions, by_user = event.actions, event.author == "user"
        by_model = event.content is not None and event.content.role == "model"
        results: set[str | None] = set()
        for response in responses:
            key = _INPUT, response.id or "", 0
            if response.name == APPROVAL_REQUEST and by_user:
                self._answers.add((event.invocation_id, response.id))
            elif response.name == CREDENTIAL_REQUEST:
                interrupt = self._open.get((_CREDENTIAL, response.id or "", 0))
                self._answered_toolsets += [interrupt.id] if interrupt and interrupt.is_toolset else []
            elif interrupt := self._open.get(key):
                # A call that waits for an approval or a credential has not begun: that request is what is open.
                if response.will_continue and not actions.is_placeholder_for(response.id):
                    # A result that is long-running itself pauses its agent, so it is no progress.
                    has_progress = response.id not in (event.long_running_tool_ids or ())
                    self._open[key] = replace(interrupt, has_progress=has_progress)
                else:
                    del self._open[key]
            # A response in a model's content is text that the model wrote: it must not close an approval.
            if by_model or response.name in (APPROVAL_REQUEST, CREDENTIAL_REQUEST):
                continue
            if response.id not in actions.requested_tool_confirmations:  # else a placeholder
                key = self._call_of(event, response)
                # Other agents' responses do not count.
                if (approval := self._open.get(key)) and (by_user or event.author == approval.agent):
                    del self._open[key]
            if response.id not in actions.requested_auth_configs:
                results.add(response.id)
        self._settle(results)

    def _call_of(self, event: Event, response: types.FunctionResponse) -> _Key:
        """The key of the call that `response` answers, among the calls with its id."""
        call_id, run = response.id or "", event.invocation_id
        records = self._calls.all(call_id)
        same_name = [index for index, record in enumerate(records) if response.name in (None, record.call.name)]
        in_same_run = [index for index in same_name if records[index].event.invocation_id == run]
        answered: list[int] = []
        for index in same_name:
            approval = self._open.get((_APPROVAL, call_id, index))
            if approval and not self._answers.isdisjoint({(run, approval.id), (run, approval.call.id)}):
                answered.append(index)
        # An answer starts a run with another id, so a call that this run answered comes before the newest.
        return _APPROVAL, call_id, (in_same_run or answered or same_name or [_UNKNOWN_CALL])[-1]

    def _settle(self, results: set[str | None]) -> None:
        """Remove calls with results from the credential requests; close requests without calls."""
        for key, interrupt in list(self._open.items()) if results else ():
            if interrupt.kind != "credential":
                continue
            remaining: list[WaitingCall] = [call for call in interrupt.calls if call.call.id not in results]
            if not remaining:
                del self._open[key]
            elif len(remaining) < len(interrupt.calls):
                self._open[key] = replace(interrupt, calls=remaining, call=remaining[0].call)


def callers_of(branch: str | None, calls: Calls) -> tuple[str, ...]:
    """Names of the agents whose calls lead to a branch, outermost first."""
    callers = [calls.newest(key) for _, key in calls_to(branch)]
    return tuple(caller.event.author for caller in callers if caller)
