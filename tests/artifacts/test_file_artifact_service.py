"""Artifacts as files: the layout on the disk, names that cannot be a file's, links, and what others did to them."""

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.artifacts import FileArtifactService, folder
from adk_nb.errors import InputError, StorageError
from tests.support.each import each

S = {"app_name": "app", "user_id": "u", "session_id": "s"}
HELLO = types.Part(text="hello")


@pytest.fixture(params=["openat", "no openat"])
def service(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileArtifactService:
    if request.param == "no openat":
        monkeypatch.setattr(folder, "HAS_OPENAT", False)
    return FileArtifactService(root_dir=tmp_path / "root")


def save(service: FileArtifactService, filename: str = "a.txt", part: types.Part = HELLO, **kwargs: Any) -> int:
    return asyncio.run(service.save_artifact(**{**S, "filename": filename, "artifact": part, **kwargs}))


def load(service: FileArtifactService, filename: str = "a.txt", **kwargs: Any) -> types.Part | None:
    return asyncio.run(service.load_artifact(**{**S, "filename": filename, **kwargs}))


def names(service: FileArtifactService, **kwargs: Any) -> list[str]:
    return asyncio.run(service.list_artifact_keys(**{**S, **kwargs}))


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())


def test_the_files_stand_where_google_adk_has_them(service: FileArtifactService):
    save(service, "img/cat.png", types.Part(inline_data=types.Blob(data=b"PNG", mime_type="image/png")))
    save(service, "user:a.txt")
    save(service, "user:a.txt")

    versions = "apps/app/users/u/artifacts/a.txt/versions"
    picture = "apps/app/users/u/sessions/s/artifacts/img/cat.png/versions/0"
    assert files(service.root_dir) == [
        f"{versions}/0/a.txt",
        f"{versions}/0/metadata.json",
        f"{versions}/1/a.txt",
        f"{versions}/1/metadata.json",
        f"{picture}/cat.png",
        f"{picture}/metadata.json",
    ]
    assert (service.root_dir / versions / "1/a.txt").read_text() == "hello"
    assert (service.root_dir / picture / "cat.png").read_bytes() == b"PNG"
    metadata = json.loads((service.root_dir / picture / "metadata.json").read_text())
    assert (metadata["fileName"], metadata["mimeType"]) == ("img/cat.png", "image/png")
    artifact_version = asyncio.run(service.get_artifact_version(**S, filename="img/cat.png"))
    assert artifact_version and artifact_version.canonical_uri == (service.root_dir / picture / "cat.png").as_uri()


def test_another_service_on_the_same_folder_finds_what_is_there(service: FileArtifactService):
    save(service)

    other_service = FileArtifactService(str(service.root_dir))

    assert names(other_service) == ["a.txt"] and load(other_service) == HELLO and save(other_service) == 1


@each(
    "name",
    [
        "/etc/passwd",
        "/proc/self/environ",
        "../a.txt",
        "a/../../b",
        "a/..",
        "..",
        ".",
        "a/./b",
        "a//b",
        "a/",
        "C:\\x",
        "C:x",
        "c:/x",
        "\\\\?\\C:\\x",
        "..\\a",
        "a\\b",
        "a\x00b",
        "a\nb",
        "\x1b[2J",
        "a\x7f",
        "a\u202egnp.exe",
        "a\u2066b",
        "\u200bx",
        "\ufeffx",
        "a\u2028b",
        "\ud800",
        "x" * 300,
        "é" * 128,
        "a/" * 20 + "b",
        "/".join(["x" * 200] * 6),
        "metadata.json",
        "METADATA.json",
        "a/versions/0",
        "Versions",
        "CON",
        "nul.txt",
        "a/LPT1.log/b",
        "a.",
        "a ",
        " a",
        "a ./b",
    ],
)
@each("prefix", ["", "user:"])
def test_a_name_that_cannot_be_a_files_is_refused_and_nothing_is_made(
    service: FileArtifactService, prefix: str, name: str
):
    for use in (save, load):
        with pytest.raises(InputError, match="artifact"):
            use(service, prefix + name)

    assert not service.root_dir.exists() or files(service.root_dir) == []


