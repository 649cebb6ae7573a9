"""Pictures and other media in tool results: found in values, and in the content blocks of MCP."""

import base64
import binascii
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import is_
from typing import Any, cast

from adk_nb import types

MAX_MEDIA = 16
"""Limit per result."""
MAX_MEDIA_BYTES = 4 * 1024 * 1024
"""Limit of all media of one result together; they are sent again with every later request."""
_MAGIC_NUMBERS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": "application/pdf",
}
"""First bytes of a file -> its media type. Source: https://mimesniff.spec.whatwg.org."""


@dataclass
class Media:
    """A piece of media: its bytes or its URI."""

    mime_type: str
    data: bytes = b""
    uri: str | None = None
    placeholder: dict[str, Any] = field(default_factory=dict[str, Any])
    """Placeholder in the JSON of the result; updated when the piece is moved or left out."""

    def part(self) -> types.FunctionResponsePart:
        """The part for the function response, beside its JSON."""
        if self.uri is not None:
            place = types.FunctionResponseFileData(file_uri=self.uri, mime_type=self.mime_type)
            return types.FunctionResponsePart(file_data=place)
        return types.FunctionResponsePart.from_bytes(data=self.data, mime_type=self.mime_type)


def media_in(value: Any) -> Media | None:
    """Convert a value to media. None: it is something else.

    Recognizes google-genai's `Part`, `Blob`, `FileData` and `Image`; the bytes of PNG, JPEG, GIF, WebP and PDF files;
    matplotlib figures; and objects with a PNG or JPEG representation for notebooks, such as Pillow images.
    """
    kind = cast(type[Any], type(value))  # not __class__, which a proxy can fake
    if kind in (bytes, bytearray):
        return _in_bytes(bytes(value))
    if issubclass(kind, types.Part):
        return media_in(value.inline_data or value.file_data)
    if issubclass(kind, types.Blob):
        return Media(value.mime_type or "application/octet-stream", value.data) if value.data else None
    if issubclass(kind, types.FileData):
        return Media(value.mime_type or "", uri=value.file_uri) if value.file_uri else None
    if issubclass(kind, types.Image):
        return _image(value)
    if any((cls.__module__, cls.__name__) == ("matplotlib.figure", "Figure") for cls in kind.__mro__):
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        return Media("image/png", file.getvalue())
    for name in ("_repr_png_", "_repr_jpeg_"):
        # Looked up on the class: an instance may fake any attribute.
        if not callable(render := getattr(kind, name, None)):
            continue
        # Bytes or base64, alone or before metadata; see IPython.display.Image.
        output: Any = render(value)
        if isinstance(output, tuple):
            output = next(iter(cast(tuple[Any, ...], output)), None)
        data: Any = base64.b64decode(output) if type(output) is str else output
        if type(data) is bytes and (media := _in_bytes(data)):
            return media
    return None


def _in_bytes(data: bytes) -> Media | None:
    # WebP: a RIFF container. Source: https://developers.google.com/speed/webp/docs/riff_container
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Media("image/webp", data)
    mime_type = next((kind for magic, kind in _MAGIC_NUMBERS.items() if data.startswith(magic)), None)
    return Media(mime_type, data) if mime_type else None


def _image(image: types.Image) -> Media | None:
    if image.image_bytes:
        detected = _in_bytes(image.image_bytes)
        return Media(image.mime_type or (detected.mime_type if detected else "image/png"), image.image_bytes)
    return Media(image.mime_type or "image/png", uri=image.gcs_uri) if image.gcs_uri else None


def close_inline_figure(value: Any) -> None:
    """Close a pyplot figure that its result shows: the inline backend would show it below the cell, too."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot and isinstance(value, pyplot.Figure) and "inline" in pyplot.get_backend():
        pyplot.close(value)


# ---- the content blocks of MCP: base64 text in events, media beside the JSON for models
# Source: https://modelcontextprotocol.io/specification/2025-06-18/schema (ImageContent, AudioContent, EmbeddedResource)


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
