"""Artifacts in this process's memory: gone with the kernel."""

import threading
from dataclasses import dataclass, field
from typing import Any

from adk_nb import clock, types
from adk_nb.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from adk_nb.artifacts.content import follow, kept_part, mime_type, removed
from adk_nb.artifacts.place import USER, Place, place_of
from adk_nb.wire import plain_json


@dataclass
class _Kept:
    part: types.Part
    metadata: dict[str, Any]
    time: float = field(default_factory=lambda: clock.now())


_Scope = dict[str, list[_Kept]]
"""Name -> versions, oldest first."""


class InMemoryArtifactService(BaseArtifactService):
    """Artifacts of one process, under any name that is not empty. Safe to call from several threads."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str, str | None], _Scope] = {}
        """By app, user, and session; None for what belongs to the user."""
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
        place = place_of(app_name, user_id, filename, session_id)
        metadata = plain_json(custom_metadata, f"custom_metadata of artifact {filename!r}")
        kept = _Kept(kept_part(artifact, place), metadata)
        with self._lock:
            scope = self._scopes.setdefault((app_name, user_id, place.session_id), {})
            versions = scope.setdefault(place.name, [])
            versions.append(kept)
            return len(versions) - 1

    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        return follow(self._part, place_of(app_name, user_id, filename, session_id), version)

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        shared = [USER + name for name in self._names(app_name, user_id, None)]
        own = [] if session_id is None else self._names(app_name, user_id, session_id)
        return sorted([*own, *shared])

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        place = place_of(app_name, user_id, filename, session_id)
        return [
            ArtifactVersion(
                version=number,
                canonical_uri=place.uri("memory", number),
                custom_metadata=plain_json(kept.metadata, filename),
                create_time=kept.time,
                mime_type=mime_type(kept.part),
            )
            for number, kept in enumerate(self._versions(place))
        ]

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        place = place_of(app_name, user_id, filename, session_id)
        with self._lock:
            self._scopes.get((app_name, user_id, place.session_id), {}).pop(place.name, None)

    def _part(self, place: Place, version: int | None) -> types.Part | None:
        versions = self._versions(place)
        number = len(versions) - 1 if version is None else version
        return versions[number].part if 0 <= number < len(versions) else None

    def _versions(self, place: Place) -> list[_Kept]:
        with self._lock:
            return list(self._scopes.get((place.app_name, place.user_id, place.session_id), {}).get(place.name, ()))

    def _names(self, app_name: str, user_id: str, session_id: str | None) -> list[str]:
        with self._lock:
            scope = self._scopes.get((app_name, user_id, session_id), {})
            return [name for name, versions in scope.items() if versions[-1].part != removed()]
