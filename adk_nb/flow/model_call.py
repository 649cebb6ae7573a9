"""One model call with its hooks: a request in, events out. The only place that calls models."""

from collections.abc import AsyncGenerator, Sequence, Set
from contextlib import aclosing

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event import Event, new_event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.flow.budget import counting
from adk_nb.flow.code_execution import RunsCode, cut_at_code, prepare
from adk_nb.flow.history.lent import Lent
from adk_nb.flow.planning import as_planned
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.storable import storable
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.response_stream import ResponseStream
from adk_nb.models.signals import ESCALATE, REPLAYED, ends_turn, was_replayed
from adk_nb.runtime.call_ids import claim, new_call_id
from adk_nb.runtime.context import Context
from adk_nb.runtime.hooks import Hook, first_result
from adk_nb.runtime.invocation_context import GROUNDING, InvocationContext
from adk_nb.runtime.trace import TracedRequest, current_trace
from adk_nb.wire import copy_model, replace_surrogates

NO_CONTENT = "MODEL_RETURNED_NO_CONTENT"
NAMELESS = "unnamed_tool"
"""Stands for the name of a call without one: services refuse a history in which a call has none."""
_SAID = frozenset(LlmResponse.model_fields)
_METADATA = _SAID - {"content", "partial", "turn_complete", "turn_complete_reason", "finish_reason", "model_version"}


class ModelCall:
    """One question to the model. What was written to `context` lands on the whole event.

    Its responses are handed back to `heard`, one after the other: it is no stream of its own, since each layer costs.

    Raises:
        LlmCallsLimitExceededError: RunConfig.max_llm_calls are used up; the model was not asked.
    """

    def __init__(self, ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, context: Context) -> None:
        ctx.count_llm_call()
        self._ctx = ctx
        self._spec = spec
        self._request = request
        self._context = context
        self._event_id = clock.new_id()
        """Of the pieces of an answer, and of the whole."""
        self._said: _Pieces | None = None
        self._answered = False
        self._empty: LlmResponse | None = None
        """A whole response without content that came before any answer."""
        self._prepares = False
        """What comes is no answer yet, but the events that prepare the question."""

    def responses(self) -> AsyncGenerator[LlmResponse, None]:
        """What the model answers, after the events of what looks into new data files, if the agent runs code.

        It raises what the model raised, unless a callback answered in its place.
        """
        stream = _responses(self._ctx, self._spec, self._request, self._context, self._event_id)
        return self._prepared(self._spec.code_executor, stream) if self._spec.code_executor else stream

    async def _prepared(
        self, executor: RunsCode, stream: AsyncGenerator[LlmResponse, None]
    ) -> AsyncGenerator[LlmResponse, None]:
        self._prepares = True
        async with aclosing(prepare(self._ctx, self._spec, executor, self._request)) as events:
            async for event in events:
                yield event
        self._prepares = False
        async with aclosing(stream) as responses:
            async for response in responses:
                yield response

    def heard(self, response: LlmResponse) -> Event | None:
        """The event of a response: of a piece when the run streams (`partial=True`), or of a whole one.

        None for a whole response without content. Its metadata is kept: beside an answer that came before it in an
        event of its own, else with the answer of `unsaid`.
        """
        if self._prepares and isinstance(response, Event):
            return response
        if response.content and response.content.role != "model":
            response = copy_model(response, content=copy_model(response.content, role="model"))
        if response.partial:
            self._begin()
            self._said = self._said or _Pieces()
            self._said.add(response)
            return event_of(self._ctx, self._spec, response, self._event_id, no_actions())
        if _is_empty(response):
            return self._trailer(response)
        self._begin()
        self._answered = True
        return self._whole(response)

    def unsaid(self) -> Event | None:
        """The whole answer, of a model that only streams, or says nothing; None if it has said it."""
        if self._answered:
            return None
        if self._said is None:
            return self._whole(self._empty or _nothing())
        if self._empty:
            self._said.add(self._empty)
        return self._whole(self._said.joined(self._request.model or ""))

    def _begin(self) -> None:
        """The next answer of the same stream is another event."""
        if self._answered:
            self._event_id, self._said, self._answered = clock.new_id(), None, False

    def _trailer(self, response: LlmResponse) -> Event | None:
        """An event for the tokens and other metadata, or for the state changes of a callback, after an answer."""
        if not self._answered:
            self._empty = response
            return None
        self._context.settle()
        has_metadata = any(getattr(response, name) is not None for name in _METADATA)
        if not has_metadata and self._context.actions == EventActions():
            return None
        self._event_id = clock.new_id()
        bare = copy_model(response, content=None, turn_complete=None)
        return self._priced(event_of(self._ctx, self._spec, bare, self._event_id, self._context.actions))

    def _whole(self, response: LlmResponse) -> Event:
        return self._priced(_whole(self._ctx, self._spec, response, self._event_id, self._context))

    def _priced(self, event: Event) -> Event:
        if event.usage_metadata is not None and event.model_version is None:
            event.model_version = self._request.model  # what was asked: else nobody knows what it costs
        return event


