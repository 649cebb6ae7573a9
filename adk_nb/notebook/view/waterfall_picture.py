"""The bars of a run as text, as SVG and as a table."""

import html
from collections.abc import Iterator, Sequence

from adk_nb.notebook.view.render import Bundle, table
from adk_nb.notebook.view.safe_html import Html, code, element
from adk_nb.notebook.view.waterfall import Bar, Kind

_WIDTH, _SHORT = 40, 20
"""Characters of the axis; the short one fits on a narrow page, which breaks longer lines."""
_SIGNS: dict[Kind, str] = {"agent": "─", "model": "█", "tool": "▒", "person": "·"}
_NAMES: dict[Kind, str] = {"agent": "agent", "model": "model", "tool": "tool", "person": "waiting for a person"}
_WAITS = "░"
_COLOURS: dict[Kind, str] = {"agent": "currentColor", "model": "#1e88e5", "tool": "#3d9150", "person": "#c47a00"}
"""At least 3 to 1 on a white page and on a black one."""
_ROW, _AXIS, _TIMES = 22, 400, 80
_CHAR, _MOST = 7, 34
"""Width of a name's letter, and how many of them are shown."""
_FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


def in_steps(bars: Sequence[Bar]) -> list[Bar]:
    """The bars with a step for each model call and tool instead of its time: the same in every run of one notebook."""
    order = [one for one in bars if one["kind"] != "agent"]
    steps = {id(one): (number, number + 1) for one, number in zip(order, _numbers(order), strict=True)}
    made: list[Bar] = []
    for bar in bars:
        within = [steps[id(one)] for one in order if one is bar or _covers(bar, one)]
        begin, end = min(one[0] for one in within), max(one[1] for one in within)
        made.append({**bar, "begin": begin, "end": end, "first": None})
    return made


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


def drawn(bars: Sequence[Bar], title: str, *, with_times: bool = True) -> Bundle:
    """All forms.

    Args:
        bars: At least one.
        title: Which run it is, on one line.
        with_times: False: `bars` are in steps.
    """
    length = max([1e-9, *(one["end"] if one["end"] is not None else one["begin"] for one in bars)])
    said = f"{title} · {duration(length)}" if with_times else f"{title} · in {_steps(length)}, without times"
    words = "\n".join([said, *_lines(bars, length, with_times=with_times), "", _LEGEND])
    cells = [[_indented(one), *_told(one, with_times=with_times)] for one in bars]
    twin = table(["who", "from", "took", ""], cells)["text/html"]
    parts = [
        element("p", said),
        _svg(bars, length, said, with_times=with_times),
        element("p", element("small", _COLOURS_IN_WORDS)),
        element("details", element("summary", "as a table"), Html(twin)),
        element("details", element("summary", "as text"), element("pre", element("code", code(words)))),
    ]
    return {"text/plain": words, "text/html": element("section", "\n", Html("\n".join(parts)), "\n")}


_LEGEND = f"{_SIGNS['agent']} agent  {_WAITS}{_SIGNS['model']} model, {_WAITS} until its first piece  " + (
    f"{_SIGNS['tool']} tool  {_SIGNS['person']} waiting for a person"
)


_COLOURS_IN_WORDS = (
    "line: agent · blue: model, pale until its first piece · green: tool · orange: waiting for a person · red: failed"
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


def _told(bar: Bar, *, with_times: bool) -> list[str]:
    """When it began, how long it took, and what else there is to say."""
    begin, end, first = bar["begin"], bar["end"], bar["first"]
    failed = f"failed: {bar['error']}" if bar["error"] else ""
    if not with_times:
        return ["", "", failed]
    took = duration(end - begin) if end is not None else "still waits" if bar["kind"] == "person" else "still at work"
    said = "" if first is None else f"first piece after {duration(first - begin)}"
    return [duration(begin), took, failed or said]


def _lines(bars: Sequence[Bar], length: float, *, with_times: bool, axis: int = _WIDTH) -> list[str]:
    names = [_indented(one).replace("\u00a0", " ") for one in bars]
    width = min(axis + 4, max(len(name) for name in names))
    lines: list[str] = []
    for name, bar in zip(names, bars, strict=True):
        _, took, said = _told(bar, with_times=with_times)
        lines.append(
            f"{name[:width]:<{width}}  |{_drawn(bar, length, axis)}|  {took}{'  ' if said else ''}{said}".rstrip()
        )
    return lines


def _drawn(bar: Bar, length: float, axis: int) -> str:
    def place(moment: float | None) -> int:
        return round(min(1.0, (length if moment is None else moment) / length) * axis)

    begin = min(place(bar["begin"]), axis - 1)
    end = max(place(bar["end"]), begin + 1)
    first = begin if bar["first"] is None else min(place(bar["first"]), end)
    return (" " * begin + _WAITS * (first - begin) + _SIGNS[bar["kind"]] * (end - first)).ljust(axis)


def _svg(bars: Sequence[Bar], length: float, said: str, *, with_times: bool) -> Html:
    names = _CHAR * min(_MOST, max(len(_indented(bar)) for bar in bars)) + 16
    width, height = names + _AXIS + _TIMES, _ROW * len(bars) + 4
    inside = "\n".join(_row(bar, number, names, length, with_times=with_times) for number, bar in enumerate(bars))
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(said)}"'
        f' viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' style="max-width: 100%; min-width: {width // 2}px; height: auto"'
        f' font-family="{_FONT}" font-size="12">\n{inside}\n</svg>'
    )


def _row(bar: Bar, number: int, names: int, length: float, *, with_times: bool) -> str:
    scale = _AXIS / length
    top, left = _ROW * number + 3, names + bar["begin"] * scale
    right = max(left + 2, names + (length if bar["end"] is None else bar["end"]) * scale)
    name, took = _indented(bar)[:_MOST], _told(bar, with_times=with_times)
    colour = "#e0464e" if bar["error"] else _COLOURS[bar["kind"]]
    first = left if bar["first"] is None else min(right, names + bar["first"] * scale)
    high = 3 if bar["kind"] == "agent" else 12
    at = f'y="{top + (_ROW - high) / 2 - 1:.1f}" height="{high}" rx="1.5" fill="{colour}"'
    tip = html.escape(" ".join(filter(None, [bar["name"], took[1], took[2]])))
    shapes = [f'<rect x="{first:.1f}" width="{right - first:.1f}" {at}><title>{tip}</title></rect>']
    if first > left:
        shapes.append(f'<rect x="{left:.1f}" width="{first - left:.1f}" {at} fill-opacity="0.35"/>')
    line = f'y="{top + _ROW / 2 + 3:.1f}" fill="currentColor"'
    shapes.append(f'<text x="0" {line}>{html.escape(name)}</text>')
    if took[1]:
        shapes.append(f'<text x="{names + _AXIS + 8}" {line}>{html.escape(took[1])}</text>')
    return "".join(shapes)
