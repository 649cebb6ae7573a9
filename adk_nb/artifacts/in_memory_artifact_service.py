"""Artifacts in memory, for the lifetime of the process."""

import threading
from dataclasses import dataclass, field
from typing import Any

from adk_nb import clock, types
from adk_nb.artifacts.base_artifact_service import (
    USER,
    ArtifactId,
    ArtifactVersion,
    BaseArtifactService,
    artifact_id,
    load_resolved,
    mime_type,
    stored_part,
    tombstone,
)
from adk_nb.wire import plain_json


@dataclass
class _Version:
    part: types.Part
    metadata: dict[str, Any]
    time: float = field(default_factory=lambda: clock.now())


_Scope = dict[str, list[_Version]]
"""Name -> versions, oldest first."""


class InMemoryArtifactService(BaseArtifactService):
    """Artifacts of one process; any non-empty name is allowed. Thread-safe."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str, str | None], _Scope] = {}
        """(app, user, session) -> artifacts by name; session None: the user's artifacts."""
        self._lock = threading.Lock()

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
        """Append a version."""
        key = artifact_id(app_name, user_id, filename, session_id)
        metadata = plain_json(custom_metadata, f"custom_metadata of artifact {filename!r}")
        stored = _Version(stored_part(artifact, key), metadata)
        with self._lock:
            scope = self._scopes.setdefault((app_name, user_id, key.session_id), {})
            versions = scope.setdefault(key.name, [])
            versions.append(stored)
            return len(versions) - 1

    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        """Load a version, and resolve references."""
        return load_resolved(self._part, artifact_id(app_name, user_id, filename, session_id), version)

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """List the names of the session's and the user's artifacts."""
        shared = [USER + name for name in self._names(app_name, user_id, None)]
        own = [] if session_id is None else self._names(app_name, user_id, session_id)
        return sorted([*own, *shared])

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Metadata of all versions."""
        key = artifact_id(app_name, user_id, filename, session_id)
        return [
            ArtifactVersion(
                version=number,
                canonical_uri=key.uri("memory", number),
                custom_metadata=plain_json(stored.metadata, filename),  # a copy
                create_time=stored.time,
                mime_type=mime_type(stored.part),
            )
            for number, stored in enumerate(self._versions(key))
        ]

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete all versions."""
        key = artifact_id(app_name, user_id, filename, session_id)
        with self._lock:
            self._scopes.get((app_name, user_id, key.session_id), {}).pop(key.name, None)

    def _part(self, key: ArtifactId, version: int | None) -> types.Part | None:
        versions = self._versions(key)
        number = len(versions) - 1 if version is None else version
        return versions[number].part if 0 <= number < len(versions) else None

    def _versions(self, key: ArtifactId) -> list[_Version]:
        with self._lock:
            return list(self._scopes.get((key.app_name, key.user_id, key.session_id), {}).get(key.name, ()))

    def _names(self, app_name: str, user_id: str, session_id: str | None) -> list[str]:
        with self._lock:
            scope = self._scopes.get((app_name, user_id, session_id), {})
            return [name for name, versions in scope.items() if versions[-1].part != tombstone()]
