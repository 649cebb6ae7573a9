"""Blocks: everything that is shown, built once; `writers` write a document as text, markdown and html.

The strings in blocks are untrusted: whoever builds a block leaves all cleaning and escaping to the writers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Form = Literal["text/plain", "text/markdown", "text/html"]
Style = Literal["", "strong", "em", "small", "code", "removed"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line.

    Args:
        text: The part.
        style: How it stands out.
        exact: It is of a call to be approved: characters that cannot be seen are spelled out, not left out, and of
            keys only those are hidden that are known to be one.
    """

    text: str
    style: Style = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A link to http, https or mailto; its text alone where `url` is another one."""

    text: str
    url: str


Inline = str | Span | Link
Line = Inline | tuple[Inline, ...]
"""Text on one line; white space in it is single blanks."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows; text has an empty line before it."""

    line: Line


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    line: Line
    small: bool = False


class Note(str):
    """A line with a mark beside it, where a page can show one."""

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
    """Text with its line ends and blanks; text indents it."""

    line: Line


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, all as long as `head`.

    Args:
        head: A word for each column; empty: the table has no head.
        rows: The cells.
        width: Characters a line of text may have, the widest columns are cut to that; None: any number.
        title: What text shows instead of the rows; empty: the rows.
        note: A line below the table, as on rows that are left out.
    """

    head: Sequence[Line]
    rows: Sequence[Sequence[Line]]
    width: int | None = None
    title: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a list, and the list below it."""

    line: Line
    below: "Items | None" = None


@dataclass(frozen=True, slots=True)
class Items:
    """A list. `numbers`: `1` numbers its items, `[1]` too, and text has the number in brackets, as citations do."""

    items: Sequence[Item]
    numbers: Literal["", "1", "[1]"] = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is in the page itself. `src`: a data URI."""

    src: str
    alt: str


Shape = Mapping[str, Any]
"""An element of a drawing: `tag`, its attributes `at`, and where it has them `text` and `tip`, read when pointed at."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of SVG shapes, in the colour of the text around it: it fits a light page and a dark one.

    Args:
        shapes: In the order in which they are drawn.
        width: Of the drawing, in pixels.
        height: As `width`.
        title: What those hear who do not see it.
        text: The drawing as lines of text; empty: text shows nothing of it.
        least: Of its size: a picture that would be smaller on a narrow page is scrolled.
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
    """A page that somebody else wrote, shown in a frame in which nothing runs."""

    markup: str
    title: str
    height: int = 240


@dataclass(frozen=True, slots=True)
class Fold:
    """Details under a summary; text leaves them out."""

    summary: Line
    blocks: "tuple[Block, ...]"


@dataclass(frozen=True, slots=True)
class Card:
    """A request to the user, under its title; text indents it."""

    title: Line
    blocks: "tuple[Block, ...]" = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark beside the content, as on a model that is not what it seems.

    Args:
        text: The remark.
        label: The name of a chip before it; empty: there is no chip.
        folded: The chip alone is shown, as the remark stands in an earlier cell.
    """

    text: str
    label: str = ""
    folded: bool = False

    @property
    def line(self) -> str:
        """All that is shown of it, on one line."""
        return ": ".join(filter(None, (self.label, "" if self.folded else self.text)))


@dataclass(frozen=True, slots=True)
class Speech:
    """An agent's answer.

    Args:
        who: The agent. Only text names it: in a page it stands in its own cell.
        text: The answer in plain text.
        block: The answer in the other forms. None: they leave it out.
        remark: What text has behind it in brackets.
    """

    agent: str
    text: str
    block: "Block | None" = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks that belong together; text has an empty line before them."""

    blocks: "tuple[Block, ...]"


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
    | Card
    | Notice
    | Speech
    | Section
    | Only
)


@dataclass(frozen=True, slots=True)
class Document:
    """Blocks in the order in which they are read."""

    blocks: tuple[Block, ...]


def document(*blocks: Block | None) -> Document:
    """A document of those blocks that are there."""
    return Document(tuple(block for block in blocks if block is not None))


def rich(*blocks: Block) -> Only:
    """Blocks that text leaves out."""
    return Only(("text/markdown", "text/html"), blocks)


def plain(*blocks: Block) -> Only:
    """Blocks that stand in text alone."""
    return Only(("text/plain",), blocks)


def in_html(*blocks: Block) -> Only:
    """Blocks that stand in html alone."""
    return Only(("text/html",), blocks)


def parts_of(line: Line) -> tuple[Inline, ...]:
    """The parts of a line."""
    return line if isinstance(line, tuple) else (line,)


def joined(lines: Iterable[Line], separator: str) -> Line:
    """Lines as one, with `separator` between them."""
    parts: list[Inline] = []
    for line in lines:
        parts += [separator] if parts else []
        parts += parts_of(line)
    return tuple(parts)
