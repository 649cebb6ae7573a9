"""Parses untrusted HTML: in time linear in its length with libxml2, in a browser with Python's own parser."""

import importlib
from collections import Counter
from html.parser import HTMLParser
from importlib.util import find_spec
from typing import Any

_PIECE = 65_536
"""Bytes per feed, so that a target can stop the parser early."""
_MAX_IN_PYTHON = 500_000
"""Limit in characters for Python's own parser: it is slower than libxml2, and a page has one thread."""
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
"""Elements without an end tag. Source: https://html.spec.whatwg.org/#void-elements."""


class TooDeepError(Exception):
    """Raised by a target to refuse deeper nesting."""


def parse_html(markup: str, target: Any) -> None:
    """Feed `markup` to libxml2, which calls `target`: https://lxml.de/parsing.html#the-target-parser-interface.

    Where lxml is missing, as in a browser, Python's own parser makes the same calls.

    Raises:
        TooDeepError: Raised by the target.
    """
    if find_spec("lxml") is None:
        _PythonParser(target).parse(markup[:_MAX_IN_PYTHON])
        return
    parser: Any = importlib.import_module("lxml.etree").HTMLParser(target=target, encoding="utf-8", no_network=True)
    # libxml2 ends a text at a null character.
    data = markup.replace("\0", "").encode("utf-8", "replace")
    parser.feed(b"<html>")  # lxml raises for a page without an element
    for start in range(0, len(data), _PIECE):
        parser.feed(data[start : start + _PIECE])
    parser.close()


class _PythonParser(HTMLParser):
    """Calls a target as lxml does: each start has its end."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target
        self._open: list[str] = []
        self._counts = Counter[str]()
        """Of the open elements: a page may have many end tags without a start, and many open elements."""

    def parse(self, markup: str) -> None:
        """Parse a whole page."""
        self.feed(markup)
        self.close()
        while self._open:
            self._target.end(self._open.pop())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        self._target.start(tag, {name: value or "" for name, value in attrs})
        if tag in _VOID:
            self._target.end(tag)
        else:
            self._open.append(tag)
            self._counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those in it that are open; nothing if it is not open."""
        if not self._counts[tag]:
            return
        last = ""
        while last != tag:
            last = self._open.pop()
            self._counts[last] -= 1
            self._target.end(last)

    def handle_data(self, data: str) -> None:
        """Pass text on; its entities are decoded."""
        self._target.data(data)
