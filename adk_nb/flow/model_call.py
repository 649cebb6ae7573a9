"""One model call with its callbacks: a request in, storable events out. The only place that calls models."""

from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import aclosing
from typing import Any

from pydantic_core import from_json, to_json

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.flow.budget import paying_run
from adk_nb.flow.code_execution import prepare_request, truncate_after_code
from adk_nb.flow.request import LentContents
from adk_nb.flow.spec import CodeExecutor, LlmSpec, Planner, hooks_of
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import ESCALATE, REPLAYED, UNREADABLE, LlmResponse, ends_turn, was_replayed
from adk_nb.models.response_stream import ResponseStream
from adk_nb.runtime import observer
from adk_nb.runtime.context import Context, settle_state
from adk_nb.runtime.hooks import Hook, first_result
from adk_nb.runtime.invocation_context import GROUNDING, InvocationContext
from adk_nb.runtime.open_calls import claim_call_id, new_call_id
from adk_nb.runtime.trace import TracedRequest, current_trace
from adk_nb.wire import copy_model, json_problem, replace_surrogates

NO_CONTENT = "MODEL_RETURNED_NO_CONTENT"
NAMELESS = "unnamed_tool"
"""The name of a call without one: services reject a history with a nameless call."""
_RESPONSE_FIELDS = frozenset(LlmResponse.model_fields)
_METADATA_FIELDS = _RESPONSE_FIELDS - {
    "content",
    "partial",
    "turn_complete",
    "turn_complete_reason",
    "finish_reason",
    "model_version",
}


class ModelCall:
    """One call of the model. State changes in `context` go to its complete event.

    The caller passes each of `responses` to `record`: one generator less per token.

    Raises:
        LlmCallsLimitExceededError: RunConfig.max_llm_calls is reached; the model was not asked.
    """

    def __init__(self, ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, context: Context) -> None:
        # Before the request is sent: agents in parallel cannot pass the limit together.
        ctx.count_llm_call()
        self._ctx = ctx
        self._spec = spec
        self._request = request
        self._context = context
        self._event_id = clock.new_id()
        """Shared by the chunks of an answer and its complete event."""
        self._chunks: _Chunks | None = None
        self._has_answer = False
        self._empty_response: LlmResponse | None = None
        """A complete response without content that came before an answer."""
        self._streamed_usage: LlmResponse | None = None
        """The last chunk with token counts, until a complete response has them."""
        self._is_preparing = False
        """The stream yields events that prepare the request, before the first response."""

    def responses(self) -> AsyncGenerator[LlmResponse, None]:
        """The model's responses, after the events that explore data files, if the agent runs code.

        Raises the model's error, unless a callback answered it.
        """
        stream = _model_responses(self._ctx, self._spec, self._request, self._context, self._event_id)
        return self._with_preparation(self._spec.code_executor, stream) if self._spec.code_executor else stream

    async def _with_preparation(
        self, executor: CodeExecutor, stream: AsyncGenerator[LlmResponse, None]
    ) -> AsyncGenerator[LlmResponse, None]:
        self._is_preparing = True
        async with aclosing(prepare_request(self._ctx, self._spec, executor, self._request)) as events:
            async for event in events:
                yield event
        self._is_preparing = False
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    def record(self, response: LlmResponse) -> Event | None:
        """The event of a chunk (`partial=True`) or of a complete response.

        None for a complete response without content. Its metadata goes to an event of its own if an answer came
        before, else to `final_event`.
        """
        if self._is_preparing and isinstance(response, Event):
            return response
        # Some services send no role, or "assistant".
        if response.content and response.content.role != "model":
            response = copy_model(response, content=copy_model(response.content, role="model"))
        if response.partial:
            self._begin_answer()
            if response.usage_metadata:
                self._streamed_usage = response
            self._chunks = self._chunks or _Chunks()
            self._chunks.add(response)
            return response_event(self._ctx, self._spec, response, self._event_id, no_actions())
        if _is_empty(response):
            return self._trailing_event(response)
        self._begin_answer()
        self._has_answer = True
        return self._complete_event(response)

    def final_event(self) -> Event | None:
        """The complete answer of a model that only sent chunks, or nothing; None if `record` returned it already."""
        if self._has_answer:
            return None
        if self._chunks is None:
            return self._complete_event(self._empty_response or _empty_answer())
        if self._empty_response:
            self._chunks.add(self._empty_response)
        return self._complete_event(self._chunks.join(self._request.model or ""))

    def unanswered_usage(self) -> Event | None:
        """The token counts of a stream that broke before its complete response, as an event that is not stored.

        None: there are none, or they are in an event already. To be called after `final_event`, or an error.
        """
        if not self._streamed_usage:
            return None
        event = response_event(self._ctx, self._spec, self._streamed_usage, self._event_id, no_actions())
        return self._with_model_version(event)

    def _begin_answer(self) -> None:
        """Begin another event for the next answer in the same stream."""
        if self._has_answer:
            self._event_id, self._chunks, self._has_answer = clock.new_id(), None, False

    def _trailing_event(self, response: LlmResponse) -> Event | None:
        """An event for usage and other metadata, or state changes of a callback, after an answer."""
        if not self._has_answer:
            self._empty_response = response
            return None
        settle_state(self._context)
        has_metadata = any(getattr(response, name) is not None for name in _METADATA_FIELDS)
        if not has_metadata and self._context.actions == EventActions():
            return None
        self._event_id = clock.new_id()
        metadata_response = copy_model(response, content=None, turn_complete=None)
        return self._with_model_version(
            response_event(self._ctx, self._spec, metadata_response, self._event_id, self._context.actions)
        )

    def _complete_event(self, response: LlmResponse) -> Event:
        return self._with_model_version(_build_event(self._ctx, self._spec, response, self._event_id, self._context))

    def _with_model_version(self, event: Event) -> Event:
        if event.usage_metadata is not None:
            self._streamed_usage = None
        if event.usage_metadata is not None and event.model_version is None:
            event.model_version = self._request.model  # needed for the price
        return event


