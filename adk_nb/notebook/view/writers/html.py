"""Documents as html, made of the elements of `elements`, and foreign html as a page in a frame of its own.

A foreign page is rewritten by a parser, with allowed elements and attributes only. A Content-Security-Policy is not
enough: Chromium connects for `<link rel=preconnect>` and resolves names for `<iframe>` before it checks the policy, so
such markup must not be in the frame at all.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import singledispatch
from typing import Any

from adk_nb.notebook.view import document as doc
from adk_nb.notebook.view.document import Block, Inline, Line, Shape, parts_of
from adk_nb.notebook.view.plain_text import cleaned, is_safe_link, shortened, without_invisible
from adk_nb.notebook.view.writers.elements import (
    BESIDE,
    BODY,
    CARD,
    CHIP,
    FRAME,
    HEAD,
    HEADING,
    INSERTED,
    LEFT,
    LINK_REL,
    MINE,
    PART,
    PART_NAME,
    RIGHT,
    SAID,
    Html,
    code,
    coloured,
    element,
    escaped,
    frame,
    image,
    svg,
    terminal_lines,
    visible_text,
)
from adk_nb.notebook.view.writers.markdown_html import to_html
from adk_nb.notebook.view.writers.text import CELL, safe
from adk_nb.redaction import without_known
from adk_nb.tools.html_parser import TooDeepError, parse_html

MAX_DEPTH = 500
"""Nesting of elements (Chromium keeps 512); a deeper element and all that follows it are left out."""
_PROSE = (
    "a abbr address article aside b bdi bdo big blockquote br caption center cite code col colgroup data dd del "
    "details dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd label "
    "legend li main mark menu meter nav ol p pre progress q rp rt ruby s samp section small span strike strong style "
    "sub summary sup table tbody td tfoot th thead time tr tt u ul var wbr"
)
_DRAWING = (
    "circle clippath defs desc ellipse g line lineargradient marker mask path pattern polygon polyline radialgradient "
    "rect stop svg symbol text textpath title tspan use"
)
_OF_PROSE = (
    "abbr align alt bgcolor border cellpadding cellspacing class color cols colspan datetime dir face headers height "
    "hidden high id lang low max min nowrap open optimum reversed role rows rowspan scope size span start style "
    "tabindex title translate type valign value width"
)
_OF_DRAWING = (
    "clip-path clip-rule clippathunits cx cy d dominant-baseline dx dy fill fill-opacity fill-rule font-family "
    "font-size font-style font-weight fx fy gradienttransform gradientunits letter-spacing marker-end marker-mid "
    "marker-start markerheight markerunits markerwidth mask offset opacity orient pathlength patterntransform "
    "patternunits points preserveaspectratio r refx refy rotate rx ry spreadmethod stop-color stop-opacity stroke "
    "stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width "
    "text-anchor text-decoration textlength transform viewbox visibility x x1 x2 xmlns y y1 y2"
)
_LEAVING = "frameset iframe noembed noframes script template textarea title xmp"
TAGS = frozenset([*_PROSE.split(), *_DRAWING.split()])
ATTRIBUTES = frozenset([*_OF_PROSE.split(), *_OF_DRAWING.split()])
"""Allowed attributes, none of which holds a URL; `aria-` attributes are allowed, too."""
_EMPTY = frozenset({"br", "col", "hr", "img", "wbr"})
_UNSEEN = frozenset(_LEAVING.split())
"""Elements that are removed with their content; the `title` of a drawing stays."""
_ARIA = re.compile(r"aria-[a-z]+")
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp|svg\+xml|avif)[;,]", re.IGNORECASE)

_NOTHING_LOADED = (
    '<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">"
    '<meta name="color-scheme" content="light dark"><base target="_blank">'
    "<style>body { font: 13px system-ui, sans-serif; margin: 1px }</style>"
)
"""The head of such a page: it loads nothing."""


def isolated_page(markup: str) -> str:
    """An untrusted page as the `srcdoc` of a frame like `elements.ISOLATED`."""
    return _NOTHING_LOADED + without_invisible(rewritten(without_known(markup)))


def isolated(markup: str, title: str) -> Html:
    """A frame with an untrusted page. `title`: for screen readers."""
    return frame(isolated_page(markup), title)


def rewritten(markup: str) -> str:
    """`markup` without anything that runs, loads, connects, or navigates without a click.

    Elements are written from their parsed names and attributes, and text is escaped, so a browser cannot find other
    elements in the result.
    """
    page = _Page()
    with suppress(TooDeepError):
        parse_html(markup, page)
    return "".join(page.pieces)


class _Page:
    """Writes the allowed elements. A parser target of lxml."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._open: list[str] = []
        self._unseen = 0
        self._drawings = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Write a start tag if it is allowed. lxml calls it."""
        self._open.append(tag)
        if len(self._open) > MAX_DEPTH:  # libxml2 compares each end tag with every open element
            raise TooDeepError
        self._drawings += tag == "svg"
        self._unseen += self._is_unseen(tag)
        if self._is_written(tag):
            allowed = {name: value for name, value in attributes.items() if name in ATTRIBUTES or _ARIA.fullmatch(name)}
            href = attributes.get("href", "").strip()
            if tag == "a" and is_safe_link(href):
                allowed |= {"href": href, "rel": "noopener noreferrer"}
            if tag == "use" and href.startswith("#"):
                allowed["href"] = href
            if tag == "img" and _PICTURE.match(attributes.get("src", "")):
                allowed["src"] = attributes["src"]
            attribute_text = "".join(f' {name}="{html.escape(value)}"' for name, value in allowed.items())
            self.pieces.append(f"<{tag}{attribute_text}>")

    def end(self, tag: str) -> None:
        """Write the end tag of a written element. lxml calls it."""
        if self._is_written(tag) and tag not in _EMPTY:
            self.pieces.append(f"</{tag}>")
        self._open.pop()
        self._unseen -= self._is_unseen(tag)
        self._drawings -= tag == "svg"

    def data(self, text: str) -> None:
        """Write text, escaped; none inside unseen elements. lxml calls it."""
        if not self._unseen:
            raw = self._open[-1:] == ["style"]  # browsers read no entities in style elements
            self.pieces.append(text.replace("<", "") if raw else html.escape(text, quote=False))

    def close(self) -> None:
        """Nothing is left to do. lxml asks for it."""

    def _is_unseen(self, tag: str) -> bool:
        return tag in _UNSEEN and not (tag == "title" and self._drawings)

    def _is_written(self, tag: str) -> bool:
        return tag in TAGS and not self._unseen


_ALIGN_LEFT, _ALIGN_RIGHT = "text-align: left", "text-align: right"
"""JupyterLab and nbconvert would align all cells to the right."""
_AFTER_A_MARK = re.compile("(?<=[↳∥]) ")
"""The blank after a mark, replaced by one that does not break."""
_TAGS = {"strong": "strong", "em": "em", "small": "small", "removed": "s"}


def write(blocks: Sequence[Block]) -> Html:
    """`blocks` as html."""
    return Html("\n".join(part for block in blocks for part in _parts(block) if part))


def for_view(blocks: Iterable[doc.Image | doc.Table | doc.Page | doc.Text | doc.Code]) -> list[dict[str, Any]]:
    """Pieces of a result for a live view: `{"kind": "image", "src", "alt"}`, `{"kind": "table", "html", "note"}`,
    `{"kind": "page", "page", "title"}`, `{"kind": "code", "text", "language"}` or `{"kind": "note", "text"}`.
    """
    return [_piece(block) for block in blocks]


def page_sources(pages: Iterable[str]) -> list[str]:
    """Untrusted pages for a live view: each as the `srcdoc` of a frame like `elements.ISOLATED`."""
    return list(map(isolated_page, pages))


def readable(markdown: str) -> str:
    """The visible text of rendered markdown."""
    return visible_text(to_html(markdown))


def _piece(block: doc.Image | doc.Table | doc.Page | doc.Text | doc.Code) -> dict[str, Any]:
    if isinstance(block, doc.Image):
        return {"kind": "image", "src": block.src, "alt": cleaned(block.alt)}
    if isinstance(block, doc.Page):
        return {"kind": "page", "page": isolated_page(block.markup), "title": cleaned(block.title)}
    if isinstance(block, doc.Table):
        return {"kind": "table", "html": _table(block), "note": cleaned(block.note)}
    if isinstance(block, doc.Code):
        return {"kind": "code", "text": cleaned(doc.text_of(block.line)), "language": block.language}
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
    if part.style == "inserted":
        return element("mark", text, style=INSERTED)
    return element(_TAGS[part.style], text) if part.style else escaped(text)


@singledispatch
def _parts(block: Any) -> Iterable[str]:
    raise TypeError(f"{type(block).__name__} is not a block")


@_parts.register
def _(block: doc.Heading) -> Iterable[str]:
    return [element("p", element("strong", _line(block.line)), **({"style": HEADING} if block.is_near else {}))]


@_parts.register
def _(block: doc.Text) -> Iterable[str]:
    line = _line(block.line)
    style = {"style": MINE} if block.is_mine else {}
    return [element("p", element("small", line) if block.small else line, **style)]


@_parts.register
def _(block: doc.Lines) -> Iterable[str]:
    return [terminal_lines((cleaned(line), isinstance(line, doc.Note)) for line in block.lines)]


@_parts.register
def _(block: doc.Markdown) -> Iterable[str]:
    return [to_html(block.source, in_colour=True)]


@_parts.register
def _(block: doc.Code) -> Iterable[str]:
    if block.language:
        return [element("pre", element("code", coloured(cleaned(doc.text_of(block.line)), block.language)))]
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
    summary, opened = _line(block.summary), {"open": ""} if block.is_open else {}
    summary = Html(" ".join([summary, *map(_chip, block.notices)]))
    if not block.size:
        return [element("details", element("summary", summary), gap, inside, **opened)]
    row = element("summary", element("span", summary, style=PART_NAME), " ", element("small", cleaned(block.size)))
    return [element("details", row, gap, inside, style=PART, **opened)]


@_parts.register
def _(block: doc.Frame) -> Iterable[str]:
    chips = [element("span", cleaned(chip), style=CHIP) for chip in block.chips]
    head = element("p", Html(" ".join([element("strong", _line(block.title)), *chips])), style=HEAD)
    body = element("section", "\n", write(block.blocks), "\n", style=BODY)
    return [element("section", "\n", head, "\n", body, "\n", style=FRAME)]


@_parts.register
def _(block: doc.Beside) -> Iterable[str]:
    sides = ((block.picture,), LEFT), (block.blocks, RIGHT)
    columns = [element("section", "\n", write(blocks), "\n", style=style) for blocks, style in sides]
    return [element("section", "\n", Html("\n".join(columns)), "\n", style=BESIDE)]


@_parts.register
def _(block: doc.Card) -> Iterable[str]:
    return [element("blockquote", element("p", _line(block.title)), write(block.blocks), style=CARD)]


@_parts.register
def _(block: doc.Notice) -> Iterable[str]:
    parts = [_chip(block)] if block.label else []
    parts += [] if block.folded else [element("small", cleaned(block.text))]
    return [element("p", Html(" ".join(parts)))]


@_parts.register
def _(block: doc.Speech) -> Iterable[str]:
    return _parts(block.block) if block.block else ()


@_parts.register
def _(block: doc.Section) -> Iterable[str]:
    style = {"style": SAID} if block.is_said else {}
    return [element("section", "\n", write(block.blocks), "\n", **style)]


@_parts.register
def _(block: doc.Only) -> Iterable[str]:
    return [write(block.blocks) if "text/html" in block.forms else ""]


def _chip(notice: doc.Notice) -> Html:
    return element("span", cleaned(notice.label), style=CHIP, title=cleaned(notice.text))


def _code(part: Inline) -> Html:
    """A part of `Code`, whose blanks and line ends are kept."""
    if isinstance(part, (str, doc.Link)):
        return code(cleaned(part if isinstance(part, str) else part.text))
    text = code(cleaned(part.text))
    if part.style == "inserted":
        return element("mark", element("strong", text), style=INSERTED)
    return element(_TAGS[part.style], text) if part.style in _TAGS else text


def _items(items: doc.Items) -> Html:
    inside = [element("li", _line(item.line), *([_items(item.below)] if item.below else [])) for item in items.items]
    return element("ol" if items.numbers else "ul", "\n", Html("\n".join(inside)), "\n")


def _table(table: doc.Table) -> Html:
    numbers = table.numbers
    sides = [_ALIGN_RIGHT if column in numbers else _ALIGN_LEFT for column in range(table.columns)]

    def row(tag: str, line: Sequence[Line]) -> Html:
        return element("tr", *(element(tag, _cell(cell), style=side) for cell, side in zip(line, sides, strict=True)))

    rows = [row("td", line) for line in table.rows]
    body = element("tbody", "\n", Html("\n".join(rows)), "\n")
    if not table.head:
        return element("table", "\n", body, "\n")
    return element("table", "\n", element("thead", row("th", table.head)), "\n", body, "\n")


def _cell(line: Line) -> Html:
    if not isinstance(line, str):
        return _line(line)
    return escaped(_AFTER_A_MARK.sub("\u00a0", shortened(safe(line).strip(" "), CELL)))
