"""Artifacts as files in a folder: kept across kernels, and readable without this package."""

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
from adk_nb.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService
from adk_nb.artifacts.content import follow, kept_part, mime_type, removed
from adk_nb.artifacts.file_name import DEEPEST, METADATA, VERSIONS, folder_of, folders_of
from adk_nb.artifacts.folder import Folder
from adk_nb.artifacts.place import Place, place_of
from adk_nb.errors import AdkNbError, InputError, StorageError
from adk_nb.wire import WireModel, plain_json

T = TypeVar("T")

logger = logging.getLogger(__name__)

_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.EACCES)  # EACCES: what Windows says


class _Metadata(WireModel):
    """What stands in a version's metadata.json."""

    file_name: str
    """As asked for, `user:` included: on a disk that takes `A` and `a` for one, it tells them apart."""
    owner: list[str | None]
    """App, user, session (None: the user's)."""
    mime_type: str | None = None
    display_name: str | None = None
    file_data: dict[str, Any] | None = None
    """A reference; the file beside has its URI."""
    create_time: float
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])

    def is_of(self, place: Place) -> bool:
        return (self.file_name, self.owner) == (place.filename, [place.app_name, place.user_id, place.session_id])

    def as_bytes(self) -> bytes:
        return json.dumps(self.model_dump(by_alias=True, exclude_none=True), indent=2).encode()


class FileArtifactService(BaseArtifactService):
    """Artifacts under `root_dir`.

    A version is `apps/APP/users/USER[/sessions/SESSION]/artifacts/NAME/versions/N/`, with its content in a file that
    is called as the last part of NAME, and metadata.json beside it; a `/` in NAME makes folders. It appears there
    whole or not at all, also when several processes save at once. Symbolic links below the root are not followed.

    Raises, beside what every artifact service raises:
        InputError: A name or an id cannot be a file's: it is absolute, leads up, has characters nobody sees, or is
            too long.

    Source of the layout: google-adk 2.13.
    """

    def __init__(self, root_dir: Path | str) -> None:
        """`root_dir`: made when something is first saved."""
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
        place = place_of(app_name, user_id, filename, session_id)
        part = kept_part(artifact, place)
        blob = part.inline_data
        metadata = _Metadata(
            file_name=place.filename,
            owner=[place.app_name, place.user_id, place.session_id],
            mime_type=mime_type(part),
            display_name=blob.display_name if blob else None,
            file_data=part.file_data.model_dump(mode="json", exclude_none=True) if part.file_data else None,
            create_time=clock.now(),
            custom_metadata=plain_json(custom_metadata, f"custom_metadata of artifact {filename!r}"),
        )
        return await _off_the_loop(partial(self._save, place, _bytes(part), metadata), f"save artifact {filename!r}")

    async def load_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None, version: int | None = None
    ) -> types.Part | None:
        place = place_of(app_name, user_id, filename, session_id)
        return await _off_the_loop(partial(follow, self._part, place, version), f"load artifact {filename!r}")

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        scopes = {None, session_id}
        return await _off_the_loop(partial(self._keys, app_name, user_id, scopes), "list artifacts")

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        place = place_of(app_name, user_id, filename, session_id)
        return await _off_the_loop(partial(self._known, place), f"list versions of artifact {filename!r}")

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        place = place_of(app_name, user_id, filename, session_id)
        await _off_the_loop(partial(self._delete, place), f"delete artifact {filename!r}")

    def _save(self, place: Place, data: bytes, metadata: _Metadata) -> int:
        *_, name = path = _path(place)
        with Folder.open(self.root_dir, [*path, VERSIONS], make=True) as versions:
            numbers = _numbers(versions)
            if numbers and not (other := _metadata(versions, numbers[-1])).is_of(place):
                raise InputError(f"artifact {place.filename!r} is on this disk one with {other.file_name!r}; rename it")
            pending = f".{clock.new_id()}.pending"
            try:
                with versions.inner(pending, make=True) as staged:
                    staged.write(name, data)
                    staged.write(METADATA, metadata.as_bytes())
                return _publish(versions, pending, numbers[-1] + 1 if numbers else 0)
            except BaseException:
                with suppress(OSError):
                    versions.remove(pending)
                raise

    def _part(self, place: Place, version: int | None) -> types.Part | None:
        with suppress(FileNotFoundError), self._kept(place) as (versions, numbers):
            number = numbers[-1] if version is None else version
            if number not in numbers:
                return None
            metadata = _metadata(versions, number)
            if metadata.file_data is not None:
                return types.Part(file_data=types.FileData.model_validate(metadata.file_data))
            with versions.inner(str(number)) as kept:
                data = kept.read(_path(place)[-1])
            if metadata.mime_type is None:
                return types.Part(text=data.decode("utf-8", "surrogatepass"))
            blob = types.Blob(data=data, mime_type=metadata.mime_type, display_name=metadata.display_name)
            return types.Part(inline_data=blob)
        return None

    def _known(self, place: Place) -> list[ArtifactVersion]:
        with suppress(FileNotFoundError), self._kept(place) as (versions, numbers):
            return [_version(place, versions, number) for number in numbers]
        return []

    def _keys(self, app_name: str, user_id: str, scopes: set[str | None]) -> list[str]:
        found: list[str] = []
        for session_id in scopes:
            with suppress(FileNotFoundError), Folder.open(self.root_dir, _scope(app_name, user_id, session_id)) as top:
                names = [normalize("NFC", "/".join(path)) for path in _artifacts(top, [])]
                places = [Place(app_name, user_id, session_id, name) for name in names]
                found += [place.filename for place in places if self._shows(place)]
        return sorted(found)

    def _shows(self, place: Place) -> bool:
        try:
            with self._kept(place) as (versions, numbers):
                return _metadata(versions, numbers[-1]).mime_type != mime_type(removed())
        except (FileNotFoundError, AdkNbError) as error:
            logger.warning("a folder among the artifacts is left out: %s", error)
            return False

    def _delete(self, place: Place) -> None:
        with suppress(FileNotFoundError), Folder.open(self.root_dir, _path(place)) as artifact:
            gone = f".{clock.new_id()}.deleted"
            artifact.rename(VERSIONS, gone)  # at one stroke, for whoever reads or saves meanwhile
            artifact.remove(gone)

    @contextmanager
    def _kept(self, place: Place) -> Generator[tuple[Folder, list[int]], None, None]:
        """The folder of versions, and their numbers. Raises FileNotFoundError if there is none."""
        with Folder.open(self.root_dir, [*_path(place), VERSIONS]) as versions:
            numbers = _numbers(versions)
            if not numbers or not _metadata(versions, numbers[-1]).is_of(place):
                raise FileNotFoundError(place.filename)
            yield versions, numbers


