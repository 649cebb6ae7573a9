"""An agent that walks a graph."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.events.event import Event
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.graph import Graph
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.walk import Walk


class Workflow(BaseAgent):
    """Runs nodes along edges: each gets what the one before it gave.

    `edges` are chains: `(START, draft, review)`. A tuple within one is a set of nodes that run at once, a dict leads on
    by the route that the node before it chose: `(review, {"again": draft, "ok": END})`. What the node gives after which
    nothing follows is the workflow's own output.

    Raises:
        WorkflowConfigurationError: The edges are no graph that could be run; the message says which, and what to write.
    """

    runs_others: ClassVar[bool] = True
    edges: list[Any]
    max_concurrency: int | None = Field(default=None, ge=1)
    """The most nodes that run at a time. None: as many as can."""
    max_steps: int = Field(default=1000, ge=1)
    """The most runs of nodes in one run of the workflow."""
    allow_multiple_outputs: bool = False
    """Several nodes may give an output after which nothing follows; together they are a dict, by name. False: that is an
    error."""

    _graph: Graph = PrivateAttr()
    _agents: list[BaseAgent] = PrivateAttr(default_factory=list[BaseAgent])

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._graph = Graph(self.name, self.edges, build_node)
        self._agents = [node.agent for node in self._graph.nodes.values() if isinstance(node, AgentNode)]
        for agent in self._agents:
            agent._parent = self

    @property
    def graph(self) -> Graph:
        """Its nodes, and the ways between them."""
        return self._graph

    def find_sub_agent(self, name: str, /) -> BaseAgent | None:
        for agent in self._agents:
            if found := agent.find_agent(name):
                return found
        return super().find_sub_agent(name)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        at = ctx.node
        if at and at.agent is self:
            path, output_for, node_input = at.path, at.output_for, at.input
        else:
            path = f"{at.path}/{self.name}@1" if at else f"{self.name}@1"
            output_for, node_input = [], ctx.delegated or ctx.user_content
        walk = Walk(self.name, self._graph, ctx, path, output_for, limit=self.max_concurrency)
        if not ctx.calls_answered:
            walk.begin(node_input)
        elif not walk.take_up():
            return
        async with aclosing(walk.events(self.max_steps)) as events:
            async for event in events:
                yield event
        if len(walk.outputs) > 1 and not self.allow_multiple_outputs:
            raise WorkflowConfigurationError(
                f"workflow {self.name!r}: {', '.join(walk.outputs)} gave an output after which nothing follows, and "
                "it can have one; join them with a JoinNode, or write allow_multiple_outputs=True"
            )