class _Pieces:
    """What a model has said so far, in the memory that its words take: in case it never says it whole."""

    def __init__(self) -> None:
        self._parts: list[types.Part] = []
        self._words: list[str] = []
        """What comes after those parts."""
        self._thought = False
        """The words are thoughts."""
        self._calls: list[str] = []
        """Names of the tools in pieces of calls; such a piece may lack arguments, so it is never run."""
        self._last = LlmResponse()

    def add(self, piece: LlmResponse) -> None:
        self._last = piece
        for part in (piece.content and piece.content.parts) or ():
            if part.function_call:
                self._calls.append(part.function_call.name or NAMELESS)
                continue
            if part.text is None or part.thought_signature:
                self._end_words()
                self._parts.append(part)
                continue
            if bool(part.thought) is not self._thought:
                self._end_words()
                self._thought = not self._thought
            self._words.append(part.text)

    def joined(self, model: str) -> LlmResponse:
        self._end_words()
        stream = ResponseStream(model)
        content = types.Content(role="model", parts=self._parts)
        stream.add(self._last.model_copy(update={"content": content}))
        whole = stream.joined()
        if self._calls and not whole.error_code:
            whole.error_code = types.FinishReason.MALFORMED_FUNCTION_CALL.value
            whole.error_message = (
                f"the stream of model {model!r} ended after pieces of a call to {self._calls[-1]!r}, without a whole "
                "answer (partial=False); no call was made"
            )
        return whole

    def _end_words(self) -> None:
        if self._words:
            self._parts.append(types.Part(text="".join(self._words), thought=self._thought or None))
            self._words = []


async def ask_apart(model: BaseLlm, request: LlmRequest) -> LlmResponse | None:
    """The whole answer to a question that is no agent's: no hook hears of it, and no event tells it.

    Raises:
        LlmCallsLimitExceededError: It counts for a run, whose `max_llm_calls` are used up; the model was not asked.
    """
    if ctx := counting.get():
        ctx.count_llm_call()
    answer: LlmResponse | None = None
    async with aclosing(model.generate_content_async(request)) as responses:
        async for response in responses:
            if answer is None or not _is_empty(response):
                answer = response
    return answer


def _responses(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, context: Context, event_id: str
) -> AsyncGenerator[LlmResponse, None]:
    """What the model answers, and what hooks make of it. Without hooks the model's own stream: each layer costs."""
    plugins = ctx.plugin_manager
    before = [*plugins.hooks("before_model"), *spec.hooks("before_model")]
    after = [*plugins.hooks("after_model"), *spec.hooks("after_model")]
    failed = [*plugins.hooks("on_model_error"), *spec.hooks("on_model_error")]
    if before or after or failed:
        return _hooked(ctx, spec, request, context, event_id, before, after, failed)
    return _sent(ctx, spec, request, event_id)


def _sent(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, event_id: str
) -> AsyncGenerator[LlmResponse, None]:
    """The model's own stream, noted where somebody listens."""
    model = spec.canonical_model
    responses = model.generate_content_async(request, ctx.run_config.streams)
    if (trace := current_trace.get()) is None:
        return responses
    sent = TracedRequest(
        event_id=event_id,
        invocation_id=ctx.invocation_id,
        agent=spec.name,
        branch=ctx.branch,
        path=ctx.node.path if ctx.node else "",
        model=request.model or model.model,
        request=request,
        began=clock.now(),
    )
    return trace.trace_request(sent, responses)


async def _hooked(
    ctx: InvocationContext,
    spec: LlmSpec,
    request: LlmRequest,
    context: Context,
    event_id: str,
    before: Sequence[Hook],
    after: Sequence[Hook],
    failed: Sequence[Hook],
) -> AsyncGenerator[LlmResponse, None]:
    if before:
        answer = await first_result(before, callback_context=context, llm_request=request)
        if answer is not None:
            yield checked(answer, "before_model_callback")
            return
        if isinstance(request.contents, Lent):
            request.contents = request.contents.taken_back()
    async with aclosing(_asked(ctx, spec, request, context, event_id, failed)) as responses:
        async for response in responses:
            if after:
                other = await first_result(after, callback_context=context, llm_response=response)
                if other is not None:
                    response = in_place_of(response, checked(other, "after_model_callback"))
            yield response


