"""Traces: the model requests and tool calls of a run, with their times; recorded only while a trace is active."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from adk_nb import clock, types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.response_stream import ResponseStream

MAX_REQUESTS = 1_000
"""Limit of requests in a trace; the oldest are dropped."""
_MAX_RUNS = 200


@dataclass(eq=False, kw_only=True)
class TracedRequest:
    """A model request after all callbacks, and its response before them. Times in seconds since the epoch, UTC."""

    event_id: str
    """Id of the event with the response."""
    invocation_id: str
    agent: str
    branch: str | None
    path: str
    """Path of the graph node that the agent works for; empty if none."""
    model: str
    request: LlmRequest
    """Read-only: its contents are the session's objects."""
    began: float
    unsent_settings: Callable[[LlmRequest], dict[str, str]] | None = None
    """Returns the settings of a request that its model is not sent, each with the reason."""
    first: float | None = None
    """Time of the first partial response. None: not streamed, or not yet."""
    ended: float | None = None
    """None: still running."""
    within: tuple[str, ...] = ()
    """Ids of the tool calls that it was sent in, outermost first."""
    number: int = 0
    """Position among all requests and tool calls of the trace, from 1."""
    response: LlmResponse | None = None
    """The complete response; what came until then, with `partial=True`, of one that was stopped or broke off."""
    error: str = ""


@dataclass(eq=False, kw_only=True)
class TracedTool:
    """A tool call from the start of its work, without the wait for an approval."""

    call_id: str
    tool: str
    invocation_id: str
    agent: str
    branch: str | None
    path: str
    began: float
    ended: float | None = None
    within: tuple[str, ...] = ()
    """Ids of the tool calls that it was made in, outermost first."""
    number: int = 0
    """Position among all requests and tool calls of the trace, from 1."""
    error: str = ""


@dataclass(frozen=True)
class Substitution:
    """A value inserted into an instruction."""

    start: int
    end: int
    source: str
    """The placeholder as written, such as `{{places}}` or `{budget?}`."""


@dataclass(eq=False)
class Trace:
    """The trace of a run, or of its part up to an interrupt."""

    requests: list[TracedRequest] = field(default_factory=list[TracedRequest])
    """In the order of sending."""
    tools: list[TracedTool] = field(default_factory=list[TracedTool])
    """In the order of starting."""
    instructions: dict[str, tuple[Substitution, ...]] = field(default_factory=dict[str, tuple[Substitution, ...]])
    """Instruction text -> the values inserted into it."""

    count: int = 0
    """Number of recorded requests and tool calls."""

    @contextmanager
    def active(self) -> Generator[None]:
        """Record in this task and in the tasks that it starts."""
        previous = current_trace.set(self)
        try:
            yield
        finally:
            current_trace.reset(previous)

    def join_instruction(self, pieces: Iterable[tuple[str, str]]) -> str:
        """Join an instruction and record its substitutions. `pieces`: text and placeholder; empty for literal text."""
        text_so_far, substitutions = "", list[Substitution]()
        for text, source in pieces:
            if source:
                substitutions.append(Substitution(len(text_so_far), len(text_so_far) + len(text), source))
            text_so_far += text
        if substitutions:
            self.instructions[text_so_far] = tuple(substitutions)
        return text_so_far

    def seconds_of(self, call_id: str) -> float | None:
        """Duration of a tool call. None: still running, or not recorded."""
        newest = next((traced for traced in reversed(self.tools) if call_id and traced.call_id == call_id), None)
        return newest.ended - newest.began if newest and newest.ended is not None else None

    async def trace_request(
        self, traced: TracedRequest, responses: AsyncGenerator[LlmResponse, None]
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield `responses` and record them."""
        self.requests.append(traced)
        del self.requests[:-MAX_REQUESTS]
        traced.began, traced.within, traced.number = clock.now(), _within.get(), self._next_number()
        pieces: list[types.Part] = []
        try:
            async with aclosing(responses) as answers:
                async for response in answers:
                    if response.partial:
                        traced.first = traced.first or clock.now()
                        pieces += [part for part in response.parts if part.text]
                    traced.response = response
                    yield response
        except Exception as error:
            traced.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            traced.ended = clock.now()
            if pieces and (last := traced.response) and last.partial:
                stream = ResponseStream(traced.model)
                stream.add_parts(pieces)
                traced.response = last.model_copy(update={"content": stream.joined().content})

    def _next_number(self) -> int:
        self.count += 1
        return self.count

    async def trace_tool(self, traced: TracedTool, result: Awaitable[Any]) -> Any:
        """Await `result` and record the call."""
        self.tools.append(traced)
        traced.within, traced.number = _within.get(), self._next_number()
        inside = _within.set((*traced.within, traced.call_id))
        try:
            return await result
        except Exception as error:
            traced.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            traced.ended = clock.now()
            _within.reset(inside)


class Traces:
    """The traces of the newest runs of a notebook or a chat, up to a limit."""

    def __init__(self, max_requests: int = MAX_REQUESTS, *, beside: "Traces | None" = None) -> None:
        """`max_requests`: limit for all traces together. `beside`: gets what is added here, too."""
        self._max_requests = max_requests
        self._beside = beside
        self._by_invocation: dict[str, list[Trace]] = {}

    def add(self, invocation_id: str, trace: Trace) -> None:
        """Add a trace of an invocation; a resumed invocation has several."""
        if self._beside:
            self._beside.add(invocation_id, trace)
        traces = self._by_invocation.setdefault(invocation_id, [])
        if any(existing is trace for existing in traces):
            return
        traces.append(trace)
        # The newest invocation stays whole, however large it is.
        while len(self._by_invocation) > 1 and (
            len(self._by_invocation) > _MAX_RUNS or self._request_count() > self._max_requests
        ):
            del self._by_invocation[next(iter(self._by_invocation))]

    @property
    def invocation_ids(self) -> list[str]:
        """The invocations that have a trace, oldest first."""
        return list(self._by_invocation)

    def merged(self, invocation_ids: Iterable[str]) -> Trace:
        """One trace of these invocations, without entries of other invocations.

        Empty for runs of another kernel: traces are not stored.
        """
        ids = dict.fromkeys(invocation_ids)
        other_ids = self._by_invocation.keys() - ids
        merged_trace = Trace()
        for trace in dict.fromkeys(trace for key in ids for trace in self._by_invocation.get(key, ())):
            other_calls = {tool.call_id for tool in trace.tools if tool.invocation_id in other_ids}

            # The default binds the calls of this trace; a closure would read those of the last.
            def is_included(traced: TracedRequest | TracedTool, calls: set[str] = other_calls) -> bool:
                return traced.invocation_id not in other_ids and calls.isdisjoint(traced.within)

            merged_trace.requests += filter(is_included, trace.requests)
            merged_trace.tools += filter(is_included, trace.tools)
            merged_trace.instructions |= trace.instructions
        return merged_trace

    def _request_count(self) -> int:
        return sum(len(trace.requests) for trace in dict.fromkeys(chain.from_iterable(self._by_invocation.values())))


_within: ContextVar[tuple[str, ...]] = ContextVar("within", default=())
current_trace: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""The active trace. None: nothing is recorded."""
