"""The value in the result of an MCP tool, which most servers send twice: as text, and as structured content.

Source: https://modelcontextprotocol.io/specification/2025-06-18/server/tools (Structured Content).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from adk_nb.wire import json_or_text

_KEYS = {"content", "structuredContent", "isError"}


def value_of(response: Mapping[str, Any]) -> Any:
    """The value of an MCP result.

    `response` itself: it is not an MCP result, has blocks other than text, or its two forms differ.
    """
    blocks: Any = response.get("content")
    if not isinstance(blocks, list) or "isError" not in response or not _KEYS.issuperset(response):
        return response
    texts = [text for block in cast(list[Any], blocks) if (text := _text(block)) is not None]
    if len(texts) != len(cast(list[Any], blocks)):
        return response
    text = "\n".join(texts)
    if "structuredContent" not in response:
        return text
    structured: Any = response["structuredContent"]
    value = structured["result"] if _is_wrapped(structured) else structured
    return value if _is_same_value(text, texts, structured, value) else response


def _text(block: Any) -> str | None:
    if not isinstance(block, dict) or cast(Any, block).keys() != {"type", "text"}:
        return None
    return str(cast(dict[str, Any], block)["text"])


def _is_wrapped(structured: Any) -> bool:
    """Structured content is an object, so servers put any other value under `result`."""
    return isinstance(structured, dict) and [*cast(dict[str, Any], structured)] == ["result"]


def _is_same_value(text: str, texts: Sequence[str], structured: Any, value: Any) -> bool:
    """True if the text, as a whole or block by block, has the value of the structured content."""
    if not text or text == value:
        return True
    parsed = _parse(text)
    if parsed in (structured, value):
        return True
    return isinstance(value, list) and [_parse(block_text) for block_text in texts] == [
        _parse(block_text) for block_text in cast(list[Any], value)
    ]


def _parse(text: Any) -> Any:
    return json_or_text(text) if isinstance(text, str) else text