@each("key", ["app_name", "user_id", "session_id"])
@each("value", ["..", ".", "", "a/b", "a\\b", "a\x00", "x" * 300, "\u202e", "versions", "\ud800"])
def test_an_id_that_cannot_be_a_folders_name_is_refused_and_nothing_is_made(
    service: FileArtifactService, key: str, value: str
):
    for use in (save, load):
        with pytest.raises(InputError, match=f"{key} .* name of a"):
            use(service, **{key: value})
    with pytest.raises(InputError, match=key):
        names(service, **{key: value})

    assert not service.root_dir.exists()


def test_ids_as_they_are_often_made_are_folders(service: FileArtifactService):
    for user in ("ann@example.org", "auth0|123", "日本", "a b", "A.b-c_d+e=f"):
        assert save(service, user_id=user) == 0 and names(service, user_id=user) == ["a.txt"]


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4, 5, 6, 7])
def test_a_link_in_the_way_is_not_followed(service: FileArtifactService, tmp_path: Path, depth: int):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    path = ["apps", "app", "users", "u", "sessions", "s", "artifacts", "a.txt"]
    file_path = service.root_dir.joinpath(*path[: depth + 1])
    file_path.parent.mkdir(parents=True)
    file_path.symlink_to(outside, target_is_directory=True)

    for use in (save, load):
        with pytest.raises(StorageError, match="is a link"):
            use(service)

    assert files(outside) == ["secret.txt"] and os.listdir(outside) == ["secret.txt"]


def test_a_link_in_the_place_of_a_file_is_not_read(service: FileArtifactService, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    save(service)
    stored_root_dir = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt/versions/0/a.txt"
    stored_root_dir.unlink()
    stored_root_dir.symlink_to(secret)

    with pytest.raises(StorageError, match="is a link"):
        load(service)
    asyncio.run(service.delete_artifact(**S, filename="a.txt"))
    assert secret.read_text() == "secret" and load(service) is None


@pytest.mark.parametrize("path", ["", "versions", "versions/1", "versions/1/a.txt", "versions/2/a.txt"])
def test_a_second_name_of_another_file_is_not_written_to(service: FileArtifactService, tmp_path: Path, path: str):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    save(service)
    place = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt" / path
    if path in ("", "versions"):
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.hardlink_to(secret)

    for use in (save, load, lambda service: asyncio.run(service.delete_artifact(**S, filename="a.txt"))):
        with suppress(StorageError):
            use(service)

    assert secret.read_text() == "secret"


def test_a_file_that_has_a_second_name_is_let_go_of_and_not_emptied(service: FileArtifactService, tmp_path: Path):
    save(service)
    stored_root_dir = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt/versions/0/a.txt"
    (tmp_path / "backup").hardlink_to(stored_root_dir)

    assert load(service) == HELLO and save(service) == 1
    asyncio.run(service.delete_artifact(**S, filename="a.txt"))
    assert (tmp_path / "backup").read_text() == "hello" and load(service) is None


def test_links_and_loose_files_among_the_artifacts_are_not_listed(service: FileArtifactService, tmp_path: Path):
    save(service)
    save(service, "user:b.txt")
    artifacts = service.root_dir / "apps/app/users/u/sessions/s/artifacts"
    (artifacts / "loose.txt").write_text("x")
    (artifacts / "up").symlink_to(artifacts, target_is_directory=True)
    (artifacts / "users").symlink_to(service.root_dir / "apps/app/users/u/artifacts", target_is_directory=True)
    (artifacts / "empty" / "versions").mkdir(parents=True)
    (artifacts / "odd" / "versions" / "٣").mkdir(parents=True)

    assert names(service) == ["a.txt", "user:b.txt"]


@pytest.mark.skipif(not folder.HAS_OPENAT, reason="only openat closes this gap")
def test_a_folder_swapped_for_a_link_between_two_looks_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    service = FileArtifactService(tmp_path / "root")
    outside = tmp_path / "outside"
    outside.mkdir()
    save(service)
    versions = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt/versions"
    write = folder.Folder.write

    def swap_and_write(self: folder.Folder, name: str, data: bytes) -> None:
        if versions.exists() and not versions.is_symlink():
            versions.rename(versions.with_name("moved"))
            versions.symlink_to(outside, target_is_directory=True)
        write(self, name, data)

    monkeypatch.setattr(folder.Folder, "write", swap_and_write)

    save(service)

    assert os.listdir(outside) == []
    assert (versions.with_name("moved") / "1" / "a.txt").read_text() == "hello"


@pytest.mark.parametrize("plant", [os.symlink, os.link])
def test_a_link_put_in_the_place_of_a_file_as_it_is_written_is_not_followed(
    service: FileArtifactService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Any
):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    write = folder.Folder.write

    def planted(self: folder.Folder, name: str, data: bytes) -> None:
        plant(secret, self.path / name)
        write(self, name, data)

    with monkeypatch.context() as patched:
        patched.setattr(folder.Folder, "write", planted)
        with pytest.raises(StorageError, match="not save artifact"):
            save(service)

    assert secret.read_text() == "secret" and load(service) is None and save(service) == 0


def test_files_that_differ_only_by_case_on_such_a_disk_are_not_mixed_up(service: FileArtifactService):
    save(service, "Report.txt")
    artifacts = service.root_dir / "apps/app/users/u/sessions/s/artifacts"
    (artifacts / "Report.txt").rename(artifacts / "report.txt")  # what a disk does that takes both for one
    (artifacts / "report.txt/versions/0/Report.txt").rename(artifacts / "report.txt/versions/0/report.txt")

    assert load(service, "report.txt") is None
    with pytest.raises(InputError, match=r"'Report\.txt' .*; rename it"):
        save(service, "report.txt")


def test_another_users_folder_that_is_the_same_on_such_a_disk_is_not_read(service: FileArtifactService):
    save(service, user_id="Ann")
    users = service.root_dir / "apps/app/users"
    (users / "Ann").rename(users / "ann")

    assert load(service, user_id="ann") is None and names(service, user_id="ann") == []


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"fileName": 1}', "\ud800".encode("utf-8", "surrogatepass")])
def test_metadata_that_cannot_be_read_is_named_and_hides_no_other_artifact(
    service: FileArtifactService, broken: str | bytes
):
    save(service)
    save(service, "b.txt")
    metadata = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt/versions/0/metadata.json"
    metadata.write_bytes(broken if isinstance(broken, bytes) else broken.encode())

    with pytest.raises(StorageError, match=r"metadata\.json' .*delete"):
        load(service)
    assert names(service) == ["b.txt"]
    asyncio.run(service.delete_artifact(**S, filename="a.txt"))
    assert save(service) == 0


