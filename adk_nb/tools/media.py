"""Recognizes pictures and other media in tool results."""

import base64
import io
import sys
from dataclasses import dataclass, field
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
