"""MCP content blocks: stored as base64 text in events, sent to models as media beside the JSON.

Source: https://modelcontextprotocol.io/specification/2025-06-18/schema (ImageContent, AudioContent, EmbeddedResource).
"""

import base64
import binascii
from collections.abc import Callable
from operator import is_
from typing import Any, cast

from adk_nb import types
from adk_nb.tools.media import Media

_Holder = dict[str, Any]
_Change = Callable[[_Holder, Any], Any]
"""`(holder, media) -> replacement`: the dict that holds a piece of media, and the piece. None: keep it."""


def with_blobs(result: Any) -> Any:
    """Replace base64 text in a tool's result by blobs; returns `result` itself if there is none."""
    return _map_media(result, lambda holder, text: blob(text, holder.get("mimeType")))


def with_base64(response: dict[str, Any], media: list[Media]) -> dict[str, Any]:
    """Replace placeholders of `media` in a response by base64 text, for storage in an event."""

    def text(_: _Holder, reference: Any) -> str | None:
        """Base64 of the media that a placeholder refers to."""
        number: Any = cast(_Holder, reference).get("part") if isinstance(reference, dict) else None
        if type(number) is not int or not 0 < number <= len(media) or not media[number - 1].data:
            return None
        return base64.b64encode(media[number - 1].data).decode()

    return _map_media(response, text)


def with_references(response: types.FunctionResponse) -> types.FunctionResponse:
    """Replace base64 text of a response by placeholders for its `parts`, for a request, a view or a token count."""
    if not response.parts or not response.response:
        return response
    number, blobs = 0, [part.inline_data for part in response.parts]

    def reference(_: _Holder, text: Any) -> dict[str, Any] | None:
        """Placeholder of the next part with the same bytes."""
        nonlocal number
        decoded = blob(text, None)
        if decoded is None:
            return None
        matches = (
            i for i, candidate in enumerate(blobs[number:], number) if candidate and candidate.data == decoded.data
        )
        if (index := next(matches, None)) is None:
            return None
        number = index + 1
        return {"media": (blobs[index] or decoded).mime_type, "bytes": len(decoded.data or b""), "part": number}

    mapped = _map_media(response.response, reference)
    return response if mapped is response.response else response.model_copy(update={"response": mapped})


def for_model(content: types.Content) -> types.Content:
    """Apply `with_references` to all function responses; returns `content` itself if there is no media."""
    if not any(part.function_response and part.function_response.parts for part in content.parts or ()):
        return content
    parts: list[types.Part] = []
    for part in content.parts or ():
        response = part.function_response
        if response and (changed := with_references(response)) is not response:
            part = part.model_copy(update={"function_response": changed})
        parts.append(part)
    return types.Content(role=content.role, parts=parts)


def blob(text: Any, mime_type: str | None) -> types.Blob | None:
    """Decode base64 text to a blob. None: not base64."""
    if type(text) is not str or not text:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return types.Blob(data=data, mime_type=mime_type or "application/octet-stream")


def _map_media(result: Any, change: _Change) -> Any:
    """Copy `result` with `change` applied to its media; returns `result` itself if nothing changed."""
    # Exact types: isinstance may run code of a foreign object, through its `__class__`.
    if cast(type[Any], type(result)) is not dict:
        return result
    blocks: Any = result.get("content")
    if cast(type[Any], type(blocks)) is not list:
        return result
    mapped: list[Any] = []
    for block in blocks:
        if type(block) is dict:
            block = cast(_Holder, block)
            kind, resource = block.get("type"), block.get("resource")
            if type(kind) is str and kind in ("image", "audio"):
                block = _replace(block, "data", change)
            elif type(kind) is str and kind == "resource" and type(resource) is dict:
                changed = _replace(cast(_Holder, resource), "blob", change)
                block = block if changed is resource else {**block, "resource": changed}
        mapped.append(block)
    return result if all(map(is_, mapped, blocks)) else {**result, "content": mapped}


def _replace(holder: _Holder, key: str, change: _Change) -> _Holder:
    replacement = change(holder, holder[key]) if key in holder else None
    return holder if replacement is None else {**holder, key: replacement}
