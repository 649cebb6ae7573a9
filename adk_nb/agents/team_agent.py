"""An agent's place among others: how it works under a parent, whom it hands over to, and whom it calls."""

from collections.abc import Sequence
from typing import Literal

from pydantic import PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.sub_agent_tools import SingleTurnTool, TaskTool
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool


class TeamAgent(BaseAgent):
    """An agent that can hand over to others of its tree."""

    mode: Literal["chat", "single_turn", "task"] | None = None
    """How it works under another agent. `chat`: it takes the conversation over. `single_turn`: it is called as a tool,
    and answers. `task`: it is called as a tool, talks with the user until its task is done, and hands back what that
    came to. None: `chat`; in a graph, `single_turn`."""
    parallel_worker: bool | None = None
    """In a graph: it works on each item of the list that it is given, at the same time."""
    disallow_transfer_to_parent: bool = False
    """It hands nothing over to its parent; what the user says next begins at the root again."""
    disallow_transfer_to_peers: bool = False
    """It hands nothing over to the other agents of its parent."""
    disable_transfer: bool = False
    """It hands nothing over at all: its model hears of no other agent, and a tool that hands over is not followed."""

    _over: tuple[list[BaseAgent], TransferToAgentTool | None] = PrivateAttr(default_factory=lambda: ([], None))
    """Whom it could hand over to last, and how."""
    _calls: tuple[Sequence[tuple[BaseAgent, str]], list[BaseTool]] = PrivateAttr(default_factory=lambda: ([], []))
    """Whom it could call last, and in which mode; and how."""

    @property
    def is_called(self) -> bool:
        """True: it works when it is called as a tool, and nobody hands over to it."""
        return self.mode in ("single_turn", "task")

    @property
    def transfer_targets(self) -> list[BaseAgent]:
        """The agents that it can hand the conversation over to: those under it, its parent, its parent's others."""
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
        """The agent of its tree that goes by a name, and can take over.

        What is handed over inside an agent that is called stays inside, and nobody else hands over to such an agent.
        """
        top: BaseAgent = self
        while not _is_called(top) and top.parent_agent:
            top = top.parent_agent
        agent = top.find_agent(name)
        return agent if agent and (agent is top or not _is_called(agent)) else None

    @property
    def sub_agent_tools(self) -> list[BaseTool]:
        """Those of the agents under it that are called."""
        if not self.sub_agents:
            return []
        called = [
            (agent, agent.mode or "") for agent in self.sub_agents if isinstance(agent, TeamAgent) and agent.is_called
        ]
        if called != self._calls[0]:
            self._calls = (called, [(TaskTool if mode == "task" else SingleTurnTool)(agent) for agent, mode in called])
        return self._calls[1]

    def _handing_over(self) -> TransferToAgentTool | None:
        targets = self.transfer_targets
        if not targets:
            return None
        if targets != self._over[0]:
            parent = self.parent_agent if self.parent_agent in targets else None
            self._over = (targets, TransferToAgentTool(targets, parent))
        return self._over[1]


def _is_called(agent: BaseAgent) -> bool:
    return isinstance(agent, TeamAgent) and agent.is_called
