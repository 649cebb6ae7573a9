"""Runs as tables: the events of a run without ids and times, and two runs side by side."""

import difflib
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from adk_nb.events.event import Event
from adk_nb.notebook.view.answers import answer_in
from adk_nb.notebook.view.document import Block, Code, Heading, Inline, Line, Only, Section, Span, Style, Table, in_html
from adk_nb.notebook.view.event_text import change_text
from adk_nb.notebook.view.panels.prompt import Prompt, prompts
from adk_nb.notebook.view.panels.waterfall import bars, duration
from adk_nb.notebook.view.plain_text import call_text, one_line
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.spending import usage_of
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers import html
from adk_nb.runtime.trace import Trace


def event_table(
    events: Iterable[Event],
    *,
    history: Sequence[Event] = (),
    only: Container[str] | None = None,
    undone: Container[str] = (),
    width: int | None = None,
) -> Table:
    """The numbered rows of `events`.

    Args:
        events: Oldest first; their rows are numbered from 1.
        history: The events before them.
        only: Ids of the events whose rows are shown. None: all.
        undone: Ids of events that were undone.
        width: As in `Table`.
    """
    rows = [
        (number, row["id"].partition("/")[0], row) for number, row in enumerate(rows_of(events, history=history), 1)
    ]
    rows = [row for row in rows if only is None or row[1] in only]
    table = row_table([row for *_, row in rows])
    lines = [[str(number), *line] for (number, *_), line in zip(rows, table.rows, strict=True)]
    if any(event_id in undone for _, event_id, _ in rows):
        marks = ["undone" if event_id in undone else "" for _, event_id, _ in rows]
        lines = [[*line, mark] for line, mark in zip(lines, marks, strict=True)]
        return Table(["#", *table.head, ""], lines, width)
    return Table(["#", *table.head], lines, width)


def row_table(rows: Iterable[Json]) -> Table:
    """Agent and event of each row, and a column of state changes if there are any."""
    lines = [
        [
            "you" if row["author"] == "user" else row["author"],
            row_text(row),
            "; ".join(map(change_text, row["changes"] or [])),
        ]
        for row in rows
    ]
    if any(changes for _, _, changes in lines):
        return Table(["who", "event", "state"], lines)
    return Table(["who", "event"], [line[:2] for line in lines])


def row_text(row: Json) -> str:
    """Return a row as one line of text."""
    if row["kind"] != "call":
        text = one_line(row["text"] if row["html"] is None else html.visible_text(row["html"]))
        return text if row["kind"] in ("user", "text", "marker", "question") else f"{row['kind']}: {text}"
    call = call_text(row["tool"], row["args"])
    if row["result"] is None:
        return f"{call}  {row['text']}".rstrip()
    return f"{call} → failed: {row['result']}" if row["ok"] is False else f"{call} → {row['result']}"


Part = tuple[str, list[str], list[str]]
"""Name of a part, and its lines in both runs."""


@dataclass(kw_only=True)
class ComparedRun:
    """One of two runs that are compared."""

    title: str
    question: str
    events: list[Event]
    trace: Trace
    requests: list[Prompt] = field(default_factory=list[Prompt])

    def __post_init__(self) -> None:
        self.requests = prompts(self.trace)

    @property
    def instructions(self) -> dict[str, str]:
        """Agent -> its first system instruction; empty for a run of an earlier kernel."""
        instructions: dict[str, str] = {}
        for request in self.requests:
            instructions.setdefault(request["agent"], "".join(piece["text"] for piece in request["system"]))
        return instructions

    @property
    def models(self) -> str:
        """The models that answered."""
        models = [request["model"] for request in self.requests] or [event.model_version for event in self.events]
        return ", ".join(filter(None, dict.fromkeys(models)))

    @property
    def calls(self) -> list[str]:
        """Each call with its result."""
        return [row_text(row) for row in rows_of(self.events) if row["kind"] == "call"]

    @property
    def answer(self) -> str:
        """The text of the answer."""
        return answer_in(self.events)[0]


