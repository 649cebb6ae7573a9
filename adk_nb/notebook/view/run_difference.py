"""Two runs side by side: their figures, and the parts in which they differ."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Block, Code, Heading, Inline, Line, Only, Section, Span, Style, Table, in_html
from adk_nb.notebook.view.event_table import row_text
from adk_nb.notebook.view.panels.prompt import Prompt, prompts
from adk_nb.notebook.view.panels.waterfall import bars, duration
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.spending import usage_of
from adk_nb.notebook.view.turn_answer import answer_in
from adk_nb.runtime.trace import Trace

Part = tuple[str, list[str], list[str]]
"""A name, and the lines of both runs."""


@dataclass(kw_only=True)
class Run:
    """One of the two."""

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


def blocks_of(first: Run, second: Run, *, with_times: bool = True) -> list[Block]:
    """The two runs in figures, and each part in which they differ. `with_times` False: the same on every machine."""
    figures = [row for row in _figures(first, second, with_times=with_times) if any(row[1:])]
    blocks: list[Block] = [Table(["", first.title, second.title], figures)]
    for name, left, right in _parts(first, second):
        if left != right:
            lines = Code("\n".join(_in_lines(left, right)))
            blocks += [
                Heading(f"{name}:"),
                Only(("text/plain", "text/markdown"), (lines,)),
                in_html(_beside(left, right)),
            ]
        elif left:
            blocks.append(Heading(f"{name}: the same"))
    return [Section(tuple(blocks))]


def _figures(first: Run, second: Run, *, with_times: bool) -> list[list[str]]:
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


def _parts(first: Run, second: Run) -> list[Part]:
    left, right = first.instructions, second.instructions
    parts: list[Part] = [
        (f"instruction of {one_line(name, 100)}", _lines(left.get(name)), _lines(right.get(name)))
        for name in dict.fromkeys([*left, *right])
    ]
    if bool(left) != bool(right):
        states = [["as it was sent" if sent else "not known: another kernel asked"] for sent in (left, right)]
        parts = [("instruction", states[0], states[1])]
    return [
        *parts,
        ("tools", _tools(first), _tools(second)),
        ("calls", first.calls, second.calls),
        ("answer", _lines(first.answer), _lines(second.answer)),
    ]


def _lines(text: str | None) -> list[str]:
    return text.split("\n") if text else []


def _tools(run: Run) -> list[str]:
    """The tools offered to the models, by name."""
    return sorted({f"{request['agent']}: {tool['name']}" for request in run.requests for tool in request["tools"]})


def _in_lines(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The lines of only one run, with those around them."""
    lines = list(difflib.unified_diff(left, right, n=1, lineterm=""))[2:]
    marked = ("..." if line.startswith("@@") else line for line in lines if not line.startswith("@@ -1"))
    return [line for line in marked if line.strip()]


def _beside(left: Sequence[str], right: Sequence[str]) -> Table:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    rows: list[tuple[Line, Line]] = []
    for change, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        for a, b in zip_longest(left[left_start:left_end], right[right_start:right_end], fillvalue=""):
            pair = (_marked(a, "removed", change), _marked(b, "strong", change))
            rows.append(_parted(a, b) if change == "replace" else pair)
    return Table([], rows)


def _marked(text: str, style: Style, change: str) -> Inline:
    return text if change == "equal" or not text else Span(text, style)


def _parted(left: str, right: str) -> tuple[Line, Line]:
    """Two lines, with the differing parts marked."""
    left_tokens, right_tokens = re.split("( )", left), re.split("( )", right)
    a, b = list[Inline](), list[Inline]()
    matcher = difflib.SequenceMatcher(None, left_tokens, right_tokens, autojunk=False)
    for change, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        a.append(_marked("".join(left_tokens[left_start:left_end]), "removed", change))
        b.append(_marked("".join(right_tokens[right_start:right_end]), "strong", change))
    return tuple(a), tuple(b)
