"""Content blocks as MCP has them: base64 text in an event, media beside the JSON in a request to a model.

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
"""The object that holds a piece of media, and the piece -> what replaces the piece. None: nothing does."""


def with_blobs(result: Any) -> Any:
    """A tool's result with its base64 as blobs; `result` itself without any."""
    return _mapped(result, lambda holder, text: blob(text, holder.get("mimeType")))


def with_base64(response: dict[str, Any], media: list[Media]) -> dict[str, Any]:
    """A response with base64 text in place of the references to `media`, which go to the model beside it."""

    def text(_: _Holder, reference: Any) -> str | None:
        number: Any = cast(_Holder, reference).get("part") if isinstance(reference, dict) else None
        if type(number) is not int or not 0 < number <= len(media) or not media[number - 1].data:
            return None
        return base64.b64encode(media[number - 1].data).decode()

    return _mapped(response, text)


def with_references(response: types.FunctionResponse) -> types.FunctionResponse:
    """A response without the base64 of what is in its `parts`: the form for a request, a view or a count."""
    if not response.parts or not response.response:
        return response
    number, blobs = 0, [part.inline_data for part in response.parts]

    def reference(_: _Holder, text: Any) -> dict[str, Any] | None:
        nonlocal number
        held = blob(text, None)
        at = next((at for at, one in enumerate(blobs[number:], number) if held and one and one.data == held.data), None)
        if held is None or at is None:
            return None
        number = at + 1
        return {"media": (blobs[at] or held).mime_type, "bytes": len(held.data or b""), "part": number}

    mapped = _mapped(response.response, reference)
    return response if mapped is response.response else response.model_copy(update={"response": mapped})


def for_model(content: types.Content) -> types.Content:
    """A content whose results are `with_references`; `content` itself without any media in results."""
    parts = content.parts or []
    for part in parts:
        if part.function_response and part.function_response.parts:
            return types.Content(role=content.role, parts=[_part_for_model(part) for part in parts])
    return content


def blob(text: Any, mime_type: str | None) -> types.Blob | None:
    """Base64 text as a blob. None: it is none."""
    if type(text) is not str or not text:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return types.Blob(data=data, mime_type=mime_type or "application/octet-stream")


def _part_for_model(part: types.Part) -> types.Part:
    response = part.function_response
    if response is None or (shown := with_references(response)) is response:
        return part
    return part.model_copy(update={"function_response": shown})


def _mapped(result: Any, change: _Change) -> Any:
    """A copy of `result` with its pieces of media changed; `result` itself if none was."""
    # exact types: an object may claim to be of any class, and raise when it is asked
    if cast(type[Any], type(result)) is not dict:
        return result
    blocks: Any = result.get("content")
    if cast(type[Any], type(blocks)) is not list:
        return result
    mapped = [_mapped_block(block, change) for block in blocks]
    return result if all(map(is_, mapped, blocks)) else {**result, "content": mapped}


def _mapped_block(block: Any, change: _Change) -> Any:
    if type(block) is not dict:
        return block
    block = cast(_Holder, block)
    kind, resource = block.get("type"), block.get("resource")
    if type(kind) is str and kind in ("image", "audio"):
        return _changed(block, "data", change)
    if type(kind) is not str or kind != "resource" or type(resource) is not dict:
        return block
    changed = _changed(cast(_Holder, resource), "blob", change)
    return block if changed is resource else {**block, "resource": changed}


def _changed(holder: _Holder, key: str, change: _Change) -> _Holder:
    made = change(holder, holder[key]) if key in holder else None
    return holder if made is None else {**holder, key: made}
