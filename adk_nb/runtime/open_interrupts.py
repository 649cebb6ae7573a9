"""The open interrupts of a session, updated event by event: which events open and close them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.calls import Calls
from adk_nb.runtime.interrupts import Interrupt, WaitingCall, opened_by

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
