"""Two runs side by side: their figures, and each part in which they differ."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from adk_nb.events.event import Event
from adk_nb.notebook.view.answers import answer_in
from adk_nb.notebook.view.document import (
    Block,
    Code,
    Frame,
    Heading,
    Inline,
    Line,
    Only,
    Section,
    Span,
    Style,
    Table,
    in_html,
)
from adk_nb.notebook.view.panels.prompt import Prompt, prompts
from adk_nb.notebook.view.panels.waterfall import bars, duration
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.rows import row_text, rows_of
from adk_nb.notebook.view.spending import usage_of
from adk_nb.runtime.trace import Trace

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
    usages = [usage_of(run.events) for run in (first, second)]
    ends = [[bar["end"] or 0.0 for bar in bars(run.events, run.trace)] for run in (first, second)]
    requests = [len(run.requests) or usage.model_calls for run, usage in zip((first, second), usages, strict=True)]
    figures = [
        ["question", first.question, second.question],
        ["model", first.models, second.models],
        ["model calls", *(str(count or "") for count in requests)],
        ["tool calls", *(str(len(run.calls) or "") for run in (first, second))],
        ["tokens in", *(f"{usage.input_tokens:,}" if usage.input_tokens else "" for usage in usages)],
        ["tokens out", *(f"{usage.output_tokens:,}" if usage.output_tokens else "" for usage in usages)],
        ["took", *(duration(max(end)) if end and with_times else "" for end in ends)],
    ]
    figures = [row for row in figures if any(row[1:])]
    blocks: list[Block] = [Table(["", first.title, second.title], figures)]
    for name, left, right in _parts(first, second):
        if left != right:
            # The lines that differ, with one line of context.
            diff = list(difflib.unified_diff(left, right, n=1, lineterm=""))[2:]
            marked = ("..." if line.startswith("@@") else line for line in diff if not line.startswith("@@ -1"))
            lines = Code("\n".join(line for line in marked if line.strip()))
            blocks += [
                Heading(f"{name}:"),
                Only(("text/plain", "text/markdown"), (lines,)),
                in_html(_side_by_side(left, right)),
            ]
        elif left:
            blocks.append(Heading(f"{name}: the same"))
    return [Section((Frame(f"{first.title} and {second.title}", tuple(blocks)),))]


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