class _Chunks:
    """The chunks of an answer, joined if no complete response follows."""

    def __init__(self) -> None:
        self._parts: list[types.Part] = []
        self._texts: list[str] = []
        """Text after those parts."""
        self._is_thought = False
        """`_texts` are thoughts."""
        self._call_names: list[str] = []
        """Tools in chunks of calls. A chunk may lack arguments, so it is never run."""
        self._last = LlmResponse()

    def add(self, chunk: LlmResponse) -> None:
        self._last = chunk
        for part in (chunk.content and chunk.content.parts) or ():
            if part.function_call:
                self._call_names.append(part.function_call.name or NAMELESS)
                continue
            # Gemini: a signature belongs to its part, so its text is not joined with other text.
            if part.text is None or part.thought_signature:
                self._end_text()
                self._parts.append(part)
                continue
            if bool(part.thought) is not self._is_thought:
                self._end_text()
                self._is_thought = not self._is_thought
            self._texts.append(part.text)

    def join(self, model: str) -> LlmResponse:
        self._end_text()
        stream = ResponseStream(model)
        content = types.Content(role="model", parts=self._parts)
        stream.add(self._last.model_copy(update={"content": content}))
        response = stream.joined()
        if self._call_names and not response.error_code:
            response.error_code = types.FinishReason.MALFORMED_FUNCTION_CALL.value
            response.error_message = (
                f"the stream of model {model!r} ended inside a call of {self._call_names[-1]!r}, without a complete "
                "response (partial=False); no tool was called"
            )
        return response

    def _end_text(self) -> None:
        if self._texts:
            self._parts.append(types.Part(text="".join(self._texts), thought=self._is_thought or None))
            self._texts = []


async def ask_model(model: BaseLlm, request: LlmRequest) -> LlmResponse | None:
    """Ask a model outside of an agent: without callbacks and events. Returns the last complete response.

    Raises:
        LlmCallsLimitExceededError: The run that pays for it has reached `max_llm_calls`.
    """
    if ctx := paying_run.get():
        ctx.count_llm_call()
    answer: LlmResponse | None = None
    stream = model.generate_content_async(request)
    if observer.registered:
        stream = observer.registered.model_call(ctx, model, request, stream)
    async with aclosing(stream) as responses:
        async for response in responses:
            # The last response of a stream may carry nothing but usage.
            if answer is None or not _is_empty(response):
                answer = response
    return answer


