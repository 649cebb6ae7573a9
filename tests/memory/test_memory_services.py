"""What every memory service promises. A new one is added to SERVICES, and to nothing else."""

import asyncio
import re
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events import Event
from adk_nb.memory import BaseMemoryService, InMemoryMemoryService, MemoryEntry, SqliteMemoryService
from adk_nb.sessions import Session
from tests.support.each import each

SERVICES: dict[str, Callable[[Path], BaseMemoryService]] = {
    "in memory": lambda root: InMemoryMemoryService(),
    "sqlite": lambda root: SqliteMemoryService(root / "new" / "memory.db"),
}
U = {"app_name": "app", "user_id": "u"}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> BaseMemoryService:
    return SERVICES[request.param](tmp_path)


def awaited(test: Callable[[BaseMemoryService], Any]) -> Callable[[BaseMemoryService], None]:
    def run(service: BaseMemoryService) -> None:
        asyncio.run(test(service))

    run.__name__ = test.__name__
    return run


def content(*texts: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text) for text in texts])


def event(text: str, key: str = "", author: str = "user", at: float = 1_700_000_000.0) -> Event:
    return Event(id=key or text, author=author, content=content(text), timestamp=at)


def session(*events: Event, session_id: str = "s", user_id: str = "u") -> Session:
    return Session(id=session_id, app_name="app", user_id=user_id, events=list(events))


async def search(service: BaseMemoryService, query: str, **more: str) -> list[MemoryEntry]:
    return (await service.search_memory(**{**U, "query": query, **more})).memories


async def found(service: BaseMemoryService, query: str, **more: str) -> list[str]:
    return [entry.text for entry in await search(service, query, **more)]


@awaited
async def test_a_session_that_was_added_is_found_by_its_words(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("I like cats", key="e1"), event("So do I", author="guide")))

    [entry] = await search(service, "which CATS?")

    assert (entry.id, entry.author, entry.text) == ("e1", "user", "I like cats")
    assert entry.content == content("I like cats")
    assert entry.timestamp == "2023-11-14T22:13:20+00:00"
    assert entry.custom_metadata == {}


@awaited
async def test_nothing_is_found_where_nothing_was_added(service: BaseMemoryService):
    assert await found(service, "cats") == []
    await service.delete_memory(**U, memory_id="nothing")
    await service.add_session_to_memory(session())
    await service.add_events_to_memory(**U, events=[])
    assert await found(service, "cats") == []


@awaited
async def test_what_has_more_of_the_words_comes_first_and_of_equals_the_older(service: BaseMemoryService):
    said = ("a dog", "a cat and a dog", "a bird", "cat cat cat", "a bird, a cat and a dog")
    await service.add_session_to_memory(session(*(event(one) for one in said)))

    assert await found(service, "cat dog bird") == [
        "a bird, a cat and a dog",
        "a cat and a dog",
        "a dog",
        "a bird",
        "cat cat cat",
    ]
    assert await found(service, "DOG dog Dog") == ["a dog", "a cat and a dog", "a bird, a cat and a dog"]
    assert await found(service, "elephant") == await found(service, "") == await found(service, "?! ...") == []


@awaited
async def test_a_word_is_found_whole_and_not_inside_of_another(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("concatenate"), event("snake_case"), event("catch-22")))

    assert await found(service, "cat") == []
    assert await found(service, "case") == []
    assert await found(service, "snake_case") == ["snake_case"]
    assert await found(service, "22") == ["catch-22"]


@awaited
async def test_words_of_scripts_without_spaces_are_found_inside_of_longer_ones(service: BaseMemoryService):
    await service.add_session_to_memory(
        session(
            event("我喜欢吃苹果和香蕉"),
            event("猫が好きです"),
            event("Größenwahn ist groß"),
            event("cafe\u0301 au lait"),
        )
    )

    assert await found(service, "苹果") == ["我喜欢吃苹果和香蕉"]
    assert await found(service, "好き") == ["猫が好きです"]
    assert await found(service, "GRÖSSE größe") == ["Größenwahn ist groß"]
    assert await found(service, "caf\u00e9") == ["cafe\u0301 au lait"]


