"""The panel of the waterfall: when each agent, model and tool was at work, as bars on one axis."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypedDict

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook.view.document import Block, Code, Fold, Picture, Section, Shape, Table, Text, in_html
from adk_nb.notebook.view.event_words import is_question, who_said
from adk_nb.notebook.view.panel import Panel, PanelRun, add, text_fold, without_port
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
    whole = [event for event in events if not event.partial and event.author != NOTEBOOK]
    noted = trace or Trace()
    works = [*map(_of_request, noted.requests), *_of_tools(noted.tools), *_from_events(whole, noted)]
    if not works:
        return []
    start = min([work.begin for work in works] + [event.timestamp for event in whole[:1]])
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
    return [_of_tool(call) for call in called if call.tool not in _INTERNAL]


def _of_tool(called: TracedTool) -> _Work:
    work = _Work("tool", called.tool, called.agent, called.branch, called.path, called.began, called.within)
    work.end, work.call, work.error, work.number = called.ended, called.call_id, called.error, called.number
    return work


def _from_events(events: Sequence[Event], noted: Trace) -> list[_Work]:
    """What nobody noted: how long people took, and what happened before the first note."""
    since = min([record.began for record in (*noted.requests, *noted.tools)], default=float("inf"))
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
    name = "waiting for you" if asks else call.name or ""
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
    for work in sorted(works, key=lambda each: (each.begin, each.number or math.inf)):
        place = work.branch, work.within
        at = now.get(place)
        if at is None or agents[at][0].agent != work.agent:
            agent = _Work("agent", work.agent, work.agent, work.branch, "", work.begin, work.within)
            agent.lane, agent.depth = work.lane, work.depth
            agents.append((agent, []))
            at = now[place] = len(agents) - 1
        agent, own = agents[at]
        own.append(work)
        ends = [child.end for child in own]
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


_WIDTH, _SHORT = 40, 20
"""Characters of the axis; the short one fits on a narrow page, which breaks longer lines."""
_SIGNS: dict[Kind, str] = {"agent": "─", "model": "█", "tool": "▒", "person": "·"}
_NAMES: dict[Kind, str] = {"agent": "agent", "model": "model", "tool": "tool", "person": "waiting for you"}
_WAITS = "░"
_COLOURS: dict[Kind, str] = {"agent": "currentColor", "model": "#1e88e5", "tool": "#3d9150", "person": "#c47a00"}
"""At least 3 to 1 on a white page and on a black one."""
_ROW, _AXIS, _TIMES = 22, 400, 80
_CHAR, _MOST = 7, 34
"""Width of a name's letter, and how many of them are shown."""
_MOST_SAVED = 40
"""Bars in a saved notebook."""


def in_steps(bars: Sequence[Bar]) -> list[Bar]:
    """The bars with a step for each model call and tool instead of its time: the same in every run of one notebook."""
    order = [bar for bar in bars if bar["kind"] != "agent"]
    steps = {id(bar): (number, number + 1) for bar, number in zip(order, _numbers(order), strict=True)}
    stepped: list[Bar] = []
    for bar in bars:
        within = [steps[id(inner)] for inner in order if inner is bar or _covers(bar, inner)]
        begin, end = min(step[0] for step in within), max(step[1] for step in within)
        stepped.append({**bar, "begin": begin, "end": end, "first": None})
    return stepped


def _numbers(order: Sequence[Bar]) -> Iterator[int]:
    """The step in which each begins. Those that work at once count each for itself: who is faster differs."""
    step, lanes, end = 0, dict[str, int](), 0.0
    for bar in order:
        lane = bar["lane"]
        if lanes and (not lane or (lane not in lanes and bar["begin"] >= end)):
            step, lanes = max(lanes.values()), {}
        if not lane:
            yield step
            step += 1
            continue
        end = max(end, bar["begin"] if bar["end"] is None else bar["end"])
        yield lanes.setdefault(lane, step)
        lanes[lane] += 1


def _covers(bar: Bar, other: Bar) -> bool:
    if bar["kind"] == "agent" and bar["agent"] != other["agent"] and other["depth"] <= bar["depth"] + 1:
        return False
    if bar["lane"] and bar["lane"] != other["lane"]:
        return False
    ends = bar["end"] is None or (other["end"] is not None and other["end"] <= bar["end"])
    return other["depth"] > bar["depth"] and bar["begin"] <= other["begin"] and ends


def drawn(bars: Sequence[Bar], title: str, *, with_times: bool = True) -> tuple[Block, ...]:
    """A picture of the bars, with the same as a table and as text.

    Args:
        bars: At least one.
        title: Which run it is, on one line.
        with_times: False: `bars` are in steps.
    """
    length = max([1e-9, *(bar["end"] if bar["end"] is not None else bar["begin"] for bar in bars)])
    heading = f"{title} · {duration(length)}" if with_times else f"{title} · in {_steps(length)}, without times"
    text = "\n".join([*_lines(bars, length, with_times=with_times), "", _LEGEND])
    cells = [[(_indented(bar),), *_times(bar, with_times=with_times)] for bar in bars]
    names = _CHAR * min(_MOST, max(len(_indented(bar)) for bar in bars)) + 16
    shapes = [
        shape for number, bar in enumerate(bars) for shape in _row(bar, number, names, length, with_times=with_times)
    ]
    width, height = names + _AXIS + _TIMES, _ROW * len(bars) + 4
    picture = Picture(shapes, width, height, heading, text=text, least=0.5, font_size=12)
    twins = Fold("as a table", (Table(["who", "from", "took", ""], cells),)), Fold("as text", (Code(text),))
    return (Section((Text(heading), picture, in_html(Text(_COLOURS_IN_WORDS, small=True), *twins))),)


