"""The observer that makes spans, each under the span that is current where its work begins."""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.redaction import hidden
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.runtime.observer import ObservedTool, Scores
from adk_nb.telemetry import content, conventions
from adk_nb.telemetry.agent_span import AgentSpan, span_of
from adk_nb.telemetry.model_span import ModelSpan
from adk_nb.telemetry.recorder import Recorder
from adk_nb.wire import replace_surrogates

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
