"""The value in the result of an MCP tool, which most servers send twice: as text, and as structured content.

Source: https://modelcontextprotocol.io/specification/2025-06-18/server/tools (Structured Content).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

_KEYS = {"content", "structuredContent", "isError"}


def value_of(response: Mapping[str, Any]) -> Any:
    """The value of an MCP result; `response` itself if it is not an MCP result, or if its blocks differ in content."""
    blocks: Any = response.get("content")
    if not isinstance(blocks, list) or "isError" not in response or not _KEYS.issuperset(response):
        return response
    texts = [_text(block) for block in cast(list[Any], blocks)]
    if None in texts:
        return response
    text = "\n".join(map(str, texts))
    if "structuredContent" not in response:
        return text
    structured: Any = response["structuredContent"]
    value = structured["result"] if _is_wrapped(structured) else structured
    return value if _is_same_value(text, [str(block_text) for block_text in texts], structured, value) else response


def _text(block: Any) -> str | None:
    if not isinstance(block, dict) or cast(Any, block).keys() != {"type", "text"}:
        return None
    return cast(dict[str, str], block)["text"]


def _is_wrapped(structured: Any) -> bool:
    """Structured content is an object, so servers put any other value under `result`."""
    return isinstance(structured, dict) and [*cast(dict[str, Any], structured)] == ["result"]


def _is_same_value(text: str, texts: Sequence[str], structured: Any, value: Any) -> bool:
    """True if the text has the same value as the structured content."""
    if not text or text == value:
        return True
    parsed = _parse(text)
    if parsed in (structured, value):
        return True
    return isinstance(value, list) and [_parse(block_text) for block_text in texts] == [
        _parse(block_text) for block_text in cast(list[Any], value)
    ]


def _parse(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
