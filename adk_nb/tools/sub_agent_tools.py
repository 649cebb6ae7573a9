"""Sub-agents that their parent calls as tools: for one answer, or for a task that they talk over with the user."""

import json
from collections.abc import Sequence
from typing import Any

from adk_nb.events.event import Event
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import waiting
from adk_nb.runtime.open_tasks import speaks
from adk_nb.tools.agent_tool import AgentTool, Called, wrong
from adk_nb.tools.finish_task_tool import NAME as FINISH


class SingleTurnTool(AgentTool):
    """A sub-agent with `mode="single_turn"`: called for one answer, in the session of its parent.

    With `include_contents="default"` it sees, before what it was called with, the conversation that led to the call.
    """

    between = ""

    def __init__(self, agent: Called) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return message if self._takes_words else _as_json(message)

    def _within(self, caller: InvocationContext, call_id: str, message: str, *, taken_up: bool) -> InvocationContext:
        ctx = super()._within(caller, call_id, message, taken_up=taken_up)
        if getattr(self.agent, "include_contents", "none") == "default":
            ctx.caller, ctx.events_before = caller, _made_at(caller, call_id) + 1
        return ctx


class TaskTool(AgentTool):
    """A sub-agent with `mode="task"`: what the user says goes to it until it calls `finish_task`.

    What it hands back is the result, told in the user's name. In a live conversation it cannot talk with the user.
    """

    hands_back = True

    def __init__(self, agent: Called) -> None:
        super().__init__(agent, stream_events=True)

    def _message(self, args: dict[str, Any]) -> str:
        message = super()._message(args)
        return json.dumps({"request": message}, ensure_ascii=False) if self._takes_words else _as_json(message)

    def _waits(self, ctx: InvocationContext, so_far: Sequence[Event], since: int) -> bool:
        own = ctx.isolation_scope
        if any(key != own for key in waiting(ctx.agent, history_of(ctx.session), ctx.branch, since=since)):
            return True
        said = [event for event in so_far if event.isolation_scope == own and event.author != "user"]
        return bool(said) and speaks(said[-1]) and not any(map(_finish, said))

    def _result(self, said: Sequence[Event], tool_context: ToolContext) -> Any:
        for event in reversed(said):
            if _finish(event):
                return event.output
        live = tool_context.get_invocation_context().live_request_queue
        why = "; in a live conversation it cannot talk with the user" if live else ""
        return {"error": wrong(said) or f"agent {self.name!r} came to an end without calling {FINISH}(){why}"}


def _finish(event: Event) -> bool:
    return any(one.name == FINISH and "error" not in (one.response or {}) for one in event.get_function_responses())


def _as_json(message: str) -> str:
    """JSON as google-adk 2.13 writes it for sub-agents, with a blank after each comma and colon."""
    return json.dumps(json.loads(message), ensure_ascii=False)


def _made_at(ctx: InvocationContext, call_id: str) -> int:
    """Which event of the session made the call."""
    record = history_of(ctx.session).calls.newest(call_id)
    events = ctx.session.events
    if record is None:
        return len(events) - 1
    return record.at if events[record.at] is record.event else events.index(record.event)
