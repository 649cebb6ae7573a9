"""The markup of this package: allowed elements and attributes around escaped text."""

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

_PROSE = {"a", "blockquote", "br", "code", "em", "h4", "h5", "h6", "hr", "p", "pre", "s", "small", "span", "strong"}
_MARKS = {"mark"}
_LISTS = {"li", "ol", "ul"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
TAGS = frozenset(_PROSE | _MARKS | _LISTS | _TABLES | {"details", "section", "summary"})
ATTRIBUTES = {
    "a": frozenset({"href", "rel"}),
    "blockquote": frozenset({"style"}),
    "details": frozenset({"open", "style"}),
    "mark": frozenset({"style"}),
    "ol": frozenset({"start", "style"}),
    "p": frozenset({"style"}),
    "section": frozenset({"style"}),
    "span": frozenset({"style", "title"}),
    "td": frozenset({"style"}),
    "th": frozenset({"style"}),
}
"""Element -> its allowed attributes. No class, id or event handler, which a page could act on."""
CHIP = (
    "border: 1px solid #8c959f; border-radius: 9px; color: var(--jp-ui-font-color2, #767676); display: inline-block; "
    "font-size: 0.85em; margin-left: 0.3em; padding: 0 0.6em"
)
"""The grey frame of a short label, legible on light and dark pages."""
_EDGE = "1px solid rgba(127, 127, 127, 0.4)"
FRAME = (
    f"border: {_EDGE}; border-radius: 6px; font-family: var(--jp-ui-font-family, system-ui, sans-serif); "
    "font-size: var(--jp-ui-font-size1, 13px); line-height: 1.45; "
    "margin: 2px calc(-2 * var(--jp-notebook-padding, 0px)) 2px 0; overflow: auto"
)
"""The look of the view of a run, as far as it needs no sheet. Jupyter leaves 20 pixels right of html, not of a view."""
HEAD = f"background: rgba(127, 127, 127, 0.08); border-bottom: {_EDGE}; margin: 0; padding: 6px 12px"
BODY = "padding: 6px 12px 8px"
HEADING = "margin: 10px 0 4px"
CARD = (
    f"background: rgba(245, 124, 0, 0.08); border: {_EDGE}; border-left: 3px solid #f57c00; border-radius: 6px; "
    "font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px); "
    "line-height: 1.45; margin: 2px calc(-2 * var(--jp-notebook-padding, 0px)) 6px 0; padding: 6px 12px 0"
)
"""The look of a card that waits for the user."""
PART = f"border-bottom: {_EDGE}; margin: 0 -12px; padding: 4px 12px"
PART_NAME = "display: inline-block; font-weight: 600; min-width: min(15em, 48%)"
BESIDE = "align-items: flex-start; display: flex; flex-wrap: wrap; gap: 8px 20px"
LEFT = "flex: 0 1 auto; max-width: 100%; min-width: 0; overflow: auto"
RIGHT = "flex: 1 1 20em; min-width: 0"
INSERTED = "background: rgba(25, 118, 210, 0.25); border-radius: 3px; color: inherit; padding: 0 2px"
MINE = (
    "background: rgba(25, 118, 210, 0.16); border-radius: 14px 14px 4px 14px; margin: 8px 0 8px auto; max-width: 80%; "
    "padding: 7px 13px; width: fit-content"
)
"""The bubble of a message of the user, as in a chat box, on light and dark pages."""
SAID = (
    "background: rgba(128, 128, 128, 0.1); border-radius: 4px 14px 14px 14px; margin: 0 0 18px; padding: 9px 14px 2px"
)
"""The bubble of what an agent says."""
_EDITOR = "color: var(--jp-mirror-editor-%s-color, %s)"
CODE = {
    "keyword": f"{_EDITOR % ('keyword', '#2e8b57')}; font-weight: 600",
    "constant": _EDITOR % ("keyword", "#2e8b57"),
    "string": _EDITOR % ("string", "#c0504d"),
    "number": _EDITOR % ("number", "#3a8f3a"),
    "name": _EDITOR % ("def", "#4078c8"),
    "comment": "font-style: italic; opacity: 0.75",
}
"""The looks of the pieces of code: those of the page's editor, or colours for light and dark pages."""
STYLES = frozenset(
    [CHIP, FRAME, CARD, HEAD, HEADING, BODY, PART, PART_NAME, BESIDE, LEFT, RIGHT, INSERTED, MINE, SAID]
    + [*CODE.values()]
    + [f"text-align: {side}" for side in ("left", "center", "right")]
    + [f"padding-left: {digits}em" for digits in range(3, 10)]
)
"""The allowed values of `style`. JupyterLab and nbconvert align cells to the right, whatever `align` says, and cut off
list numbers of more than two digits.
"""
LINK_REL = "noopener noreferrer"

_MATH = re.compile(r"[$\\]")
_FORMULA = re.compile(r"(?P<code><code>.*?</code>)|\\\((?P<inline>.+?)\\\)|\\\[(?P<display>.+?)\\\]", re.DOTALL)
"""The output of `formula`, or code, in which a regular expression may look like a formula."""
_TAG = re.compile("<[^>]*>")
_EMPTY_LINE = re.compile(r"\n(?=[ \t]*\n)")


class Html(str):
    """Markup made by the functions of this file; other strings are escaped when they are inserted."""


def escaped(text: str) -> Html:
    r"""Escape text for a page (not for an attribute), so that markup and mathematics in it are displayed as text.

    JupyterLab and exported pages run MathJax over all outputs; `\href` in TeX would become a link. MathJax looks for
    delimiters within one run of text, so a dollar or backslash alone in an element begins no formula. Source:
    mathjax-full 3, `HTMLDomStrings.handleContainer`; MathJax 2, tex2jax `scanText`.
    """
    return Html(_MATH.sub(r"<span>\g<0></span>", html.escape(text, quote=False)))


def code(text: str) -> Html:
    """Escape text within `<code>` and `<pre>`, which MathJax skips.

    Empty lines are avoided: in the markdown files of nbconvert they would end the html block, and the rest would be
    read as markdown. Source: CommonMark 0.31, "HTML blocks", end condition of kind 6.
    """
    return Html(_EMPTY_LINE.sub("&#10;", html.escape(text, quote=False)))


_LONGEST = 20_000
"""Letters of a block that gets colours."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words(
    "and as assert async await begin break case catch class const continue def default del do elif else end enum "
    "except export extends final finally fn for from func function global if impl implements import in instanceof "
    "interface is lambda let match mut new nonlocal not of or package pass private protected pub public raise return "
    "select static struct super switch this throw try type typeof use using var void while with yield"
)
_CONSTANTS = _words("False None True false nil null self true undefined")
_SQL = _KEYWORDS | _words(
    "all alter asc between by create delete desc distinct drop exists full group having index inner insert into join "
    "key left like limit null offset on order outer primary right set table then union unique update values view when "
    "where"
)
_WITH_HASH = _words("bash console dockerfile ini makefile perl py python python3 r ruby sh shell toml yaml yml")
_PLAIN = _words("log markdown md output plain plaintext text txt") | {""}
# What does not end, ends with the text, or soon: searched for its end at each place, it would take quadratic time.
_PIECES = r"""
    (?P<comment>%s)
  | (?P<string>\"{3}.*?(?:\"{3}|\Z) | '{3}.*?(?:'{3}|\Z) | `[^`]*(?:`|\Z)
      | "(?:[^"\\\n]|\\.){0,500}" | '(?:[^'\\\n]|\\.){0,500}' )
  | (?P<number>\b(?:0[xX][\da-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)
  | (?P<word>@?[^\W\d][\w$]*)(?P<call>(?=[ ]?\())?
"""
_TOKENS = {
    comment: re.compile(_PIECES % comment, re.DOTALL | re.VERBOSE)
    for comment in (r"\#[^\n]*", r"--[^\n]*", r"//[^\n]*|/\*.*?(?:\*/|\Z)")
}


def coloured(text: str, language: str) -> Html:
    """`text` as `code` does, in the colours of a language, which are those of `chat/code.js` in the live view."""
    if language in _PLAIN or len(text) > _LONGEST:
        return code(text)
    hash_, dashes, slashes = _TOKENS.values()
    tokens = hash_ if language in _WITH_HASH else dashes if language == "sql" else slashes
    pieces: list[str] = []
    end = 0
    for found in tokens.finditer(text):
        word = found["word"]
        kind = found.lastgroup if word is None else _kind_of(word, language, is_called=found["call"] is not None)
        if kind:
            span = f"<span{_attributes({'style': CODE[kind]})}>{html.escape(found[0], quote=False)}</span>"
            pieces += [html.escape(text[end : found.start()], quote=False), span]
            end = found.end()
    pieces.append(html.escape(text[end:], quote=False))
    return Html(_EMPTY_LINE.sub("&#10;", "".join(pieces)))


def _kind_of(word: str, language: str, *, is_called: bool) -> str:
    if language == "json":
        return "constant" if word in _CONSTANTS else ""
    if word.lower() in _SQL if language == "sql" else word in _KEYWORDS:
        return "keyword"
    if word in _CONSTANTS:
        return "constant"
    return "name" if is_called or word.startswith("@") else ""


def formula(tex: str, *, display: bool) -> Html:
    """A formula that the page draws; `tex` must pass `mathematics.is_drawable`."""
    opening, closing = ("\\[", "\\]") if display else ("\\(", "\\)")
    return Html(f"{opening}{html.escape(tex, quote=False)}{closing}")


def element(tag: str, *children: str, **attributes: str) -> Html:
    """One element.

    Args:
        tag: One of `TAGS`.
        children: `Html` is inserted as it is, other text escaped.
        attributes: Those allowed by `ATTRIBUTES`.

    Raises:
        ValueError: The element, an attribute or a style is not in the list.
    """
    styled = attributes.get("style", "text-align: left")
    if tag not in TAGS or not ATTRIBUTES.get(tag, frozenset()).issuperset(attributes) or styled not in STYLES:
        raise ValueError(f"<{tag}> with {sorted(attributes)} is not markup this package makes")
    inside = "".join(child if isinstance(child, Html) else escaped(child) for child in children)
    attribute_text = _attributes(attributes)
    return Html(f"<{tag}{attribute_text}>" if tag in ("br", "hr") else f"<{tag}{attribute_text}>{inside}</{tag}>")


ISOLATED = {
    "sandbox": "allow-popups allow-popups-to-escape-sandbox",
    "referrerpolicy": "no-referrer",
    "style": "border: 0; height: 76px; width: 100%",
}
"""The frame of an untrusted page: no script, an opaque origin, and links that open a new window after a click."""


def frame(page: str, title: str, *, height: int = 76) -> Html:
    """A frame with the result of `isolated_page.isolated_page`. `height` in pixels."""
    # `srcdoc`: no request is made, and a sandbox without allow-same-origin has no cookies.
    style = ISOLATED["style"].replace("76px", f"{height}px")
    attributes = {"title": title, **ISOLATED, "style": style, "srcdoc": page}
    return Html(f"<iframe{_attributes(attributes)}></iframe>")


def image(src: str, alt: str) -> Html:
    """An image from a data URI, at most as wide as the page.

    Raises:
        ValueError: `src` is not a data URI of an image.
    """
    # A URL would tell its server who reads the notebook, and when.
    if not src.startswith("data:image/"):
        raise ValueError(f"{src[:80]!r} is not a data URI of an image")
    attributes = {"src": src, "alt": alt, "style": "max-width: 100%"}
    return Html(f"<img{_attributes(attributes)}>")


_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"
_SHAPES = frozenset({"rect", "path", "text"})


def svg(shapes: Iterable[Mapping[str, Any]], size: tuple[int, int], title: str, least: float, font_size: int) -> Html:
    """An `<svg>`, at most as wide as the page, and scaled down to `least` at most.

    Args:
        shapes: As `document.Shape`.
        size: Width and height in pixels.
        title: For screen readers.
        least: Smallest scale, from 0 to 1.
        font_size: In pixels.
    """
    width, height = size
    attributes = {
        "xmlns": "http://www.w3.org/2000/svg",
        "role": "img",
        "aria-label": title,
        "viewBox": f"0 0 {width} {height}",
        "width": str(width),
        "height": str(height),
        "style": f"max-width: 100%; min-width: {round(width * least)}px; height: auto",
        "font-family": _FONT,
        "font-size": str(font_size),
    }
    # Joined by newlines: a page that removes the svg keeps its texts, which must not run together.
    return Html(f"<svg{_attributes(attributes)}>" + "\n".join(map(_shape, shapes)) + "</svg>")


def _shape(shape: Mapping[str, Any]) -> str:
    tag = shape["tag"]
    if tag not in _SHAPES:
        raise ValueError(f"<{tag}> is not a shape this package draws")
    # MathJax looks for its delimiters within one run of text, as in `escaped`.
    text = _MATH.sub(r"<tspan>\g<0></tspan>", html.escape(shape.get("text") or "", quote=False))
    tip = f"<title>{escaped(shape['tip'])}</title>" if shape.get("tip") else ""
    inside = tip + text
    opened = f"<{tag}{_attributes(shape['at'])}"
    return f"{opened}>{inside}</{tag}>" if inside else f"{opened}/>"


def _attributes(attributes: Mapping[str, str]) -> str:
    # Within double quotes, single quotes need no escape.
    texts = {name: html.escape(value, quote=False).replace('"', "&quot;") for name, value in attributes.items()}
    return "".join(f' {name}="{text}"' for name, text in texts.items())


_TERMINAL = (
    "font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px); "
    "line-height: var(--jp-code-line-height, 1.3); padding-left: 6px; white-space: pre-wrap"
)
"""The style of plain text outputs in JupyterLab."""
_NOTE = "border-left: 3px solid #8c959f; padding-left: 0.5em"


def terminal_lines(lines: Iterable[tuple[str, bool]]) -> Html:
    """Lines in the style of plain text outputs; True marks a line."""
    rows = "".join(
        f"<div{_attributes({'style': _NOTE} if marked else {})}>{escaped(line)}</div>" for line, marked in lines
    )
    return Html(f"<div{_attributes({'style': _TERMINAL})}>{rows}</div>")


def visible_text(markup: str) -> str:
    """The visible text of markup made here, with formulas as TeX between dollar signs."""

    def in_dollars(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        return f"${match['inline']}$" if match["inline"] else f"$${match['display']}$$"

    return html.unescape(_TAG.sub("", _FORMULA.sub(in_dollars, markup)))
