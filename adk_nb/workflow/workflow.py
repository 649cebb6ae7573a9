"""An agent that runs the nodes of a graph."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr
from pydantic_core import to_jsonable_python

from adk_nb import parts, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.requests import INPUT_REQUEST
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import INPUTS, answer
from adk_nb.runtime.invocation_context import CurrentNode, InvocationContext
from adk_nb.tools.shape import Shape
from adk_nb.wire import replace_fields
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.graph import START, Graph
from adk_nb.workflow.node_context import ParallelWorker
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.values import fitting
from adk_nb.workflow.walk import Walk


class Workflow(BaseAgent):
    """Runs nodes along edges: each gets the output of the node before it.

    `edges` are chains: `(START, draft, review)`. A tuple within a chain is a set of nodes that run in parallel, a dict
    leads on by the route that the node before it chose: `(review, {"again": draft, "ok": END})`. The output of the node
    that nothing follows is the workflow's output.

    Raises:
        WorkflowConfigurationError: The edges are not a graph that can run; the message names the edge, and the remedy.
    """

    team_kind: ClassVar[str] = "workflow"
    runs_others: ClassVar[bool] = True
    is_tool: ClassVar[bool] = True
    edges: list[Any]
    input_schema: Any = None
    """Schema of a message to it, which is JSON; the first nodes get the value. None: any text; they get the message."""
    output_schema: Any = None
    """Type to which pydantic converts its output, which must fit. None: any output. A JSON Schema only documents it."""
    max_concurrency: int | None = Field(default=None, ge=1)
    """Maximum number of nodes that run at a time. None: no limit."""
    max_steps: int = Field(default=1000, ge=1)
    """How often nodes may run again in one run of the workflow, all together. The first run of a node and the items of
    a list, which end by themselves, do not count."""
    allow_multiple_outputs: bool = False
    """Several nodes that nothing follows may have an output; the workflow's output is a dict of them, by name. False:
    that is an error."""
    text_answers_input: bool = False
    """The user's next text answers the open question, if there is only one. False: it begins a new run."""

    _graph: Graph = PrivateAttr()
    _agents: dict[str, BaseAgent] = PrivateAttr(default_factory=dict[str, BaseAgent])

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._graph = Graph(self.name, self.edges, build_node)
        self._agents = {}
        for node in self._graph.nodes.values():
            self.adopt(node)
            if isinstance(node, AgentNode) and node.chats and self._graph.predecessors[node.name] != [START]:
                raise WorkflowConfigurationError(
                    f"workflow {self.name!r}: the agent {node.name!r} has mode='chat': it talks with the user and "
                    "takes no input, so it must follow START directly; write mode='single_turn' or mode='task'"
                )
        if self.input_schema is not None:
            Shape(self.input_schema)

    @classmethod
    def of(cls, node_like: Any) -> "Workflow":
        """A workflow of one node, with its name."""
        node = build_node(node_like)
        return cls(name=node.name, edges=[(START, node)])

    @property
    def graph(self) -> Graph:
        """Its nodes and edges."""
        return self._graph

    @property
    def input_shape(self) -> Shape | None:
        return None if self.input_schema is None else Shape(self.input_schema)

    def adopt(self, node: BaseNode, /) -> None:
        """Become the parent of the agents in `node`: they inherit its model, and answers find them."""
        for agent in _agents_in(node):
            agent._parent = self
            self._agents[agent.name] = agent

    @property
    def members(self) -> Sequence[BaseAgent]:
        return [*self._agents.values(), *self.sub_agents]

    def find_sub_agent(self, name: str, /) -> BaseAgent | None:
        for agent in self._agents.values():
            if match := agent.find_agent(name):
                return match
        return super().find_sub_agent(name)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        node = self._current_node(ctx)
        ctx = replace_fields(ctx, node=node)
        if self.text_answers_input and (answer_content := self._as_answer(ctx)):
            yield Event(author="user", content=answer_content)
            ctx = replace_fields(ctx, user_content=answer_content)
        walk = Walk(self, ctx, node)
        if not walk.begin():
            return
        # If all nodes had ended before the interruption, only the output is missing.
        if walk.is_over and len(walk.outputs) == 1:
            yield self._output(ctx, *walk.outputs.values())
        async with aclosing(walk.events()) as events:
            async for event in events:
                yield event
        if len(walk.outputs) > 1:
            if not self.allow_multiple_outputs:
                error = WorkflowConfigurationError(
                    f"workflow {self.name!r}: the nodes {', '.join(walk.outputs)} each ended it with an output, and it "
                    "can have only one; join them with a JoinNode, or write allow_multiple_outputs=True"
                )
                ctx.note_failure(error)
                raise error
            if not walk.waits:
                yield self._output(ctx, to_jsonable_python(walk.outputs))

    def _output(self, ctx: InvocationContext, value: Any) -> Event:
        node = self._current_node(ctx)
        value = to_jsonable_python(fitting(self.output_schema, value, f"workflow {self.name!r}: its output"))
        info = NodeInfo(path=node.path, output_for=[node.path, *node.output_for])
        return Event(author=self.name, branch=ctx.branch, output=value, node_info=info)

    def _current_node(self, ctx: InvocationContext) -> CurrentNode:
        """Itself as a node: its path, in other graphs if it is in one, and its input."""
        node = ctx.node
        if node and node.agent is self:
            return node
        path = f"{node.path}/{self.name}@1" if node else f"{self.name}@1"
        first_input: Any = ctx.delegated_input or ctx.user_content
        if first_input and (shape := self.input_shape):
            first_input = shape.read(parts.text_of(first_input.parts or ()))
        return CurrentNode(path=path, agent=self, input=first_input, output_for=[])

    def _as_answer(self, ctx: InvocationContext) -> types.Content | None:
        """The user's text as the answer to the only open question. None: it is not an answer."""
        text = "".join(part.text or "" for part in (ctx.user_content and ctx.user_content.parts) or ())
        if not text or ctx.calls_answered:
            return None
        interrupts = history_of(ctx.session).interrupts(kinds=INPUTS, under=ctx.branch)
        if len(interrupts) != 1:
            return None
        question = interrupts[0]
        if question.call.name != INPUT_REQUEST or not self.find_agent(question.agent):
            return None
        if question.response_schema.get("type", "string") != "string":
            return None
        return parts.content("user", [answer(question, text)])


def _agents_in(node: BaseNode) -> Iterator[BaseAgent]:
    if isinstance(node, AgentNode):
        yield node.agent
    elif isinstance(node, ParallelWorker):
        yield from _agents_in(node.worker)
