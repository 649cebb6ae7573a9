"""Sub-agents as tools of their parent: called for a single answer, or for a task that involves the user."""

import json
from collections.abc import Sequence
from typing import Any

from adk_nb.events.event import Event
from adk_nb.runtime.call_index import is_message_to_user
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import awaited_branches
from adk_nb.tools.agent_tool import AgentTool, CallableAgent, failure_message
from adk_nb.tools.finish_task_tool import NAME as FINISH


class SingleTurnTool(AgentTool):
    """A sub-agent with `mode="single_turn"`: called for one answer, in its parent's session.

    With `include_contents="default"` it also sees the conversation that led to the call.
    """

    separator = ""

    def __init__(self, agent: CallableAgent) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return message if self._takes_text else _as_json(message)

    def _nested_context(
        self, caller: InvocationContext, call_id: str, message: str, *, resumed: bool
    ) -> InvocationContext:
        ctx = super()._nested_context(caller, call_id, message, resumed=resumed)
        if getattr(self.agent, "include_contents", "none") == "default":
            ctx.caller, ctx.caller_event_count = caller, _call_index(caller, call_id) + 1
        return ctx


class TaskTool(AgentTool):
    """A sub-agent with `mode="task"`: it talks with the user until it calls `finish_task`.

    Its output is the result, added in the user's name. Not possible in a live conversation.
    """

    runs_task = True

    def __init__(self, agent: CallableAgent) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return json.dumps({"request": message}, ensure_ascii=False) if self._takes_text else _as_json(message)

    def _is_waiting(self, ctx: InvocationContext, events_since: Sequence[Event], since: int) -> bool:
        scope = ctx.isolation_scope
        if any(key != scope for key in awaited_branches(ctx.agent, history_of(ctx.session), ctx.branch, since=since)):
            return True
        agent_events = [event for event in events_since if event.isolation_scope == scope and event.author != "user"]
        return (
            bool(agent_events) and is_message_to_user(agent_events[-1]) and not any(map(_is_finish_event, agent_events))
        )

    def _result(self, events: Sequence[Event], tool_context: ToolContext) -> Any:
        for event in reversed(events):
            if _is_finish_event(event):
                return event.output
        live = tool_context.get_invocation_context().live_request_queue
        reason = "; in a live conversation it cannot talk with the user" if live else ""
        return {
            "error": failure_message(events) or f"agent {self.name!r} came to an end without calling {FINISH}(){reason}"
        }


def _is_finish_event(event: Event) -> bool:
    return any(
        response.name == FINISH and "error" not in (response.response or {})
        for response in event.get_function_responses()
    )


def _as_json(message: str) -> str:
    """Reformat JSON as google-adk 2.13 does for sub-agents: a blank after each comma and colon."""
    return json.dumps(json.loads(message), ensure_ascii=False)


def _call_index(ctx: InvocationContext, call_id: str) -> int:
    """Index of the event that made the call."""
    record = history_of(ctx.session).calls.newest(call_id)
    events = ctx.session.events
    if record is None:
        return len(events) - 1
    return record.event_index if events[record.event_index] is record.event else events.index(record.event)
