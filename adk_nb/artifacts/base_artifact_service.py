"""The interface of artifact services."""

from abc import ABC, abstractmethod
from typing import Any

from pydantic import Field

from adk_nb import clock, types
from adk_nb.wire import WireModel


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
