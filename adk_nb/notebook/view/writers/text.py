"""Documents as plain text: no escape sequences, no invisible marks, no keys."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from adk_nb.notebook.view import document as doc
from adk_nb.notebook.view.document import Block, Inline, Line, parts_of
from adk_nb.notebook.view.plain_text import cleaned, one_line, shortened, with_escapes
from adk_nb.redaction import without_known

CELL = 500
"""Characters of a cell."""
_INDENT = "    "
_GAP = "  "
_NARROW = 6
"""Characters of a column in the narrowest terminal."""
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")


def write(blocks: Sequence[Block]) -> str:
    """`blocks` as lines of text."""
    return "\n".join(_all_lines(blocks))


def safe(part: Inline) -> str:
    """The cleaned text of a part on one line."""
    if isinstance(part, doc.Span) and part.exact:
        return single_blanks(with_escapes(without_known(part.text)))
    return single_blanks(cleaned(part if isinstance(part, str) else part.text))


def code_text(part: Inline) -> str:
    """The cleaned text of a part with its line ends, and an inserted value in quotes."""
    text = cleaned(part if isinstance(part, str) else part.text)
    return f"«{text}»" if isinstance(part, doc.Span) and part.style == "inserted" else text


def single_blanks(text: str) -> str:
    """`text` on one line with single blanks; blanks at its ends stay, as another part may follow."""
    return _BLANKS.sub(" ", text)


def _line(line: Line) -> str:
    texts: list[str] = []
    for part in parts_of(line):
        text = safe(part)
        url = cleaned(part.url) if isinstance(part, doc.Link) else text
        texts.append(text if text == url else f"{text} {url}")
    return "".join(texts)


def _all_lines(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if lines and isinstance(block, doc.Heading | doc.Section):
            lines.append("")
        lines += _lines(block)
    return lines


@singledispatch
def _lines(block: Any) -> Iterable[str]:
    raise TypeError(f"{type(block).__name__} is not a block")


@_lines.register
def _(block: doc.Heading | doc.Text) -> Iterable[str]:
    return [_line(block.line)]


@_lines.register
def _(block: doc.Lines) -> Iterable[str]:
    return map(cleaned, block.lines)


@_lines.register
def _(block: doc.Markdown) -> Iterable[str]:
    return [cleaned(block.source).strip()]


@_lines.register
def _(block: doc.Code) -> Iterable[str]:
    return _indented("".join(map(code_text, parts_of(block.line))).split("\n"))


@_lines.register
def _(block: doc.Table) -> Iterable[str]:
    note = [single_blanks(cleaned(block.note))] if block.note else []
    return [f"[{one_line(block.title)}]"] if block.title else (*_table(block), *note)


@_lines.register
def _(block: doc.Items) -> Iterable[str]:
    return _items(block)


@_lines.register
def _(block: doc.Image) -> Iterable[str]:
    return [f"[{one_line(block.alt)}]"]


@_lines.register
def _(block: doc.Picture) -> Iterable[str]:
    return map(cleaned, block.text.split("\n") if block.text else ())


@_lines.register
def _(block: doc.Page) -> Iterable[str]:
    return [f"[{one_line(block.title)}]"]


@_lines.register
def _(block: doc.Fold) -> Iterable[str]:
    return ()


@_lines.register
def _(block: doc.Frame | doc.Beside) -> Iterable[str]:
    return _all_lines(block.blocks)


@_lines.register
def _(block: doc.Card) -> Iterable[str]:
    return (_line(block.title), *_indented(_all_lines(block.blocks)))


@_lines.register
def _(block: doc.Notice) -> Iterable[str]:
    return [f"({single_blanks(cleaned(block.line)).strip()})"]


@_lines.register
def _(block: doc.Speech) -> Iterable[str]:
    remark = f"  [{single_blanks(cleaned(block.remark))}]" if block.remark else ""
    return [f"{one_line(block.agent)} > {cleaned(block.text).strip()}{remark}"]


@_lines.register
def _(block: doc.Section) -> Iterable[str]:
    return _all_lines(block.blocks)


@_lines.register
def _(block: doc.Only) -> Iterable[str]:
    return _all_lines(block.blocks) if "text/plain" in block.forms else ()


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}".rstrip() for line in lines]


def _items(items: doc.Items) -> Iterator[str]:
    marks = {"": "- ", "1": "{}  ", "[1]": "[{}] "}
    for number, item in enumerate(items.items, 1):
        yield f"{marks[items.numbers].format(number)}{_line(item.line)}".rstrip()
        if item.below:
            yield from (f"  {line}" for line in _items(item.below))


def _table(table: doc.Table) -> Iterator[str]:
    lines = [[_cell(cell) for cell in line] for line in ([table.head] if table.head else []) + list(table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) if lines else 0)]
    if table.width is not None:
        # The widest columns are cut to one size; none below `_NARROW`.
        most, limit = table.width - len(_GAP) * (len(widths) - 1), max(widths, default=0)
        while limit > _NARROW and sum(min(width, limit) for width in widths) > most:
            limit -= 1
        widths = [min(width, limit) for width in widths]
    if table.head:
        lines.insert(1, ["-" * width for width in widths])
    numbers = table.numbers
    for line in lines:
        cells = [
            shortened(cell, width).rjust(width) if column in numbers else shortened(cell, width).ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield _GAP.join(cells).rstrip()


def _cell(line: Line) -> str:
    return shortened(_line(line).strip(" "), CELL)  # other blanks indent