@awaited
async def test_words_between_letters_of_a_script_without_spaces_are_found_whole(service: BaseMemoryService):
    texts = ("私はPython3が好きです", "我用Docker部署服务", "ผมชอบกินPizzaมาก", "concatPythonic が好き")
    await service.add_session_to_memory(session(*(event(text) for text in texts)))

    assert await found(service, "python3") == ["私はPython3が好きです"]
    assert await found(service, "Docker?") == ["我用Docker部署服务"]
    assert await found(service, "PIZZA") == ["ผมชอบกินPizzaมาก"]
    assert await found(service, "python") == await found(service, "izza") == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("你喜欢吃什么水果", "我喜欢吃苹果和香蕉"),
        ("好きな動物は何ですか", "猫が好きです"),
        ("คุณชอบกินอะไร", "ผมชอบกินผลไม้"),
        ("Dockerをどこで使っていますか", "業務でDockerを使う"),
    ],
)
def test_a_question_without_spaces_finds_what_shares_a_word_with_it(
    service: BaseMemoryService, question: str, answer: str
):
    async def ask() -> list[str]:
        await service.add_session_to_memory(session(event("天气很冷"), event("I like cats"), event(answer)))
        return await found(service, question)

    assert asyncio.run(ask()) == [answer]


@awaited
async def test_what_shares_more_with_a_question_without_spaces_comes_first(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("我喜欢猫"), event("我喜欢吃苹果"), event("猫")))

    assert await found(service, "你喜欢吃什么") == ["我喜欢吃苹果", "我喜欢猫"]
    assert await found(service, "猫") == ["我喜欢猫", "猫"]


@awaited
async def test_an_accent_is_found_however_it_was_typed(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("caf\u00e9"), event("re\u0301sume\u0301"), event("か\u3099く")))

    assert await found(service, "cafe\u0301") == ["caf\u00e9"]
    assert await found(service, "r\u00e9sum\u00e9") == ["re\u0301sume\u0301"]
    assert await found(service, "がく") == ["か\u3099く"]


@awaited
async def test_at_most_ten_are_listed(service: BaseMemoryService):
    await service.add_session_to_memory(session(*(event(f"cat {number}") for number in range(25)), event("cat dog")))

    assert await found(service, "cat dog") == ["cat dog", *(f"cat {number}" for number in range(9))]


@each(
    "query",
    [
        '"',
        "cat AND",
        "NOT cat",
        "cat*",
        "words:cat",
        "(cat",
        "'; drop table memories; --",
        "NEAR(cat dog)",
        "^cat",
        "%",
        "_",
    ],
)
def test_a_query_is_words_and_no_language(service: BaseMemoryService, query: str):
    async def ask() -> list[str]:
        await service.add_session_to_memory(session(event("a cat"), event("not near and words")))
        return await found(service, query)

    words = set(re.findall(r"\w+", query.lower()))
    said = ["a cat", "not near and words"]
    assert sorted(asyncio.run(ask())) == [one for one in said if words & set(one.split())]


@awaited
async def test_nobody_finds_what_is_anyone_elses(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("a secret 秘密", key="e")))
    await service.add_session_to_memory(session(event("another secret 秘密", key="e"), user_id="v"))

    assert await found(service, "secret") == await found(service, "秘密") == ["a secret 秘密"]
    assert await found(service, "secret", user_id="v") == ["another secret 秘密"]
    for other in ({"app_name": "other"}, {"user_id": "U"}, {"user_id": "u "}, {"user_id": ""}, {"user_id": "1_u"}):
        assert await found(service, "secret", **other) == await found(service, "秘密", **other) == []
    await service.delete_memory(app_name="app", user_id="v", memory_id="e")
    assert await found(service, "secret") == ["a secret 秘密"]


@awaited
async def test_a_session_that_is_added_again_takes_the_place_of_what_was_kept(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("cat one"), event("cat two")))
    await service.add_session_to_memory(session(event("cat of another"), session_id="t"))

    await service.add_session_to_memory(session(event("cat two"), event("cat three")))

    assert sorted(await found(service, "cat")) == ["cat of another", "cat three", "cat two"]
    await service.add_session_to_memory(session(event("a dog now", key="cat two")))
    assert await found(service, "cat dog") == ["a dog now", "cat of another"]


