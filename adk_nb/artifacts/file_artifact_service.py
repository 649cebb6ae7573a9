"""Artifacts as files in a folder, readable without this package."""

import errno
import json
import logging
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import normalize

from pydantic import Field

from adk_nb import clock, sync, types
from adk_nb.artifacts.base_artifact_service import (
    ArtifactId,
    ArtifactVersion,
    BaseArtifactService,
    artifact_id,
    load_resolved,
    mime_type,
    stored_part,
    tombstone,
)
from adk_nb.artifacts.folder import MAX_SEGMENTS, METADATA, VERSIONS, Folder, id_folder, name_folders
from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.wire import WireModel, plain_json

T = TypeVar("T")

logger = logging.getLogger(__name__)

_EXISTS_ERRORS = (errno.EEXIST, errno.ENOTEMPTY, errno.EACCES)  # EACCES: on Windows


class _Metadata(WireModel):
    """Content of a version's metadata.json."""

    file_name: str
    """The requested name with `user:`: distinguishes `A` and `a` on a case-insensitive disk."""
    owner: list[str | None]
    """App, user, session (None for the user's artifacts)."""
    mime_type: str | None = None
    display_name: str | None = None
    file_data: dict[str, Any] | None = None
    """A reference; the content file holds its URI."""
    create_time: float
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    def belongs_to(self, key: ArtifactId) -> bool:
        """True if it belongs to the artifact `key`."""
        return (self.file_name, self.owner) == (key.filename, [key.app_name, key.user_id, key.session_id])

    def as_bytes(self) -> bytes:
        """JSON of the metadata, as written to the file."""
        return json.dumps(self.model_dump(by_alias=True, exclude_none=True), indent=2).encode()


class FileArtifactService(BaseArtifactService):
    """Artifacts under `root_dir`.

    A version is a folder `apps/APP/users/USER[/sessions/SESSION]/artifacts/NAME/versions/N/` with the content, in a
    file named like the last part of NAME, and metadata.json. A `/` in NAME makes folders. Versions appear atomically,
    also when several processes save concurrently. Symbolic links below the root are not followed.

    Raises, besides the errors of every artifact service:
        InputError: A name or an id cannot be a file name: it is absolute, leads upwards, has invisible characters, or
            is too long.

    Source of the layout: google-adk 2.13.
    """

    def __init__(self, root_dir: Path | str) -> None:
        """`root_dir`: created on the first save."""
        self.root_dir = Path(root_dir).expanduser().absolute()

    def __repr__(self) -> str:
        return f"FileArtifactService({str(self.root_dir)!r})"

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
        """Write the next version."""
        key = artifact_id(app_name, user_id, filename, session_id)
        part = stored_part(artifact, key)
        blob = part.inline_data
        metadata = _Metadata(
            file_name=key.filename,
            owner=[key.app_name, key.user_id, key.session_id],
            mime_type=mime_type(part),
            display_name=blob.display_name if blob else None,
            file_data=part.file_data.model_dump(mode="json", exclude_none=True) if part.file_data else None,
            create_time=clock.now(),
            custom_metadata=plain_json(custom_metadata, f"custom_metadata of artifact {filename!r}"),
        )
        return await _run(partial(self._save, key, _bytes(part), metadata), f"save artifact {filename!r}")

    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        """Read a version, and resolve references."""
        key = artifact_id(app_name, user_id, filename, session_id)
        return await _run(partial(load_resolved, self._part, key, version), f"load artifact {filename!r}")

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """List the artifacts by walking the folders; unreadable ones are skipped with a warning."""
        scopes = {None, session_id}
        return await _run(partial(self._keys, app_name, user_id, scopes), "list artifacts")

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """Read the metadata of all versions."""
        key = artifact_id(app_name, user_id, filename, session_id)
        return await _run(partial(self._list_versions, key), f"list versions of artifact {filename!r}")

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete the artifact's folder."""
        key = artifact_id(app_name, user_id, filename, session_id)
        await _run(partial(self._delete, key), f"delete artifact {filename!r}")

    def _save(self, key: ArtifactId, data: bytes, metadata: _Metadata) -> int:
        *_, name = path = _path(key)
        with Folder.open(self.root_dir, [*path, VERSIONS], make=True) as versions:
            numbers = _numbers(versions)
            # A disk that ignores case has one folder for two names.
            if numbers and not (newest := _metadata(versions, numbers[-1])).belongs_to(key):
                raise InputError(
                    f"artifact {key.filename!r} has the same file name as {newest.file_name!r} on this disk; rename it"
                )
            pending = f".{clock.new_id()}.pending"  # not a number, so readers ignore it
            try:
                with versions.child(pending, make=True) as staged:
                    staged.write(name, data)
                    # The content first: a version with metadata is whole.
                    staged.write(METADATA, metadata.as_bytes())
                return _publish(versions, pending, numbers[-1] + 1 if numbers else 0)
            except BaseException:  # cancellation, too
                with suppress(OSError):
                    versions.remove(pending)
                raise

    def _part(self, key: ArtifactId, version: int | None) -> types.Part | None:
        with suppress(FileNotFoundError), self._open_versions(key) as (versions, numbers):
            number = numbers[-1] if version is None else version
            if number not in numbers:
                return None
            metadata = _metadata(versions, number)
            if metadata.file_data is not None:
                return types.Part(file_data=types.FileData.model_validate(metadata.file_data))
            with versions.child(str(number)) as folder:
                data = folder.read(_path(key)[-1])
            if metadata.mime_type is None:
                return types.Part(text=data.decode("utf-8", "surrogatepass"))
            blob = types.Blob(data=data, mime_type=metadata.mime_type, display_name=metadata.display_name)
            return types.Part(inline_data=blob)
        return None

    def _list_versions(self, key: ArtifactId) -> list[ArtifactVersion]:
        with suppress(FileNotFoundError), self._open_versions(key) as (versions, numbers):
            return [_version(key, versions, number) for number in numbers]
        return []

    def _keys(self, app_name: str, user_id: str, scopes: set[str | None]) -> list[str]:
        filenames: list[str] = []
        for session_id in scopes:
            with suppress(FileNotFoundError), Folder.open(self.root_dir, _scope(app_name, user_id, session_id)) as top:
                for path in _artifacts(top, []):
                    key = ArtifactId(app_name, user_id, session_id, normalize("NFC", "/".join(path)))
                    try:
                        with self._open_versions(key) as (versions, numbers):
                            is_deleted = _metadata(versions, numbers[-1]).mime_type == mime_type(tombstone())
                            filenames += [] if is_deleted else [key.filename]
                    except (FileNotFoundError, AdkNbError) as error:
                        logger.warning("a folder among the artifacts is left out: %s", error)
        return sorted(filenames)

    def _delete(self, key: ArtifactId) -> None:
        with suppress(FileNotFoundError), Folder.open(self.root_dir, _path(key)) as artifact:
            deleted = f".{clock.new_id()}.deleted"
            artifact.rename(VERSIONS, deleted)  # atomic for concurrent readers and writers
            artifact.remove(deleted)

    @contextmanager
    def _open_versions(self, key: ArtifactId) -> Generator[tuple[Folder, list[int]], None, None]:
        """The open folder of versions, and their numbers. Raises FileNotFoundError if there is none."""
        with Folder.open(self.root_dir, [*_path(key), VERSIONS]) as versions:
            numbers = _numbers(versions)
            if not numbers or not _metadata(versions, numbers[-1]).belongs_to(key):
                raise FileNotFoundError(key.filename)
            yield versions, numbers