@pytest.mark.parametrize("failing", [1, 2])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_fails_leaves_nothing_half_written(
    service: FileArtifactService, monkeypatch: pytest.MonkeyPatch, failing: int, number: int
):
    save(service)
    earlier_files, calls = files(service.root_dir), iter(range(1, 100))
    sync = os.fsync

    def fails(handle: int) -> None:
        if next(calls) == failing:
            raise OSError(number, os.strerror(number))
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails)
        with pytest.raises(StorageError, match=r"'a\.txt': .*check the disk"):
            save(service)

    assert files(service.root_dir) == earlier_files
    assert load(service) == HELLO and save(service) == 1


def test_what_a_killed_process_left_is_no_version(service: FileArtifactService):
    save(service)
    versions = service.root_dir / "apps/app/users/u/sessions/s/artifacts/a.txt/versions"
    (versions / ".x.pending").mkdir()
    (versions / ".x.pending/a.txt").write_text("half")

    assert load(service) == HELLO and names(service) == ["a.txt"] and save(service) == 1


@pytest.mark.slow
def test_processes_that_save_at_once_each_get_a_version_of_their_own(service: FileArtifactService):
    code = (
        "import asyncio, sys\n"
        "from adk_nb.artifacts import FileArtifactService\n"
        "async def main():\n"
        "    service = FileArtifactService(sys.argv[1])\n"
        "    for turn in range(10):\n"
        "        print(await service.save_artifact(app_name='app', user_id='u', session_id='s', filename='a.txt',\n"
        "                                          artifact={'text': sys.argv[2]}))\n"
        "asyncio.run(main())\n"
    )
    request = [sys.executable, "-c", code, str(service.root_dir)]
    running = [subprocess.Popen([*request, text], stdout=subprocess.PIPE, text=True) for text in ("one", "two")]

    numbers = [int(line) for item in running for line in item.communicate(timeout=60)[0].split()]

    assert sorted(numbers) == list(range(20)) == asyncio.run(service.list_versions(**S, filename="a.txt"))


def test_the_home_folder_may_be_written_short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))

    save(FileArtifactService("~/artifacts"))

    assert (tmp_path / "artifacts/apps").is_dir()
