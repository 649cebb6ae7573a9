"""Artifacts: their ids, their content (text, bytes, or a reference), and the resolution of references."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from urllib.parse import quote, unquote

from pydantic_core import to_json

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.wire import json_problem

USER = "user:"
"""Prefix of names that belong to the user."""
_URI = re.compile(r"artifact://apps/([^/]+)/users/([^/]+)(?:/sessions/([^/]+))?/artifacts/(.+)/versions/([0-9]{1,9})")


@dataclass(frozen=True)
class ArtifactId:
    """Identifier of an artifact, whose versions are stored together."""

    app_name: str
    user_id: str
    session_id: str | None
    """None: it belongs to the user."""
    name: str
    """Name without `user:`."""

    @property
    def filename(self) -> str:
        """The name with `user:` where it belongs to the user."""
        return self.name if self.session_id is not None else USER + self.name

    def uri(self, scheme: str, version: int) -> str:
        """URI of a version in ADK's notation, percent-encoded."""
        session = "" if self.session_id is None else f"/sessions/{_quote(self.session_id)}"
        name = quote(self.name, safe="/", errors="surrogatepass")
        app, user = _quote(self.app_name), _quote(self.user_id)
        return f"{scheme}://apps/{app}/users/{user}{session}/artifacts/{name}/versions/{version}"


def artifact_id(app_name: str, user_id: str, filename: str, session_id: str | None) -> ArtifactId:
    """The identifier for `filename`.

    Raises:
        InputError: The name is empty or has a lone surrogate, or it needs a session and there is none.
    """
    name = unicodedata.normalize("NFC", filename.removeprefix(USER))
    if not name.strip() or json_problem(name):
        raise InputError(f"invalid artifact name {filename!r:.80}; write 'report.txt', or 'user:report.txt'")
    if filename.startswith(USER):
        return ArtifactId(app_name, user_id, None, name)
    if session_id is None:
        raise InputError(
            f"artifact {filename!r} belongs to a session; pass session_id=..., or name it {USER + filename!r} "
            "to share it among the user's sessions"
        )
    return ArtifactId(app_name, user_id, session_id, name)


def parse_reference(uri: str, key: ArtifactId) -> tuple[ArtifactId, int]:
    """Parse an `artifact://` URI stored in artifact `key`. Returns the target's identifier and version.

    Raises:
        InputError: It is not such a URI, or refers to another app, user or session than `key`.
    """
    match = _URI.fullmatch(uri)
    if not match:
        raise InputError(
            f"{uri!r:.200} is not the URI of an artifact; write artifact://apps/APP/users/USER"
            "[/sessions/SESSION]/artifacts/NAME/versions/0"
        )
    app, user, session, name = (unquote(segment) if segment else None for segment in match.groups()[:4])
    target = ArtifactId(app or "", user or "", session, name or "")
    if (target.app_name, target.user_id) != (key.app_name, key.user_id):
        raise InputError(f"artifact {key.filename!r} refers to {uri!r:.200}, which belongs to another user or app")
    if target.session_id not in (None, key.session_id):
        raise InputError(f"artifact {key.filename!r} refers to {uri!r:.200}, which belongs to another session")
    return target, int(match[5])


def _quote(segment: str) -> str:
    return quote(segment, safe="", errors="surrogatepass")


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
        # Against `key`, not the last target: a chain of references must not widen access.
        target, version = parse_reference(uri, key)
    raise InputError(
        f"artifact {key.filename!r} begins a chain of more than {MAX_REFERENCES} references; save the content itself"
    )


def _from_json(part_json: dict[str, Any], key: ArtifactId) -> types.Part:
    try:  # JSON validation decodes base64 text to bytes
        return types.Part.model_validate_json(to_json(part_json, bytes_mode="base64"))
    except ValueError as error:
        raise InputError(f"artifact {key.filename!r} is not a valid part: {error!s:.200}") from error


def _invalid_part(key: ArtifactId, value: object) -> InputError:
    return InputError(
        f"artifact {key.filename!r} must be a part with text, inline_data or file_data, got {value!r:.80}; "
        "write types.Part.from_bytes(data=..., mime_type=...), or types.Part(text=...)"
    )


def _reference(part: types.Part) -> str | None:
    uri = part.file_data.file_uri if part.file_data else None
    return uri if uri and uri.startswith("artifact://") else None