def _model_responses(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, context: Context, event_id: str
) -> AsyncGenerator[LlmResponse, None]:
    """The model's responses after callbacks; the model's own stream if there are none, for speed."""
    before_hooks, after_hooks = hooks_of(ctx, spec, "before_model"), hooks_of(ctx, spec, "after_model")
    error_hooks = hooks_of(ctx, spec, "on_model_error")
    if before_hooks or after_hooks or error_hooks:
        return _send_with_hooks(ctx, spec, request, context, event_id, before_hooks, after_hooks, error_hooks)
    return _send(ctx, spec, request, event_id)


def _send(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, event_id: str
) -> AsyncGenerator[LlmResponse, None]:
    """The model's own stream, observed, and traced if a trace is active."""
    model, streams = spec.canonical_model, ctx.run_config.streams
    responses = model.generate_content_async(request, streams)
    if observer.registered:
        responses = observer.registered.model_call(ctx, model, request, responses, streams=streams)
    if (trace := current_trace.get()) is None:
        return responses
    traced_request = TracedRequest(
        event_id=event_id,
        invocation_id=ctx.invocation_id,
        agent=spec.name,
        branch=ctx.branch,
        path=ctx.node.path if ctx.node else "",
        model=request.model or model.model,
        request=request,
        began=clock.now(),
        unsent_settings=model.unsent_settings,
    )
    return trace.trace_request(traced_request, responses)


async def _send_with_hooks(
    ctx: InvocationContext,
    spec: LlmSpec,
    request: LlmRequest,
    context: Context,
    event_id: str,
    before_hooks: Sequence[Hook],
    after_hooks: Sequence[Hook],
    error_hooks: Sequence[Hook],
) -> AsyncGenerator[LlmResponse, None]:
    if before_hooks:
        answer = await first_result(before_hooks, callback_context=context, llm_request=request)
        if answer is not None:
            yield check_hook_result(answer, "before_model_callback")
            return
        # No callback follows: the model only reads, and needs no copies.
        if isinstance(request.contents, LentContents):
            request.contents = request.contents.originals()
    async with aclosing(_send_or_recover(ctx, spec, request, context, event_id, error_hooks)) as responses:
        async for response in responses:
            if after_hooks:
                replacement = await first_result(after_hooks, callback_context=context, llm_response=response)
                if replacement is not None:
                    response = merge_replacement(response, check_hook_result(replacement, "after_model_callback"))
            yield response


async def _send_or_recover(
    ctx: InvocationContext,
    spec: LlmSpec,
    request: LlmRequest,
    context: Context,
    event_id: str,
    error_hooks: Sequence[Hook],
) -> AsyncGenerator[LlmResponse, None]:
    try:
        async with aclosing(_send(ctx, spec, request, event_id)) as responses:
            async for response in responses:
                yield response
    except Exception as error:
        answer = await first_result(error_hooks, callback_context=context, llm_request=request, error=error)
        if answer is None:
            raise
        yield check_hook_result(answer, "on_model_error_callback")


def check_hook_result(result: object, hook: str) -> LlmResponse:
    """Check a callback's return value. Raises ConfigurationError if it is not an LlmResponse."""
    if isinstance(result, LlmResponse):
        return result
    raise ConfigurationError(f"{hook} returned a {type(result).__name__}; return an LlmResponse, or None")


def merge_replacement(response: LlmResponse, replacement: LlmResponse) -> LlmResponse:
    """A callback's response, with the usage and stream flags of the model's own."""
    kept_fields = {
        name: getattr(response, name)
        for name in ("partial", "turn_complete", "usage_metadata", "cache_metadata")
        if getattr(replacement, name) is None
    }
    return replacement.model_copy(update=kept_fields)


def response_event(
    ctx: InvocationContext, spec: LlmSpec, response: LlmResponse, event_id: str, actions: EventActions
) -> Event:
    """A response as an event of its agent; calls in a complete one get an id."""
    values = vars(response)
    fields = {
        name: values[name] for name in response.model_fields_set & _RESPONSE_FIELDS if values.get(name) is not None
    }
    if response.content and not response.partial:
        fields["content"] = _with_call_ids(ctx, response.content)
    if ctx.branch:
        fields["branch"] = ctx.branch
    # Without validation: the response was validated, and a stream has many chunks.
    return new_event(id=event_id, author=spec.name, invocation_id=ctx.invocation_id, actions=actions, **fields)


