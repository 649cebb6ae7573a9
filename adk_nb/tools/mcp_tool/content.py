"""What an MCP server says, as what an agent can take: results with media, and words without tricks."""

import json
import unicodedata
from typing import Any, cast

from adk_nb.tools.content_blocks import blob

MAX_DESCRIPTION = 8_000
"""Characters. A server's descriptions stand in every request."""
MAX_SCHEMA = 100_000
"""Characters of a tool's schema as JSON."""
_WORDS = ("description", "title", "$comment")
_DATA = ("enum", "const", "default", "examples")
_KEPT = {"\n", "\t", "\u200d"}


def result_of(said: Any) -> dict[str, Any]:
    """The result of a call: `content`, with media as base64 text, and `structuredContent` if there is any.

    A failure that the tool itself tells of is `{"error": its words, "isError": True}`.
    """
    dumped: dict[str, Any] = said.model_dump(mode="json", by_alias=True, exclude_none=True)
    blocks: list[dict[str, Any]] = dumped.get("content", [])
    if dumped.get("isError"):
        words = "\n".join(str(block["text"]) for block in blocks if "text" in block)
        others = [_without_hints(block) for block in blocks if "text" not in block]
        told = {"error": words or "the tool failed and did not say why", "isError": True}
        return told | ({"content": others} if others else {})
    made: dict[str, Any] = {"content": [_without_hints(block) for block in blocks]}
    if "structuredContent" in dumped:
        made["structuredContent"] = dumped["structuredContent"]
    return made | {"isError": False}


def contents_of(said: Any) -> dict[str, Any]:
    """What a resource holds, bytes as a blob where a model can see or hear it."""
    dumped: dict[str, Any] = said.model_dump(mode="json", by_alias=True, exclude_none=True)
    contents = [_without_hints(one) for one in dumped.get("contents", [])]
    return {"contents": [one | ({"blob": made} if (made := _blob_in(one)) else {}) for one in contents]}


def _blob_in(resource: dict[str, Any]) -> Any:
    return blob(resource.get("blob"), resource.get("mimeType"))


def _without_hints(block: dict[str, Any]) -> dict[str, Any]:
    made = {key: one for key, one in block.items() if key not in ("_meta", "annotations", "icons")}
    if isinstance(made.get("resource"), dict):
        made["resource"] = _without_hints(cast(dict[str, Any], made["resource"]))
    return made


def plain(text: str) -> str:
    """A description without what only a model would see: control characters, and marks that turn or hide letters."""
    shown = "".join(one for one in text if one in _KEPT or unicodedata.category(one) not in ("Cc", "Cf", "Co", "Cs"))
    return shown if len(shown) <= MAX_DESCRIPTION else shown[:MAX_DESCRIPTION] + "..."


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose descriptions are `plain`; else as it is.

    Raises:
        ValueError: It is too long.
    """
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise ValueError(f"its schema has more than {MAX_SCHEMA} characters")
    return cast(dict[str, Any], _plain_in(schema))


def _plain_in(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_in(one) for one in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    return {
        key: plain(one) if key in _WORDS and isinstance(one, str) else one if key in _DATA else _plain_in(one)
        for key, one in cast(dict[str, Any], value).items()
    }
