"""What a run asked its models and its tools, as it was sent and when: kept where somebody listens, else for nothing."""

from collections.abc import AsyncGenerator, Awaitable, Generator, Iterable
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from adk_nb import clock
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse

MOST_REQUESTS = 1_000
"""Requests that a trace keeps; the oldest go first."""


@dataclass(eq=False, kw_only=True)
class TracedRequest:
    """One question as a model was sent it, after all callbacks, and its answer before them. Times as `Event`'s."""

    event_id: str
    """Of the event that tells of the answer."""
    invocation_id: str
    agent: str
    branch: str | None
    path: str
    """Of the graph's node for which the agent works; empty if for none."""
    model: str
    request: LlmRequest
    """To be read only; what is in it is the session's."""
    began: float
    first: float | None = None
    """When the first piece of the answer came. None: it came whole, or not yet."""
    ended: float | None = None
    """None: it is not at its end."""
    within: tuple[str, ...] = ()
    """Ids of the calls of tools on whose behalf it was sent, outermost first."""
    number: int = 0
    """Of all that the trace has noted, 1 for the first."""
    response: LlmResponse | None = None
    """The whole answer; of a model that only streams its last piece."""
    error: str = ""


@dataclass(eq=False, kw_only=True)
class TracedTool:
    """One call of a tool, from when it began to work; that a person was asked before is no part of it."""

    call_id: str
    tool: str
    invocation_id: str
    agent: str
    branch: str | None
    path: str
    began: float
    ended: float | None = None
    within: tuple[str, ...] = ()
    """Ids of the calls of tools on whose behalf it was made, outermost first."""
    number: int = 0
    """Of all that the trace has noted, 1 for the first."""
    error: str = ""


@dataclass(frozen=True)
class Placed:
    """What was put into an instruction."""

    start: int
    end: int
    source: str
    """What stood there as it was written, as `{{places}}` or `{budget?}`."""


@dataclass(eq=False)
class Trace:
    """One run, or the part of one until it waits for a person."""

    requests: list[TracedRequest] = field(default_factory=list[TracedRequest])
    """In the order in which they were sent."""
    tools: list[TracedTool] = field(default_factory=list[TracedTool])
    """In the order in which they began."""
    instructions: dict[str, tuple[Placed, ...]] = field(default_factory=dict[str, tuple[Placed, ...]])
    """Each instruction as it was filled in -> what was put where."""

    count: int = 0
    """How much it has noted."""

    @contextmanager
    def listening(self) -> Generator[None]:
        """Keep what is asked in this task, and in those that it starts."""
        before = listening.set(self)
        try:
            yield
        finally:
            listening.reset(before)

    def joined(self, pieces: Iterable[tuple[str, str]]) -> str:
        """An instruction of `pieces`: each its text, and what stood there as it was written; empty if just that."""
        made, placed = "", list[Placed]()
        for text, source in pieces:
            if source:
                placed.append(Placed(len(made), len(made) + len(text), source))
            made += text
        if placed:
            self.instructions[made] = tuple(placed)
        return made

    def seconds_of(self, call_id: str) -> float | None:
        """How long a tool took for a call; None: it works on, or nothing is known of it."""
        known = next((one for one in reversed(self.tools) if call_id and one.call_id == call_id), None)
        return known.ended - known.began if known and known.ended is not None else None

    async def asking(
        self, sent: TracedRequest, responses: AsyncGenerator[LlmResponse, None]
    ) -> AsyncGenerator[LlmResponse, None]:
        """`responses`, noted."""
        self.requests.append(sent)
        del self.requests[:-MOST_REQUESTS]
        sent.began, sent.within, sent.number = clock.now(), _within.get(), self._next()
        try:
            async with aclosing(responses) as answers:
                async for response in answers:
                    if response.partial and sent.first is None:
                        sent.first = clock.now()
                    sent.response = response
                    yield response
        except Exception as error:
            sent.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            sent.ended = clock.now()

    def _next(self) -> int:
        self.count += 1
        return self.count

    async def calling(self, called: TracedTool, result: Awaitable[Any]) -> Any:
        """What `result` comes to, noted."""
        self.tools.append(called)
        called.within, called.number = _within.get(), self._next()
        inside = _within.set((*called.within, called.call_id))
        try:
            return await result
        except Exception as error:
            called.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            called.ended = clock.now()
            _within.reset(inside)


class Traces:
    """The traces of the newest runs of a notebook or a chat; of older ones only the events are left."""

    def __init__(self, most_requests: int = MOST_REQUESTS, most_runs: int = 200) -> None:
        """`most_requests`: that are kept in all."""
        self._most_requests = most_requests
        self._most_runs = most_runs
        self._of: dict[str, list[Trace]] = {}

    def keep(self, invocation_id: str, trace: Trace) -> None:
        """Keep one more trace of an invocation, which may go on after a pause."""
        of = self._of.setdefault(invocation_id, [])
        if not any(one is trace for one in of):
            of.append(trace)
        while len(self._of) > 1 and (len(self._of) > self._most_runs or self._requests() > self._most_requests):
            del self._of[next(iter(self._of))]

    def of(self, invocation_ids: Iterable[str]) -> Trace:
        """All that is kept of these, as one trace; empty if nothing is, as of the runs of another kernel.

        A view that shows several runs has one trace of them all: what is of other runs that are kept is left out.
        """
        ids = dict.fromkeys(invocation_ids)
        others = self._of.keys() - ids
        whole = Trace()
        for one in dict.fromkeys(trace for key in ids for trace in self._of.get(key, ())):
            calls = {called.call_id for called in one.tools if called.invocation_id in others}

            def is_theirs(noted: TracedRequest | TracedTool, calls: set[str] = calls) -> bool:
                return noted.invocation_id not in others and calls.isdisjoint(noted.within)

            whole.requests += filter(is_theirs, one.requests)
            whole.tools += filter(is_theirs, one.tools)
            whole.instructions |= one.instructions
        return whole

    def _requests(self) -> int:
        return sum(len(one.requests) for one in dict.fromkeys(chain.from_iterable(self._of.values())))


_within: ContextVar[tuple[str, ...]] = ContextVar("within", default=())
listening: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""What keeps what is asked here and now. None: nothing is kept."""
