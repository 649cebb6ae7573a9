"""An agent that walks a graph."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr, ValidationError
from pydantic_core import to_jsonable_python

from adk_nb import parts, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import ConfigurationError, WorkflowConfigurationError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.requests import INPUT_REQUEST
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import INPUTS, answer
from adk_nb.runtime.invocation_context import CurrentNode, InvocationContext
from adk_nb.tools.shape import Shape, error_text
from adk_nb.wire import replace_fields
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.graph import START, Graph
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.parallel_worker import ParallelWorker
from adk_nb.workflow.walk import Walk


class Workflow(BaseAgent):
    """RunnableAgent nodes along edges: each gets what the one before it gave.

    `edges` are chains: `(START, draft, review)`. A tuple within one is a set of nodes that run at once, a dict leads on
    by the route that the node before it chose: `(review, {"again": draft, "ok": END})`. What the node gives after which
    nothing follows is the workflow's own output.

    Raises:
        WorkflowConfigurationError: The edges are no graph that could be run; the message says which, and what to write.
    """

    runs_others: ClassVar[bool] = True
    is_tool: ClassVar[bool] = True
    edges: list[Any]
    input_schema: Any = None
    """What a message to it must be, as JSON; its first nodes get the value. None: anything; they get the message."""
    max_concurrency: int | None = Field(default=None, ge=1)
    """The most nodes that run at a time. None: as many as can."""
    max_steps: int = Field(default=1000, ge=1)
    """The most runs of nodes in one run of the workflow."""
    allow_multiple_outputs: bool = False
    """Several nodes may give an output after which nothing follows; the workflow's is a dict of them, by name. False:
    that is an error."""
    text_answers_input: bool = False
    """While one question waits, and a text can answer it, the user's next words do. False: they begin a new run."""

    _graph: Graph = PrivateAttr()
    _agents: dict[str, BaseAgent] = PrivateAttr(default_factory=dict[str, BaseAgent])

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._graph = Graph(self.name, self.edges, build_node)
        self._agents = {}
        for node in self._graph.nodes.values():
            self.adopt(node)
            self._check_chat(node)
        if self.input_schema is not None:
            Shape(self.input_schema)

    @classmethod
    def of(cls, node_like: Any) -> "Workflow":
        """The graph that is one node, under its name."""
        node = build_node(node_like)
        return cls(name=node.name, edges=[(START, node)])

    @property
    def graph(self) -> Graph:
        """Its nodes, and the ways between them."""
        return self._graph

    @property
    def input_shape(self) -> Shape | None:
        """What a message to it is read with, where it has an `input_schema`."""
        return None if self.input_schema is None else Shape(self.input_schema)

    def adopt(self, node: BaseNode, /) -> None:
        """Take the agents in `node` under it: they have its model if they name none, and an answer finds them."""
        for agent in _agents_in(node):
            agent._parent = self
            self._agents[agent.name] = agent

    @property
    def members(self) -> Sequence[BaseAgent]:
        return [*self._agents.values(), *self.sub_agents]

    def find_sub_agent(self, name: str, /) -> BaseAgent | None:
        for agent in self._agents.values():
            if found := agent.find_agent(name):
                return found
        return super().find_sub_agent(name)

    def input_mismatch(self, message: types.Content, /) -> str | None:
        if self.input_schema is None or any(part.function_response for part in message.parts or ()):
            return None
        try:
            self._read(message)
            return None
        except (ValidationError, ConfigurationError) as error:
            return error_text(error)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        at = self._place(ctx)
        ctx = replace_fields(ctx, node=at)
        if self.text_answers_input and (told := self._as_answer(ctx)):
            yield Event(author="user", content=told)
            ctx = replace_fields(ctx, user_content=told)
        walk = Walk(self, self.name, self._graph, ctx, at.path, at.output_for, limit=self.max_concurrency)
        if not walk.begin(self, at.input):
            return
        for event in self._told_again(ctx, walk):
            yield event
        async with aclosing(walk.events(self.max_steps)) as events:
            async for event in events:
                yield event
        if len(walk.outputs) > 1:
            self._check_outputs(ctx, list(walk.outputs))
            if not walk.waits:
                yield self._output(ctx, to_jsonable_python(walk.outputs))

    def _told_again(self, ctx: InvocationContext, walk: Walk) -> list[Event]:
        """Its output, where that was told before it was left, and it was left before its end."""
        return (
            [self._output(ctx, one) for one in walk.outputs.values()] if walk.is_over and len(walk.outputs) == 1 else []
        )

    def _output(self, ctx: InvocationContext, value: Any) -> Event:
        at = self._place(ctx)
        info = NodeInfo(path=at.path, output_for=[at.path, *at.output_for])
        return Event(author=self.name, branch=ctx.branch, output=value, node_info=info)

    def _check_outputs(self, ctx: InvocationContext, names: list[str]) -> None:
        if self.allow_multiple_outputs:
            return
        error = WorkflowConfigurationError(
            f"workflow {self.name!r}: {', '.join(names)} gave an output after which nothing follows, and it can have "
            "one; join them with a JoinNode, or write allow_multiple_outputs=True"
        )
        ctx.note_failure(error)
        raise error

    def _place(self, ctx: InvocationContext) -> CurrentNode:
        """Where in other graphs it stands, if in any, and what it gets."""
        at = ctx.node
        if at and at.agent is self:
            return at
        path = f"{at.path}/{self.name}@1" if at else f"{self.name}@1"
        return CurrentNode(
            path=path, agent=self, input=self._read(ctx.delegated_input or ctx.user_content), output_for=[]
        )

    def _read(self, message: types.Content | None) -> Any:
        """What the first nodes get."""
        shape = self.input_shape
        if not shape or not message:
            return message
        return shape.read("".join(part.text for part in message.parts or () if part.text and not part.thought))

    def _as_answer(self, ctx: InvocationContext) -> types.Content | None:
        """The user's words as the answer to the one question that waits. None: they are not."""
        text = "".join(part.text or "" for part in (ctx.user_content and ctx.user_content.parts) or ())
        if not text or ctx.calls_answered:
            return None
        asked = history_of(ctx.session).interrupts(kinds=INPUTS, under=ctx.branch)
        if len(asked) != 1 or asked[0].call.name != INPUT_REQUEST or not self.find_agent(asked[0].agent):
            return None
        if asked[0].response_schema.get("type", "string") != "string":
            return None
        return parts.content("user", [answer(asked[0], text)])

    def _check_chat(self, node: BaseNode) -> None:
        if isinstance(node, AgentNode) and node.chats and self._graph.before[node.name] != [START]:
            raise WorkflowConfigurationError(
                f"workflow {self.name!r}: the agent {node.name!r} has mode='chat', so it converses with the user and "
                "takes no input: it can only stand right after START; write mode='single_turn' or mode='task'"
            )


def _agents_in(node: BaseNode) -> Iterator[BaseAgent]:
    if isinstance(node, AgentNode):
        yield node.agent
    elif isinstance(node, ParallelWorker):
        yield from _agents_in(node.worker)
