"""The span of one model call, with its retries."""

import time
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.telemetry import content, conventions
from adk_nb.telemetry.recorder import Recorder


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
