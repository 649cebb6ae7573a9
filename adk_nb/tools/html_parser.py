"""Parses untrusted HTML in time linear in its length."""

from typing import Any

from adk_nb.lazy import require

_PIECE = 65_536
"""Bytes per feed, so that a target can stop the parser early."""


class TooDeepError(Exception):
    """Raised by a target to refuse deeper nesting."""


def parse_html(markup: str, target: Any) -> None:
    """Feed `markup` to libxml2, which calls `target`: https://lxml.de/parsing.html#the-target-parser-interface.

    Raises:
        |    TooDeepError: Raised by the target.
        MissingExtraError: lxml is not installed.
    """
    parser: Any = require("lxml.etree", package="lxml").HTMLParser(target=target, encoding="utf-8", no_network=True)
    # libxml2 ends a text at a null character.
    data = markup.replace("\0", "").encode("utf-8", "replace")
    parser.feed(b"<html>")  # lxml raises for a page without an element
    for start in range(0, len(data), _PIECE):
        parser.feed(data[start : start + _PIECE])
    parser.close()
