"""The open interrupts of a session, kept up to date event by event: what opens one, and which results close it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.calls import Calls
from adk_nb.runtime.interrupts import Interrupt, WaitingCall, opened_by

_Key = tuple[str, str, int]
"""Kind and id of an interrupt; of an approval, the id of its call and the index among the calls of that id."""
_APPROVAL, _CREDENTIAL, _INPUT = "approval", "credential", "input"
_ELSEWHERE = -1
"""Index of a call that is in no event that was read."""
Responses = Sequence[types.FunctionResponse]


class OpenInterrupts:
    """What waits for an answer, oldest first."""

    def __init__(self, calls: Calls) -> None:
        """`calls`: of the same session; it takes in each event before this does."""
        self._calls = calls
        self._open: dict[_Key, Interrupt] = {}
        self._answers: set[tuple[str, str | None]] = set()
        """Invocation and id of what users' messages answered."""
        self._answered_toolsets: list[str] = []
        """Answered with the last event: closed by the next."""
        self._numbered = self._at = 0
        self.is_idle = True
        """Only an event that opens an interrupt is to be read."""

    @property
    def next_number(self) -> int:
        """Of the interrupt that opens next."""
        return self._numbered + 1

    def all(self) -> list[Interrupt]:
        """The open ones."""
        return [self._with_answer_ids(interrupt) for interrupt in self._open.values()]

    def _with_answer_ids(self, interrupt: Interrupt) -> Interrupt:
        if interrupt.kind != "approval":
            return interrupt
        call_id = interrupt.call.id or ""
        is_shared = len(self._calls.all(call_id)) > 1
        return replace(interrupt, answer_ids=(interrupt.id,) if is_shared else (interrupt.id, call_id))

    def read(self, event: Event, responses: Responses, at: int) -> None:
        """Take in the next event; `at` is its index."""
        self._at = at
        if self._numbered and not self._open and _is_text(event, responses):
            self._numbered = 0
        for key in self._answered_toolsets:
            self._open.pop((_CREDENTIAL, key, 0), None)
        self._answered_toolsets = []
        if event.long_running_tool_ids:
            self._open_from(event)
        if responses and self._open:
            self._close_by(event, responses)
        self.is_idle = not (self._open or self._numbered or self._answered_toolsets)

    def withdraw(self, keys: Iterable[str], left: Collection[str]) -> None:
        """Close those of the interrupts with these ids that are not among the `left`: nothing resumes from them."""
        gone = {key for key in keys if key not in left}
        for key, interrupt in list(self._open.items()) if gone else ():
            if interrupt.id in gone:
                del self._open[key]

    def _open_from(self, event: Event) -> None:
        for interrupt in opened_by(event):
            if interrupt.kind == "approval":
                self._open_approval(interrupt, event)
            elif interrupt.kind == "credential":
                self._open_credential(interrupt)
            else:
                self._add((_INPUT, interrupt.id, 0), interrupt)

    def _add(self, key: _Key, interrupt: Interrupt) -> None:
        """Open it; one that is asked again keeps its number and place."""
        before = self._open.get(key)
        self._numbered += before is None
        number = before.number if before else self._numbered
        self._open[key] = replace(interrupt, number=number, path=self._path(interrupt), at=self._at)

    def _path(self, interrupt: Interrupt) -> tuple[str, ...]:
        return callers_of(interrupt.branch, self._calls)

    def _open_approval(self, approval: Interrupt, event: Event) -> None:
        call_id = approval.call.id or ""
        made = self._calls.all(call_id)
        own = [
            at
            for at, record in enumerate(made)
            if (record.call.name, record.event.author) == (approval.call.name, event.author)
        ]
        if made and not own:
            return
        here = [at for at in own if made[at].event.invocation_id == event.invocation_id]
        self._add((_APPROVAL, call_id, (here or own or [_ELSEWHERE])[-1]), approval)

    def _open_credential(self, credential: Interrupt) -> None:
        self._settle({call.call.id for call in credential.calls})  # asked again, the newest request stands
        self._add((_CREDENTIAL, credential.id, 0), credential)

    def _close_by(self, event: Event, responses: Responses) -> None:
        by_user, by_model = event.author == "user", event.content is not None and event.content.role == "model"
        results: set[str | None] = set()
        for response in responses:
            if response.name == APPROVAL_REQUEST and by_user:
                self._answers.add((event.invocation_id, response.id))
            elif response.name == CREDENTIAL_REQUEST:
                found = self._open.get((_CREDENTIAL, response.id or "", 0))
                self._answered_toolsets += [found.id] if found and found.is_toolset else []
            else:
                self._close_input(event, response)
            if not by_model and response.name not in (APPROVAL_REQUEST, CREDENTIAL_REQUEST):
                self._close_approval(event, response)
                if response.id not in event.actions.requested_auth_configs:
                    results.add(response.id)
        self._settle(results)

    def _close_input(self, event: Event, response: types.FunctionResponse) -> None:
        key = (_INPUT, response.id or "", 0)
        interrupt = self._open.get(key)
        if interrupt is None:
            return
        if response.will_continue:
            # A result that is marked long-running itself pauses its agent: nothing went on from it.
            goes_on = response.id not in (event.long_running_tool_ids or ())
            self._open[key] = replace(interrupt, has_news=goes_on)
        else:
            del self._open[key]

    def _close_approval(self, event: Event, response: types.FunctionResponse) -> None:
        """Close it by the result of its call. A placeholder is none, nor is what another agent wrote."""
        if response.id in event.actions.requested_tool_confirmations:
            return
        key = self._call_of(event, response)
        approval = self._open.get(key)
        if approval and event.author in ("user", approval.agent):
            del self._open[key]

    def _call_of(self, event: Event, response: types.FunctionResponse) -> _Key:
        """Which of the calls of its id `response` is the result of."""
        call_id, run = response.id or "", event.invocation_id
        made = self._calls.all(call_id)
        named = [at for at, record in enumerate(made) if response.name in (None, record.call.name)]
        own = [at for at in named if made[at].event.invocation_id == run]
        answered = [at for at in named if self._is_answered(self._open.get((_APPROVAL, call_id, at)), run)]
        return _APPROVAL, call_id, (own or answered or named or [_ELSEWHERE])[-1]

    def _is_answered(self, interrupt: Interrupt | None, invocation_id: str) -> bool:
        keys = (interrupt.id, interrupt.call.id) if interrupt else ()
        return any((invocation_id, key) in self._answers for key in keys)

    def _settle(self, results: set[str | None]) -> None:
        """Close the credential requests of which all calls have results; the others wait for the calls left."""
        for key, interrupt in list(self._open.items()) if results else ():
            if interrupt.kind != "credential":
                continue
            left: list[WaitingCall] = [call for call in interrupt.calls if call.call.id not in results]
            if not left:
                del self._open[key]
            elif len(left) < len(interrupt.calls):
                self._open[key] = replace(interrupt, calls=left, call=left[0].call)


def callers_of(branch: str | None, calls: Calls) -> tuple[str, ...]:
    """Names of the agents whose calls lead to a branch, outermost first."""
    callers = [calls.newest(key) for _, key in calls_to(branch)]
    return tuple(caller.event.author for caller in callers if caller)


def _is_text(event: Event, responses: Responses) -> bool:
    """True for words of the user, not for an answer."""
    return event.author == "user" and event.content is not None and not responses