def _scope(app_name: str, user_id: str, session_id: str | None) -> list[str]:
    session = [] if session_id is None else ["sessions", id_folder(session_id, "session_id")]
    app, user = id_folder(app_name, "app_name"), id_folder(user_id, "user_id")
    return ["apps", app, "users", user, *session, "artifacts"]


def _path(key: ArtifactId) -> list[str]:
    return [*_scope(key.app_name, key.user_id, key.session_id), *name_folders(key.name)]


def _artifacts(folder: Folder, path: list[str]) -> Iterator[list[str]]:
    """Paths of the artifacts below a folder."""
    if path and folder.has_folder(VERSIONS):
        yield path
    for name in folder.names() if len(path) < MAX_SEGMENTS else ():
        if name != VERSIONS and folder.has_folder(name):
            with folder.child(name) as child:
                yield from _artifacts(child, [*path, name])


def _numbers(versions: Folder) -> list[int]:
    return sorted(int(name) for name in versions.names() if re.fullmatch("0|[1-9][0-9]{0,8}", name))


def _publish(versions: Folder, pending: str, number: int) -> int:
    """Publish a version under the first number that no other process took meanwhile."""
    while True:
        try:
            versions.rename(pending, str(number))
            return number
        except OSError as error:
            # Another process has published this number in between.
            if error.errno not in _EXISTS_ERRORS or not versions.has_folder(str(number)):
                raise
            number += 1


def _metadata(versions: Folder, number: int) -> _Metadata:
    with versions.child(str(number)) as folder:
        try:
            return _Metadata.model_validate(json.loads(folder.read(METADATA)))
        except ValueError as error:
            raise StorageError(f"{str(folder.path / METADATA)!r} cannot be read; delete the artifact") from error


def _version(key: ArtifactId, versions: Folder, number: int) -> ArtifactVersion:
    metadata = _metadata(versions, number)
    return ArtifactVersion(
        version=number,
        canonical_uri=(versions.path / str(number) / _path(key)[-1]).as_uri(),
        custom_metadata=metadata.custom_metadata,
        create_time=metadata.create_time,
        mime_type=metadata.mime_type,
    )


def _bytes(part: types.Part) -> bytes:
    if part.inline_data:
        return part.inline_data.data or b""
    text = part.text if part.text is not None else part.file_data and part.file_data.file_uri
    return (text or "").encode("utf-8", "surrogatepass")  # lone surrogates have no UTF-8 form


async def _run(work: Callable[[], T], action: str) -> T:
    try:
        return await sync.service_call(work)
    except OSError as error:
        raise StorageError(f"could not {action}: {error}; check the disk and the folder's permissions") from error
