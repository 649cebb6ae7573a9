"""One run of one node: its attempts, and what it yields as events."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.auth.secrets import redact
from adk_nb.errors import NodeTimeoutError, WorkflowDataError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions
from adk_nb.events.request_input import RequestInput
from adk_nb.events.requests import CREDENTIAL_REQUEST, INPUT_REQUEST
from adk_nb.runtime.history import awaited_keys, history_of
from adk_nb.runtime.invocation_context import CurrentNode, InvocationContext
from adk_nb.runtime.nested_calls import open_tasks
from adk_nb.runtime.open_calls import failure_events
from adk_nb.sessions.state import check_schema
from adk_nb.tools.shape import Shape, error_text
from adk_nb.wire import replace_fields
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.fitting import fitted
from adk_nb.workflow.gates import Refused, approval_id, held, what_is_asked
from adk_nb.workflow.node_context import NodeContext, RunsNode
from adk_nb.workflow.run_state import RunState

logger = logging.getLogger(__name__)


class Paused(BaseException):
    """What a node runs waits for an answer, and so does the node; no error, so that no `except Exception` takes it."""


@dataclass(kw_only=True)
class NodeRun(RunState):
    """The run `node@number`, under way or waiting; afterwards `output` and `route` are there."""

    async def events(self, ctx: InvocationContext, run_node: RunsNode) -> AsyncGenerator[Event, None]:
        """Run it until it has ended, or waits.

        Raises:
            Exception: What its last attempt raised.
        """
        own, attempt = self._context(ctx), 0
        while True:
            attempt += 1
            self._begin(attempt)
            context = NodeContext(own, path=self.path, attempt=attempt, answers=self.answers, run_node=run_node)
            try:
                events = self._attempt(context)
                try:  # what `aclosing` does, at a quarter of its price: each node comes by here
                    async for event in events:
                        yield event
                finally:
                    await events.aclose()
                self._wait_for_the_user(own)
                return
            except Exception as error:
                failed, wait = self._failed(own, error, attempt)
                for event in failed:
                    yield event
                if wait is None:
                    raise
            except BaseException as raised:
                if not _only_pauses(raised):
                    raise
                return
            await asyncio.sleep(wait)

    def _begin(self, attempt: int) -> None:
        self.others, self.given_by = {}, None
        if attempt > 1:
            self.output, self.has_output = None, False

    def _failed(self, own: InvocationContext, error: Exception, attempt: int) -> tuple[list[Event], float | None]:
        """What is told of it now, and the seconds until the next attempt; None: it ends the run."""
        retry = self.node.retry_config
        wait = retry.delay_after(error, attempt) if retry else None
        known = own.shared.reported_error is error or any(one is error for one in self.told)
        if wait is None:
            own.note_failure(error)
            if self.caller:
                self.caller.told.append(error)
            elif known:
                own.shared.reported_error = error
        return failure_events(own, error) if not known and (self.caller or wait is not None) else [], wait

    def _wait_for_the_user(self, own: InvocationContext) -> None:
        """It waits if its agent talks with the user, or one that this gave a task to, or asked what is still open."""
        if not isinstance(self.node, AgentNode):
            return
        if self.left:
            waiting = {interrupt.id for interrupt in history_of(own.session).interrupts()}
            self.asked = [key for key in self.left if key in waiting and key not in self.asked] + self.asked
        if self.asked:
            return
        if self.node.has_task and not self.has_output:
            self.asked = [self.path]
        elif self.calls_others:
            self.asked = list(open_tasks(self.node.agent, history_of(own.session), own.branch, has_spoken=True))

    def _context(self, ctx: InvocationContext) -> InvocationContext:
        here = CurrentNode(
            path=self.path,
            agent=self.node.agent if isinstance(self.node, AgentNode) else None,
            input=self.input,
            output_for=self.output_for,
            isolation_scope=self.isolation_scope,
        )
        schema = self.node.state_schema or ctx.state_schema
        own = replace_fields(ctx, branch=self.branch, node=here, state_schema=schema)
        if self.isolation_scope:
            own.isolation_scope = self.isolation_scope
        return own

    async def _attempt(self, context: NodeContext) -> AsyncGenerator[Event, None]:
        node_input = self._fitted("input", self.node.input_schema, self.input)
        if self.node.is_held and (place := await self._held(context, node_input)):
            for event in place:
                yield event
            return
        work = self.node._run_impl(ctx=context, node_input=node_input)  # pyright: ignore[reportPrivateUsage]
        values = self._timed(work) if self.node.timeout else work
        try:
            async for value in values:
                for event in self._told(value, context):
                    yield event
                if isinstance(value, RequestInput) and not self.node.rerun_on_resume:
                    break
        finally:
            await values.aclose()
        if context.actions.state_delta or context.actions.artifact_delta or context.actions.route is not None:
            yield self._event(actions=self._acted(context))

    async def _timed(self, work: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        loop, seconds = asyncio.get_running_loop(), self.node.timeout or 0
        ends = loop.time() + seconds
        late = NodeTimeoutError(f"node {self.node.name!r} took longer than {seconds:g} seconds, its timeout")
        async with aclosing(work) as values:
            while True:
                limit = asyncio.timeout_at(ends)  # anew for each value: none may fire while the reader has the event
                try:
                    async with limit:
                        value = await anext(values)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    if not limit.expired():
                        raise
                    raise late from error
                if loop.time() >= ends:
                    raise late
                yield value

    async def _held(self, context: NodeContext, node_input: Any) -> list[Event]:
        """The events in the place of its work, if it may not run, or not yet."""
        is_new, asked = self.held not in (None, self.let), self.held or self.let
        self.begun = await self.node.begun(context)
        place = await held(self.node, context, node_input, asked, is_new=is_new, begun=self.begun)
        self.held, self.let = None, None if isinstance(place, RequestInput) else asked
        if place is None:
            return []
        if isinstance(place, Refused):
            self.output, self.has_output = dict(place), True
            return [self._event(output=self.output, output_for=True)]
        return [event for one in (place if isinstance(place, list) else [place]) for event in self._told(one, context)]

    def _hold(self, context: NodeContext) -> None:
        """It waits for a person, whose answer is for what it would do now; or was let do, if it asks for more."""
        node_input = self._fitted("input", self.node.input_schema, self.input)
        self.held = self.held or self.let or what_is_asked(self.node, context, node_input, self.begun)

    def _told(self, value: Any, context: NodeContext) -> list[Event]:
        """The events that a yielded value becomes."""
        if value is None:
            return []
        if isinstance(value, RequestInput):
            return [self._asking(value, context)]
        if isinstance(value, Event):
            return [self._own(value, context)]
        if isinstance(value, types.Content):
            return [self._event(content=value, actions=self._acted(context))]
        if self.given_by:
            self._drop(value)
            return []
        if context.auth_credential:
            value = redact(to_jsonable_python(value, fallback=str), context.auth_credential.secrets())
        if self.asked:
            logger.warning(
                "node %r gave an output while its question %r waits; it counts only once that is answered",
                self.node.name,
                self.asked[0],
            )
        self._note(value)
        about = {"repeated": context.repeated} if context.repeated else None
        told = {"output": self._as_json(self.output), "actions": self._acted(context), "custom_metadata": about}
        return [self._event(**told, output_for=True)]

    def _as_json(self, value: Any) -> Any:
        try:
            return to_jsonable_python(value)
        except ValueError as error:
            raise WorkflowDataError(
                f"node {self.node.name!r}: its output cannot be kept as JSON ({error_text(error)}); give plain values, "
                "or a pydantic model"
            ) from error

    def take_output(self, value: Any) -> None:
        """Have the output of a node that it has left that to.

        Raises:
            WorkflowDataError: It has one of its own, or this does not fit.
        """
        self._note(value)

    def _drop(self, value: Any) -> None:
        if not self.has_output or value != self.output:
            logger.warning("node %r gave an output beside that of %s, which counts", self.node.name, self.given_by)

    @property
    def _told_on(self) -> str | None:
        """The branch on which its output is told."""
        return self.caller._told_on if self.as_output and self.caller else self.branch

    def _note(self, value: Any) -> None:
        if self.has_output:
            raise WorkflowDataError(f"node {self.node.name!r} gave a second output; yield Event(message=...) for news")
        self.output, self.has_output = self._fitted("output", self.node.output_schema, value), True

    def _fitted(self, what: str, schema: Any, value: Any) -> Any:
        if schema is None or value is None or isinstance(schema, dict):  # a JSON Schema is for readers
            return value
        try:
            return fitted(TypeAdapter(schema), value)
        except ValidationError as error:
            raise WorkflowDataError(f"node {self.node.name!r}: its {what} does not fit: {error_text(error)}") from error

    def _acted(self, context: NodeContext) -> EventActions:
        """What the context was told to do since the last event goes out with the next one."""
        actions = context.actions
        if actions.route is not None:
            self.route = actions.route
        context.act_anew()
        return actions

    def _own(self, event: Event, context: NodeContext) -> Event:
        """An event of the node's, or of an agent in it, which says where it comes from."""
        if not event.author:
            self._sign(event, context)
        if event.branch != self.branch:
            event.branch = event.branch or self.branch
            self.calls_others = self.calls_others or event.branch != self.branch
        if event.actions.route is not None and not event.node_info.path:
            self.route = event.actions.route
        if event.long_running_tool_ids:
            self._await(event, context)
        self.asked += [key for key in awaited_keys(event) if key not in self.asked]
        if event.node_info.path and self.path not in (event.node_info.output_for or ()):
            return event
        agent = self.node if isinstance(self.node, AgentNode) else None
        value = agent.given(event) if agent else event.output
        info: NodeInfo | None = None
        if value is not None:
            self.has_output = self.has_output and not agent  # of an agent, what was said last counts
            info = self._as_output(event, value)
        if not event.node_info.path:
            event.node_info = info or NodeInfo(path=self.path)
        return event

    def _as_output(self, event: Event, value: Any) -> NodeInfo:
        self._note(value)
        if event.isolation_scope == self.path:
            event.isolation_scope = None  # what a node comes to is for all who see the graph
        if self.as_output and not event.get_function_responses():
            event.branch = self._told_on
        by_words = True if event.output is None else None
        return NodeInfo(path=self.path, output_for=[self.path, *self.output_for], message_as_output=by_words)

    def _await(self, event: Event, context: NodeContext) -> None:
        asked = [call for call in event.get_function_calls() if call.id in (event.long_running_tool_ids or ())]
        self.asked += [call.id or "" for call in asked]
        if any(call.name == CREDENTIAL_REQUEST for call in asked):
            self._hold(context)

    def _sign(self, event: Event, context: NodeContext) -> None:
        """An event that the node's author wrote: it says who and, beside its own, does what the context was told."""
        event.author = self.author
        if event.content and event.content.role == "user" and not event.get_function_responses():
            event.content = event.content.model_copy(update={"role": "model"})
        if event.output is not None:
            event.output = self._as_json(event.output)
        if self.node.state_schema:
            check_schema(self.node.state_schema, event.actions.state_delta)
        actions = self._acted(context)
        actions.merge(event.actions)
        event.actions = actions

    def _event(self, *, output_for: bool = False, **fields: Any) -> Event:
        info = NodeInfo(path=self.path, output_for=[self.path, *self.output_for] if output_for else None)
        branch = self._told_on if output_for else self.branch
        return Event(author=self.author, branch=branch, isolation_scope=self.isolation_scope, node_info=info, **fields)

    def _asking(self, asked: RequestInput, context: NodeContext) -> Event:
        self.asked.append(asked.interrupt_id)
        if asked.interrupt_id == approval_id(self.path):
            self._hold(context)
        schema = asked.response_schema
        args = {
            "interruptId": asked.interrupt_id,
            "payload": to_jsonable_python(asked.payload),
            "message": asked.message,
            "response_schema": None if schema is None else Shape(schema).json_schema,
        }
        call = types.FunctionCall(id=asked.interrupt_id, name=INPUT_REQUEST, args=args)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        return self._event(content=content, actions=self._acted(context), long_running_tool_ids={asked.interrupt_id})


def _only_pauses(raised: BaseException) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return raised.split(Paused)[1] is None  # pyright: ignore[reportUnknownMemberType]
    return isinstance(raised, Paused)
