"""One run of one node: its attempts, what it yields as events, and what came of it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from tenacity import RetryCallState, wait_exponential_jitter

from adk_nb import types
from adk_nb.errors import NodeTimeoutError, WorkflowDataError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.request_input import RequestInput
from adk_nb.runtime.invocation_context import INPUT_REQUEST, AtNode, InvocationContext
from adk_nb.runtime.sealing import failure
from adk_nb.tools.shape import Shape, in_words
from adk_nb.workflow.agent_node import AgentNode, said
from adk_nb.workflow.base_node import BaseNode, RetryConfig
from adk_nb.workflow.function_node import fitted
from adk_nb.workflow.node_context import NodeContext, RunsNode

Taken = list[bool | int | str]


class Paused(BaseException):
    """What a node runs waits for an answer, and so does the node; no error, so that no `except Exception` takes it."""

    def __init__(self, asked: list[str]) -> None:
        """`asked`: ids of the calls that wait."""
        self.asked = asked
        super().__init__(asked)


@dataclass(kw_only=True)
class NodeRun:
    """The run `node@number`, under way or waiting; afterwards `output` and `route` are there."""

    node: BaseNode
    number: int
    run_id: str | None = None
    """In the place of the number."""
    author: str
    """The workflow."""
    outer: str
    """Path of the workflow's own run."""
    input: Any
    branch: str | None
    output_for: list[str] = field(default_factory=list[str])
    """Paths of the workflows whose output this run's is, too."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Interrupt id -> what was answered."""
    asked: list[str] = field(default_factory=list[str])
    """Ids of the calls that wait for an answer."""
    output: Any = None
    has_output: bool = False
    route: Any = None
    others: dict[str, int] = field(default_factory=dict[str, int])
    """How often it has run each node itself, by name."""

    @property
    def key(self) -> str:
        return f"{self.node.name}@{self.run_id or self.number}"

    @property
    def path(self) -> str:
        return f"{self.outer}/{self.key}"

    @property
    def waits(self) -> bool:
        return bool(self.asked)

    @property
    def runs_again(self) -> bool:
        """True: after an answer it is run again. False: the answer is its output."""
        return self.node.rerun_on_resume or isinstance(self.node, AgentNode) or bool(self.others)

    @property
    def taken(self) -> Taken:
        """The routes that it chose."""
        if self.route is None:
            return []
        return cast(Taken, self.route) if isinstance(self.route, list) else [self.route]

    async def events(self, ctx: InvocationContext, run_node: RunsNode) -> AsyncGenerator[Event, None]:
        """Run it until it has ended, or waits.

        Raises:
            Exception: What its last attempt raised.
        """
        agent = self.node.agent if isinstance(self.node, AgentNode) else None
        here = AtNode(path=self.path, agent=agent, input=self.input, output_for=self.output_for)
        own = replace(ctx, branch=self.branch, node=here)
        retry, attempt = self.node.retry_config, 0
        while True:
            attempt += 1
            self.others = {}
            context = NodeContext(own, path=self.path, attempt=attempt, answers=self.answers, run_node=run_node)
            try:
                async with aclosing(self._attempt(context)) as events:
                    async for event in events:
                        yield event
                return
            except Exception as error:
                if not retry or attempt >= retry.max_attempts or not retry.passes(error):
                    own.note_failure(error)
                    raise
                failed = failure(own, error)
            except Paused as paused:
                self.asked += paused.asked
                return
            yield failed
            await asyncio.sleep(_delay(retry, attempt))

    async def _attempt(self, context: NodeContext) -> AsyncGenerator[Event, None]:
        node_input = self._fitted("input", self.node.input_schema, self.input)
        work = self.node._run_impl(ctx=context, node_input=node_input)  # pyright: ignore[reportPrivateUsage]
        limit = asyncio.timeout(self.node.timeout)
        try:
            async with limit, aclosing(work) as values:
                async for value in values:
                    for event in self._told(value, context):
                        yield event
                    if isinstance(value, RequestInput) and not self.node.rerun_on_resume:
                        break
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise NodeTimeoutError(
                f"node {self.node.name!r} took longer than {self.node.timeout:g} seconds, its timeout"
            ) from error
        if context.actions.state_delta or (context.actions.route is not None and not self.has_output):
            self.route = context.actions.route if self.route is None else self.route
            yield self._event(actions=context.actions)

    def _told(self, value: Any, context: NodeContext) -> list[Event]:
        """The events that a yielded value becomes."""
        if value is None:
            return []
        if isinstance(value, RequestInput):
            return [self._asking(value)]
        if isinstance(value, Event):
            return [self._own(value)]
        if isinstance(value, types.Content):
            return [self._event(content=value, actions=self._acted(context))]
        self._note(value)
        return [self._event(output=to_jsonable_python(self.output), actions=self._acted(context), output_for=True)]

    def _note(self, value: Any) -> None:
        if self.has_output:
            raise WorkflowDataError(f"node {self.node.name!r} gave a second output; yield Event(message=...) for news")
        self.output, self.has_output = self._fitted("output", self.node.output_schema, value), True

    def _fitted(self, what: str, schema: Any, value: Any) -> Any:
        if schema is None or value is None:
            return value
        try:
            return fitted(TypeAdapter(schema), value)
        except ValidationError as error:
            raise WorkflowDataError(f"node {self.node.name!r}: its {what} does not fit: {in_words(error)}") from error

    def _acted(self, context: NodeContext) -> Any:
        """What the context was told to do since the last event goes out with the next one."""
        actions = context.actions
        if self.route is None:
            self.route = actions.route
        context.act_anew()
        return actions

    def _own(self, event: Event) -> Event:
        """An event of the node's, or of an agent in it, which says where it comes from."""
        if not event.author:
            event.author = self.author
        if self.branch and not event.branch:
            event.branch = self.branch
        if event.actions.route is not None and not event.node_info.path:
            self.route = event.actions.route
        if event.long_running_tool_ids:
            self.asked += [call.id or "" for call in event.get_function_calls() if call.id in event.long_running_tool_ids]
        if event.node_info.path and self.path not in (event.node_info.output_for or ()):
            return event
        runs_agent = isinstance(self.node, AgentNode)
        value = said(event) if runs_agent else event.output
        info: dict[str, Any] = {"path": self.path}
        if value is not None:
            self.has_output = self.has_output and not runs_agent  # of an agent, what was said last counts
            self._note(value)
            info["output_for"] = [self.path, *self.output_for]
            info["message_as_output"] = True if event.output is None else None
        if not event.node_info.path:
            event.node_info = NodeInfo(**info)
        return event

    def _event(self, *, output_for: bool = False, **fields: Any) -> Event:
        info = NodeInfo(path=self.path, output_for=[self.path, *self.output_for] if output_for else None)
        return Event(author=self.author, branch=self.branch, node_info=info, **fields)

    def _asking(self, asked: RequestInput) -> Event:
        self.asked.append(asked.interrupt_id)
        schema = asked.response_schema
        args = {
            "interruptId": asked.interrupt_id,
            "payload": to_jsonable_python(asked.payload),
            "message": asked.message,
            "response_schema": None if schema is None else Shape(schema).schema,
        }
        call = types.FunctionCall(id=asked.interrupt_id, name=INPUT_REQUEST, args=args)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        return self._event(content=content, long_running_tool_ids={asked.interrupt_id})

    def take(self, given: Mapping[str, Any]) -> list[str]:
        """Take the answers that are for it; which of its questions they answer."""
        mine = [one for one in self.asked if one in given]
        self.answers |= {one: given[one] for one in mine}
        self.asked = [one for one in self.asked if one not in given]
        return mine

    def as_json(self) -> Mapping[str, Any]:
        """What a waiting run is kept as."""
        return {
            "node": self.node.name,
            "number": self.number,
            "input": to_jsonable_python(self.input, fallback=str),
            "branch": self.branch,
            "answers": self.answers,
            "asked": self.asked,
            "others": self.others,
        }


def _delay(retry: RetryConfig, attempt: int) -> float:
    wait = wait_exponential_jitter(
        initial=retry.initial_delay, max=retry.max_delay, exp_base=retry.backoff_factor, jitter=retry.jitter
    )
    state = RetryCallState(retry_object=cast(Any, None), fn=None, args=(), kwargs={})
    state.attempt_number = attempt
    return wait(state)
