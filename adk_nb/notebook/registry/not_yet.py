"""What stands in a team or a workflow for a name that no cell has defined yet."""

from collections.abc import AsyncGenerator, Sequence
from typing import ClassVar

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import AgentNotFoundError, closest
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext


class NotYet(BaseAgent):
    """Holds the place of an agent, or of a function, until its cell is run."""

    drawn_as: ClassVar[str] = "not defined yet"

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise missing(self.name, ctx.agent.name, (), in_a_graph=False)
        yield


def missing(name: str, team: str, known: Sequence[str], *, in_a_graph: bool) -> AgentNotFoundError:
    """The error for a member that is not there when its team is to run. `known`: the agents."""
    if in_a_graph:
        return AgentNotFoundError(
            "agent, tool or function", name, hint=f"{team} needs it: run the cell that defines {name}"
        )
    return AgentNotFoundError("agent", name, known, hint=f"{team} needs it: run the cell that begins %%agent {name}")


def typo_of(name: str, known: Sequence[str]) -> str | None:
    """The known name of which `name` is most likely a slip: about as long, almost the same, the same digits."""
    near = closest(name, known, cutoff=0.8)
    same = near and abs(len(near) - len(name)) < 2 and _digits(near) == _digits(name)
    return near if same else None


def _digits(name: str) -> list[str]:
    return [one for one in name if one.isdigit()]