def difference_blocks(first: ComparedRun, second: ComparedRun, *, with_times: bool = True) -> list[Block]:
    """The figures of two runs, and each part in which they differ. `with_times` False: the same on every machine."""
    figures = [row for row in _figures(first, second, with_times=with_times) if any(row[1:])]
    blocks: list[Block] = [Table(["", first.title, second.title], figures)]
    for name, left, right in _parts(first, second):
        if left != right:
            lines = Code("\n".join(_diff_lines(left, right)))
            blocks += [
                Heading(f"{name}:"),
                Only(("text/plain", "text/markdown"), (lines,)),
                in_html(_side_by_side(left, right)),
            ]
        elif left:
            blocks.append(Heading(f"{name}: the same"))
    return [Section(tuple(blocks))]


def _figures(first: ComparedRun, second: ComparedRun, *, with_times: bool) -> list[list[str]]:
    usages = [usage_of(run.events) for run in (first, second)]
    ends = [[bar["end"] or 0.0 for bar in bars(run.events, run.trace)] for run in (first, second)]
    requests = [len(run.requests) or usage.model_calls for run, usage in zip((first, second), usages, strict=True)]
    return [
        ["question", first.question, second.question],
        ["model", first.models, second.models],
        ["model calls", *(str(count or "") for count in requests)],
        ["tool calls", *(str(len(run.calls) or "") for run in (first, second))],
        ["tokens in", *(f"{usage.input_tokens:,}" if usage.input_tokens else "" for usage in usages)],
        ["tokens out", *(f"{usage.output_tokens:,}" if usage.output_tokens else "" for usage in usages)],
        ["took", *(duration(max(end)) if end and with_times else "" for end in ends)],
    ]


def _parts(first: ComparedRun, second: ComparedRun) -> list[Part]:
    left, right = first.instructions, second.instructions
    parts: list[Part] = [
        (f"instruction of {one_line(name, 100)}", _lines(left.get(name)), _lines(right.get(name)))
        for name in dict.fromkeys([*left, *right])
    ]
    if bool(left) != bool(right):
        states = [["as it was sent" if sent else "not known: sent by another kernel"] for sent in (left, right)]
        parts = [("instruction", states[0], states[1])]
    return [
        *parts,
        ("tools", _tools(first), _tools(second)),
        ("calls", first.calls, second.calls),
        ("answer", _lines(first.answer), _lines(second.answer)),
    ]


def _lines(text: str | None) -> list[str]:
    return text.split("\n") if text else []


def _tools(run: ComparedRun) -> list[str]:
    """The tools offered to the models, by name."""
    return sorted({f"{request['agent']}: {tool['name']}" for request in run.requests for tool in request["tools"]})


def _diff_lines(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The lines that differ, with one line of context."""
    lines = list(difflib.unified_diff(left, right, n=1, lineterm=""))[2:]
    marked = ("..." if line.startswith("@@") else line for line in lines if not line.startswith("@@ -1"))
    return [line for line in marked if line.strip()]


def _side_by_side(left: Sequence[str], right: Sequence[str]) -> Table:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    rows: list[tuple[Line, Line]] = []
    for change, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        for a, b in zip_longest(left[left_start:left_end], right[right_start:right_end], fillvalue=""):
            pair = (_marked(a, "removed", change), _marked(b, "strong", change))
            rows.append(_changed_parts(a, b) if change == "replace" else pair)
    return Table([], rows)


def _marked(text: str, style: Style, change: str) -> Inline:
    return text if change == "equal" or not text else Span(text, style)


def _changed_parts(left: str, right: str) -> tuple[Line, Line]:
    """Two lines, with the differing parts marked."""
    left_tokens, right_tokens = re.split("( )", left), re.split("( )", right)
    a, b = list[Inline](), list[Inline]()
    matcher = difflib.SequenceMatcher(None, left_tokens, right_tokens, autojunk=False)
    for change, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        a.append(_marked("".join(left_tokens[left_start:left_end]), "removed", change))
        b.append(_marked("".join(right_tokens[right_start:right_end]), "strong", change))
    return tuple(a), tuple(b)
