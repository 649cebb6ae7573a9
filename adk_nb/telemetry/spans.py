"""The observer that makes spans, each under the span that is current where its work begins, and the spans of agents and
model calls.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from adk_nb import types
from adk_nb.errors import UserError
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.redaction import hidden
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.observer import ObservedTool, Scores
from adk_nb.telemetry import content, conventions
from adk_nb.telemetry.recorder import Recorder
from adk_nb.wire import replace_surrogates
from adk_nb.workflow.workflow import Workflow

TOOL_ERROR = "tool_error"
"""Type of the error that a tool returned instead of raising it. Source: the conventions for MCP."""


class SpanObserver:
    """Makes a span of each agent, node, model call, tool call and evaluation. See `Observer`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def agent(
        self, agent: RunnableAgent, ctx: InvocationContext, events: AsyncGenerator[Event, None], /
    ) -> AsyncGenerator[Event, None]:
        """The span `invoke_agent NAME`, or `invoke_workflow NAME` of a graph."""
        return self._recorder.stream(AgentSpan(self._recorder, agent, ctx), events)

    def node(
        self, name: str, ctx: InvocationContext, path: str, events: AsyncGenerator[Event, None], /
    ) -> AsyncGenerator[Event, None]:
        """The span `invoke_node NAME`. Source of the name: google-adk 2.13; the conventions have none."""
        return self._recorder.stream(_NodeSpan(self._recorder, name, ctx, path), events)

    def model_call(
        self,
        ctx: InvocationContext | None,
        model: BaseLlm,
        request: LlmRequest,
        responses: AsyncGenerator[LlmResponse, None],
        /,
        *,
        streams: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        """The span `chat MODEL`, or `generate_content MODEL` of Google's API."""
        return self._recorder.stream(ModelSpan(self._recorder, ctx, model, request, streams=streams), responses)

    async def tool_call(
        self, tool: ObservedTool, args: Mapping[str, Any], context: Context, result: Awaitable[Any], /
    ) -> Any:
        """The span `execute_tool NAME`."""
        ctx, recorder = context.get_invocation_context(), self._recorder
        attributes = {
            conventions.OPERATION: "execute_tool",
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": context.function_call_id or "",
            "gen_ai.tool.description": tool.description,
            conventions.AGENT: ctx.agent.name,
            conventions.CONVERSATION: conventions.conversation_of(ctx),
        }
        span = recorder.start(f"execute_tool {tool.name}", attributes)
        try:
            if recorder.has_content_attributes:
                span.set_attribute("gen_ai.tool.call.arguments", content.as_json(content.safe(args)))
            value = await recorder.result(span, result)
            if isinstance(value, dict) and "error" in value:
                span.set_attribute(conventions.ERROR, TOOL_ERROR)
                span.set_status(Status(StatusCode.ERROR))
            if recorder.has_content_attributes:
                span.set_attribute("gen_ai.tool.call.result", content.as_json(content.safe(cast(Any, value))))
            return cast(Any, value)
        finally:
            span.end()

    async def evaluation(self, case: str, events: Sequence[Event], scores: Awaitable[Scores], /) -> Scores:
        """The span `evaluate CASE`, in the trace of the run that is scored, with an event for each score."""
        recorder, evaluated = self._recorder, span_of(reversed(events))
        parent = trace.set_span_in_context(trace.NonRecordingSpan(evaluated)) if evaluated else None
        span = recorder.start(f"evaluate {case}", {conventions.OPERATION: "evaluate"}, parent=parent)
        try:
            result = await recorder.result(span, scores)
            for metric, score in result.items():
                attributes: dict[str, Any] = {
                    "gen_ai.evaluation.name": metric,
                    "gen_ai.evaluation.score.label": score.verdict,
                }
                if score.value is not None:
                    attributes["gen_ai.evaluation.score.value"] = float(score.value)
                if score.reason and recorder.has_content:
                    attributes["gen_ai.evaluation.explanation"] = replace_surrogates(hidden(score.reason))
                span.add_event("gen_ai.evaluation.result", attributes)
            return result
        finally:
            span.end()


class _NodeSpan:
    def __init__(self, recorder: Recorder, name: str, ctx: InvocationContext, path: str) -> None:
        self._recorder = recorder
        self._name = name
        self._ctx = ctx
        self._path = path

    def begin(self) -> Span:
        attributes = {
            conventions.OPERATION: "invoke_node",
            conventions.NODE_PATH: self._path,
            conventions.CONVERSATION: conventions.conversation_of(self._ctx),
        }
        return self._recorder.start(f"invoke_node {self._name}", attributes)

    def see(self, _event: Event, /) -> None:
        pass

    def end(self) -> None:
        pass


# ---- an activation of an agent


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


# ---- a model call, with its retries


class ModelSpan:
    """The span of a model call. Tokens are noted here alone: backends add up the spans of a trace."""

    def __init__(
        self, recorder: Recorder, ctx: InvocationContext | None, model: BaseLlm, request: LlmRequest, *, streams: bool
    ) -> None:
        """`ctx` None: the call is made outside of a run."""
        self._recorder = recorder
        self._ctx = ctx
        self._model = model
        self._request = request
        self._streams = streams
        self._span = trace.INVALID_SPAN
        self._began = 0.0
        self._seconds_to_first: float | None = None
        self._texts: list[str] = []
        """Texts of partial responses, for a model that sends no complete one."""
        self._last: LlmResponse | None = None
        """The complete response; the newest that is not only metadata."""
        self._usage: types.GenerateContentResponseUsageMetadata | None = None
        self._reason: types.FinishReason | None = None

    def begin(self) -> Span:
        recorder, model = self._recorder, self._model
        provider = conventions.provider_of(model)
        operation, name = conventions.operation_of(provider), self._request.model or model.model
        attributes: dict[str, Any] = {
            conventions.OPERATION: operation,
            recorder.conventions.provider: provider,
            "gen_ai.request.model": name,
        }
        if ctx := self._ctx:
            attributes[conventions.AGENT] = ctx.agent.name
            attributes[conventions.CONVERSATION] = conventions.conversation_of(ctx)
        attributes |= conventions.request_attributes(model, self._request, recorder.conventions, streams=self._streams)
        self._span = recorder.start(f"{operation} {name}", attributes, kind=SpanKind.CLIENT)
        self._began = time.perf_counter()
        return self._span

    def see(self, response: LlmResponse, /) -> None:
        if self._seconds_to_first is None:
            self._seconds_to_first = time.perf_counter() - self._began
        if response.usage_metadata is not None:
            self._usage = response.usage_metadata
        if response.finish_reason is not None:
            self._reason = response.finish_reason
        if response.partial:
            if self._recorder.has_content:
                self._texts.append(response.text)
        elif self._last is None or response.content or response.error_code:
            self._last = response

    def end(self) -> None:
        has_calls = self._last is not None and bool(self._last.get_function_calls())
        reason = conventions.finish_reason(self._reason, has_calls=has_calls)
        attributes: dict[str, Any] = {}
        if reason:
            attributes["gen_ai.response.finish_reasons"] = (reason,)
        if self._usage is not None:
            attributes |= conventions.usage_attributes(self._usage, self._recorder.conventions)
        if self._streams and self._recorder.conventions.has_details and self._seconds_to_first is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = self._seconds_to_first
        if response := self._last:
            if response.model_version:
                attributes["gen_ai.response.model"] = response.model_version
            if response.attempts:
                attributes[conventions.FAILED_ATTEMPTS] = [attempt.error for attempt in response.attempts]
            if response.error_code:
                attributes[conventions.ERROR] = response.error_code
                self._span.set_status(Status(StatusCode.ERROR))
        if self._recorder.has_content:
            self._add_content(reason, attributes)
        if attributes:
            self._span.set_attributes(attributes)

    def _add_content(self, reason: str | None, attributes: dict[str, Any]) -> None:
        request, answer = self._request, self._last.content if self._last else None
        if answer is None and self._texts:
            answer = types.Content(role="model", parts=[types.Part(text="".join(self._texts))])
        choices = content.output(answer, reason)
        if not self._recorder.conventions.has_content_attributes:
            for name, fields in content.span_events(request):
                self._span.add_event(name, fields)
            for choice in choices:
                self._span.add_event("gen_ai.choice", {"content": content.as_json(choice["parts"])})
            return
        attributes["gen_ai.input.messages"] = content.as_json(content.messages(request.contents))
        if choices:
            attributes["gen_ai.output.messages"] = content.as_json(choices)
        if instruction := content.instruction(request):
            attributes["gen_ai.system_instructions"] = content.as_json(instruction)
        if request.tools_dict:
            attributes["gen_ai.tool.definitions"] = content.as_json(content.tool_definitions(request.tools_dict))
