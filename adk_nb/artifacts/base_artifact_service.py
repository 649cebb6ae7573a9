"""The interface of artifact services, and what they share: ids, stored content, and the resolution of references."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast
from urllib.parse import quote, unquote

from pydantic import Field
from pydantic_core import to_json

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.wire import WireModel, json_problem

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


class ArtifactVersion(WireModel):
    """Metadata of a version of an artifact."""

    version: int
    """The first version is 0."""
    canonical_uri: str
    """URI: `memory://apps/...`, or the `file://` URI of the content."""
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    create_time: float = Field(default_factory=lambda: clock.now())
    """Seconds since the epoch, UTC."""
    mime_type: str | None = None
    """Type of bytes. None: text, or a reference without a type."""


class BaseArtifactService(ABC):
    """Stores artifacts: text, bytes or references, by file name and version.

    A name that starts with `user:` belongs to the user and is shared by all of the user's sessions in the app; any
    other belongs to one session. Names are normalized to NFC, so a composed and a decomposed accent give the same name.

    Raises, in all methods:
        InputError: The name is invalid, or needs a `session_id`.
        StorageError: The storage failed.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Store `artifact` as the newest version of `filename`.

        Args:
            app_name: The app of the artifact.
            user_id: The user of the artifact.
            filename: `report.txt`, `images/cat.png`, `user:profile.json`.
            artifact: A part with text, inline_data, or file_data; or such a part as JSON. Of file_data only the
                reference is stored; a reference to an artifact (`artifact://...`) is resolved on loading.
            session_id: The session of the artifact; not needed for a `user:` name.
            custom_metadata: JSON to store with it.

        Returns:
            The version: 0 for the first, then increasing by one.

        Raises:
            InputError: Another kind of part, or a reference to an artifact of another user or session.
        """

    @abstractmethod
    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        """Load a version, by default the newest, as a copy; None if it does not exist."""

    @abstractmethod
    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """List the names of the session's artifacts and, with prefix `user:`, of the user's; without a session only the
        latter.

        Sorted. Each name can be passed to `load_artifact`.
        """

    @abstractmethod
    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Metadata of all versions, oldest first; empty if there is no such artifact."""

    @abstractmethod
    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete all versions. No error if there is none."""

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The version numbers, ascending."""
        versions = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        return [version.version for version in versions]

    async def get_artifact_version(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> ArtifactVersion | None:
        """Metadata of a version, by default the newest; None if it does not exist."""
        versions = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        matches = [candidate for candidate in versions if version in (None, candidate.version)]
        return matches[-1] if matches else None
