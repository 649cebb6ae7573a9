"""Markdown that is still being written: what is complete as html that stays, and its open end as html to replace."""

import re

from adk_nb.notebook.view.markdown import blocks_of, to_html
from adk_nb.notebook.view.mathematics import formula_at

MAX_OPEN = 4_000
"""Characters of one block, as a list or a table, that are rendered again with each piece; longer ones are divided."""
_MAX_HIDDEN = 200
"""Characters of a link or of mathematics that has no end yet."""
_REPEATED = {"fence": 1, "table_open": 2}
"""Lines at the beginning of a block that its next part begins with, too."""
_UNFINISHED = re.compile(
    rf"[*_`~\\$!]+\Z | !?\[[^\[\]\n]{{0,{_MAX_HIDDEN}}}(?:\](?:\([^()\s]{{0,{_MAX_HIDDEN}}})?)?\Z"
    r"| (?:\A|\n)[ \t]*(?:[-=+*#>|:\ \t]*|\d{1,9}[.)]?[ \t]*)\Z",
    re.VERBOSE,
)
"""An end that may become markup: shown when it is known which."""
_UNFINISHED_FENCE = re.compile(r"\n {0,3}[`~]+\Z")
_FORMULA_BEGINS = re.compile(r"\\[(\[]|\$\$|(?<![\w$\\])\$(?=[^\s\d$])")
_ENDS = {"\\(": "\\)", "\\[": "\\]"}
_MARKS = re.compile(r"(?P<ticks>`+)(?:.*?(?<!`)(?P=ticks)(?!`)|(?P<open>.*))|\\.|(?P<mark>\*\*|__|~~|[*_])")


class StreamedMarkdown:
    """One text, piece by piece."""

    def __init__(self) -> None:
        self._open = ""

    def feed(self, piece: str) -> tuple[str, str]:
        """Add a piece. Html to append for good, and html of the open end, which takes the place of the last one."""
        self._open += piece
        complete = self._settle()
        blocks = blocks_of(self._open)
        return complete, to_html(
            completed(self._open, is_code=bool(blocks) and blocks[-1][0] in ("fence", "code_block"))
        )

    def _settle(self) -> str:
        """All blocks but the last: no later piece can change them."""
        blocks, lines = blocks_of(self._open), self._open.split("\n")
        kind, first = blocks[-1] if blocks else ("", 0)
        if len(self._open) <= MAX_OPEN:
            complete, self._open = "\n".join(lines[:first]), "\n".join(lines[first:])
            return to_html(complete) if first else ""
        cut = max(self._open.rfind("\n"), self._open.rfind(" ")) + 1 or len(self._open)
        complete, rest = self._open[:cut], self._open[cut:]
        self._open = "".join(f"{line}\n" for line in lines[first : first + _REPEATED.get(kind, 0)]) + rest
        return to_html(complete)


def completed(text: str, *, is_code: bool = False) -> str:
    """Markdown that may end anywhere, without what may still become markup, and with its open marks closed."""
    if is_code:
        return _UNFINISHED_FENCE.sub("", text)
    text = _as_table(_without_an_open_end(text))
    return text.rstrip() + _closing_marks(text.rpartition("\n")[2])


def _without_an_open_end(text: str) -> str:
    at = 0
    while begin := _FORMULA_BEGINS.search(text, at):
        found = formula_at(text, begin.start())
        rest = text[begin.end() :]
        if not found and len(rest) < _MAX_HIDDEN and "\n\n" not in rest and _ENDS.get(begin[0], begin[0]) not in rest:
            return text[: begin.start()]
        at = found.end if found else begin.end()
    return text[:at] + _UNFINISHED.sub("", text[at:])


def _as_table(text: str) -> str:
    """`text` with a line under the head of a table that ends with it."""
    head = text.rpartition("\n\n")[2]
    if not head.startswith("|") or "\n" in head.strip():
        return text
    cells = head.strip().removesuffix("|").count("|")
    return f"{text.rstrip()}{'' if head.rstrip().endswith('|') else ' |'}\n{'|---' * cells}|"


def _closing_marks(line: str) -> str:
    """What ends the emphasis and the code that a line leaves open."""
    still_open: list[str] = []
    for found in _MARKS.finditer(line):
        if found["open"] is not None:
            return found["ticks"] + "".join(reversed(still_open))
        if not (mark := found["mark"]):
            continue
        before, after = line[: found.start()][-1:], line[found.end() :][:1]
        if mark in still_open and before.strip():
            del still_open[still_open.index(mark) :]
        elif after.strip() and not (mark[0] == "_" and before.isalnum()):
            still_open.append(mark)
    return "".join(reversed(still_open))
