"""What an agent that runs others notices of them while their events pass by."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext


class Course:
    """One activation of one agent under another: whether it waits for someone, and whether it asked to leave a loop."""

    def __init__(self, ctx: InvocationContext) -> None:
        """`ctx`: of the agent above."""
        self._ctx = ctx
        self.escalates = False
        """An event said so."""
        self.waits = False
        """A call has yet to be answered, from outside the run."""

    async def of(self, agent: BaseAgent) -> AsyncGenerator[Event, None]:
        """The events of `agent`, as they come."""
        open_calls = set[str]()
        async with aclosing(agent.run_async(self._ctx)) as events:
            async for event in events:
                self.escalates = self.escalates or bool(event.actions.escalate)
                open_calls |= event.long_running_tool_ids or set()
                if open_calls:
                    done = (one for one in event.get_function_responses() if not one.will_continue)
                    open_calls.difference_update(one.id or "" for one in done)
                yield event
        self.waits = bool(open_calls)
