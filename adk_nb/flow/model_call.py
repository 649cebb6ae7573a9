"""One model call with its callbacks: a request in, storable events out. The only place that calls models."""

from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import aclosing

from pydantic_core import from_json, to_json

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.flow.budget import paying_run
from adk_nb.flow.code_execution import prepare_request, truncate_after_code
from adk_nb.flow.request import LentContents
from adk_nb.flow.spec import LlmSpec, hooks_of
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
        ctx, spec = self._ctx, self._spec
        before_hooks, after_hooks = hooks_of(ctx, spec, "before_model"), hooks_of(ctx, spec, "after_model")
        error_hooks = hooks_of(ctx, spec, "on_model_error")
        if before_hooks or after_hooks or error_hooks or spec.code_executor:
            return self._prepared(before_hooks, after_hooks, error_hooks)
        return self._send()  # the model's own stream, for speed

    async def _prepared(
        self, before_hooks: Sequence[Hook], after_hooks: Sequence[Hook], error_hooks: Sequence[Hook]
    ) -> AsyncGenerator[LlmResponse, None]:
        """The responses after the preparation for code, between callbacks."""
        spec, request, context = self._spec, self._request, self._context
        if spec.code_executor:
            self._is_preparing = True
            async with aclosing(prepare_request(self._ctx, spec, spec.code_executor, request)) as events:
                async for event in events:
                    yield event
            self._is_preparing = False
        if before_hooks:
            answer = await first_result(before_hooks, callback_context=context, llm_request=request)
            if answer is not None:
                yield check_hook_result(answer, "before_model_callback")
                return
            # No callback follows: the model only reads, and needs no copies.
            if isinstance(request.contents, LentContents):
                request.contents = request.contents.originals()
        async with aclosing(self._send_or_recover(error_hooks)) as responses:
            async for response in responses:
                if after_hooks:
                    replacement = await first_result(after_hooks, callback_context=context, llm_response=response)
                    if replacement is not None:
                        response = merge_replacement(response, check_hook_result(replacement, "after_model_callback"))
                yield response

    async def _send_or_recover(self, error_hooks: Sequence[Hook]) -> AsyncGenerator[LlmResponse, None]:
        """The model's stream; a callback may answer its error, but not that of another callback."""
        try:
            async with aclosing(self._send()) as responses:
                async for response in responses:
                    yield response
        except Exception as error:
            answer = await first_result(
                error_hooks, callback_context=self._context, llm_request=self._request, error=error
            )
            if answer is None:
                raise
            yield check_hook_result(answer, "on_model_error_callback")

    def _send(self) -> AsyncGenerator[LlmResponse, None]:
        """The model's own stream, observed, and traced if a trace is active."""
        ctx, spec, request = self._ctx, self._spec, self._request
        model, streams = spec.canonical_model, ctx.run_config.streams
        responses = model.generate_content_async(request, streams)
        if observer.registered:
            responses = observer.registered.model_call(ctx, model, request, responses, streams=streams)
        if (trace := current_trace.get()) is None:
            return responses
        traced_request = TracedRequest(
            event_id=self._event_id,
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
        if not _is_empty(response):
            self._begin_answer()
            self._has_answer = True
            return self._complete_event(response)
        if not self._has_answer:
            self._empty_response = response
            return None
        # Usage and other metadata, or state changes of a callback, after an answer.
        settle_state(self._context)
        actions = self._context.actions
        has_metadata = any(getattr(response, name) is not None for name in _METADATA_FIELDS)
        if not has_metadata and actions == EventActions():
            return None
        self._event_id = clock.new_id()
        metadata_response = copy_model(response, content=None, turn_complete=None)
        return self._with_model_version(
            response_event(self._ctx, self._spec, metadata_response, self._event_id, actions)
        )

    def final_event(self) -> Event | None:
        """The complete answer of a model that only sent chunks, or nothing; None if `record` returned it already."""
        if self._has_answer:
            return None
        if self._chunks is None:
            nothing = LlmResponse(content=types.Content(role="model", parts=[]))
            return self._complete_event(self._empty_response or nothing)
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

    def _complete_event(self, response: LlmResponse) -> Event:
        ctx, spec, context = self._ctx, self._spec, self._context
        if spec.code_executor:
            response = truncate_after_code(ctx, spec.code_executor, response)
        if spec.planner and (content := response.content) and content.parts:
            parts = spec.planner.process_planning_response(context, content.parts)
            if parts:
                content = content.model_copy(update={"parts": parts})
                response = response.model_copy(update={"content": content})
        settle_state(context)
        # Written by search tools, for the answer that cites them.
        if response.grounding_metadata is None and (grounding := ctx.session.state.get(GROUNDING)):
            response = response.model_copy(update={"grounding_metadata": grounding})
        if response.custom_metadata and response.custom_metadata.get(ESCALATE) is True:
            context.actions.escalate = True
        event = response_event(ctx, spec, response, self._event_id, context.actions)
        # A replayed response costs nothing.
        if response.usage_metadata is not None and was_replayed(response.usage_metadata):
            event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED: True}
        metadata = event.custom_metadata
        may_be_empty = event.error_code or event.actions.skip_summarization or (metadata and ends_turn(metadata))
        if not may_be_empty and all(
            part.text is not None and (part.thought or not part.text.strip()) for part in event.parts
        ):
            event.error_code = NO_CONTENT
            event.error_message = "the model returned no text and no tool call"
        return self._with_model_version(event)

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
    """A response as an event of its agent; a complete one gets storable parts, and its calls unique ids."""
    values = vars(response)
    fields = {
        name: values[name] for name in response.model_fields_set & _RESPONSE_FIELDS if values.get(name) is not None
    }
    if (content := response.content) and not response.partial:
        parts: list[types.Part] = []
        is_changed = not content.role
        for original in content.parts or ():
            part = make_storable(original)
            if call := part.function_call:
                name = replace_surrogates(call.name or NAMELESS)
                # In an agent that is called as a tool every id is new.
                call_id = new_call_id() if ctx.delegated_input else claim_call_id(ctx, call.id)
                if (name, call_id) != (call.name, call.id):
                    part = copy_model(part, function_call=copy_model(call, id=call_id, name=name))
            is_changed = is_changed or part is not original
            parts.append(part)
        # A copy if anything changes: a model may return the same object again.
        fields["content"] = copy_model(content, role=content.role or "model", parts=parts) if is_changed else content
    if ctx.branch:
        fields["branch"] = ctx.branch
    # Without validation: the response was validated, and a stream has many chunks.
    return new_event(id=event_id, author=spec.name, invocation_id=ctx.invocation_id, actions=actions, **fields)


def _is_empty(response: LlmResponse) -> bool:
    if response.error_code or response.interrupted:
        return False
    return not [part for part in response.parts if part.text != "" or part.thought_signature]


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
    if not call or not call.args:
        return part
    try:
        nested = [[[[[[[[[[call.args]]]]]]]]]]  # nested as deep as in a stored event
        if from_json(to_json(nested), allow_inf_nan=False) == nested:
            return part
    except (ValueError, RecursionError):
        pass
    problem = json_problem(call.args)
    args = {UNREADABLE: f"its arguments hold {problem}"} if problem else call.args
    return part.model_copy(update={"function_call": call.model_copy(update={"args": args})})
