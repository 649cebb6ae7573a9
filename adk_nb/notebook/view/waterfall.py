"""When each agent, model and tool of a run was at work, as bars on one axis; pure, for text, pictures and panels."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypedDict

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook.view.event_words import is_question, who_said
from adk_nb.notebook.view.plain_text import cleaned, one_line
from adk_nb.notebook.view.rows import NOTEBOOK
from adk_nb.runtime.branches import calls_to, lane_of
from adk_nb.runtime.nested_calls import TRANSFER
from adk_nb.runtime.trace import Trace, TracedRequest, TracedTool

Kind = Literal["agent", "model", "tool", "person"]
_INTERNAL = (*REQUESTS, INPUT_REQUEST, TRANSFER)
"""Calls of the runtime itself: they have no bar of a tool."""


class Bar(TypedDict):
    """One bar, as JSON. Times are ms since the run began."""

    kind: Kind
    """`person`: the run waited for somebody's answer."""
    name: str
    """The agent, the model, the tool; of a person what was asked."""
    agent: str
    """Whose work it is."""
    lane: str
    """Whose of those that work at once; empty if nobody works beside it."""
    depth: int
    """0 for the first agent, one more for what it calls, one more for what a called agent calls."""
    begin: float
    first: float | None
    """Of a streamed answer: when its first piece came."""
    end: float | None
    """None: it is still at work."""
    event: str
    """The event that tells of a model's answer, or that made a call."""
    call: str
    """Id of a tool's call, or of what a person was asked."""
    error: str


def bars(events: Iterable[Event], trace: Trace | None = None) -> list[Bar]:
    """The bars of a run, each agent above what it asked, in the order in which they began.

    Args:
        events: Of the run, oldest first, whole ones, the user's included.
        trace: What was noted while it ran. None, or an empty one, as of a run of an earlier kernel: times are those of
            the events, and there are no first pieces.
    """
    told = [event for event in events if not event.partial and event.author != NOTEBOOK]
    noted = trace or Trace()
    works = [*map(_of_request, noted.requests), *_of_tools(noted.tools), *_from_events(told, noted)]
    if not works:
        return []
    start = min([work.begin for work in works] + [event.timestamp for event in told[:1]])
    return [work.bar(start) for work in _under_agents(works)]


class _Work:
    def __init__(
        self,
        kind: Kind,
        name: str,
        agent: str,
        branch: str | None,
        path: str,
        begin: float,
        within: tuple[str, ...] = (),
    ) -> None:
        self.kind: Kind = kind
        self.name = one_line(name, 100)
        self.agent = one_line(agent, 100)
        self.branch = branch
        self.lane = one_line(lane_of(branch, path), 100)
        self.within = within
        self.depth = 2 * max(len(calls_to(branch, path)), len(within))
        self.begin = begin
        self.first: float | None = None
        self.end: float | None = None
        self.number = 0
        """Of what was noted; 0: it is known from events alone."""
        self.event = self.call = self.error = ""

    def bar(self, start: float) -> Bar:
        return Bar(
            kind=self.kind,
            name=self.name,
            agent=self.agent,
            lane=self.lane,
            depth=self.depth + (self.kind != "agent"),
            begin=_ms(start, self.begin),
            first=None if self.first is None else _ms(start, self.first),
            end=None if self.end is None else _ms(start, self.end),
            event=self.event,
            call=self.call,
            error=one_line(cleaned(self.error)),
        )


def _ms(start: float, moment: float) -> float:
    return round(max(0.0, moment - start) * 1000, 1)


def _of_request(sent: TracedRequest) -> _Work:
    work = _Work("model", sent.model, sent.agent, sent.branch, sent.path, sent.began, sent.within)
    work.first, work.end, work.event, work.error = sent.first, sent.ended, sent.event_id, sent.error
    work.number = sent.number
    return work


def _of_tools(called: Iterable[TracedTool]) -> list[_Work]:
    return [_of_tool(one) for one in called if one.tool not in _INTERNAL]


