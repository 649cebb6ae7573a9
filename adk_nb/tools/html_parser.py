"""HTML of strangers, parsed in time linear in its length."""

from typing import Any

from adk_nb.lazy import require

_PIECE = 65_536
"""Bytes that the parser gets at a time, so that a target that has enough can end it early."""


class TooDeepError(Exception):
    """Raised by a target that refuses further nesting."""


def parse_html(markup: str, target: Any) -> None:
    """Feed `markup` to libxml2, which calls `target`: https://lxml.de/parsing.html#the-target-parser-interface.

    Raises:
        TooDeepError: The target had enough.
        MissingExtraError: lxml is not installed.
    """
    parser: Any = require("lxml.etree", package="lxml").HTMLParser(target=target, encoding="utf-8", no_network=True)
    # libxml2 ends a text at a null character.
    data = markup.replace("\0", "").encode("utf-8", "replace")
    parser.feed(b"<html>")  # lxml raises for a page without an element
    for start in range(0, len(data), _PIECE):
        parser.feed(data[start : start + _PIECE])
    parser.close()
