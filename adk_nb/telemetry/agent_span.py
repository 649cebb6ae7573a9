"""The span of one activation of an agent."""

from collections.abc import Iterable
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from adk_nb.errors import UserError
from adk_nb.events.event import Event
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.telemetry import content, conventions
from adk_nb.telemetry.recorder import Recorder
from adk_nb.workflow.workflow import Workflow

TRACEPARENT = "traceparent"
"""Key in the custom_metadata of a run's first event: its span, for the runs that resume it and for evaluations."""


class AgentSpan:
    """The span of an agent. That of a run's first agent is the span of the run."""

    def __init__(self, recorder: Recorder, agent: RunnableAgent, ctx: InvocationContext) -> None:
        self._recorder = recorder
        self._agent = agent
        self._ctx = ctx
        self._is_run = ctx.agent is agent
        self._is_noted = not self._is_run
        self._answer: Event | None = None
        """None if content is not asked for."""
        self._span = trace.INVALID_SPAN

    def begin(self) -> Span:
        agent, ctx, recorder = self._agent, self._ctx, self._recorder
        operation = "invoke_agent"
        if recorder.conventions.has_workflows and isinstance(agent, Workflow):
            operation = "invoke_workflow"
        attributes: dict[str, Any] = {
            conventions.OPERATION: operation,
            conventions.AGENT: agent.name,
            conventions.CONVERSATION: conventions.conversation_of(ctx),
            conventions.SESSION: ctx.session.id,
            conventions.INVOCATION: ctx.invocation_id,
        }
        if description := getattr(agent, "description", ""):
            attributes[conventions.AGENT_DESCRIPTION] = description
        if recorder.conventions.has_agent_ids:
            attributes[conventions.AGENT_ID] = f"{ctx.app_name}/{agent.name}"
            attributes[recorder.conventions.provider] = _provider(agent)
        links: list[Link] = []
        if self._is_run and (ctx.checkpoints or ctx.calls_answered):
            # The run that this one resumes, or whose requests it answers: a link, not a parent, as its span has ended.
            history = history_of(ctx.session)
            records = [record for key in ctx.calls_answered if (record := history.calls.newest(key))]
            invocations = {ctx.invocation_id, *(record.event.invocation_id for record in records)}
            earlier = span_of(event for event in history.newest() if event.invocation_id in invocations)
            links += [Link(earlier)] if earlier else []
        self._span = recorder.start(f"{operation} {agent.name}", attributes, links=links)
        if recorder.has_content_attributes and ctx.user_content:
            self._span.set_attribute("gen_ai.input.messages", content.as_json(content.messages([ctx.user_content])))
        return self._span

    def see(self, event: Event, /) -> None:
        if event.partial:
            return
        if not self._is_noted:
            self._is_noted = True
            # W3C's header for a span. Source: https://www.w3.org/TR/trace-context/.
            own = self._span.get_span_context()
            traceparent = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
            event.custom_metadata = {**(event.custom_metadata or {}), TRACEPARENT: traceparent}
        if self._recorder.has_content_attributes and event.text:
            self._answer = event

    def end(self) -> None:
        if self._answer:
            answer = content.output(self._answer.content, None)
            self._span.set_attribute("gen_ai.output.messages", content.as_json(answer))


def _provider(agent: RunnableAgent) -> str:
    try:
        model = getattr(agent, "canonical_model", None)
    except UserError:  # the agent itself will raise it
        model = None
    return conventions.provider_of(model) if model else "_OTHER"


def span_of(newest_first: Iterable[Event]) -> SpanContext | None:
    """The span of the newest run in these events. None: it had none."""
    for event in newest_first:
        if traceparent := (event.custom_metadata or {}).get(TRACEPARENT):
            context = TraceContextTextMapPropagator().extract({TRACEPARENT: traceparent})
            span_context = trace.get_current_span(context).get_span_context()
            return span_context if span_context.is_valid else None
    return None
