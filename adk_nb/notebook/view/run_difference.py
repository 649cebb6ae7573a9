"""Two runs side by side: how they stand to each other in figures, and where their words part."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field

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
"""What is compared, and its lines in both runs."""


@dataclass(kw_only=True)
class Run:
    """One of the two."""

    title: str
    question: str
    events: list[Event]
    trace: Trace
    asked: list[Prompt] = field(default_factory=list[Prompt])

    def __post_init__(self) -> None:
        self.asked = prompts(self.trace)

    @property
    def instructions(self) -> dict[str, str]:
        """What each agent's model was told first; empty for a run of an earlier kernel."""
        told: dict[str, str] = {}
        for one in self.asked:
            told.setdefault(one["agent"], "".join(words["text"] for words in one["system"]))
        return told

    @property
    def models(self) -> str:
        """Who answered."""
        known = [one["model"] for one in self.asked] or [event.model_version or "" for event in self.events]
        return ", ".join(one for one in dict.fromkeys(known) if one)

    @property
    def calls(self) -> list[str]:
        """The tools that were called, each with its result."""
        return [row_text(row) for row in rows_of(self.events) if row["kind"] == "call"]

    @property
    def answer(self) -> str:
        """The words of the answer."""
        return answer_in(self.events)[0]


def blocks_of(one: Run, two: Run, *, with_times: bool = True) -> list[Block]:
    """The two runs in figures, and each part in which they differ. `with_times` False: the same on every machine."""
    figures = [row for row in _figures(one, two, with_times=with_times) if any(row[1:])]
    blocks: list[Block] = [Table(["", one.title, two.title], figures)]
    for name, left, right in _parts(one, two):
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


def _figures(one: Run, two: Run, *, with_times: bool) -> list[list[str]]:
    usages = [usage_of(run.events) for run in (one, two)]
    ends = [[bar["end"] or 0.0 for bar in bars(run.events, run.trace)] for run in (one, two)]
    return [
        ["question", one.question, two.question],
        ["model", one.models, two.models],
        [
            "model calls",
            *(str(len(run.asked) or usage.model_calls or "") for run, usage in zip((one, two), usages, strict=True)),
        ],
        ["tool calls", *(str(len(run.calls) or "") for run in (one, two))],
        ["tokens in", *(f"{usage.input_tokens:,}" if usage.input_tokens else "" for usage in usages)],
        ["tokens out", *(f"{usage.output_tokens:,}" if usage.output_tokens else "" for usage in usages)],
        ["took", *(duration(max(end)) if end and with_times else "" for end in ends)],
    ]


def _parts(one: Run, two: Run) -> list[Part]:
    told, tools = (one.instructions, two.instructions), (_tools(one), _tools(two))
    parts: list[Part] = [
        (f"instruction of {one_line(name, 100)}", _lines(told[0].get(name)), _lines(told[1].get(name)))
        for name in dict.fromkeys([*told[0], *told[1]])
    ]
    if bool(told[0]) != bool(told[1]):
        known = [["as it was sent" if each else "not known: another kernel asked"] for each in told]
        parts = [("instruction", known[0], known[1])]
    return [
        *parts,
        ("tools", *tools),
        ("calls", one.calls, two.calls),
        ("answer", _lines(one.answer), _lines(two.answer)),
    ]


def _lines(text: str | None) -> list[str]:
    return text.split("\n") if text else []


def _tools(run: Run) -> list[str]:
    """What the models were offered, by name."""
    return sorted({f"{one['agent']}: {tool['name']}" for one in run.asked for tool in one["tools"]})


def _in_lines(left: Sequence[str], right: Sequence[str]) -> list[str]:
    """The lines that are only in one, with those around them."""
    lines = list(difflib.unified_diff(left, right, n=1, lineterm=""))[2:]
    shown = ("..." if line.startswith("@@") else line for line in lines if not line.startswith("@@ -1"))
    return [line for line in shown if line.strip()]


def _beside(left: Sequence[str], right: Sequence[str]) -> Table:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    rows: list[tuple[Line, Line]] = []
    for how, begin, end, other_begin, other_end in matcher.get_opcodes():
        own, others = left[begin:end], right[other_begin:other_end]
        for at in range(max(len(own), len(others))):
            a, b = (lines[at] if at < len(lines) else "" for lines in (own, others))
            pair = (_marked(a, "removed", how), _marked(b, "strong", how))
            rows.append(_parted(a, b) if how == "replace" else pair)
    return Table([], rows)


def _marked(text: str, style: Style, how: str) -> Inline:
    return text if how == "equal" or not text else Span(text, style)


def _parted(left: str, right: str) -> tuple[Line, Line]:
    """Two lines, with what is only in one of them marked."""
    one, two = _words(left), _words(right)
    a, b = list[Inline](), list[Inline]()
    for how, begin, end, other_begin, other_end in difflib.SequenceMatcher(
        None, one, two, autojunk=False
    ).get_opcodes():
        a.append(_marked("".join(one[begin:end]), "removed", how))
        b.append(_marked("".join(two[other_begin:other_end]), "strong", how))
    return tuple(a), tuple(b)


def _words(text: str) -> list[str]:
    return [piece for word in text.split(" ") for piece in (word, " ")][:-1]