def _of_tool(called: TracedTool) -> _Work:
    work = _Work("tool", called.tool, called.agent, called.branch, called.path, called.began, called.within)
    work.end, work.call, work.error, work.number = called.ended, called.call_id, called.error, called.number
    return work


def _from_events(events: Sequence[Event], noted: Trace) -> list[_Work]:
    """What nobody noted: how long people took, and what happened before the first note."""
    since = min([one.began for one in (*noted.requests, *noted.tools)], default=float("inf"))
    works: list[_Work] = []
    open_calls: dict[str, _Work] = {}
    last = events[0].timestamp if events else 0.0
    for event in events:
        for response in event.get_function_responses():
            if (work := open_calls.get(response.id or "")) and (work.kind == "tool" or event.author == "user"):
                work.end = event.timestamp
        if _is_answer(event) and event.timestamp < since:
            work = _Work("model", event.model_version or "model", who_said(event), *_place(event), last)
            work.end, work.event, work.error = event.timestamp, event.id, event.error_code or ""
            works.append(work)
        for call in event.get_function_calls():
            asks = _asks(event, call)
            if asks or (event.timestamp < since and call.name not in _INTERNAL):
                works.append(_called(event, call, asks=asks))
                open_calls[call.id or ""] = works[-1]
        last = event.timestamp
    return works


def _asks(event: Event, call: types.FunctionCall) -> bool:
    is_request = call.name in REQUESTS and call.id in (event.long_running_tool_ids or ())
    return is_request or is_question(event, call)


def _called(event: Event, call: types.FunctionCall, *, asks: bool) -> _Work:
    name = "waiting for a person" if asks else call.name or ""
    work = _Work("person" if asks else "tool", name, who_said(event), *_place(event), event.timestamp)
    work.event, work.call = event.id, call.id or ""
    return work


def _place(event: Event) -> tuple[str | None, str]:
    return event.branch, event.node_info.path


def _is_answer(event: Event) -> bool:
    if event.author == "user" or event.get_function_responses():
        return False
    asks = event.long_running_tool_ids and all(call.name in REQUESTS for call in event.get_function_calls())
    return bool(event.parts or event.error_code) and not asks


def _under_agents(works: list[_Work]) -> list[_Work]:
    """`works`, each behind its agent: a stretch of time in which nobody else worked in that agent's place."""
    agents: list[tuple[_Work, list[_Work]]] = []
    now: dict[Any, int] = {}
    """Where -> the number of who works there."""
    for work in sorted(works, key=lambda one: (one.begin, one.number or math.inf)):
        place = work.branch, work.within
        at = now.get(place)
        if at is None or agents[at][0].agent != work.agent:
            agent = _Work("agent", work.agent, work.agent, work.branch, "", work.begin, work.within)
            agent.lane, agent.depth = work.lane, work.depth
            agents.append((agent, []))
            at = now[place] = len(agents) - 1
        agent, own = agents[at]
        own.append(work)
        ends = [one.end for one in own]
        agent.end = None if None in ends else max(end for end in ends if end is not None)
    return list(_nested(agents))


def _nested(agents: list[tuple[_Work, list[_Work]]]) -> Iterator[_Work]:
    """Each agent behind the call that led to it."""
    calls = {work.call for _, own in agents for work in own if work.kind == "tool"}
    inside: dict[str, list[tuple[_Work, list[_Work]]]] = {}
    for agent, own in agents:
        by = agent.within[-1] if agent.within else ""
        inside.setdefault(by if by in calls else "", []).append((agent, own))
    open_ones = [iter((agent, *own)) for agent, own in reversed(inside.pop("", []))]
    while open_ones:
        if (work := next(open_ones[-1], None)) is None:
            open_ones.pop()
            continue
        yield work
        called = inside.pop(work.call, []) if work.kind == "tool" else []
        open_ones += [iter((agent, *own)) for agent, own in reversed(called)]
