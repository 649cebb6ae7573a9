"""What an artifact holds: text, bytes, or a reference; and how a reference to another artifact is followed."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from pydantic_core import to_json

from adk_nb import types
from adk_nb.artifacts.place import Place, referred
from adk_nb.errors import InputError

BYTES = "application/octet-stream"
"""The type of bytes whose type nobody said."""
MAX_REFERENCES = 5

Read = Callable[[Place, int | None], types.Part | None]
"""What is kept at a place, a version of it or the newest, as it is kept."""


@cache
def removed() -> types.Part:
    """Saved as a newest version it says that the artifact is gone, and its older versions are still there."""
    return types.Part(inline_data=types.Blob(mime_type="application/x-adk-removed", data=b""))


def kept_part(artifact: types.Part | dict[str, Any], place: Place) -> types.Part:
    """A copy of what an artifact is kept as: text, or bytes with a type, or a reference, and nothing beside.

    Raises:
        InputError: It is none of these, or a reference that leads out of the reach of `place`.
    """
    part = _from_json(artifact, place) if isinstance(artifact, dict) else artifact
    if not isinstance(cast(object, part), types.Part):
        raise _no_part(place, part)
    if (blob := part.inline_data) and blob.data is not None:
        kept = types.Blob(data=blob.data, mime_type=blob.mime_type or BYTES, display_name=blob.display_name)
        return types.Part(inline_data=kept)
    if part.text is not None:
        return types.Part(text=part.text)
    if part.file_data and part.file_data.file_uri:
        if uri := _reference(part):
            referred(uri, place)
        return types.Part(file_data=part.file_data.model_copy())
    raise _no_part(place, part)


def mime_type(part: types.Part) -> str | None:
    """The type of bytes, or of what is referred to."""
    kept = part.inline_data or part.file_data
    return kept.mime_type if kept else None


def follow(read: Read, place: Place, version: int | None) -> types.Part | None:
    """What is kept at a place, or what that refers to. None: it is not there, or was removed.

    Raises:
        InputError: A reference leads out of the reach of `place`, or on to more than 5 others.
    """
    at = place
    for _ in range(MAX_REFERENCES + 1):
        part = read(at, version)
        if part is None or part == removed():
            return None
        uri = _reference(part)
        if not uri:
            return part.model_copy(deep=True)
        at, version = referred(uri, place)
    raise InputError(
        f"artifact {place.filename!r} refers to one that refers to another, more than {MAX_REFERENCES} times"
    )


def _from_json(given: dict[str, Any], place: Place) -> types.Part:
    try:  # as JSON, where text stands for bytes in base64
        return types.Part.model_validate_json(to_json(given, bytes_mode="base64"))
    except ValueError as error:
        raise InputError(f"artifact {place.filename!r} is no part of a content: {error!s:.200}") from error


def _no_part(place: Place, given: object) -> InputError:
    return InputError(
        f"artifact {place.filename!r} is a part with text, inline_data or file_data, and not {given!r:.80}; "
        "write types.Part.from_bytes(data=..., mime_type=...), or types.Part(text=...)"
    )


def _reference(part: types.Part) -> str | None:
    uri = part.file_data.file_uri if part.file_data else None
    return uri if uri and uri.startswith("artifact://") else None