_LEGEND = f"{_SIGNS['agent']} agent  {_WAITS}{_SIGNS['model']} model, {_WAITS} until its first piece  " + (
    f"{_SIGNS['tool']} tool  {_SIGNS['person']} waiting for you"
)


_COLOURS_IN_WORDS = (
    "line: agent · blue: model, pale until its first piece · green: tool · orange: waiting for you · red: failed"
)


def steps_as_text(bars: Sequence[Bar]) -> list[str]:
    """Bars of `in_steps` as lines of text, and what their signs mean."""
    length = max(bar["end"] or bar["begin"] for bar in bars)
    kinds = {bar["kind"] for bar in bars}
    legend = "  ".join(f"{sign} {_NAMES[kind]}" for kind, sign in _SIGNS.items() if kind in kinds)
    return [*_lines(bars, length, with_times=False, axis=_SHORT), legend]


def duration(ms: float) -> str:
    """`320 ms`, `1.24 s`, `2 min 5 s`."""
    if ms < 10:
        return f"{ms:.1f} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.2f} s"
    return f"{int(ms // 60_000)} min {int(ms % 60_000 // 1000)} s"


def _steps(length: float) -> str:
    return f"{length:.0f} step{'s' if length > 1 else ''}"


def _indented(bar: Bar) -> str:
    lane = f"∥ {bar['lane']} / " if bar["lane"] and bar["kind"] == "agent" and bar["lane"] != bar["name"] else ""
    return "\u00a0\u00a0" * bar["depth"] + lane + bar["name"]


def _times(bar: Bar, *, with_times: bool) -> list[str]:
    """When it began, how long it took, and what else there is to say."""
    begin, end, first = bar["begin"], bar["end"], bar["first"]
    failed = f"failed: {bar['error']}" if bar["error"] else ""
    if not with_times:
        return ["", "", failed]
    took = duration(end - begin) if end is not None else "still waits" if bar["kind"] == "person" else "still at work"
    remark = "" if first is None else f"first piece after {duration(first - begin)}"
    return [duration(begin), took, failed or remark]


def _lines(bars: Sequence[Bar], length: float, *, with_times: bool, axis: int = _WIDTH) -> list[str]:
    names = [_indented(bar).replace("\u00a0", " ") for bar in bars]
    width = min(axis + 4, max(len(name) for name in names))
    lines: list[str] = []
    for name, bar in zip(names, bars, strict=True):
        _, took, remark = _times(bar, with_times=with_times)
        lines.append(
            f"{name[:width]:<{width}}  |{_drawn(bar, length, axis)}|  {took}{'  ' if remark else ''}{remark}".rstrip()
        )
    return lines


def _drawn(bar: Bar, length: float, axis: int) -> str:
    def place(moment: float | None) -> int:
        return round(min(1.0, (length if moment is None else moment) / length) * axis)

    begin = min(place(bar["begin"]), axis - 1)
    end = max(place(bar["end"]), begin + 1)
    first = begin if bar["first"] is None else min(place(bar["first"]), end)
    return (" " * begin + _WAITS * (first - begin) + _SIGNS[bar["kind"]] * (end - first)).ljust(axis)


def _row(bar: Bar, number: int, names: int, length: float, *, with_times: bool) -> Iterator[Shape]:
    scale = _AXIS / length
    top, left = _ROW * number + 3, names + bar["begin"] * scale
    right = max(left + 2, names + (length if bar["end"] is None else bar["end"]) * scale)
    name, (_, took, remark) = _indented(bar)[:_MOST], _times(bar, with_times=with_times)
    first = left if bar["first"] is None else min(right, names + bar["first"] * scale)
    high = 3 if bar["kind"] == "agent" else 12
    fill = {"rx": "1.5", "fill": "#e0464e" if bar["error"] else _COLOURS[bar["kind"]]}
    place = {"y": f"{top + (_ROW - high) / 2 - 1:.1f}", "height": str(high), **fill}
    tip = " ".join(filter(None, [bar["name"], took, remark]))
    yield {"tag": "rect", "at": {"x": f"{first:.1f}", "width": f"{right - first:.1f}", **place}, "tip": tip}
    if first > left:
        pale = {"x": f"{left:.1f}", "width": f"{first - left:.1f}", **place, "fill-opacity": "0.35"}
        yield {"tag": "rect", "at": pale}
    line = {"y": f"{top + _ROW / 2 + 3:.1f}", "fill": "currentColor"}
    yield {"tag": "text", "at": {"x": "0", **line}, "text": name}
    if took:
        yield {"tag": "text", "at": {"x": str(names + _AXIS + 8), **line}, "text": took}


# ---- the panel


def _of_run(run: PanelRun, _: str) -> list[Bar]:
    return bars(run.events, run.trace)


def _saved(run: PanelRun) -> tuple[Block, ...]:
    """The order of the calls; nothing that was measured."""
    steps = [Bar({**bar, "name": without_port(bar["name"])}) for bar in in_steps(bars(run.events, run.trace))]
    if sum(bar["kind"] != "agent" for bar in steps) < 2:
        return ()
    return (text_fold("order of calls", steps_as_text(steps[:_MOST_SAVED]), len(steps) - _MOST_SAVED),)


add(Panel(name="waterfall", title="Waterfall", order=20, data=_of_run, saved=_saved))