async def _asked(
    ctx: InvocationContext,
    spec: LlmSpec,
    request: LlmRequest,
    context: Context,
    event_id: str,
    failed: Sequence[Hook],
) -> AsyncGenerator[LlmResponse, None]:
    try:
        async with aclosing(_sent(ctx, spec, request, event_id)) as responses:
            async for response in responses:
                yield response
    except Exception as error:
        answer = await first_result(failed, callback_context=context, llm_request=request, error=error)
        if answer is None:
            raise
        yield checked(answer, "on_model_error_callback")


def checked(answer: object, hook: str) -> LlmResponse:
    """What a hook answered. Raises ConfigurationError if that is no response."""
    if isinstance(answer, LlmResponse):
        return answer
    raise ConfigurationError(f"{hook} returned a {type(answer).__name__}; return an LlmResponse, or None")


def in_place_of(response: LlmResponse, other: LlmResponse) -> LlmResponse:
    """`other`, with what only the model's own response tells."""
    kept = {
        name: getattr(response, name)
        for name in ("partial", "turn_complete", "usage_metadata", "cache_metadata")
        if getattr(other, name) is None
    }
    return other.model_copy(update=kept)


def event_of(
    ctx: InvocationContext, spec: LlmSpec, response: LlmResponse, event_id: str, actions: EventActions
) -> Event:
    """A response as its agent's event; calls in a whole one have an id."""
    held = vars(response)
    said = {name: held[name] for name in response.model_fields_set & _SAID if held.get(name) is not None}
    if response.content and not response.partial:
        said["content"] = _identified(ctx, response.content)
    if ctx.branch:
        said["branch"] = ctx.branch
    # What a response says was checked when it was made, and a stream has many pieces.
    return new_event(id=event_id, author=spec.name, invocation_id=ctx.invocation_id, actions=actions, **said)


def _whole(ctx: InvocationContext, spec: LlmSpec, response: LlmResponse, event_id: str, context: Context) -> Event:
    if spec.code_executor:
        response = cut_at_code(ctx, spec.code_executor, response)
    if spec.planner:
        response = as_planned(spec.planner, response, context)
    context.settle()
    if response.grounding_metadata is None and (found := ctx.session.state.get(GROUNDING)):
        response = response.model_copy(update={"grounding_metadata": found})
    if response.custom_metadata and response.custom_metadata.get(ESCALATE) is True:
        context.actions.escalate = True
    event = event_of(ctx, spec, response, event_id, context.actions)
    if response.usage_metadata is not None and was_replayed(response.usage_metadata):
        event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED: True}
    if _says_nothing(event):
        event.error_code = NO_CONTENT
        event.error_message = "the model stopped without saying anything or calling a tool"
    return event


def _identified(ctx: InvocationContext, content: types.Content) -> types.Content:
    """`content` as the model's, as it can be kept, each call with an id that no other call of the session has.

    A copy where that changes something: a model may say the same content again. In an agent that is called as a tool
    every id is new.
    """
    parts: list[types.Part] = []
    changed = not content.role
    for index, said in enumerate(content.parts or ()):
        part = storable(said)
        parts.append(part)
        changed = changed or part is not said
        if call := part.function_call:
            name, call_id = (
                replace_surrogates(call.name or NAMELESS),
                new_call_id() if ctx.delegated_input else claim(ctx, call.id),
            )
            if (name, call_id) != (call.name, call.id):
                parts[index] = copy_model(part, function_call=copy_model(call, id=call_id, name=name))
                changed = True
    return copy_model(content, role=content.role or "model", parts=parts) if changed else content


def _nothing() -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[]))


def _is_empty(response: LlmResponse) -> bool:
    if response.error_code or response.interrupted:
        return False
    return not [part for part in response.parts if part.text != "" or part.thought_signature]


def _says_nothing(event: Event) -> bool:
    if event.error_code or event.actions.skip_summarization:
        return False
    if event.custom_metadata and ends_turn(event.custom_metadata):
        return False
    return all(part.text is not None and (part.thought or not part.text.strip()) for part in event.parts)


def mark_long_running(event: Event, names: Set[str]) -> None:
    """Note which of the event's calls are answered from outside the run: those of the tools in `names`."""
    if later := {call.id for call in event.get_function_calls() if call.id and call.name in names}:
        event.long_running_tool_ids = later
