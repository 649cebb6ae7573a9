"""Where artifacts are kept: the interface."""

from abc import ABC, abstractmethod
from typing import Any

from pydantic import Field

from adk_nb import clock, types
from adk_nb.wire import WireModel


def _now() -> float:
    return clock.now()


class ArtifactVersion(WireModel):
    """What is known of one version of an artifact, beside its content."""

    version: int
    """Counts from 0."""
    canonical_uri: str
    """Where it is: `memory://apps/...`, or the `file://` of its content."""
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    create_time: float = Field(default_factory=_now)
    """Seconds since the epoch, UTC."""
    mime_type: str | None = None
    """Of bytes. None: it is text, or a reference without a type."""


class BaseArtifactService(ABC):
    """Keeps artifacts: text, bytes or references that go by a file name and have versions.

    A name that starts with `user:` belongs to the user, and all sessions of the user in the app see it; any other
    belongs to one session. In all methods, names are NFC, so both spellings of an accent are one name.

    Raises, in all methods:
        InputError: The name cannot be one, or needs a `session_id`.
        StorageError: What keeps the artifacts failed.
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
        """Keep `artifact` as the newest version of `filename`.

        Args:
            app_name: The app it belongs to.
            user_id: The user it belongs to.
            filename: `report.txt`, `images/cat.png`, `user:profile.json`.
            artifact: A part with text, inline_data, or file_data; or such a part as JSON. Of file_data only the
                reference is kept; one to an artifact (`artifact://...`) is followed when it is loaded.
            session_id: The session it belongs to; not needed for a `user:` name.
            custom_metadata: JSON to keep beside it.

        Returns:
            The version: 0 for the first, then one more each time.

        Raises:
            InputError: It is none of the three kinds, or refers to another user's artifact, or another session's.
        """

    @abstractmethod
    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        """One version, the newest if none is named; None if it is not there. The caller's own copy."""

    @abstractmethod
    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """The names of the session and, with `user:` before them, of the user; of the user alone without a session.

        Sorted. Each can be loaded as it stands.
        """

    @abstractmethod
    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """What is known of each version, oldest first; empty if there is no such artifact."""

    @abstractmethod
    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Forget all versions. No error if there is none."""

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The numbers of the versions, ascending."""
        known = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        return [one.version for one in known]

    async def get_artifact_version(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> ArtifactVersion | None:
        """What is known of one version, the newest if none is named; None if it is not there."""
        known = await self.list_artifact_versions(
            app_name=app_name, user_id=user_id, filename=filename, session_id=session_id
        )
        fitting = [one for one in known if version in (None, one.version)]
        return fitting[-1] if fitting else None
