"""The calls since the user's last words, with their results: what the models of one turn have called already."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.runtime.interrupts import TOOL_INFO

NOT_RUN = "not_run"
"""Metadata key: ids of the calls of an event with results that a callback answered in place of their tool."""
SAME_CALL = "same_call"
"""Metadata key: call id -> `call`, the id of an equal call earlier in the turn; `count`, the number of equal calls with
equal results; `refused`, true if it was not made for that reason."""


@dataclass(slots=True)
class TurnCall:
    """A call of the present turn."""

    call: types.FunctionCall
    event: Event
    """The event that made it."""
    answers_before: int
    """Number of final answers that its agent gave before it in this turn."""
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
    """The calls of the present turn, of all agents. Read by `History`, event by event."""

    def __init__(self) -> None:
        self._by_id: dict[str, TurnCall] = {}
        self._by_name: dict[str, list[TurnCall]] = {}
        self._answers: dict[tuple[str, str | None], int] = {}

    def _begin_turn(self) -> None:
        """Keep the calls that still wait for a person: if they run, they do so in the turn that answers them."""
        waiting = [
            call
            for call in self._by_id.values()
            if call.result is None and (call.is_held or call.call.name == APPROVAL_REQUEST)
        ]
        self._by_id, self._by_name, self._answers = {}, {}, {}
        for call in waiting:
            self._add(call)

    def _add(self, call: TurnCall) -> None:
        self._by_id[call.key] = call
        self._by_name.setdefault(call.call.name or "", []).append(call)

    def read(self, event: Event, responses: Sequence[types.FunctionResponse], *, has_text: bool) -> None:
        """Read the next event."""
        if event.author == "user":
            if (has_text and not responses) or (event.input_transcription and not event.partial):
                self._begin_turn()
            for response in responses:
                self._read_decision(response)
        if responses:
            actions = event.actions
            for response in responses:
                key = response.id or ""
                is_placeholder = key in actions.requested_tool_confirmations or key in actions.requested_auth_configs
                if (call := self._by_id.get(key)) and is_placeholder:
                    call.is_held = True
                elif call:
                    call.result, call.result_event = response, event
        origin, is_answer = (event.author, event.branch), has_text
        for part in event.parts:
            if call := part.function_call:
                is_answer = False
                self._add(TurnCall(call, event, self._answers.get(origin, 0)))
        if is_answer and event.author != "user" and not responses:
            self._answers[origin] = self._answers.get(origin, 0) + 1

    def _read_decision(self, response: types.FunctionResponse) -> None:
        if response.name != APPROVAL_REQUEST:
            return
        # An answer names the request, or the call itself.
        answered, tool_info = self._by_id.get(response.id or ""), None
        if answered and answered.call.name == APPROVAL_REQUEST:
            args: dict[str, Any] = answered.call.args or {}
            original, tool_info = args.get("originalFunctionCall"), args.get(TOOL_INFO)
            key = cast(dict[str, Any], original).get("id") if isinstance(original, dict) else None
            answered = self._by_id.get(key) if isinstance(key, str) else None
        if answered:
            answered.decision = response.response or {}
            answered.asked_of = cast(dict[str, Any], tool_info).get("tool") if isinstance(tool_info, dict) else None

    def get(self, key: str | None) -> TurnCall | None:
        """The call with that id. None: it is not of this turn."""
        return self._by_id.get(key or "")

    def of(self, name: str) -> Sequence[TurnCall]:
        """The calls of that function, oldest first."""
        return self._by_name.get(name, ())
