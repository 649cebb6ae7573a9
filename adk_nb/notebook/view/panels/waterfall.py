"""The panel of the waterfall: the time of each agent, model and tool, as bars on one axis."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook.view.document import (
    Block,
    Code,
    Fold,
    Frame,
    Picture,
    Section,
    Shape,
    Table,
    Text,
    in_html,
    plain,
)
from adk_nb.notebook.view.event_text import author_of, is_question
from adk_nb.notebook.view.panels import Panel, PanelRun, add, text_fold, without_port
from adk_nb.notebook.view.plain_text import cleaned, one_line
from adk_nb.notebook.view.rows import NOTEBOOK
from adk_nb.runtime.branches import calls_to, lane_of
from adk_nb.runtime.open_calls import TRANSFER
from adk_nb.runtime.trace import Trace

Kind = Literal["agent", "model", "tool", "person"]
_INTERNAL = (*REQUESTS, INPUT_REQUEST, TRANSFER)
"""Calls of the runtime itself: they have no bar of a tool."""


class Bar(TypedDict):
    """One bar, as JSON. Times are ms since the run began."""

    kind: Kind
    """`person`: the run waited for the user's answer."""
    name: str
    """The agent, the model or the tool."""
    agent: str
    lane: str
    """The branch of an agent that runs in parallel with others; else empty."""
    team: str
    """The branch that its parallel agents share; empty without a lane."""
    depth: int
    """0 for the first agent, one more for its calls, one more for the calls of a called agent."""
    begin: float
    first: float | None
    """Of a streamed answer: its first piece."""
    end: float | None
    """None: it is still at work."""
    event: str
    """Of a model's answer, or with the call."""
    call: str
    """Id of the call of a tool, or of the request to the user."""
    error: str


@dataclass(eq=False)
class _Work:
    """The work behind one bar; times are seconds since the epoch."""

    kind: Kind
    name: str
    agent: str
    branch: str | None
    path: str
    begin: float
    within: tuple[str, ...] = ()
    first: float | None = None
    end: float | None = None
    event: str = ""
    call: str = ""
    error: str = ""
    number: int = 0
    """Number in the trace; 0: the work is known from events only."""

    def bar(self, start: float) -> Bar:
        """Return the work as a bar. `start`: of the run, in seconds since the epoch."""

        def ms(moment: float) -> float:
            # Never negative: an event and its trace record take the time one after the other.
            return round(max(0.0, moment - start) * 1000, 1)

        lane = one_line(lane_of(self.branch, self.path), 100)
        return Bar(
            kind=self.kind,
            name=one_line(self.name, 100),
            agent=one_line(self.agent, 100),
            lane=lane,
            team=(self.branch or "").rpartition(".")[0] if lane else "",
            depth=2 * max(len(calls_to(self.branch, self.path)), len(self.within)) + (self.kind != "agent"),
            begin=ms(self.begin),
            first=None if self.first is None else ms(self.first),
            end=None if self.end is None else ms(self.end),
            event=self.event,
            call=self.call,
            error=one_line(cleaned(self.error)),
        )


def bars(events: Iterable[Event], trace: Trace | None = None) -> list[Bar]:
    """The bars of a run in the order of begin, each agent above its models and tools.

    Args:
        events: Of the run, oldest first, the user's included.
        trace: Of the same run. Without one, as for a run of an earlier kernel, times are those of the events.
    """
    complete = [event for event in events if not event.partial and event.author != NOTEBOOK]
    trace = trace or Trace()
    works: list[_Work] = []
    for request in trace.requests:
        place = request.agent, request.branch, request.path, request.began, request.within, request.first
        work = _Work("model", request.model, *place, end=request.ended, event=request.event_id)
        works.append(replace(work, error=request.error, number=request.number))
    for call in trace.tools:
        if call.tool not in _INTERNAL:
            work = _Work("tool", call.tool, call.agent, call.branch, call.path, call.began, call.within)
            works.append(replace(work, end=call.ended, call=call.call_id, error=call.error, number=call.number))
    works += _from_events(complete, trace)
    if not works:
        return []
    start = min([work.begin for work in works] + [event.timestamp for event in complete[:1]])
    return [work.bar(start) for work in _grouped_by_agent(works)]


