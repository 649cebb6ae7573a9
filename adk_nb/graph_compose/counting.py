"""What a workflow counts of itself: what users said, what services answered; and where it ends by its limit."""

from collections.abc import Collection

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import REQUESTS
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session

MESSAGES, CYCLES = "_user_message_count", "orchestration_cycle_count"
"""State keys."""


def turns_of(session: Session) -> int:
    """How often the root agent was set to work, for a message or for an answer."""
    return len({event.invocation_id for event in history_of(session).events if event.author == "user"})


class WorkflowPlugin(BasePlugin):
    """Counts, and lets nothing begin that is over the limit."""

    def __init__(self, agents: Collection[str], max_cycles: int | None) -> None:
        """`agents`: names of those that a service or a model speaks for."""
        super().__init__("graph_compose")
        self._agents = agents
        self._max_cycles = max_cycles

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        most = self._max_cycles
        if most is None or _is_a_part(invocation_context) or turns_of(invocation_context.session) <= most:
            return None
        told = f"This workflow ended after {most} turns, its maxOrchestrationCycles."
        return types.Content(role="model", parts=[types.Part(text=told)])

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if event.partial or _is_a_part(invocation_context):
            return None
        session, counted = invocation_context.session, dict[str, int]()
        if session.events and session.events[-1].author == "user":
            said = sum(1 for one in history_of(session).events if one.author == "user")
            counted[MESSAGES] = said
        if event.author in self._agents and _is_answered(event):
            counted[CYCLES] = self._cycles(session) + 1
        if not counted:
            return None
        actions = event.actions.model_copy(update={"state_delta": event.actions.state_delta | counted})
        return event.model_copy(update={"actions": actions})

    def _cycles(self, session: Session) -> int:
        """As counted last, and not as anything else has written it."""
        for event in history_of(session).newest():
            if event.author in self._agents and _is_answered(event) and CYCLES in event.actions.state_delta:
                return event.actions.state_delta[CYCLES]
        return 0


def _is_a_part(ctx: InvocationContext) -> bool:
    """True for the run of an agent that was called as a tool."""
    return ctx.shared.root is not None


def _is_answered(event: Event) -> bool:
    """True for what a service or a model said."""
    if event.content is None or event.content.role != "model" or event.get_function_responses():
        return False
    return all(call.name not in REQUESTS for call in event.get_function_calls())
