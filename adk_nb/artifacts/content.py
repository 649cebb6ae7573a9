"""The content of artifacts (text, bytes, or a reference), and resolution of references."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from pydantic_core import to_json

from adk_nb import types
from adk_nb.artifacts.artifact_id import ArtifactId, parse_reference
from adk_nb.errors import InputError

BYTES = "application/octet-stream"
"""Media type for bytes without a type."""
MAX_REFERENCES = 5

Loader = Callable[[ArtifactId, int | None], types.Part | None]
"""`(key, version) -> part`: loads a stored part; version None is the newest."""


@cache
def tombstone() -> types.Part:
    """A part that marks an artifact as deleted: saved as the newest version, it keeps the older ones."""
    return types.Part(inline_data=types.Blob(mime_type="application/x-adk-removed", data=b""))


def stored_part(artifact: types.Part | dict[str, Any], key: ArtifactId) -> types.Part:
    """The stored form of a part: a copy with text, typed bytes, or a reference, and nothing else.

    Raises:
        InputError: It is none of these, or a reference that `key` must not access.
    """
    part = _from_json(artifact, key) if isinstance(artifact, dict) else artifact
    if not isinstance(cast(object, part), types.Part):
        raise _invalid_part(key, part)
    if (blob := part.inline_data) and blob.data is not None:
        blob_copy = types.Blob(data=blob.data, mime_type=blob.mime_type or BYTES, display_name=blob.display_name)
        return types.Part(inline_data=blob_copy)
    if part.text is not None:
        return types.Part(text=part.text)
    if part.file_data and part.file_data.file_uri:
        if uri := _reference(part):
            parse_reference(uri, key)
        return types.Part(file_data=part.file_data.model_copy())
    raise _invalid_part(key, part)


def mime_type(part: types.Part) -> str | None:
    """The media type of bytes, or of the target of a reference."""
    data = part.inline_data or part.file_data
    return data.mime_type if data else None


def load_resolved(load: Loader, key: ArtifactId, version: int | None) -> types.Part | None:
    """Load a part and resolve references. None: it does not exist, or was deleted.

    Raises:
        InputError: A reference that `key` must not access, or a chain of more than 5.
    """
    target = key
    for _ in range(MAX_REFERENCES + 1):
        part = load(target, version)
        if part is None or part == tombstone():
            return None
        uri = _reference(part)
        if not uri:
            return part.model_copy(deep=True)  # the caller may change it
        # Checked against `key`, not against the last target: rights do not grow along a chain.
        target, version = parse_reference(uri, key)
    raise InputError(
        f"artifact {key.filename!r} refers to one that refers to another, more than {MAX_REFERENCES} times"
    )


def _from_json(part_json: dict[str, Any], key: ArtifactId) -> types.Part:
    try:  # JSON validation decodes base64 text to bytes
        return types.Part.model_validate_json(to_json(part_json, bytes_mode="base64"))
    except ValueError as error:
        raise InputError(f"artifact {key.filename!r} is not a valid part: {error!s:.200}") from error


def _invalid_part(key: ArtifactId, value: object) -> InputError:
    return InputError(
        f"artifact {key.filename!r} is a part with text, inline_data or file_data, and not {value!r:.80}; "
        "write types.Part.from_bytes(data=..., mime_type=...), or types.Part(text=...)"
    )


def _reference(part: types.Part) -> str | None:
    uri = part.file_data.file_uri if part.file_data else None
    return uri if uri and uri.startswith("artifact://") else None
