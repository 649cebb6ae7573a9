"""The events of a file that anybody may have written: what asks a person, and what answers, does not count there."""

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import no_actions
from adk_nb.events.requests import NODE_APPROVAL, REQUESTS
from adk_nb.wire import copy_model

NOT_RUN = (
    "this call came to no end in the file that the session was loaded from, and is not made; call it again if it is "
    "still needed"
)


def without_decisions(events: Sequence[Event]) -> tuple[list[Event], int]:
    """`events` without requests for approvals and credentials, and without answers to them; and how many were open.

    A tool that needs an approval or a credential asks for it anew when it is called again. Every call that is left
    open, and leads to nothing that waits for the user, has an error for a result: none of them is ever made. Questions
    to the user, and results that come from outside, can still be answered.
    """
    found = _Requests(events)
    kept = [scrubbed for event in events if (scrubbed := found.without(event)) is not None]
    return [*kept, *_closing(kept)], len(found.calls.keys() - found.answered)


class _Requests:
    """The requests of a session, and what is known of the calls that waited for them."""

    def __init__(self, events: Sequence[Event]) -> None:
        calls = [call for event in events for call in event.get_function_calls()]
        self.calls = {call.id or "": call for call in calls if _is_decision(call)}
        responses = [(event, one) for event in events for one in event.get_function_responses()]
        self.answered = {one.id for event, one in responses if event.author == "user"}
        self._ran = self._asked_while_running()
        self._has_result = {one.id for event, one in responses if one.id not in _held(event)}

    def without(self, event: Event) -> Event | None:
        """`event` without decisions; itself if it has none, None if there is nothing else in it."""
        actions, held = event.actions, _held(event)
        parts = [part for one in event.parts if (part := self._part(one, held))]
        state = actions.agent_state and self._without_answers(actions.agent_state)
        same = len(parts) == len(event.parts) and all(map(operator.is_, parts, event.parts))
        if same and not held and state == actions.agent_state:
            return event
        acts = copy_model(actions, requested_tool_confirmations={}, requested_auth_configs={}, agent_state=state)
        if not parts and acts == no_actions() and event.output is None and not event.error_code:
            return None
        later = {key for key in event.long_running_tool_ids or () if key not in self.calls}
        content = copy_model(event.content, parts=parts) if event.content and parts else None
        return copy_model(event, content=content, actions=acts, long_running_tool_ids=later or None)

    def _asked_while_running(self) -> set[str | None]:
        """The ids of calls whose tool asked while it ran: what it returned is its result."""
        found = set[str | None]()
        for request in self.calls.values():
            args: Any = request.args or {}
            of, call = args.get("askedOf"), args.get("originalFunctionCall")
            if isinstance(of, dict) and isinstance(call, dict) and cast(Any, of).get("ran") is True:
                found.add(str(cast(Any, call).get("id")))
        return found

    def _part(self, part: types.Part, held: Collection[str | None]) -> types.Part | None:
        """`part` without decisions; of a call that waited for one, the placeholder becomes its result."""
        if (told := part.function_call or part.function_response) and _is_decision(told):
            return None
        response = part.function_response
        if not response or response.id not in held or response.id in self._ran:
            return part
        if response.id in self._has_result:
            return None
        return types.Part(function_response=copy_model(response, response={"error": NOT_RUN}, will_continue=None))

    def _without_answers(self, state: Any) -> Any:
        """Where a graph stood, without what its nodes were let do; a node that waited for that alone is run again."""
        if isinstance(state, list):
            return [self._without_answers(one) for one in cast(list[Any], state)]
        if not isinstance(state, dict):
            return state
        found = {key: self._without_answers(one) for key, one in cast(dict[str, Any], state).items()}
        if {"asked", "answers", "held", "let"} <= found.keys():
            asked = [key for key in found["asked"] if not self._is_gate(key)]
            answers = {key: one for key, one in found["answers"].items() if not self._is_gate(key)}
            return found | {"asked": asked, "answers": answers, "held": None, "let": None}
        if {"waiting", "running", "inner_waiting"} <= found.keys():
            found["running"] = [*found["running"], *(run for run in found["waiting"] if not run["asked"])]
            found["waiting"] = [run for run in found["waiting"] if run["asked"]]
            found["inner_waiting"] = {path: run for path, run in found["inner_waiting"].items() if run["asked"]}
        return found

    def _is_gate(self, key: Any) -> bool:
        return key in self.calls or str(key).startswith(NODE_APPROVAL)


def _held(event: Event) -> Collection[str | None]:
    """The ids of the calls whose result in `event` is only a placeholder."""
    return {*event.actions.requested_tool_confirmations, *event.actions.requested_auth_configs}


def _is_decision(told: types.FunctionCall | types.FunctionResponse) -> bool:
    return told.name in REQUESTS or (told.id or "").startswith(NODE_APPROVAL)


def _closing(events: Sequence[Event]) -> list[Event]:
    """One event for each that leaves calls open, with their results."""
    answered = {one.id for event in events for one in event.get_function_responses()}
    newest = {event.isolation_scope: event for event in events if event.author != "user"}
    waits = [event for event in events if _waits(event, answered, newest)]
    closing: list[Event] = []
    for event in events:
        later = event.long_running_tool_ids or ()
        calls = [one for one in event.get_function_calls() if one.id not in answered and one.id not in later]
        if calls := [one for one in calls if not any(_leads_to(event.branch, one, other.branch) for other in waits)]:
            closing.append(_results(event, calls, events[-1].timestamp))
    return closing


def _waits(event: Event, answered: Collection[str | None], newest: Mapping[str | None, Event]) -> bool:
    """True if it asks the user something, or a task's agent has said something to them last."""
    if any(key not in answered for key in event.long_running_tool_ids or ()):
        return True
    scope = event.isolation_scope
    return bool(scope and newest.get(scope) is event and event.text and not event.get_function_calls())


def _leads_to(branch: str | None, call: types.FunctionCall, inner: str | None) -> bool:
    """True if `inner` is the branch of what works for `call`, made on `branch`, or leads on from there."""
    start = f"{branch}.{call.name}@" if branch else f"{call.name}@"
    return inner is not None and inner.startswith(start)


def _results(event: Event, calls: Sequence[types.FunctionCall], timestamp: float) -> Event:
    answers = [types.FunctionResponse(id=one.id, name=one.name, response={"error": NOT_RUN}) for one in calls]
    return Event(
        author=event.author,
        invocation_id=event.invocation_id,
        branch=event.branch,
        isolation_scope=event.isolation_scope,
        content=types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]),
        timestamp=timestamp,
    )
