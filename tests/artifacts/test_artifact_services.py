"""What every artifact service promises. A new one is added to SERVICES, and to nothing else."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_nb import types
from adk_nb.artifacts import BaseArtifactService, FileArtifactService, InMemoryArtifactService, folder
from adk_nb.artifacts.base_artifact_service import tombstone
from adk_nb.errors import InputError
from tests.support.each import each

SERVICES: dict[str, Callable[[Path], BaseArtifactService]] = {
    "in memory": lambda root: InMemoryArtifactService(),
    "files": FileArtifactService,
    "files without openat": FileArtifactService,
}
S = {"app_name": "app", "user_id": "u", "session_id": "s"}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseArtifactService:
    if request.param == "files without openat":
        monkeypatch.setattr(folder, "HAS_OPENAT", False)
    return SERVICES[request.param](tmp_path / "root")


def text(words: str) -> types.Part:
    return types.Part(text=words)


def png(data: bytes = b"\x89PNG\x00", **kwargs: Any) -> types.Part:
    return types.Part(inline_data=types.Blob(data=data, mime_type="image/png", **kwargs))


def reference(uri: str) -> types.Part:
    return types.Part(file_data=types.FileData(file_uri=uri))


def awaited(test: Callable[[BaseArtifactService], Any]) -> Callable[[BaseArtifactService], None]:
    def run(service: BaseArtifactService) -> None:
        asyncio.run(test(service))

    run.__name__ = test.__name__
    return run


async def save(service: BaseArtifactService, filename: str = "a.txt", part: Any = "hello", **kwargs: Any) -> int:
    part = text(part) if isinstance(part, str) else part
    return await service.save_artifact(**{**S, "filename": filename, "artifact": part, **kwargs})


async def load(service: BaseArtifactService, filename: str = "a.txt", **kwargs: Any) -> types.Part | None:
    return await service.load_artifact(**{**S, "filename": filename, **kwargs})


async def names(service: BaseArtifactService, **kwargs: Any) -> list[str]:
    return await service.list_artifact_keys(**{**S, **kwargs})


@awaited
async def test_versions_count_from_0_and_the_newest_is_loaded(service: BaseArtifactService):
    assert [await save(service, part=text) for text in ("one", "two", "three")] == [0, 1, 2]

    assert await load(service) == text("three")
    assert await load(service, version=0) == text("one")
    assert await service.list_versions(**S, filename="a.txt") == [0, 1, 2]


@awaited
async def test_what_is_not_there_is_none_and_no_error(service: BaseArtifactService):
    await save(service)

    assert await load(service, "other.txt") is None
    assert await load(service, version=7) is None
    assert await load(service, version=-1) is None
    assert await service.list_versions(**S, filename="other.txt") == []
    assert await service.list_artifact_versions(**S, filename="other.txt") == []
    assert await service.get_artifact_version(**S, filename="other.txt") is None
    assert await service.get_artifact_version(**S, filename="a.txt", version=7) is None
    assert await names(service, session_id="elsewhere") == []


@pytest.mark.parametrize(
    "part",
    [
        text("words"),
        text(""),
        text("line\r\nline\n\ttab \x00 é 🐈 \u202e \ud800"),
        png(),
        png(b""),
        png(bytes(range(256)) * 5_000, display_name="a cat"),
        types.Part(file_data=types.FileData(file_uri="gs://bucket/cat.png", mime_type="image/png")),
    ],
    ids=["words", "empty text", "odd text", "png", "empty png", "more than a megabyte", "reference"],
)
def test_a_part_comes_back_as_it_was(service: BaseArtifactService, part: types.Part):
    async def there_and_back() -> types.Part | None:
        await save(service, part=part)
        return await load(service)

    assert asyncio.run(there_and_back()) == part


@awaited
async def test_a_part_may_be_given_as_json(service: BaseArtifactService):
    await save(service, "camel.png", {"inlineData": {"data": "aGk=", "mimeType": "image/png"}})
    await save(service, "snake.png", {"inline_data": {"data": b"hi", "mime_type": "image/png"}})
    await save(service, "words.txt", {"text": "hi"})

    assert await load(service, "camel.png") == await load(service, "snake.png") == png(b"hi")
    assert await load(service, "words.txt") == text("hi")


@awaited
async def test_bytes_of_no_type_are_just_bytes(service: BaseArtifactService):
    await save(service, part=types.Part(inline_data=types.Blob(data=b"\x00")))

    loaded = await load(service)

    assert loaded and loaded.inline_data and loaded.inline_data.mime_type == "application/octet-stream"


@each(
    "part",
    [
        types.Part(),
        types.Part(function_call=types.FunctionCall(name="f")),
        types.Part(inline_data=types.Blob(mime_type="image/png")),
        {"nonsense": 1},
        {"text": "\ud800"},
        {"text": object()},
        "words",
        None,
    ],
)
def test_what_is_neither_text_nor_bytes_nor_a_reference_is_refused(service: BaseArtifactService, part: Any):
    async def refused() -> list[str]:
        with pytest.raises(InputError, match=r"artifact 'a\.txt'"):
            await save(service, artifact=part)
        return await names(service)

    assert asyncio.run(refused()) == []


@awaited
async def test_what_is_kept_is_a_copy(service: BaseArtifactService):
    part, metadata = png(), {"tags": ["cat"]}
    await save(service, part=part, custom_metadata=metadata)

    assert part.inline_data
    part.inline_data.mime_type = "image/changed"
    metadata["tags"].append("dog")
    loaded, artifact_version = await load(service), await service.get_artifact_version(**S, filename="a.txt")
    assert loaded and loaded.inline_data and artifact_version
    loaded.inline_data.mime_type = "image/changed"
    artifact_version.custom_metadata["tags"].append("bird")

    assert await load(service) == png()
    repeated_artifact_version = await service.get_artifact_version(**S, filename="a.txt")
    assert repeated_artifact_version and repeated_artifact_version.custom_metadata == {"tags": ["cat"]}


@awaited
async def test_a_version_tells_what_is_known_of_it(service: BaseArtifactService):
    await save(service, "cat.png", png(), custom_metadata={"from": "camera", "n": [1, None, {"x": 0.5}]})
    await save(service, "cat.png", "no picture any more")

    first, second = await service.list_artifact_versions(**S, filename="cat.png")

    assert (first.version, first.mime_type, first.custom_metadata) == (
        0,
        "image/png",
        {"from": "camera", "n": [1, None, {"x": 0.5}]},
    )
    assert (second.version, second.mime_type, second.custom_metadata) == (1, None, {})
    assert 1_600_000_000 < first.create_time <= second.create_time
    assert first.canonical_uri.endswith("/cat.png/versions/0") or first.canonical_uri.endswith("/versions/0/cat.png")
    assert await service.get_artifact_version(**S, filename="cat.png") == second
    assert await service.get_artifact_version(**S, filename="cat.png", version=0) == first


@each("metadata", [{"x": object()}, {"x": float("nan")}, {1: "x"}, {"x": (1, 2)}, {"x": {1}}])
def test_metadata_that_a_file_cannot_give_back_equal_is_refused(service: BaseArtifactService, metadata: Any):
    with pytest.raises(InputError, match=r"custom_metadata.*artifact 'a\.txt'"):
        asyncio.run(save(service, custom_metadata=metadata))


@awaited
async def test_a_users_file_is_seen_by_all_sessions_of_the_user_and_by_nobody_else(service: BaseArtifactService):
    await save(service, "user:profile.json", "mine")
    await save(service, "own.txt")
    await save(service, "user:profile.json", "newer", session_id="t")

    assert await load(service, "user:profile.json", session_id="t") == text("newer")
    assert await load(service, "user:profile.json", session_id=None, version=0) == text("mine")
    assert await names(service) == ["own.txt", "user:profile.json"]
    assert await names(service, session_id="t") == await names(service, session_id=None) == ["user:profile.json"]
    assert await load(service, "own.txt", session_id="t") is None
    assert await load(service, "profile.json") is None
    for second in ({"user_id": "v"}, {"app_name": "other"}):
        assert await names(service, **second) == []
        assert await load(service, "user:profile.json", **second) is None


@awaited
async def test_a_session_and_its_user_may_have_files_of_one_name(service: BaseArtifactService):
    await save(service, "a.txt", "the session's")
    await save(service, "user:a.txt", "the user's")

    assert await load(service, "a.txt") == text("the session's")
    assert await load(service, "user:a.txt") == text("the user's")


@awaited
async def test_a_sessions_file_needs_its_session(service: BaseArtifactService):
    with pytest.raises(InputError, match=r"session_id=....*'user:a\.txt'"):
        await save(service, session_id=None)
    with pytest.raises(InputError, match=r"pass session_id="):
        await load(service, session_id=None)


@each("filename", ["", " ", "user:", "user: "])
def test_an_artifact_needs_a_name(service: BaseArtifactService, filename: str):
    for use in (save, load):
        with pytest.raises(InputError, match="invalid artifact name"):
            asyncio.run(use(service, filename))


@awaited
async def test_both_spellings_of_an_accent_are_one_name(service: BaseArtifactService):
    assert await save(service, "caf\u00e9.txt") == 0
    assert await save(service, "cafe\u0301.txt", "newer") == 1

    assert await load(service, "caf\u00e9.txt") == text("newer")
    assert await names(service) == ["caf\u00e9.txt"]


@awaited
async def test_names_may_have_folders_and_one_may_be_the_folder_of_another(service: BaseArtifactService):
    for name in ("doc", "doc/nested.txt", "doc/deep/er.txt", "user:doc", "it's 100% & more (1)", ".hidden", "日本.txt"):
        await save(service, name, f"this is {name}")

    listed = await names(service)

    assert listed == [
        ".hidden",
        "doc",
        "doc/deep/er.txt",
        "doc/nested.txt",
        "it's 100% & more (1)",
        "user:doc",
        "日本.txt",
    ]
    assert [await load(service, name) for name in listed] == [text(f"this is {name}") for name in listed]
    await service.delete_artifact(**S, filename="doc")
    assert await names(service) == [name for name in listed if name != "doc"]


@awaited
async def test_a_deleted_artifact_is_gone_with_all_its_versions_and_starts_anew(service: BaseArtifactService):
    await save(service)
    await save(service)
    await service.delete_artifact(**S, filename="a.txt")

    assert await load(service) is None and await load(service, version=0) is None
    assert await names(service) == [] == await service.list_versions(**S, filename="a.txt")
    await service.delete_artifact(**S, filename="a.txt")
    await service.delete_artifact(**{**S, "session_id": "never"}, filename="a.txt")
    assert await save(service, part="new") == 0
    assert await load(service) == text("new")


@awaited
async def test_a_removed_artifact_is_absent_until_it_is_saved_again_and_its_versions_stay(service: BaseArtifactService):
    await save(service, part="old")
    assert await save(service, part=tombstone()) == 1

    assert await load(service) is None and await names(service) == []
    assert await load(service, version=0) == text("old")
    assert await save(service, part="back") == 2
    assert await load(service) == text("back") and await names(service) == ["a.txt"]


@awaited
async def test_a_reference_to_an_artifact_is_followed_when_it_is_loaded(service: BaseArtifactService):
    await save(service, "user:folder/cat é%.png", png())
    uri = "artifact://apps/app/users/u/artifacts/folder/cat%20%C3%A9%25.png/versions/0"
    await save(service, "mine.png", reference(uri))
    await save(service, "again.png", reference("artifact://apps/app/users/u/sessions/s/artifacts/mine.png/versions/0"))
    await save(service, "gone.png", reference("artifact://apps/app/users/u/artifacts/no.png/versions/3"))

    assert await load(service, "again.png") == png()
    assert await load(service, "gone.png") is None


@awaited
async def test_a_reference_that_goes_round_is_refused(service: BaseArtifactService):
    await save(service, "a", reference("artifact://apps/app/users/u/sessions/s/artifacts/b/versions/0"))
    await save(service, "b", reference("artifact://apps/app/users/u/sessions/s/artifacts/a/versions/0"))

    with pytest.raises(InputError, match="more than 5"):
        await load(service, "a")


@each(
    "uri, reason",
    [
        ("artifact://apps/app/users/v/artifacts/x/versions/0", "another user or"),
        ("artifact://apps/other/users/u/artifacts/x/versions/0", "another user or"),
        ("artifact://apps/app/users/u/sessions/t/artifacts/x/versions/0", "another session"),
        ("artifact://apps/app/users/u/artifacts/x/versions/", "not the URI"),
        ("artifact:///etc/passwd", "not the URI"),
    ],
)
def test_a_reference_out_of_reach_is_refused_before_it_is_kept(service: BaseArtifactService, uri: str, reason: str):
    async def refused() -> list[str]:
        with pytest.raises(InputError, match=reason):
            await save(service, part=reference(uri))
        return await names(service)

    assert asyncio.run(refused()) == []


@awaited
async def test_a_reference_of_the_user_does_not_lead_into_a_session(service: BaseArtifactService):
    with pytest.raises(InputError, match="another session"):
        await save(service, "user:a", reference("artifact://apps/app/users/u/sessions/s/artifacts/x/versions/0"))


def test_versions_saved_side_by_side_are_all_there(service: BaseArtifactService):
    numbers: list[int] = []

    def many(number: int) -> None:
        async def saves() -> None:
            numbers.extend([await save(service, part=f"{number} {turn}") for turn in range(5)])

        asyncio.run(saves())

    threads = [threading.Thread(target=many, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    async def all_texts() -> list[str | None]:
        parts = [await load(service, version=number) for number in numbers]
        return [part.text for part in parts if part]

    assert sorted(numbers) == list(range(30))
    assert sorted(filter(None, asyncio.run(all_texts()))) == sorted(
        f"{index} {turn}" for index in range(6) for turn in range(5)
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filename=st.text(min_size=1, max_size=12))
def test_any_name_is_kept_apart_from_others_or_refused_with_a_reason(service: BaseArtifactService, filename: str):
    async def there_and_back() -> tuple[list[str], types.Part | None]:
        user = os.urandom(8).hex()
        await save(service, filename, filename, user_id=user)
        [listed] = await names(service, user_id=user)
        return [listed], await load(service, listed, user_id=user)

    try:
        _, part = asyncio.run(there_and_back())
    except InputError as error:
        assert "name" in str(error)
    else:
        assert part == text(filename)