def _from_events(events: Sequence[Event], trace: Trace) -> list[_Work]:
    """Work that is not in the trace: pauses for the user's answer, and all before the first record of the trace."""
    since = min([record.began for record in (*trace.requests, *trace.tools)], default=float("inf"))
    works: list[_Work] = []
    open_calls: dict[str, _Work] = {}
    last = events[0].timestamp if events else 0.0
    for event in events:
        place = author_of(event), event.branch, event.node_info.path
        for response in event.get_function_responses():
            if (work := open_calls.get(response.id or "")) and (work.kind == "tool" or event.author == "user"):
                work.end = event.timestamp
        if _is_answer(event) and event.timestamp < since:
            model, error = event.model_version or "model", event.error_code or ""
            works.append(_Work("model", model, *place, last, end=event.timestamp, event=event.id, error=error))
        for call in event.get_function_calls():
            if _is_request(event, call):
                work = _Work("person", _NAMES["person"], *place, event.timestamp)
            elif event.timestamp < since and call.name not in _INTERNAL:
                work = _Work("tool", call.name or "", *place, event.timestamp)
            else:
                continue
            work.event = event.id
            work.call = call.id or ""
            works.append(work)
            open_calls[work.call] = work
        last = event.timestamp
    return works


def _is_request(event: Event, call: types.FunctionCall) -> bool:
    is_request = call.name in REQUESTS and call.id in (event.long_running_tool_ids or ())
    return is_request or is_question(event, call)


def _is_answer(event: Event) -> bool:
    # ADK: an event with the result of a tool has the agent as its author.
    if event.author == "user" or event.get_function_responses():
        return False
    asks = event.long_running_tool_ids and all(call.name in REQUESTS for call in event.get_function_calls())
    return bool(event.parts or event.error_code) and not asks


def _grouped_by_agent(works: Iterable[_Work]) -> list[_Work]:
    """`works`, each below its agent; another agent at the same place in between begins a new bar."""
    stretches: list[list[_Work]] = []
    current: dict[Any, list[_Work]] = {}
    for work in sorted(works, key=lambda work: (work.begin, work.number or math.inf)):
        place = work.branch, work.within
        stretch = current.get(place)
        if stretch is None or stretch[0].agent != work.agent:
            agent = _Work("agent", work.agent, work.agent, work.branch, work.path, work.begin, work.within)
            stretch = current[place] = [agent]
            stretches.append(stretch)
        stretch.append(work)
        ends = [child.end for child in stretch[1:]]
        stretch[0].end = None if None in ends else max(end for end in ends if end is not None)
    return list(_nested(stretches))


def _nested(stretches: list[list[_Work]]) -> Iterator[_Work]:
    """Each agent below the call that led to it."""
    calls = {work.call for stretch in stretches for work in stretch if work.kind == "tool"}
    below: dict[str, list[list[_Work]]] = {}
    for stretch in stretches:
        call = stretch[0].within[-1] if stretch[0].within else ""
        below.setdefault(call if call in calls else "", []).append(stretch)

    def works_below(call: str) -> Iterator[_Work]:
        for work in itertools.chain.from_iterable(below.pop(call, [])):
            yield work
            if work.kind == "tool" and work.call:
                yield from works_below(work.call)

    return works_below("")


_WIDTH, _SHORT = 40, 20
"""Characters of the axis; the short one fits on a narrow page."""
_SIGNS: dict[Kind, str] = {"agent": "─", "model": "█", "tool": "▒", "person": "·"}
_NAMES: dict[Kind, str] = {"agent": "agent", "model": "model", "tool": "tool", "person": "waiting for you"}
_WAITS = "░"
_COLOURS: dict[Kind, str] = {"agent": "currentColor", "model": "#1e88e5", "tool": "#3d9150", "person": "#c47a00"}
"""Contrast of at least 3:1 on a white and on a black page."""
_ROW, _AXIS, _TIMES = 22, 400, 80
_CHAR, _MOST = 7, 34
"""Width of a name's letter; most letters of a name."""
_MOST_SAVED = 40
"""Bars in a saved notebook."""


def in_steps(bars: Sequence[Bar]) -> list[Bar]:
    """The bars with step numbers instead of times, which are the same in all runs of a notebook."""
    calls = [bar for bar in bars if bar["kind"] != "agent"]
    steps = dict(zip(map(id, calls), _steps(calls), strict=True))
    stepped: list[Bar] = []
    for bar in bars:
        inside = [steps[id(call)] for call in calls if call is bar or _covers(bar, call)]
        stepped.append({**bar, "begin": min(inside), "end": max(inside) + 1, "first": None})
    return stepped


