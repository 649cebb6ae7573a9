"""Hand the conversation over: the agent that a tool has named goes on in the same invocation."""

import logging
from collections.abc import AsyncGenerator, Sequence

from adk_nb.events.event import Event
from adk_nb.flow.spec import LlmSpec
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)


def taking_over(ctx: InvocationContext, spec: LlmSpec, events: Sequence[Event]) -> AsyncGenerator[Event, None] | None:
    """What the agent says to which `events` hand over. None: they do not, or it is not there, and nothing changes."""
    for event in events:
        if name := event.actions.transfer_to_agent:
            agent = spec.in_tree(name)
            if agent is None or name == spec.name:
                logger.warning("agent %r handed over to %r, which is no other agent of its tree", spec.name, name)
                return None
            ctx.shared.transfers += 1
            return agent.run_async(ctx.after_answers())
    return None
