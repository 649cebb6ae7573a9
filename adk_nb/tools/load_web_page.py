"""`load_web_page`: a tool that reads the text of a web page."""

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx2

from adk_nb import sync
from adk_nb.tools.base_tool import pure
from adk_nb.tools.html_parser import TooDeepError, parse_html
from adk_nb.tools.web_access import WebAccess

web = WebAccess()
"""Reaches public addresses only."""
_SECONDS = 60
_MAX_MENU_WORDS = 3
"""A line with so few words is taken for a menu or a button, and left out. Source: google-adk 2.13."""
_MAX_CHARACTERS = 2_000_000
_MAX_DEPTH = 500
"""Limit of nested elements."""
_HIDDEN = {"script", "style", "template", "noscript"}
_WITHIN_A_LINE = re.compile(
    "a|abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|sub|"
    "sup|time|tt|u|var|wbr"
)
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)


@pure
async def load_web_page(url: str) -> str | dict[str, Any]:
    """Fetches a page of the web, and returns the words in it: those of lines with more than three words.

    Args:
        url: The page's whole address, with https:// before it.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            response = await web.send("GET", url)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        return {"error": f"{url} was not read: {error or type(error).__name__}"}
    kind = response.headers.get("content-type", "text/html")
    if response.status != 200:
        return {"error": f"{url} was not read: its server answered HTTP {response.status}"}
    if not re.match(r"text/|application/(.*\+)?(json|xml)\b", kind):
        return {"error": f"{url} was not read: its type is {kind}, which is not text"}
    # A page declares its charset in the first 1024 bytes. Source:
    # https://html.spec.whatwg.org/multipage/semantics.html#charset
    match = _CHARSET.search(kind) or _CHARSET.search(response.body[:1024].decode("ascii", "replace"))
    try:
        text = response.body.decode(match[1] if match else "utf-8", "replace")
    except LookupError:
        text = response.body.decode("utf-8", "replace")
    return await sync.blocking(partial(_lines, text), thread=True) if "html" in kind else text


def _lines(html: str) -> str:
    """The lines of a page with more than three words."""
    page = _Page()
    try:
        parse_html(html[:_MAX_CHARACTERS], page)
    except TooDeepError:
        page.pieces.append(f"\n[the rest is not read: more than {_MAX_DEPTH} elements are in each other]")
    lines = (" ".join(line.split()) for line in "".join(page.pieces).split("\n"))
    text = "\n".join(line for line in lines if len(line.split()) > _MAX_MENU_WORDS)
    is_cut = len(html) > _MAX_CHARACTERS
    return f"{text}\n[the page is longer: {_MAX_CHARACTERS:,} characters of it were read]" if is_cut else text


class _Page:
    """lxml parser target that collects the visible text, with a line break at each end of a block element."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._hidden_depth = 0
        self._depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Count nesting; libxml2 calls this for each start tag."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:  # libxml2 compares each end tag with every open element
            raise TooDeepError
        self._hidden_depth += tag in _HIDDEN
        self._break(tag)

    def end(self, tag: str) -> None:
        """Close an element."""
        self._depth -= 1
        self._hidden_depth -= tag in _HIDDEN
        self._break(tag)

    def data(self, text: str) -> None:
        """Collect text."""
        if not self._hidden_depth:
            # HTML: a line break in the source is a space.
            self.pieces.append(text.replace("\n", " "))

    def close(self) -> None:
        """Required by lxml."""

    def _break(self, tag: str) -> None:
        if not _WITHIN_A_LINE.fullmatch(tag):
            self.pieces.append("\n")
