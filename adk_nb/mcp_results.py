"""The value in the result of an MCP tool, which most servers send twice: as text, and as structured content.

Source: https://modelcontextprotocol.io/specification/2025-06-18/server/tools (Structured Content).
"""

from collections.abc import Mapping
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
    # Structured content is an object, so servers put any other value under `result`.
    is_wrapped = isinstance(structured, dict) and [*cast(dict[str, Any], structured)] == ["result"]
    value = cast(Any, structured["result"] if is_wrapped else structured)
    # The text has the same value, as a whole or block by block.
    if not text or text == value or (parsed := _parse(text)) == structured or parsed == value:
        return value
    is_list = isinstance(value, list) and [*map(_parse, texts)] == [*map(_parse, cast(list[Any], value))]
    return cast(Any, value) if is_list else response


def _text(block: Any) -> str | None:
    if not isinstance(block, dict) or cast(Any, block).keys() != {"type", "text"}:
        return None
    return str(cast(dict[str, Any], block)["text"])


def _parse(text: Any) -> Any:
    return json_or_text(text) if isinstance(text, str) else text