def _build_event(
    ctx: InvocationContext, spec: LlmSpec, response: LlmResponse, event_id: str, context: Context
) -> Event:
    if spec.code_executor:
        response = truncate_after_code(ctx, spec.code_executor, response)
    if spec.planner:
        response = _apply_plan(spec.planner, response, context)
    settle_state(context)
    # Written by search tools, for the answer that cites them.
    if response.grounding_metadata is None and (grounding := ctx.session.state.get(GROUNDING)):
        response = response.model_copy(update={"grounding_metadata": grounding})
    if response.custom_metadata and response.custom_metadata.get(ESCALATE) is True:
        context.actions.escalate = True
    event = response_event(ctx, spec, response, event_id, context.actions)
    # A replayed response costs nothing.
    if response.usage_metadata is not None and was_replayed(response.usage_metadata):
        event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED: True}
    if _has_no_content(event):
        event.error_code = NO_CONTENT
        event.error_message = "the model returned no text and no tool call"
    return event


def _apply_plan(planner: Planner, response: LlmResponse, context: Context) -> LlmResponse:
    """Let the planner rewrite the parts of a complete response; returns a copy if it did."""
    content = response.content
    if not content or not content.parts:
        return response
    parts = planner.process_planning_response(context, content.parts)
    return response.model_copy(update={"content": content.model_copy(update={"parts": parts})}) if parts else response


def _with_call_ids(ctx: InvocationContext, content: types.Content) -> types.Content:
    """`content` with the model's role, storable parts, and call ids that are unique in the session.

    Returns a copy if anything changes: a model may return the same object again. In an agent that is called as a tool
    every id is new.
    """
    parts: list[types.Part] = []
    is_changed = not content.role
    for index, original in enumerate(content.parts or ()):
        part = make_storable(original)
        parts.append(part)
        is_changed = is_changed or part is not original
        if call := part.function_call:
            name = replace_surrogates(call.name or NAMELESS)
            call_id = new_call_id() if ctx.delegated_input else claim_call_id(ctx, call.id)
            if (name, call_id) != (call.name, call.id):
                parts[index] = copy_model(part, function_call=copy_model(call, id=call_id, name=name))
                is_changed = True
    return copy_model(content, role=content.role or "model", parts=parts) if is_changed else content


def _empty_answer() -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[]))


def _is_empty(response: LlmResponse) -> bool:
    if response.error_code or response.interrupted:
        return False
    return not [part for part in response.parts if part.text != "" or part.thought_signature]


def _has_no_content(event: Event) -> bool:
    if event.error_code or event.actions.skip_summarization:
        return False
    if event.custom_metadata and ends_turn(event.custom_metadata):
        return False
    return all(part.text is not None and (part.thought or not part.text.strip()) for part in event.parts)


def mark_long_running(event: Event, names: Set[str]) -> None:
    """Set `long_running_tool_ids` of the event to its calls of the tools in `names`."""
    if call_ids := {call.id for call in event.get_function_calls() if call.id and call.name in names}:
        event.long_running_tool_ids = call_ids


def make_storable(part: types.Part) -> types.Part:
    """`part` itself if it can be stored; else a copy with valid text, or a call that is refused.

    Arguments are never repaired: the tool would run with values that the model did not give.
    """
    if part.text:
        text = replace_surrogates(part.text)
        return part if text == part.text else part.model_copy(update={"text": text})
    call = part.function_call
    if not call or not call.args or _survives_json(call.args):
        return part
    return part.model_copy(update={"function_call": call.model_copy(update={"args": _refused_args(call.args)})})


def _survives_json(args: dict[str, Any]) -> bool:
    try:
        nested = [[[[[[[[[[args]]]]]]]]]]  # nested as deep as in a stored event
        return bool(from_json(to_json(nested), allow_inf_nan=False) == nested)
    except (ValueError, RecursionError):
        return False


def _refused_args(args: dict[str, Any]) -> dict[str, Any]:
    problem = json_problem(args)
    return {UNREADABLE: f"its arguments hold {problem}"} if problem else args