@awaited
async def test_events_are_added_beside_and_each_only_once(service: BaseMemoryService):
    await service.add_events_to_memory(**U, events=[event("cat", key="1")], session_id="s")
    await service.add_events_to_memory(**U, events=[event("cat two", key="1"), event("cat three", key="3")])
    await service.add_events_to_memory(**U, events=[event("cat", key="1")], session_id="s")

    assert await found(service, "cat") == ["cat", "cat three"]


@awaited
async def test_metadata_is_kept_with_each_event(service: BaseMemoryService):
    metadata = {"source": "mail", "n": [1, {"x": None}]}
    await service.add_events_to_memory(**U, events=[event("cat"), event("cat two")], custom_metadata=metadata)
    metadata["source"] = "changed"

    assert [entry.custom_metadata["source"] for entry in await search(service, "cat")] == ["mail", "mail"]
    with pytest.raises(InputError, match="custom_metadata"):
        await service.add_events_to_memory(**U, events=[event("cat three")], custom_metadata={"x": object()})
    assert len(await found(service, "cat")) == 2


@awaited
async def test_a_deleted_memory_does_not_come_back_with_its_session(service: BaseMemoryService):
    whole = session(event("cat one", key="1"), event("cat two", key="2"))
    await service.add_session_to_memory(whole)
    [first, _] = await search(service, "cat")
    assert first.id == "1"

    await service.delete_memory(**U, memory_id="1")

    assert await found(service, "cat") == ["cat two"]
    await service.add_session_to_memory(whole)
    await service.add_events_to_memory(**U, events=whole.events)
    assert await found(service, "cat") == ["cat two"]


@awaited
async def test_single_memories_are_kept_as_they_are(service: BaseMemoryService):
    given = MemoryEntry(
        content=content("likes cats"), author="notes", timestamp="yesterday", custom_metadata={"sure": True}
    )
    await service.add_memory(**U, memories=[given], custom_metadata={"from": "a form", "sure": False})
    await service.add_memory(**U, memories=[MemoryEntry(content=content("has a cat, cats"))])

    first, second = await search(service, "cats")

    assert (first.author, first.timestamp, first.text) == ("notes", "yesterday", "likes cats")
    assert first.custom_metadata == {"from": "a form", "sure": True}
    assert first.id and second.id and first.id != second.id and given.id is None
    assert second.timestamp and second.author is None


@awaited
async def test_a_single_memory_takes_the_place_of_the_one_with_its_id_even_if_that_was_deleted(
    service: BaseMemoryService,
):
    await service.add_memory(**U, memories=[MemoryEntry(id="m", content=content("cat")), event_as_memory("cat too")])
    await service.add_memory(**U, memories=[MemoryEntry(id="m", content=content("cat, newer"))])
    assert await found(service, "cat") == ["cat, newer", "cat too"]

    await service.delete_memory(**U, memory_id="m")
    assert await found(service, "cat") == ["cat too"]
    await service.add_memory(**U, memories=[MemoryEntry(id="m", content=content("cat again"))])
    assert await found(service, "again") == ["cat again"]


def event_as_memory(text: str) -> MemoryEntry:
    return MemoryEntry(content=content(text))


@awaited
async def test_a_session_takes_nothing_away_that_was_not_its_own(service: BaseMemoryService):
    await service.add_memory(**U, memories=[MemoryEntry(id="m", content=content("cat of mine"))])
    await service.add_events_to_memory(**U, events=[event("cat of no session")])

    await service.add_session_to_memory(session(event("cat of s")))

    assert await found(service, "cat") == ["cat of mine", "cat of no session", "cat of s"]