def _scope(app_name: str, user_id: str, session_id: str | None) -> list[str]:
    session = [] if session_id is None else ["sessions", folder_of(session_id, "session_id")]
    app, user = folder_of(app_name, "app_name"), folder_of(user_id, "user_id")
    return ["apps", app, "users", user, *session, "artifacts"]


def _path(place: Place) -> list[str]:
    return [*_scope(place.app_name, place.user_id, place.session_id), *folders_of(place.name)]


def _artifacts(folder: Folder, path: list[str]) -> Iterator[list[str]]:
    """The paths of the artifacts below a folder."""
    if path and folder.has_folder(VERSIONS):
        yield path
    for name in folder.names() if len(path) < DEEPEST else ():
        if name != VERSIONS and folder.has_folder(name):
            with folder.inner(name) as inner:
                yield from _artifacts(inner, [*path, name])


def _numbers(versions: Folder) -> list[int]:
    return sorted(int(name) for name in versions.names() if re.fullmatch("0|[1-9][0-9]{0,8}", name))


def _publish(versions: Folder, pending: str, number: int) -> int:
    """Let a version appear under the first number that nobody else took meanwhile."""
    while True:
        try:
            versions.rename(pending, str(number))
            return number
        except OSError as error:
            if error.errno not in _TAKEN or not versions.has_folder(str(number)):
                raise
            number += 1


def _metadata(versions: Folder, number: int) -> _Metadata:
    with versions.inner(str(number)) as kept:
        try:
            return _Metadata.model_validate(json.loads(kept.read(METADATA)))
        except ValueError as error:
            raise StorageError(f"{str(kept.path / METADATA)!r} cannot be read; delete the artifact") from error


def _version(place: Place, versions: Folder, number: int) -> ArtifactVersion:
    metadata = _metadata(versions, number)
    return ArtifactVersion(
        version=number,
        canonical_uri=(versions.path / str(number) / _path(place)[-1]).as_uri(),
        custom_metadata=metadata.custom_metadata,
        create_time=metadata.create_time,
        mime_type=metadata.mime_type,
    )


def _bytes(part: types.Part) -> bytes:
    if part.inline_data:
        return part.inline_data.data or b""
    text = part.text if part.text is not None else part.file_data and part.file_data.file_uri
    return (text or "").encode("utf-8", "surrogatepass")


async def _off_the_loop(work: Callable[[], T], what: str) -> T:
    try:
        return await sync.service_call(work)
    except OSError as error:
        raise StorageError(f"could not {what}: {error}; look at the disk's room and the folder's rights") from error
