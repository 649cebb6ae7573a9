"""Documents as html, made of the elements of `elements`."""

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

from adk_nb.notebook.view import document as doc
from adk_nb.notebook.view.document import Block, Inline, Line, Shape, parts_of
from adk_nb.notebook.view.plain_text import cleaned, is_safe_link, shortened
from adk_nb.notebook.view.writers.elements import (
    CHIP,
    LINK_REL,
    Html,
    code,
    element,
    escaped,
    frame,
    image,
    svg,
    terminal_lines,
    visible_text,
)
from adk_nb.notebook.view.writers.isolated_page import isolated_page
from adk_nb.notebook.view.writers.markdown_html import to_html
from adk_nb.notebook.view.writers.text import CELL, safe

_ALIGN_LEFT = "text-align: left"
"""JupyterLab and nbconvert would align cells to the right."""
_AFTER_A_MARK = re.compile("(?<=[↳∥]) ")
"""The blank after a mark, replaced by one that does not break."""
_TAGS = {"strong": "strong", "em": "em", "small": "small", "removed": "s"}


def write(blocks: Sequence[Block]) -> Html:
    """`blocks` as html."""
    return Html("\n".join(part for block in blocks for part in _parts(block) if part))


def for_view(blocks: Iterable[doc.Image | doc.Table | doc.Page | doc.Text]) -> list[dict[str, Any]]:
    """Pieces of a result for a live view: `{"kind": "image", "src", "alt"}`, `{"kind": "table", "html", "note"}`,
    `{"kind": "page", "page", "title"}` or `{"kind": "note", "text"}`.
    """
    return [_piece(block) for block in blocks]


def page_sources(pages: Iterable[str]) -> list[str]:
    """Untrusted pages for a live view: each as the `srcdoc` of a frame like `elements.ISOLATED`."""
    return list(map(isolated_page, pages))


def readable(markdown: str) -> str:
    """The visible text of rendered markdown."""
    return visible_text(to_html(markdown))


def _piece(block: doc.Image | doc.Table | doc.Page | doc.Text) -> dict[str, Any]:
    if isinstance(block, doc.Image):
        return {"kind": "image", "src": block.src, "alt": cleaned(block.alt)}
    if isinstance(block, doc.Page):
        return {"kind": "page", "page": isolated_page(block.markup), "title": cleaned(block.title)}
    if isinstance(block, doc.Table):
        return {"kind": "table", "html": _table(block), "note": cleaned(block.note)}
    return {"kind": "note", "text": "".join(map(safe, parts_of(block.line)))}


def _line(line: Line) -> Html:
    return Html("".join(map(_inline, parts_of(line))))


def _inline(part: Inline) -> Html:
    text = safe(part)
    if isinstance(part, doc.Link):
        return element("a", text, href=part.url, rel=LINK_REL) if is_safe_link(part.url) else escaped(text)
    if isinstance(part, str):
        return escaped(text)
    if part.style == "code":
        return element("code", code(text))
    return element(_TAGS[part.style], text) if part.style else escaped(text)


@singledispatch
def _parts(block: Any) -> Iterable[str]:
    raise TypeError(f"{type(block).__name__} is not a block")


@_parts.register
def _(block: doc.Heading) -> Iterable[str]:
    return [element("p", element("strong", _line(block.line)))]


@_parts.register
def _(block: doc.Text) -> Iterable[str]:
    line = _line(block.line)
    return [element("p", element("small", line) if block.small else line)]


@_parts.register
def _(block: doc.Lines) -> Iterable[str]:
    return [terminal_lines((cleaned(line), isinstance(line, doc.Note)) for line in block.lines)]


@_parts.register
def _(block: doc.Markdown) -> Iterable[str]:
    return [to_html(block.source)]


@_parts.register
def _(block: doc.Code) -> Iterable[str]:
    return [element("pre", element("code", *map(_code, parts_of(block.line))))]


@_parts.register
def _(block: doc.Table) -> Iterable[str]:
    return [_table(block), element("p", element("small", cleaned(block.note))) if block.note else ""]


@_parts.register
def _(block: doc.Items) -> Iterable[str]:
    return [_items(block)]


@_parts.register
def _(block: doc.Image) -> Iterable[str]:
    return [element("p", image(block.src, cleaned(block.alt)))]


@_parts.register
def _(block: doc.Picture) -> Iterable[str]:
    shapes: list[Shape] = []
    for shape in block.shapes:
        attributes = {name: cleaned(value) for name, value in shape["at"].items()}
        texts = {name: cleaned(shape[name]) for name in ("text", "tip") if shape.get(name)}
        shapes.append({"tag": shape["tag"], "at": attributes, **texts})
    return [svg(shapes, (block.width, block.height), cleaned(block.title), block.least, block.font_size)]


@_parts.register
def _(block: doc.Page) -> Iterable[str]:
    return [frame(isolated_page(block.markup), cleaned(block.title), height=block.height)]


@_parts.register
def _(block: doc.Fold) -> Iterable[str]:
    inside = write(block.blocks)
    # A page that removes the svg keeps its texts, which must not run into the summary.
    gap = "\n" if inside.startswith("<svg") else ""
    return [element("details", element("summary", _line(block.summary)), gap, inside)]


@_parts.register
def _(block: doc.Card) -> Iterable[str]:
    return [element("blockquote", element("p", _line(block.title)), write(block.blocks))]


@_parts.register
def _(block: doc.Notice) -> Iterable[str]:
    parts = [element("span", cleaned(block.label), style=CHIP)] if block.label else []
    parts += [] if block.folded else [element("small", cleaned(block.text))]
    return [element("p", Html(" ".join(parts)))]


@_parts.register
def _(block: doc.Speech) -> Iterable[str]:
    return _parts(block.block) if block.block else ()


@_parts.register
def _(block: doc.Section) -> Iterable[str]:
    return [element("section", "\n", write(block.blocks), "\n")]


@_parts.register
def _(block: doc.Only) -> Iterable[str]:
    return [write(block.blocks) if "text/html" in block.forms else ""]


def _code(part: Inline) -> Html:
    """A part of `Code`, whose blanks and line ends are kept."""
    if isinstance(part, (str, doc.Link)):
        return code(cleaned(part if isinstance(part, str) else part.text))
    text = code(cleaned(part.text))
    return element(_TAGS[part.style], text) if part.style in _TAGS else text


def _items(items: doc.Items) -> Html:
    inside = [element("li", _line(item.line), *([_items(item.below)] if item.below else [])) for item in items.items]
    return element("ol" if items.numbers else "ul", "\n", Html("\n".join(inside)), "\n")


def _table(table: doc.Table) -> Html:
    rows = [element("tr", *(element("td", _cell(cell), style=_ALIGN_LEFT) for cell in line)) for line in table.rows]
    body = element("tbody", "\n", Html("\n".join(rows)), "\n")
    if not table.head:
        return element("table", "\n", body, "\n")
    header = element("tr", *(element("th", _cell(cell), style=_ALIGN_LEFT) for cell in table.head))
    return element("table", "\n", element("thead", header), "\n", body, "\n")


def _cell(line: Line) -> Html:
    if not isinstance(line, str):
        return _line(line)
    return escaped(_AFTER_A_MARK.sub("\u00a0", shortened(safe(line).strip(" "), CELL)))
