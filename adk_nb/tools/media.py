"""Pictures and other media that a tool returned: what they are, and the form in which a model gets them."""

import base64
import io
import sys
from dataclasses import dataclass, field
from typing import Any, cast

from adk_nb import types

MAX_MEDIA = 16
"""Pieces of one result."""
MAX_MEDIA_BYTES = 4 * 1024 * 1024
"""Of all pieces of one result together; each is sent again with every later question."""
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"%PDF-": "application/pdf",
}
"""Source: https://www.iana.org/assignments/media-types (the magic numbers of each registration)."""


@dataclass
class Media:
    """One piece: its bytes, or the address of where they lie."""

    mime_type: str
    data: bytes = b""
    uri: str | None = None
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    """What stands in its place in the JSON of the result; whoever moves the piece says so here."""

    def part(self) -> types.FunctionResponsePart:
        """The piece beside the JSON of the result."""
        if self.uri is not None:
            place = types.FunctionResponseFileData(file_uri=self.uri, mime_type=self.mime_type)
            return types.FunctionResponsePart(file_data=place)
        return types.FunctionResponsePart.from_bytes(data=self.data, mime_type=self.mime_type)


def media_in(value: Any) -> Media | None:
    """The piece of media that a value is. None: it is something else.

    Known are google-genai's `Part`, `Blob`, `FileData` and `Image`, the bytes of PNG, JPEG, GIF, WebP and PDF files,
    figures of matplotlib, and whatever shows itself in a notebook as PNG or JPEG, such as the images of Pillow.
    """
    kind = cast(type[Any], type(value))  # not what a proxy says of itself
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
    return _shown(value, kind)


def _in_bytes(data: bytes) -> Media | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Media("image/webp", data)
    found = next((mime_type for beginning, mime_type in _BEGINNINGS.items() if data.startswith(beginning)), None)
    return Media(found, data) if found else None


def _image(image: types.Image) -> Media | None:
    if image.image_bytes:
        known = _in_bytes(image.image_bytes)
        return Media(image.mime_type or (known.mime_type if known else "image/png"), image.image_bytes)
    return Media(image.mime_type or "image/png", uri=image.gcs_uri) if image.gcs_uri else None


def _shown(value: Any, kind: type[Any]) -> Media | None:
    """What draws itself. Its methods are looked up on its class: an object may claim to have any."""
    if any((one.__module__, one.__name__) == ("matplotlib.figure", "Figure") for one in kind.__mro__):
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        return Media("image/png", file.getvalue())
    for name in ("_repr_png_", "_repr_jpeg_"):
        draws = getattr(kind, name, None)
        if callable(draws) and (media := _drawn(draws(value))):
            return media
    return None


def put_away(value: Any) -> None:
    """Close a figure of pyplot that is shown with its result: a notebook would draw it below the cell, too."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot and isinstance(value, pyplot.Figure) and "inline" in pyplot.get_backend():
        pyplot.close(value)


def _drawn(drawn: Any) -> Media | None:
    """What such a method gave: bytes or their base64, alone or before metadata; see IPython.display.Image."""
    if isinstance(drawn, tuple):
        drawn = next(iter(cast(tuple[Any, ...], drawn)), None)
    data: Any = base64.b64decode(drawn) if type(drawn) is str else drawn
    return _in_bytes(data) if type(data) is bytes else None
