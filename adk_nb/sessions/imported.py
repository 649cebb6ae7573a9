"""Events from a file of unknown origin: requests to the user and their answers are removed from them."""

import operator
from collections.abc import Collection, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import no_actions
from adk_nb.events.requests import NODE_APPROVAL, REQUESTS
from adk_nb.wire import copy_model

NOT_RUN = (
    "this call has no result in the file that the session was loaded from, and was not made; call it again if it is "
    "still needed"
)


def remove_decisions(events: Sequence[Event]) -> tuple[list[Event], int]:
    """Remove requests for approvals and credentials, and the answers to them.

    A tool that needs an approval or a credential requests it again when it is next called. A call without a result is
    not made: it gets an error result, unless an open question to the user arose within it. Open questions to the user,
    and long-running calls, can still be answered.

    Returns:
        The remaining events, and the number of requests that were open.
    """
    requests = _Requests(events)
    remaining = [scrubbed for event in events if (scrubbed := requests.scrub(event)) is not None]
    return [*remaining, *_closing_events(remaining)], len(requests.calls.keys() - requests.answered)


class _Requests:
    """The approval and credential requests of a session, and the calls that waited for them."""

    def __init__(self, events: Sequence[Event]) -> None:
        calls = [call for event in events for call in event.get_function_calls()]
        self.calls = {call.id or "": call for call in calls if _is_decision(call)}
        responses = [(event, response) for event in events for response in event.get_function_responses()]
        self.answered = {response.id for event, response in responses if event.author == "user"}
        self._requested_while_running = set[str | None]()
        """Ids of calls whose tool requested something while it ran: its return value is the call's result."""
        for request in self.calls.values():
            args: Any = request.args or {}
            origin, call = args.get("askedOf"), args.get("originalFunctionCall")
            if isinstance(origin, dict) and isinstance(call, dict) and cast(Any, origin).get("ran") is True:
                self._requested_while_running.add(str(cast(Any, call).get("id")))
        self._has_result = {response.id for event, response in responses if response.id not in _placeholder_ids(event)}

    def scrub(self, event: Event) -> Event | None:
        """Remove decisions from `event`: the same object if it has none, None if nothing else remains."""
        actions, placeholders = event.actions, _placeholder_ids(event)
        parts = [part for original in event.parts if (part := self._scrub_part(original, placeholders))]
        state = actions.agent_state and self._scrub_state(actions.agent_state)
        is_unchanged = len(parts) == len(event.parts) and all(map(operator.is_, parts, event.parts))
        if is_unchanged and not placeholders and state == actions.agent_state:
            return event
        scrubbed_actions = copy_model(
            actions, requested_tool_confirmations={}, requested_auth_configs={}, agent_state=state
        )
        if not parts and scrubbed_actions == no_actions() and event.output is None and not event.error_code:
            return None
        long_running = {key for key in event.long_running_tool_ids or () if key not in self.calls}
        content = copy_model(event.content, parts=parts) if event.content and parts else None
        return copy_model(event, content=content, actions=scrubbed_actions, long_running_tool_ids=long_running or None)

    def _scrub_part(self, part: types.Part, placeholders: Collection[str | None]) -> types.Part | None:
        """Remove a decision, or replace the placeholder of a call that waited for one by an error result."""
        if (call := part.function_call or part.function_response) and _is_decision(call):
            return None
        response = part.function_response
        if not response or response.id not in placeholders or response.id in self._requested_while_running:
            return part
        if response.id in self._has_result:
            return None
        return types.Part(function_response=copy_model(response, response={"error": NOT_RUN}, will_continue=None))

    def _scrub_state(self, state: Any) -> Any:
        """Remove decisions from the checkpoint of a graph; a node that waited for decisions alone runs again."""
        if isinstance(state, list):
            return [self._scrub_state(item) for item in cast(list[Any], state)]
        if not isinstance(state, dict):
            return state
        scrubbed = {key: self._scrub_state(value) for key, value in cast(dict[str, Any], state).items()}
        # Recognized by their keys: here the run of a node, below the state of a graph. See `workflow.node_run`.
        asked, answers = scrubbed.get("asked"), scrubbed.get("answers")
        if isinstance(asked, list) and isinstance(answers, dict) and {"held", "let"} <= scrubbed.keys():
            questions = [key for key in cast(list[Any], asked) if not self._is_gate(key)]
            other_answers = {k: value for k, value in cast(dict[str, Any], answers).items() if not self._is_gate(k)}
            return scrubbed | {"asked": questions, "answers": other_answers, "held": None, "let": None}
        waiting, running, inner = (scrubbed.get(key) for key in ("waiting", "running", "inner_waiting"))
        if isinstance(waiting, list) and isinstance(running, list) and isinstance(inner, dict):
            runs = cast(list[Any], waiting)
            scrubbed["running"] = [*cast(list[Any], running), *(run for run in runs if not _asks(run))]
            scrubbed["waiting"] = [run for run in runs if _asks(run)]
            inner_runs = cast(dict[str, Any], inner)
            scrubbed["inner_waiting"] = {path: run for path, run in inner_runs.items() if _asks(run)}
        return scrubbed

    def _is_gate(self, key: Any) -> bool:
        return isinstance(key, str) and (key in self.calls or key.startswith(NODE_APPROVAL))


def _asks(run: Any) -> bool:
    return isinstance(run, dict) and bool(cast(dict[str, Any], run).get("asked"))


def _placeholder_ids(event: Event) -> Collection[str | None]:
    """Ids of the calls whose result in `event` is a placeholder."""
    return {*event.actions.requested_tool_confirmations, *event.actions.requested_auth_configs}


def _is_decision(call: types.FunctionCall | types.FunctionResponse) -> bool:
    return call.name in REQUESTS or (call.id or "").startswith(NODE_APPROVAL)


def _closing_events(events: Sequence[Event]) -> list[Event]:
    """Build an event with error results for each event with open calls."""
    answered = {response.id for event in events for response in event.get_function_responses()}
    newest = {event.isolation_scope: event for event in events if event.author != "user"}
    waiting_branches: list[str] = []
    for event in events:
        asks = any(key not in answered for key in event.long_running_tool_ids or ())
        is_last = event.isolation_scope and newest.get(event.isolation_scope) is event
        # An open question to the user, or the last message of a task's agent.
        if asks or (is_last and event.text and not event.get_function_calls()):
            waiting_branches.append(event.branch or "")
    closing_events: list[Event] = []
    for event in events:
        settled = answered.union(event.long_running_tool_ids or ())
        prefix = f"{event.branch}." if event.branch else ""
        # A run for a call is on a branch that starts so.
        parts = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"error": NOT_RUN})
            )
            for call in event.get_function_calls()
            if call.id not in settled
            and not any(branch.startswith(f"{prefix}{call.name}@") for branch in waiting_branches)
        ]
        if parts:
            closing_events.append(
                Event(
                    author=event.author,
                    invocation_id=event.invocation_id,
                    branch=event.branch,
                    isolation_scope=event.isolation_scope,
                    content=types.Content(role="user", parts=parts),
                    timestamp=events[-1].timestamp,
                )
            )
    return closing_events