def _steps(calls: Sequence[Bar]) -> Iterator[int]:
    """The first step of each call. Parallel lanes are counted separately, since the order in which they end varies."""
    step, lanes, end = 0, dict[str, int](), 0.0
    teams: set[str] = set()
    for call in calls:
        lane, team = call["lane"], call["team"]
        # Members of a team are parallel, even if a fast one has ended before another begins.
        if lanes and (not lane or (lane not in lanes and team not in teams and call["begin"] >= end)):
            step, lanes = max(lanes.values()), {}
            teams.clear()
        if not lane:
            yield step
            step += 1
            continue
        end = max(end, call["begin"] if call["end"] is None else call["end"])
        teams.add(team)
        yield lanes.setdefault(lane, step)
        lanes[lane] += 1


def _covers(bar: Bar, call: Bar) -> bool:
    if bar["kind"] == "agent" and bar["agent"] != call["agent"] and call["depth"] <= bar["depth"] + 1:
        return False
    if bar["lane"] and bar["lane"] != call["lane"]:
        return False
    ends = bar["end"] is None or (call["end"] is not None and call["end"] <= bar["end"])
    return call["depth"] > bar["depth"] and bar["begin"] <= call["begin"] and ends


def drawn(bars: Sequence[Bar], title: str, *, with_times: bool = True) -> tuple[Block, ...]:
    """A picture of the bars, with a table and a text form.

    Args:
        bars: At least one.
        title: The name of the run.
        with_times: False: `bars` have step numbers.
    """
    length = max([1e-9, *(bar["end"] if bar["end"] is not None else bar["begin"] for bar in bars)])
    heading = f"{title} · {duration(length)}" if with_times else f"{title} · in {_count(length)}, without times"
    text = "\n".join([*_lines(bars, length, with_times=with_times), "", _LEGEND])
    cells = [[(_indented(bar),), *_times(bar, with_times=with_times)] for bar in bars]
    names = _CHAR * min(_MOST, max(len(_indented(bar)) for bar in bars)) + 16
    rows = (_row(bar, number, names, length, with_times=with_times) for number, bar in enumerate(bars))
    shapes = list(itertools.chain.from_iterable(rows))
    width, height = names + _AXIS + _TIMES, _ROW * len(bars) + 4
    picture = Picture(shapes, width, height, heading, text=text, least=0.5, font_size=12)
    twins = Fold("as a table", (Table(["who", "from", "took", ""], cells),)), Fold("as text", (Code(text),))
    drawing = plain(Text(heading)), picture, in_html(Text(_COLOUR_LEGEND, small=True), *twins)
    return (Section((Frame(heading, drawing),)),)


_LEGEND = f"{_SIGNS['agent']} agent  {_WAITS}{_SIGNS['model']} model, {_WAITS} until its first piece  " + (
    f"{_SIGNS['tool']} tool  {_SIGNS['person']} waiting for you"
)
_COLOUR_LEGEND = (
    "line: agent · blue: model, pale until its first piece · green: tool · orange: waiting for you · red: failed"
)


def steps_as_text(bars: Sequence[Bar]) -> list[str]:
    """Bars of `in_steps` as lines of text, with a legend."""
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


def _count(length: float) -> str:
    return f"{length:.0f} step{'s' if length > 1 else ''}"


def _indented(bar: Bar) -> str:
    lane = f"∥ {bar['lane']} / " if bar["lane"] and bar["kind"] == "agent" and bar["lane"] != bar["name"] else ""
    return "\u00a0\u00a0" * bar["depth"] + lane + bar["name"]


def _times(bar: Bar, *, with_times: bool) -> list[str]:
    """Begin, duration, and a remark."""
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
    # At least one character, so that a short call is seen.
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


def _saved(run: PanelRun) -> tuple[Block, ...]:
    """The order of the calls, without times."""
    steps = [Bar({**bar, "name": without_port(bar["name"])}) for bar in in_steps(bars(run.events, run.trace))]
    if sum(bar["kind"] != "agent" for bar in steps) < 2:
        return ()
    return (text_fold("order of calls", steps_as_text(steps[:_MOST_SAVED]), len(steps) - _MOST_SAVED),)


add(Panel(name="waterfall", title="Waterfall", order=20, data=lambda run, _: bars(run.events, run.trace), saved=_saved))
