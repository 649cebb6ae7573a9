"""An agent in a team: its mode under a parent, the targets of its transfers, and the sub-agents that it calls."""

from collections.abc import Sequence
from typing import Literal

from pydantic import PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.sub_agent_tools import SingleTurnTool, TaskTool
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool


class TeamAgent(BaseAgent):
    """An agent that can transfer to, or call, others of its tree."""

    mode: Literal["chat", "single_turn", "task"] | None = None
    """Its work under another agent. `chat`: it takes the conversation over. `single_turn`: it is called as a tool, and
    answers. `task`: it is called as a tool, talks with the user until its task is done, and returns the result. None:
    `chat`; in a graph, `single_turn`."""
    parallel_worker: bool | None = None
    """In a graph: it runs once for each item of its input, a list, in parallel."""
    disallow_transfer_to_parent: bool = False
    """It does not transfer to its parent; the user's next message starts at the root."""
    disallow_transfer_to_peers: bool = False
    """It does not transfer to the other agents of its parent."""
    disable_transfer: bool = False
    """It never transfers: its model gets no transfer tool, and transfers of other tools are ignored."""

    _transfer_cache: tuple[list[BaseAgent], TransferToAgentTool | None] = PrivateAttr(
        default_factory=lambda: ([], None)
    )
    """The transfer targets of the last step, and the tool for them."""
    _call_cache: tuple[Sequence[tuple[BaseAgent, str]], list[BaseTool]] = PrivateAttr(default_factory=lambda: ([], []))
    """The called sub-agents of the last step with their modes, and the tools for them."""

    @property
    def is_called(self) -> bool:
        """True: it is called as a tool; nobody transfers to it."""
        return self.mode in ("single_turn", "task")

    @property
    def transfer_targets(self) -> list[BaseAgent]:
        """The agents that it can transfer to: its sub-agents, its parent, its parent's other sub-agents."""
        if self.disable_transfer:
            return []
        parent = self.parent_agent
        targets = [agent for agent in self.sub_agents if not _is_called(agent)]
        if self.is_called or not isinstance(parent, TeamAgent):
            return targets
        if not self.disallow_transfer_to_parent:
            targets.append(parent)
        if not self.disallow_transfer_to_peers:
            targets += [agent for agent in parent.sub_agents if agent is not self and not _is_called(agent)]
        return targets

    def in_tree(self, name: str, /) -> BaseAgent | None:
        """The agent of that name in its tree, if it can take over.

        A transfer inside an agent that is called as a tool stays inside it; nobody else transfers to such an agent.
        """
        top: BaseAgent = self
        while not _is_called(top) and top.parent_agent:
            top = top.parent_agent
        agent = top.find_agent(name)
        return agent if agent and (agent is top or not _is_called(agent)) else None

    @property
    def sub_agent_tools(self) -> list[BaseTool]:
        """The tools that call sub-agents."""
        if not self.sub_agents:
            return []
        called = [
            (agent, agent.mode or "") for agent in self.sub_agents if isinstance(agent, TeamAgent) and agent.is_called
        ]
        if called != self._call_cache[0]:
            self._call_cache = (
                called,
                [(TaskTool if mode == "task" else SingleTurnTool)(agent) for agent, mode in called],
            )
        return self._call_cache[1]

    def _make_transfer_tool(self) -> TransferToAgentTool | None:
        targets = self.transfer_targets
        if not targets:
            return None
        # Compared at each step: agents may be added to a tree at any time.
        if targets != self._transfer_cache[0]:
            parent = self.parent_agent if self.parent_agent in targets else None
            self._transfer_cache = (targets, TransferToAgentTool(targets, parent))
        return self._transfer_cache[1]


def _is_called(agent: BaseAgent) -> bool:
    return isinstance(agent, TeamAgent) and agent.is_called
