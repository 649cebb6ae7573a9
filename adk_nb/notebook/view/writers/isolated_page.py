"""Untrusted pages for a frame, rewritten by a parser with allowed elements and attributes only.

A Content-Security-Policy is not enough: Chromium connects for `<link rel=preconnect>` and resolves names for `<iframe>`
before it checks the policy. Such markup must not be in the frame at all.
"""

import html
import re
from collections.abc import Mapping
from contextlib import suppress

from adk_nb.notebook.view.plain_text import is_safe_link, without_invisible
from adk_nb.notebook.view.writers.elements import Html, frame
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
