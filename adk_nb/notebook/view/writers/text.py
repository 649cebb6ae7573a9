"""Documents as plain text: no escape sequences, no invisible marks, no keys."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from adk_nb.notebook.view.document import (
    Block,
    Card,
    Code,
    Fold,
    Heading,
    Image,
    Inline,
    Items,
    Line,
    Lines,
    Link,
    Markdown,
    Notice,
    Only,
    Page,
    Picture,
    Section,
    Span,
    Speech,
    Table,
    Text,
    parts_of,
)
from adk_nb.notebook.view.plain_text import cleaned, one_line, shortened, with_escapes
from adk_nb.redaction import without_known

CELL = 500
"""Characters of a cell."""
_INDENT = "    "
_GAP = "  "
_NARROW = 6
"""Characters that a column keeps in the narrowest terminal."""
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")


def write(blocks: Sequence[Block]) -> str:
    """`blocks` as lines of text."""
    return "\n".join(_all_lines(blocks))


def safe(part: Inline) -> str:
    """The text of a part on one line, without anything that is not seen."""
    if isinstance(part, Span) and part.exact:
        return single_blanks(with_escapes(without_known(part.text)))
    return single_blanks(cleaned(part if isinstance(part, str) else part.text))


def single_blanks(text: str) -> str:
    """`text` on one line, its white space single blanks; also at its ends, where a neighbour may go on."""
    return _BLANKS.sub(" ", text)


def _line(line: Line) -> str:
    return "".join(_linked(part) if isinstance(part, Link) else safe(part) for part in parts_of(line))


def _linked(link: Link) -> str:
    text, url = safe(link), cleaned(link.url)
    return text if text == url else f"{text} {url}"


def _all_lines(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if lines and isinstance(block, Heading | Section):
            lines.append("")
        lines += _lines(block)
    return lines


@singledispatch
def _lines(block: Any) -> Iterable[str]:
    raise TypeError(f"{type(block).__name__} is not a block")


@_lines.register
def _(block: Heading | Text) -> Iterable[str]:
    return [_line(block.line)]


@_lines.register
def _(block: Lines) -> Iterable[str]:
    return map(cleaned, block.lines)


@_lines.register
def _(block: Markdown) -> Iterable[str]:
    return [cleaned(block.source).strip()]


@_lines.register
def _(block: Code) -> Iterable[str]:
    text = "".join(cleaned(part if isinstance(part, str) else part.text) for part in parts_of(block.line))
    return _indented(text.split("\n"))


@_lines.register
def _(block: Table) -> Iterable[str]:
    note = [single_blanks(cleaned(block.note))] if block.note else []
    return [f"[{one_line(block.title)}]"] if block.title else (*_table(block), *note)


@_lines.register
def _(block: Items) -> Iterable[str]:
    return _items(block)


@_lines.register
def _(block: Image) -> Iterable[str]:
    return [f"[{one_line(block.alt)}]"]


@_lines.register
def _(block: Picture) -> Iterable[str]:
    return map(cleaned, block.text.split("\n") if block.text else ())


@_lines.register
def _(block: Page) -> Iterable[str]:
    return [f"[{one_line(block.title)}]"]


@_lines.register
def _(block: Fold) -> Iterable[str]:
    return ()


@_lines.register
def _(block: Card) -> Iterable[str]:
    return (_line(block.title), *_indented(_all_lines(block.blocks)))


@_lines.register
def _(block: Notice) -> Iterable[str]:
    return [f"({single_blanks(cleaned(block.line)).strip()})"]


@_lines.register
def _(block: Speech) -> Iterable[str]:
    remark = f"  [{single_blanks(cleaned(block.remark))}]" if block.remark else ""
    return [f"{one_line(block.agent)} > {cleaned(block.text).strip()}{remark}"]


@_lines.register
def _(block: Section) -> Iterable[str]:
    return _all_lines(block.blocks)


@_lines.register
def _(block: Only) -> Iterable[str]:
    return _all_lines(block.blocks) if "text/plain" in block.forms else ()


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"{_INDENT}{line}".rstrip() for line in lines]


def _items(items: Items) -> Iterator[str]:
    marks = {"": "- ", "1": "{}  ", "[1]": "[{}] "}
    for number, item in enumerate(items.items, 1):
        yield f"{marks[items.numbers].format(number)}{_line(item.line)}".rstrip()
        if item.below:
            yield from (f"  {line}" for line in _items(item.below))


def _table(table: Table) -> Iterator[str]:
    lines = [[_cell(cell) for cell in line] for line in ([table.head] if table.head else []) + list(table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) if lines else 0)]
    if table.width is not None:
        widths = _narrowed(widths, table.width - len(_GAP) * (len(widths) - 1))
    if table.head:
        lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        cells = [shortened(cell, width).ljust(width) for cell, width in zip(line, widths, strict=True)]
        yield _GAP.join(cells).rstrip()


def _cell(line: Line) -> str:
    return shortened(_line(line).strip(" "), CELL)  # other blanks indent


def _narrowed(widths: list[int], most: int) -> list[int]:
    """`widths` with the widest ones cut to one size, so that all are `most` together; none below `_NARROW`."""
    limit = max(widths, default=0)
    while limit > _NARROW and sum(min(width, limit) for width in widths) > most:
        limit -= 1
    return [min(width, limit) for width in widths]
