"""One run of one node: its input, interrupts and output, its attempts, and what it yields as events."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Self, cast

from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.auth.auth_credential import redact
from adk_nb.errors import NodeTimeoutError, WorkflowDataError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions
from adk_nb.events.graph_checkpoint import awaited_keys
from adk_nb.events.request_input import RequestInput
from adk_nb.events.requests import CREDENTIAL_REQUEST, INPUT_REQUEST
from adk_nb.runtime.context import call_state, has_unstored, settle_state, start_next_event
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import CurrentNode, InvocationContext
from adk_nb.runtime.open_calls import failure_events, open_tasks
from adk_nb.sessions.state import check_schema
from adk_nb.tools.shape import Shape, error_text
from adk_nb.wire import replace_fields
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.gates import Refused, approval_id, approval_subject, gate_result
from adk_nb.workflow.node_context import NodeContext, RunNode
from adk_nb.workflow.values import fitting, from_stored, to_stored

logger = logging.getLogger(__name__)

Routes = list[bool | int | str]


class Paused(BaseException):
    """A run inside a node waits for an answer, and so does the node. Not an `Exception`: nodes must not catch it."""


@dataclass(kw_only=True)
class NodeRun:
    """The run `node@number`, with its retries, timeout and gate; `output` and `route` are set when it ended."""

    node: BaseNode
    number: int
    run_id: str | None = None
    """An id in place of the number."""
    author: str
    """Name of the workflow."""
    outer: str
    """Path of the run of the workflow, or of the node that runs this node."""
    caller: Self | None = None
    """The run whose node runs this node. None: the workflow runs it."""
    as_output: bool = False
    """Its output is the caller's."""
    isolation_scope: str | None = None
    """Isolation scope of its events. None: each agent has its own."""
    input: Any
    branch: str | None
    output_for: list[str] = field(default_factory=list[str])
    """Paths of the workflows and callers whose output is this run's output, too."""
    outer_schema: Any = None
    """Output schema of the workflow whose output is this run's."""
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """Interrupt id -> the answer."""
    interrupt_ids: list[str] = field(default_factory=list[str])
    """Ids of its open interrupts."""
    unanswered: list[str] = field(default_factory=list[str])
    """Interrupts that were still open when an answer made it run again."""
    open_request: dict[str, Any] | None = None
    """The subject of its open approval request. None: no request is open."""
    allowed_request: dict[str, Any] | None = None
    """The subject of the approval that it got."""
    attempts_in_doubt: int = 0
    """Interrupted attempts that may have taken effect, for the approver to know."""
    output: Any = None
    has_output: bool = False
    route: Any = None
    inner_counts: dict[str, int] = field(default_factory=dict[str, int])
    """Node name -> the number of times that this node ran it."""
    reported_errors: list[Exception] = field(default_factory=list[Exception])
    """Errors of inner nodes that events have reported."""
    output_source: str | None = None
    """Path of the inner run whose output is also its own."""
    calls_others: bool = False
    """Its agent called other agents, which work on branches of their own."""
    key: str = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.key = f"{self.node.name}@{self.run_id or self.number}"
        self.path = f"{self.outer}/{self.key}"
        if self.as_output and self.caller:
            self.output_for = [self.caller.path, *self.caller.output_for]

    @property
    def waits(self) -> bool:
        return bool(self.interrupt_ids)

    @property
    def repeats(self) -> bool:
        """True: its node ran before, and not for another item of the same list, whose `run_id` is a number."""
        return self.number > 1 and not (self.run_id or "").isdigit()

    @property
    def reruns_node(self) -> bool:
        """True: after an answer the node runs again. False: the answer is its output."""
        again = self.node.rerun_on_resume or isinstance(self.node, AgentNode)
        return again or self.open_request is not None or bool(self.inner_counts)

    @property
    def routes(self) -> Routes:
        """The chosen routes."""
        route: Any = self.route
        if route is None:
            return []
        return cast(Routes, route) if isinstance(route, list) else [route]

    @property
    def ends_with_output(self) -> bool:
        """True: no event follows its output. False: an agent in it may run other agents after it."""
        return not isinstance(self.node, AgentNode) or isinstance(self.node.agent, LlmAgent)

    def recall(self, ctx: InvocationContext) -> bool:
        """Restore its output and route from the events of the session. False: no event has an output."""
        # All events, as the last output counts.
        for event in history_of(ctx.session).run(ctx.invocation_id):
            info = event.node_info
            if not info.path.startswith(self.path):
                continue
            if event.actions.route is not None and info.path == self.path:
                self.route = event.actions.route
            if self.path in (info.output_for or ()):
                self.output = event.text if event.output is None else event.output
                self.has_output = True
        return self.has_output

    def take(self, answers: Mapping[str, Any]) -> list[str]:
        """Take the answers to its interrupts; return the answered ids."""
        answered = [key for key in self.interrupt_ids if key in answers]
        self.answers |= {key: answers[key] for key in answered}
        self.interrupt_ids = [key for key in self.interrupt_ids if key not in answers]
        return answered

    def as_json(self) -> dict[str, Any]:
        """A waiting run as it is stored."""
        return {
            "node": self.node.name,
            "number": self.number,
            "input": to_stored(self.input),
            "branch": self.branch,
            "answers": dict(self.answers),
            "asked": list(self.interrupt_ids),
            # These keys are stored, so they keep their names.
            "held": self.open_request,
            "let": self.allowed_request,
            "others": dict(self.inner_counts),
        }

    @classmethod
    def of(cls, checkpoint: Mapping[str, Any], node: BaseNode, author: str, outer: str) -> Self:
        """Restore a waiting run from its stored form."""
        number, branch = checkpoint["number"], checkpoint["branch"]
        run = cls(node=node, number=number, author=author, outer=outer, input=None, branch=branch)
        run.restore(checkpoint)
        return run

    def restore(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore input, interrupts and counts from the stored form of the same run."""
        self.input, self.answers = from_stored(checkpoint["input"]), dict(checkpoint["answers"])
        self.interrupt_ids, self.inner_counts = list(checkpoint["asked"]), dict(checkpoint["others"])
        self.open_request, self.allowed_request = checkpoint["held"], checkpoint["let"]

    # -- the work

    async def events(self, ctx: InvocationContext, run_node: RunNode) -> AsyncGenerator[Event, None]:
        """Run the node until it has ended, or waits.

        Raises:
            Exception: The last attempt raised it.
        """
        own, attempt = self._context(ctx), 0
        while True:
            attempt += 1
            # Each attempt counts its inner runs from 1, and so finds the outputs of ended runs.
            self.inner_counts, self.output_source = {}, None
            if attempt > 1:
                self.output, self.has_output = None, False
            context = NodeContext(
                own,
                path=self.path,
                attempt=attempt,
                answers=self.answers,
                run_node=run_node,
                node=self.node,
                interrupt_ids=lambda: self.interrupt_ids,
            )
            try:
                events = self._attempt(context)
                try:  # as `aclosing`, at a quarter of its cost: every node passes here
                    async for event in events:
                        yield event
                finally:
                    await events.aclose()
                self._wait_for_the_user(own)
                return
            except Exception as error:
                retry = self.node.retry_config
                wait = retry.delay_after(error, attempt) if retry else None
                reported = own.shared.reported_error is error or any(value is error for value in self.reported_errors)
                # The last attempt: the error ends the run, or goes to the node that runs this one.
                if wait is None:
                    own.note_failure(error)
                    if self.caller:
                        self.caller.reported_errors.append(error)
                    elif reported:
                        own.shared.reported_error = error
                for event in failure_events(own, error) if not reported and (self.caller or wait is not None) else ():
                    yield event
                if wait is None:
                    raise
            # An inner run waits: this node waits, too, and runs again from its first line.
            except BaseExceptionGroup as raised:
                if raised.split(Paused)[1] is not None:
                    raise
                return
            except Paused:
                return
            await asyncio.sleep(wait)

    def _wait_for_the_user(self, own: InvocationContext) -> None:
        """Wait if its agent, or one that it gave a task, talks with the user, or an earlier request is open."""
        if not isinstance(self.node, AgentNode):
            return
        if self.unanswered:
            open_ids = {interrupt.id for interrupt in history_of(own.session).interrupts()}
            self.interrupt_ids = [
                key for key in self.unanswered if key in open_ids and key not in self.interrupt_ids
            ] + self.interrupt_ids
        if self.interrupt_ids:
            return
        if self.node.has_task and not self.has_output:
            self.interrupt_ids = [self.path]
        elif self.calls_others:
            self.interrupt_ids = list(open_tasks(self.node.agent, history_of(own.session), own.branch, has_spoken=True))

    def _context(self, ctx: InvocationContext) -> InvocationContext:
        node = CurrentNode(
            path=self.path,
            agent=self.node.agent if isinstance(self.node, AgentNode) else None,
            input=self.input,
            output_for=self.output_for,
            isolation_scope=self.isolation_scope,
        )
        schema = self.node.state_schema or ctx.state_schema
        own = replace_fields(ctx, branch=self.branch, node=node, state_schema=schema)
        if self.isolation_scope:
            own.isolation_scope = self.isolation_scope
        return own

    async def _attempt(self, context: NodeContext) -> AsyncGenerator[Event, None]:
        node_input = fitting(self.node.input_schema, self.input, f"node {self.node.name!r}: its input")
        if self.node.has_gate:
            is_new = self.open_request not in (None, self.allowed_request)
            subject = self.open_request or self.allowed_request
            self.attempts_in_doubt = await self.node.attempts_in_doubt(context)
            result = await gate_result(
                self.node, context, node_input, subject, is_new=is_new, attempts_in_doubt=self.attempts_in_doubt
            )
            self.open_request, self.allowed_request = None, None if isinstance(result, RequestInput) else subject
            if isinstance(result, Refused):
                self.output, self.has_output = dict(result), True
                yield self._event(output=self.output, output_for=True)
                return
            if result is not None:
                for value in result if isinstance(result, list) else [result]:
                    for event in self._events_of(value, context):
                        yield event
                return
        work = self.node._run_impl(ctx=context, node_input=node_input)  # pyright: ignore[reportPrivateUsage]
        values = self._timed(work) if self.node.timeout else work
        try:
            async for value in values:
                for event in self._events_of(value, context):
                    yield event
                # The answer will be its output: nothing after the question runs.
                if isinstance(value, RequestInput) and not self.node.rerun_on_resume:
                    break
        finally:
            await values.aclose()
        if has_unstored(context):
            yield self._event(actions=self._take_actions(context))

    async def _timed(self, work: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        loop, seconds = asyncio.get_running_loop(), self.node.timeout or 0
        ends = loop.time() + seconds
        timeout = NodeTimeoutError(f"node {self.node.name!r} took longer than {seconds:g} seconds, its timeout")
        async with aclosing(work) as values:
            while True:
                # A new one for each value: it must not fire while the reader has the event.
                limit = asyncio.timeout_at(ends)
                try:
                    async with limit:
                        value = await anext(values)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    if not limit.expired():
                        raise
                    raise timeout from error
                if loop.time() >= ends:
                    raise timeout
                yield value

    def _await_approval(self, context: NodeContext) -> None:
        """Wait for an approval of its arguments; after an earlier approval, of the arguments approved then."""
        node_input = fitting(self.node.input_schema, self.input, f"node {self.node.name!r}: its input")
        self.open_request = (
            self.open_request
            or self.allowed_request
            or approval_subject(self.node, context, node_input, self.attempts_in_doubt)
        )

    def _events_of(self, value: Any, context: NodeContext) -> list[Event]:
        """The events that a yielded value becomes."""
        if value is None:
            return []
        if isinstance(value, RequestInput):
            self.interrupt_ids.append(value.interrupt_id)
            if value.interrupt_id == approval_id(self.path):
                self._await_approval(context)
            schema = value.response_schema
            args = {
                "interruptId": value.interrupt_id,
                "payload": to_jsonable_python(value.payload),
                "message": value.message,
                "response_schema": None if schema is None else Shape(schema).json_schema,
            }
            call = types.FunctionCall(id=value.interrupt_id, name=INPUT_REQUEST, args=args)
            content = types.Content(role="model", parts=[types.Part(function_call=call)])
            actions = self._take_actions(context)
            return [self._event(content=content, actions=actions, long_running_tool_ids={value.interrupt_id})]
        if isinstance(value, Event):
            return [self._completed(value, context)]
        if isinstance(value, types.Content):
            return [self._event(content=value, actions=self._take_actions(context))]
        if self.output_source:
            if not self.has_output or value != self.output:
                logger.warning(
                    "node %r yielded an output beside that of %s, which counts", self.node.name, self.output_source
                )
            return []
        if context.auth_credential:
            value = redact(to_jsonable_python(value, fallback=str), context.auth_credential.secrets())
        if self.interrupt_ids:
            logger.warning(
                "node %r yielded an output while its question %r is open; it counts only once that is answered",
                self.node.name,
                self.interrupt_ids[0],
            )
        self.set_output(value)
        metadata = {"repeated": attempt} if (attempt := call_state(context).attempt_in_doubt) else None
        fields = {
            "output": self._as_json(self.output),
            "actions": self._take_actions(context),
            "custom_metadata": metadata,
        }
        return [self._event(**fields, output_for=True)]

    def _as_json(self, value: Any) -> Any:
        try:
            return to_jsonable_python(value)
        except ValueError as error:
            raise WorkflowDataError(
                f"node {self.node.name!r}: its output cannot be stored as JSON ({error_text(error)}); "
                "yield plain values, or a pydantic model"
            ) from error

    @property
    def _output_branch(self) -> str | None:
        """The branch of the event with its output."""
        return self.caller._output_branch if self.as_output and self.caller else self.branch

    def set_output(self, value: Any) -> None:
        """Set the output: its own, or that of the inner run with `as_output`.

        Raises:
            WorkflowDataError: It has an output already, or this one does not fit its schema.
        """
        if self.has_output:
            raise WorkflowDataError(
                f"node {self.node.name!r} yielded a second output; yield Event(message=...) for a message"
            )
        value = fitting(self.node.output_schema, value, f"node {self.node.name!r}: its output")
        self.output = fitting(self.outer_schema, value, f"workflow {self.author!r}: its output, of {self.node.name!r},")
        self.has_output = True

    def _take_actions(self, context: NodeContext) -> EventActions:
        """Move the context's pending actions into the next event."""
        settle_state(context)
        actions = context.actions
        if actions.route is not None:
            self.route = actions.route
        start_next_event(context)
        return actions

    def _completed(self, event: Event, context: NodeContext) -> Event:
        """Complete an event of the node or of its agent with author, branch and path, and note its output."""
        if not event.author:
            self._sign(event, context)
        # An event of an agent that its agent called keeps its own branch.
        if event.branch != self.branch:
            event.branch = event.branch or self.branch
            self.calls_others = self.calls_others or event.branch != self.branch
        if event.actions.route is not None and not event.node_info.path:
            self.route = event.actions.route
        if event.long_running_tool_ids:
            requests = [call for call in event.get_function_calls() if call.id in event.long_running_tool_ids]
            self.interrupt_ids += [call.id or "" for call in requests]
            if any(call.name == CREDENTIAL_REQUEST for call in requests):
                self._await_approval(context)
        self.interrupt_ids += [key for key in awaited_keys(event) if key not in self.interrupt_ids]
        # An event of an inner graph matters here only if it has this node's output.
        if event.node_info.path and self.path not in (event.node_info.output_for or ()):
            return event
        agent = self.node if isinstance(self.node, AgentNode) else None
        value = agent.output_of_event(event) if agent else event.output
        info: NodeInfo | None = None
        if value is not None:
            self.has_output = self.has_output and not agent  # the last message of an agent counts
            self.set_output(value)
            if event.output is not None and self.output is not value:  # a schema converted it
                event.output = self._as_json(self.output)
            if event.isolation_scope == self.path:
                event.isolation_scope = None  # the output is for every agent that sees the graph
            if self.as_output and not event.get_function_responses():
                event.branch = self._output_branch
            is_message = True if event.output is None else None
            info = NodeInfo(path=self.path, output_for=[self.path, *self.output_for], message_as_output=is_message)
        if not event.node_info.path:
            event.node_info = info or NodeInfo(path=self.path)
        return event

    def _sign(self, event: Event, context: NodeContext) -> None:
        """Complete an event that the node's code made: its author, and the pending actions of the context."""
        event.author = self.author
        # Made by code: models must not take it for the user's message.
        if event.content and event.content.role == "user" and not event.get_function_responses():
            event.content = event.content.model_copy(update={"role": "model"})
        if event.output is not None:
            event.output = self._as_json(event.output)
        if self.node.state_schema:
            check_schema(self.node.state_schema, event.actions.state_delta)
        actions = self._take_actions(context)
        actions.merge(event.actions)
        event.actions = actions

    def _event(self, *, output_for: bool = False, **fields: Any) -> Event:
        info = NodeInfo(path=self.path, output_for=[self.path, *self.output_for] if output_for else None)
        branch = self._output_branch if output_for else self.branch
        return Event(author=self.author, branch=branch, isolation_scope=self.isolation_scope, node_info=info, **fields)