@awaited
async def test_only_spoken_text_is_remembered(service: BaseMemoryService):
    parts = [types.Part(text="a cat", thought=True), types.Part(text="a dog"), types.Part(text="and a bird")]
    call = types.Part(function_call=types.FunctionCall(name="cat", args={"cat": "cat"}))
    picture = types.Part(inline_data=types.Blob(data=b"\x00\xff cat", mime_type="image/png"))
    await service.add_session_to_memory(
        session(
            Event(author="a", content=types.Content(role="model", parts=[*parts, picture])),
            Event(author="a", content=types.Content(role="model", parts=[call])),
            Event(author="a", content=types.Content(role="model", parts=parts[:1])),
            Event(author="a", content=types.Content(role="model")),
            Event(author="a"),
            event(" \n"),
        )
    )

    assert await found(service, "cat") == []
    [entry] = await search(service, "bird")
    assert entry.text == "a dog and a bird"
    assert entry.content.parts == [*parts, picture]


@pytest.mark.parametrize("at", [0.0, -1.0, 253_402_300_800.0, 1e30, float("inf")])
def test_any_time_can_be_formatted(service: BaseMemoryService, at: float):
    async def add() -> list[MemoryEntry]:
        await service.add_session_to_memory(session(event("cat", at=at)))
        return await search(service, "cat")

    [entry] = asyncio.run(add())
    assert entry.timestamp


@pytest.mark.parametrize(
    "text",
    [
        "a\x00b cat",
        "cat \ud800",
        "cat \U0001f408\u200d\U0001f469",
        "cat\u202e",
        "İ cat",
        "cat " * 50_000,
        "x" * 100_000 + " cat",
    ],
    ids=["nul", "half a character", "emoji", "bidi", "Turkish", "many", "long"],
)
def test_any_text_is_kept_and_found(service: BaseMemoryService, text: str):
    async def add() -> list[str]:
        await service.add_session_to_memory(session(event(text, key="k")))
        return await found(service, "cat")

    assert asyncio.run(add()) in ([text], [text.encode("utf-8", "replace").decode()])


@awaited
async def test_what_is_found_is_a_copy(service: BaseMemoryService):
    await service.add_session_to_memory(session(event("cat")))

    [entry] = await search(service, "cat")
    assert entry.content.parts
    entry.content.parts[0].text = "changed"

    assert await found(service, "cat") == ["cat"]


def test_threads_that_write_side_by_side_lose_nothing(service: BaseMemoryService):
    def many(who: int) -> None:
        async def adds() -> None:
            for turn in range(4):
                await service.add_events_to_memory(**U, events=[event(f"w{who} t{turn}")])

        asyncio.run(adds())

    threads = [threading.Thread(target=many, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    for who in range(4):
        assert asyncio.run(found(service, f"w{who}")) == [f"w{who} t{turn}" for turn in range(4)]


WORDS = st.text(alphabet=st.sampled_from("ab_1 éÉe\u0301猫犬İ\u0131ß-'\"*\x00\ud800"), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(WORDS, max_size=6), query=WORDS)
def test_a_search_finds_what_has_a_word_of_the_query(service: BaseMemoryService, texts: list[str], query: str):
    async def ask() -> list[str]:
        user = f"u{hash((tuple(texts), query))}"
        events = [event(text, key=str(number)) for number, text in enumerate(texts)]
        await service.add_session_to_memory(session(*events, user_id=user))
        return [entry.id or "" for entry in await search(service, query, user_id=user)]

    def folded(text: str) -> str:
        return unicodedata.normalize("NFC", text).lower().encode("utf-8", "replace").decode()

    def words_of(text: str) -> list[str]:
        return re.findall(r"[猫犬]+|[^\W猫犬]+", folded(text))

    asked: set[str] = set()
    for word in words_of(query):
        is_unspaced = word[0] in "猫犬" and len(word) > 1
        asked.update(word[at : at + 2] for at in range(len(word) - 1)) if is_unspaced else asked.add(word)
    scores: dict[str, int] = {}
    for number, text in enumerate(texts):
        words = set(words_of(text))
        scores[str(number)] = sum(w in words or (not w.isascii() and w in folded(text)) for w in asked)
    best_first = sorted(scores, key=lambda key: -scores[key])
    assert asyncio.run(ask()) == [key for key in best_first if scores[key]]
