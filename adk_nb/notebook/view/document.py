"""Blocks, of which all displayed content is built; `writers` write them as text, markdown and html.

Strings in blocks are untrusted: all cleaning and escaping is left to the writers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

_IS_NUMBER = re.compile(r"[-+\u2212]?(?:≈ )?\$?\d[\d,]*(?:\.\d+)?(?: ?(?:%|ms|s|min|h|B|KB|MB))?").fullmatch
Form = Literal["text/plain", "text/markdown", "text/html"]
Style = Literal["", "strong", "em", "small", "code", "removed", "inserted"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line.

    Args:
        text: The part.
        style: Its emphasis; `inserted` is a value in a text that somebody else wrote.
        exact: It belongs to a call that needs approval: invisible characters are escaped instead of removed, and only
            known secrets are masked, not what merely looks like one.
    """

    text: str
    style: Style = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link to http, https or mailto; for any other `url` its text alone."""

    text: str
    url: str


Inline = str | Span | Link
Line = Inline | tuple[Inline, ...]
"""Text on one line; runs of white space become single blanks."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of the following blocks; text has an empty line before it. `is_near`: with little room below it."""

    line: Line
    is_near: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Args:
        line: Its text.
        small: In small letters.
        is_mine: It is a message of the user, in a bubble at the right in html.
    """

    line: Line
    small: bool = False
    is_mine: bool = False


class Note(str):
    """A line with a mark beside it in html."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Messages, a line each, as a terminal shows them."""

    lines: tuple[str, ...]

    @property
    def has_notes(self) -> bool:
        """True if a line has a mark."""
        return any(isinstance(line, Note) for line in self.lines)


@dataclass(frozen=True, slots=True)
class Markdown:
    """Markdown that a model, a tool or a user wrote."""

    source: str


@dataclass(frozen=True, slots=True)
class Code:
    """Text whose line ends and blanks are kept; the text form indents it. `language`: of its colours."""

    line: Line
    language: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, all as long as `head`.

    Args:
        head: The column names; empty: the table has no head.
        rows: The cells.
        width: Characters of a line in the text form, to which the widest columns are cut. None: no limit.
        title: Shown by the text form instead of the rows; empty: the rows.
        note: A line below the table, such as the number of rows left out.
    """

    head: Sequence[Line]
    rows: Sequence[Sequence[Line]]
    width: int | None = None
    title: str = ""
    note: str = ""

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.head) or len(next(iter(self.rows), ()))

    @property
    def numbers(self) -> frozenset[int]:
        """The columns of numbers, which are aligned to the right."""
        texts = ([text_of(row[column]).strip() for row in self.rows] for column in range(self.columns))
        return frozenset(n for n, cells in enumerate(texts) if any(cells) and all(map(_IS_NUMBER, filter(None, cells))))


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a list, and the list below it."""

    line: Line
    below: "Items | None" = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list. `numbers`: `1` numbers the items; `[1]` as well, with brackets in the text form, as in citations."""

    items: Sequence[Item]
    numbers: Literal["", "1", "[1]"] = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image within the page. `src`: a data URI."""

    src: str
    alt: str


Shape = Mapping[str, Any]
"""An SVG element: `tag`, its attributes `at`, and optionally `text` and `tip`, a tooltip."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of SVG shapes in the colour of the text around it, which fits light and dark pages.

    Args:
        shapes: In drawing order.
        width: In pixels.
        height: In pixels.
        title: Read by screen readers.
        text: The drawing in the text form; empty: nothing.
        least: The smallest scale on a narrow page, from 0 to 1; a picture that needs less is scrolled.
        font_size: In pixels.
    """

    shapes: Sequence[Shape]
    width: int
    height: int
    title: str
    text: str = ""
    least: float = 0.65
    font_size: int = 13


@dataclass(frozen=True, slots=True)
class Page:
    """An untrusted html page, shown in a frame in which nothing runs."""

    markup: str
    title: str
    height: int = 240


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark beside the content, as on a stand-in for a model.

    Args:
        text: The remark.
        label: The text of a chip before it; empty: no chip.
        folded: Show the chip alone, since an earlier cell shows the remark.
    """

    text: str
    label: str = ""
    folded: bool = False

    @property
    def line(self) -> str:
        """The visible parts on one line."""
        return ": ".join(filter(None, (self.label, "" if self.folded else self.text)))


@dataclass(frozen=True, slots=True)
class Fold:
    """Details under a summary; the text form leaves both out.

    Args:
        summary: The visible line.
        blocks: The details.
        size: How much is inside, as `312 characters`; the sizes of successive folds stand in a column.
        is_open: Unfolded at first.
        notices: Remarks whose labels stand behind the summary, with the rest as a tooltip.
    """

    summary: Line
    blocks: "tuple[Block, ...]"
    size: str = ""
    is_open: bool = False
    notices: Sequence[Notice] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """A box with a head, which looks like the view of a run; the text form has the blocks alone.

    Args:
        title: In the head.
        blocks: The content.
        chips: Short labels in the head, as `2 failed`.
    """

    title: Line
    blocks: "tuple[Block, ...]"
    chips: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Beside:
    """A picture left of other blocks, and above them where there is little room; other forms have them alone."""

    picture: "Block"
    blocks: "tuple[Block, ...]"


@dataclass(frozen=True, slots=True)
class Card:
    """A request to the user, under its title; the text form indents it."""

    title: Line
    blocks: "tuple[Block, ...]" = ()


@dataclass(frozen=True, slots=True)
class Speech:
    """An agent's answer.

    Args:
        agent: The agent's name, shown by the text form only.
        text: The answer in plain text.
        block: The answer in the other forms. None: they leave it out.
        remark: Shown behind the text, in brackets, by the text form.
    """

    agent: str
    text: str
    block: "Block | None" = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks that belong together; the text form has an empty line before them.

    Args:
        blocks: In reading order.
        is_said: They are what an agent says, in a bubble in html.
    """

    blocks: "tuple[Block, ...]"
    is_said: bool = False


@dataclass(frozen=True, slots=True)
class Only:
    """Blocks for some of the forms."""

    forms: tuple[Form, ...]
    blocks: "tuple[Block, ...]"


Block = (
    Heading
    | Text
    | Lines
    | Markdown
    | Code
    | Table
    | Items
    | Image
    | Picture
    | Page
    | Fold
    | Frame
    | Beside
    | Card
    | Notice
    | Speech
    | Section
    | Only
)


@dataclass(frozen=True, slots=True)
class Document:
    """Blocks in reading order."""

    blocks: tuple[Block, ...]


def document(*blocks: Block | None) -> Document:
    """A document of the blocks that are not None."""
    return Document(tuple(block for block in blocks if block is not None))


def rich(*blocks: Block) -> Only:
    """Blocks that the text form leaves out."""
    return Only(("text/markdown", "text/html"), blocks)


def plain(*blocks: Block) -> Only:
    """Blocks of the text form only."""
    return Only(("text/plain",), blocks)


def in_html(*blocks: Block) -> Only:
    """Blocks of the html form only."""
    return Only(("text/html",), blocks)


def parts_of(line: Line) -> tuple[Inline, ...]:
    """The parts of a line."""
    return line if isinstance(line, tuple) else (line,)


def text_of(line: Line) -> str:
    """A line without its emphasis."""
    return "".join(part if isinstance(part, str) else part.text for part in parts_of(line))


def joined(lines: Iterable[Line], separator: str) -> Line:
    """Lines as one, with `separator` between them."""
    parts: list[Inline] = []
    for line in lines:
        parts += [separator] if parts else []
        parts += parts_of(line)
    return tuple(parts)
