"""What every session service promises. A new one is added to SERVICES, and to nothing else."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from adk_nb import types
from adk_nb.errors import AlreadyExistsError, ConfigurationError, InputError, SessionNotFoundError, StaleSessionError
from adk_nb.events import Event, EventActions
from adk_nb.runners import Runner
from adk_nb.sessions import (
    BaseSessionService,
    DatabaseSessionService,
    GetSessionConfig,
    InMemorySessionService,
    ListSessionsResponse,
    Session,
    SqliteSessionService,
)
from tests.support.talk import guide

SERVICES: dict[str, Callable[[Any], BaseSessionService]] = {
    "in memory": lambda folder: InMemorySessionService(),
    "sqlite": lambda folder: SqliteSessionService(folder / "nb.db"),
    "sqlite, full": lambda folder: SqliteSessionService(f"sqlite:///{folder}/nb.db", durability="full"),
    "database, its sqlite": lambda folder: DatabaseSessionService(f"sqlite:///{folder}/nb.db"),
    "database, URL of a driver": lambda folder: DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/nb.db"),
}
POSTGRES = {"postgres": "psycopg"}
"""Name -> driver. A server is started for them."""
S = {"app_name": "app", "user_id": "u", "session_id": "s"}


@pytest.fixture(params=[*SERVICES, *(pytest.param(name, marks=pytest.mark.postgres) for name in POSTGRES)])
def service(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[BaseSessionService]:
    if driver := POSTGRES.get(request.param):
        service: BaseSessionService = DatabaseSessionService(request.getfixturevalue("postgres").url(driver))
    else:
        service = SERVICES[request.param](tmp_path)
    yield service
    if isinstance(service, SqliteSessionService | DatabaseSessionService):
        asyncio.run(service.close())


def event(text: str = "hi", at: float = 1.0, **delta: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author="user", content=content, timestamp=at, actions=EventActions(state_delta=delta))


async def create(service: BaseSessionService, session_id: str = "s", user_id: str = "u", **state: Any) -> Session:
    return await service.create_session(app_name="app", user_id=user_id, session_id=session_id, state=state)


async def get(service: BaseSessionService, session_id: str = "s", user_id: str = "u", **config: Any) -> Session:
    limits = GetSessionConfig(**config) if config else None
    session = await service.get_session(app_name="app", user_id=user_id, session_id=session_id, config=limits)
    assert session is not None
    return session


def texts(session: Session) -> list[str]:
    return [event.text for event in session.events]


def awaited(test: Callable[[BaseSessionService], Any]) -> Callable[[BaseSessionService], None]:
    def run(service: BaseSessionService) -> None:
        asyncio.run(test(service))

    run.__name__ = test.__name__
    return run


@awaited
async def test_a_new_session_is_empty_and_found_again(service: BaseSessionService):
    built = await create(service, a=1)

    result = await get(service)

    assert (built.id, built.app_name, built.user_id, built.events, built.state) == ("s", "app", "u", [], {"a": 1})
    assert result == built


@awaited
async def test_an_id_is_stripped_and_made_when_blank(service: BaseSessionService):
    assert (await create(service, "  s2 ")).id == "s2"
    ids = {(await create(service, blank)).id for blank in ("", "  ")}
    unnamed = await service.create_session(app_name="app", user_id="u")

    assert len({*ids, unnamed.id}) == 3 and all({*ids, unnamed.id})


@awaited
async def test_a_second_session_of_one_id_is_refused(service: BaseSessionService):
    await create(service, a=1)

    with pytest.raises(AlreadyExistsError, match=r"'u' .* 'app' .* session 's' already"):
        await create(service, a=2)

    assert (await get(service)).state == {"a": 1}
    assert (await create(service, "s", user_id="another")).state == {}


@awaited
async def test_what_no_session_can_be_made_of_is_refused_and_nothing_is_kept(service: BaseSessionService):
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"user_id": None}, InputError, "the user_id of a session must be a str, got None"),
        ({"app_name": 5}, InputError, "the app_name of a session must be a str, got 5"),
        ({"session_id": ["s"]}, InputError, "the session_id of a session must be a str, got"),
        ({"session_id": "half \ud800"}, InputError, "the session_id of a session must be a str, got"),
        ({"state": [1]}, ConfigurationError, "a state must be a dict, got"),
        ({"state": {1: 1}}, ConfigurationError, "a state key must be a str, got 1"),
    ]
    for change, error, message in wrong:
        with pytest.raises(error, match=message):
            await service.create_session(**({**S, "state": None} | change))

    assert (await service.list_sessions(app_name="app")).sessions == []
    assert (await service.list_sessions(app_name=5)).sessions == []


CONTROLS = ["a\nb", "a\tb", "a\x00b", "\x1b[31m", "a\x7f", "a\x85b", "a\u2028b", "a\u2029b", "a\u202eb", "a\u2066b"]


@awaited
async def test_an_id_with_a_control_character_is_refused_and_nothing_is_kept(service: BaseSessionService):
    for id in CONTROLS:
        for field in ("app_name", "user_id", "session_id"):
            with pytest.raises(InputError, match=f"{field} .* control character"):
                await service.create_session(**(S | {field: id}))
            runner_options = {"app_name": "app", "agent": guide("never"), "session_service": service}
            with pytest.raises(InputError, match=f"{field} .* control character"):
                runner = Runner(**(runner_options | ({"app_name": id} if field == "app_name" else {})))
                ids = {key: value for key, value in (S | {field: id}).items() if key != "app_name"}
                async for _ in runner.run_async(**ids, new_message="Hi"):
                    pass
    assert (await service.list_sessions(app_name="app")).sessions == []
    for id in ("a b", "é", "日本", "👩‍👩‍👧", "a/b", "-x", "'"):
        assert (await create(service, id)).id == id


@awaited
async def test_a_missing_session_is_none(service: BaseSessionService):
    session = service.get_session(**S)
    assert await session is None


@awaited
async def test_an_appended_event_is_in_the_store_and_in_the_callers_session(service: BaseSessionService):
    session, hello = await create(service), event("hello", at=5.0, k=1)

    returned = await service.append_event(session, hello)

    assert returned is hello
    for stored_session in (session, await get(service)):
        assert (texts(stored_session), stored_session.state, stored_session.last_update_time) == (
            ["hello"],
            {"k": 1},
            5.0,
        )


@awaited
async def test_events_stand_in_the_order_they_were_appended(service: BaseSessionService):
    session = await create(service)
    for text in "abc":
        await service.append_event(session, event(text))

    assert texts(await get(service)) == ["a", "b", "c"]


@awaited
async def test_a_copy_does_not_see_later_events(service: BaseSessionService):
    session = await create(service, items=[1])
    previous = await get(service)

    await service.append_event(session, event(items=[1, 2]))

    assert (previous.events, previous.state) == ([], {"items": [1]})


@awaited
async def test_what_is_done_to_a_copy_does_not_reach_the_store(service: BaseSessionService):
    await create(service, items=[1])
    copy = await get(service)

    copy.state["items"].append(2)
    copy.state["new"] = 1
    copy.events.append(event())

    assert (await get(service)).state == {"items": [1]}
    assert (await get(service)).events == []


@awaited
async def test_an_appended_event_does_not_change_with_its_writers_list(service: BaseSessionService):
    session, own_numbers = await create(service), [1]
    await service.append_event(session, event(items=own_numbers))

    own_numbers.append(2)
    session.state["items"].append(3)

    stored = await get(service)
    assert stored.state == {"items": [1]}
    assert stored.events[0].actions.state_delta == session.events[0].actions.state_delta == {"items": [1]}


@awaited
async def test_an_event_appended_twice_is_kept_once(service: BaseSessionService):
    session, once = await create(service), event("once", n=1)
    await service.append_event(session, once)
    await service.append_event(session, event("between", n=2))

    await service.append_event(session, once)
    await service.append_event(session, Event.model_validate_json(once.model_dump_json()))

    assert texts(session) == texts(await get(service)) == ["once", "between"]
    assert session.state == (await get(service)).state == {"n": 2}


@awaited
async def test_a_partial_event_is_handed_back_and_not_kept(service: BaseSessionService):
    session, piece = await create(service), event("pie", k=1)
    piece.partial = True

    assert await service.append_event(session, piece) is piece

    for stored_session in (session, await get(service)):
        assert (stored_session.events, stored_session.state) == ([], {})


@awaited
async def test_a_key_reaches_as_far_as_its_prefix_says(service: BaseSessionService):
    own = await create(service, "mine")
    await create(service, "mine too")
    await create(service, "theirs", user_id="v")
    delta = {"own": 1, "user:name": "Ann", "app:motd": "hello", "temp:now": 3}

    await service.append_event(own, event(**delta))

    assert own.state == delta  # the run that wrote a temp: key goes on seeing it
    assert (await get(service, "mine")).state == {"own": 1, "user:name": "Ann", "app:motd": "hello"}
    assert (await get(service, "mine too")).state == {"user:name": "Ann", "app:motd": "hello"}
    assert (await get(service, "theirs", user_id="v")).state == {"app:motd": "hello"}
    other_app = await service.create_session(app_name="another", user_id="u")
    assert other_app.state == {}


@awaited
async def test_the_first_state_is_split_by_prefix_too(service: BaseSessionService):
    built = await create(service, **{"own": 1, "user:name": "Ann", "app:motd": "hello", "temp:now": 3})
    second = await create(service, "other")

    assert built.state == {"own": 1, "user:name": "Ann", "app:motd": "hello"}
    assert second.state == {"user:name": "Ann", "app:motd": "hello"}


@awaited
async def test_temp_keys_stand_in_no_stored_event(service: BaseSessionService):
    session = await create(service)

    await service.append_event(session, event(**{"temp:live": object(), "k": 1}))

    assert (await get(service)).events[0].actions.state_delta == {"k": 1}


@awaited
async def test_a_deletion_removes_a_key_of_every_reach_and_none_does_not(service: BaseSessionService):
    removed = {"__adk_deleted__": True}
    session = await create(service, **{"a": 1, "user:b": 2, "app:c": 3, "d": 4})

    await service.append_event(
        session, event(**{"a": removed, "user:b": removed, "app:c": removed, "d": None, "never": removed})
    )

    assert session.state == (await get(service)).state == {"d": None}


@awaited
async def test_the_state_of_a_user_is_readable_without_a_session(service: BaseSessionService):
    assert await service.get_user_state(app_name="app", user_id="u") == {}
    session = await create(service, **{"own": 1, "user:name": "Ann", "user:items": [1], "app:motd": "hello"})
    await service.append_event(session, event(**{"user:name": "Bo", "user:old": None}))
    await service.delete_session(**S)

    state = await service.get_user_state(app_name="app", user_id="u")
    assert state == {"name": "Bo", "items": [1], "old": None}
    state["items"].append(2)
    assert (await service.get_user_state(app_name="app", user_id="u"))["items"] == [1]
    assert await service.get_user_state(app_name="app", user_id="v") == {}


@awaited
async def test_what_was_flushed_is_in_the_store(service: BaseSessionService):
    session = await create(service)
    await service.append_event(session, event("hello"))

    assert await service.flush() is None

    assert texts(await get(service)) == ["hello"]


@awaited
async def test_a_key_that_only_looks_like_a_prefix_is_the_sessions_own(service: BaseSessionService):
    session = await create(service)
    await create(service, "another")
    odd = {"app": 1, "user": 2, "app:": 3, "User:x": 4, "users:x": 5, ":": 6, "": 7}

    await service.append_event(session, event(**odd))

    assert (await get(service)).state == odd
    assert (await get(service, "another")).state == {}


class Trip(BaseModel):
    city: str
    day: date


AS_JSON: list[tuple[Any, Any]] = [
    (datetime(2030, 1, 2, 3, 4, 5), "2030-01-02T03:04:05"),
    (datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2030-01-02T03:04:05.000006Z"),
    (timedelta(days=1, seconds=2), "P1DT2S"),
    (Trip(city="Ulm", day=date(2030, 1, 2)), {"city": "Ulm", "day": "2030-01-02"}),
    ({3}, [3]),
    ((1, "a", (2,)), [1, "a", [2]]),
    ({"deep": [{"day": date(2030, 1, 2)}, frozenset({1})]}, {"deep": [{"day": "2030-01-02"}, [1]]}),
    (Decimal("1.50"), "1.50"),
    (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (b"ab", "ab"),
]
"""Values of a state, and what google-adk 2.13 keeps of them in its SQLite store."""


@awaited
async def test_a_store_of_json_keeps_dates_models_sets_and_tuples_as_json(service: BaseSessionService):
    values = {f"k{index}": value for index, (value, _) in enumerate(AS_JSON)}
    kept = {f"k{index}": value for index, (_, value) in enumerate(AS_JSON)} if service.keeps_only_json else values
    session = await create(service)

    await service.append_event(session, event(**values))
    created = await create(service, "another", **{f"user:{key}": value for key, value in values.items()})

    stored = await get(service)
    assert {key: stored.state[key] for key in kept} == kept
    assert {key: stored.events[-1].actions.state_delta[key] for key in kept} == kept
    assert {key: created.state[f"user:{key}"] for key in kept} == kept


@awaited
async def test_state_that_is_not_json_is_refused_by_a_store_of_json_and_nothing_is_kept(service: BaseSessionService):
    if not service.keeps_only_json:
        return await any_object_is_kept(service)
    session = await create(service)

    with pytest.raises(ConfigurationError, match=r"state\['k'\] cannot hold an object"):
        await service.append_event(session, event(fine=1, k=object()))
    with pytest.raises(ConfigurationError, match=r"state\['user:k'\] cannot hold a set"):
        await create(service, "another", **{"user:k": {object()}})

    for stored_session in (session, await get(service)):
        assert (stored_session.events, stored_session.state) == ([], {})
    assert not await service.get_session(app_name="app", user_id="u", session_id="another")


async def any_object_is_kept(service: BaseSessionService) -> None:
    """As google-adk 2.13's in-memory service does."""
    moment, lock = datetime.now(), threading.Lock()
    session = await create(service, **{"now": moment})

    await service.append_event(session, event(lock=lock, found=[{"at": moment}, {1}]))

    session.state["found"].append("not written")
    want = {"now": moment, "lock": lock, "found": [{"at": moment}, {1}]}
    assert (await get(service)).state == want


@awaited
async def test_an_event_for_a_session_that_is_not_there_is_refused(service: BaseSessionService):
    session = await create(service)
    await create(service, "still here")
    await service.delete_session(**S)

    with pytest.raises(SessionNotFoundError, match="no session named 's'"):
        await service.append_event(session, event())


def test_an_event_for_another_users_session_is_refused_without_its_owner():
    service = InMemorySessionService()
    session = service.create_session(**S)

    with pytest.raises(SessionNotFoundError, match="user_id='v'") as raised:
        service.append_event(session.model_copy(update={"user_id": "v"}), event())
    assert "'u'" not in str(raised.value)


@awaited
async def test_a_deleted_session_is_gone_and_deleting_again_is_no_error(service: BaseSessionService):
    await create(service, **{"k": 1, "user:k": 1})

    await service.delete_session(**S)
    await service.delete_session(**S)

    assert await service.get_session(**S) is None
    assert (await create(service)).state == {"user:k": 1}


@awaited
async def test_sessions_are_listed_least_recently_used_first_without_events(service: BaseSessionService):
    for name in ("old", "young"):
        await service.append_event(await create(service, name, k=name), event(at=10.0))
    await service.append_event(await get(service, "old"), event(at=20.0))
    await service.append_event(await create(service, "theirs", user_id="v"), event(at=15.0))

    own_sessions = (await service.list_sessions(app_name="app", user_id="u")).sessions
    everyones = (await service.list_sessions(app_name="app")).sessions

    assert [(own_session.id, own_session.events, own_session.state["k"]) for own_session in own_sessions] == [
        ("young", [], "young"),
        ("old", [], "old"),
    ]
    assert [(everyone.user_id, everyone.id) for everyone in everyones] == [
        ("u", "young"),
        ("v", "theirs"),
        ("u", "old"),
    ]
    assert (await service.list_sessions(app_name="none")).sessions == []


@awaited
async def test_a_part_of_the_history_comes_with_the_whole_state(service: BaseSessionService):
    session = await create(service)
    for number in (1.0, 2.0, 3.0, 4.0):
        await service.append_event(session, event(str(number), at=number, **{f"k{number}": number}))

    assert texts(await get(service, num_recent_events=2)) == ["3.0", "4.0"]
    assert texts(await get(service, num_recent_events=0)) == []
    assert texts(await get(service, num_recent_events=99)) == ["1.0", "2.0", "3.0", "4.0"]
    assert texts(await get(service, after_timestamp=3.0)) == ["3.0", "4.0"]
    assert texts(await get(service, num_recent_events=3, after_timestamp=3.0)) == ["3.0", "4.0"]
    assert len((await get(service, num_recent_events=1)).state) == 4


@pytest.mark.parametrize(
    "wrong",
    [{"num_recent_events": -1}, {"num_recent_events": "few"}, {"after_timestamp": "then"}, {"recent_events": 1}],
)
def test_what_is_no_part_of_a_history_is_refused_by_its_name(wrong: dict[str, Any]):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        GetSessionConfig(**wrong)


@awaited
async def test_a_copy_is_current_until_something_else_is_stored(service: BaseSessionService):
    if type(service).is_current is BaseSessionService.is_current:
        return  # it cannot tell, and is read again each turn
    session = await create(service, k=1)
    assert await service.is_current(session)

    await service.append_event(session, event(k=2))
    assert await service.is_current(session)

    stale = await get(service)
    await service.append_event(session, event())
    assert not await service.is_current(stale)
    assert await service.is_current(session)

    if isinstance(service, InMemorySessionService):
        await service.append_event(stale, event())
    else:
        with pytest.raises(StaleSessionError, match=r"session 's' was changed .* session again"):
            await service.append_event(stale, event())
        await service.append_event(await get(service), event())
    assert not await service.is_current(session) and not await service.is_current(stale)


@awaited
async def test_a_copy_is_not_current_when_shared_state_changed(service: BaseSessionService):
    session, second, far = await create(service), await create(service, "other"), await create(service, "far", "v")

    await service.append_event(second, event(**{"user:k": 1}))
    assert not await service.is_current(session)

    session = await get(service)
    await service.append_event(far, event(**{"app:k": 1}))
    assert not await service.is_current(session)


@awaited
async def test_a_copy_is_not_current_when_someone_wrote_to_it_directly(service: BaseSessionService):
    await create(service, items=[1])
    for change in (
        lambda session: session.state.update(k=1),
        lambda session: session.state["items"].append(2),
        lambda session: session.events.append(event()),
    ):
        session = await get(service)
        change(session)
        assert not await service.is_current(session)


@awaited
async def test_a_session_made_anew_under_an_old_id_is_another(service: BaseSessionService):
    session = await create(service)
    await service.append_event(session, event("old"))
    await service.delete_session(**S)
    await service.append_event(await create(service), event("new"))

    assert not await service.is_current(session)


@awaited
async def test_many_writers_lose_nothing(service: BaseSessionService):
    await create(service)

    async def write(name: str) -> None:
        session = await get(service)
        for number in range(20):
            run_event = event(f"{name}{number}", **{f"{name}{number}": 1, "app:last": name})
            while True:
                try:
                    await service.append_event(session, run_event)
                    break
                except StaleSessionError:
                    session = await get(service)

    threads = [threading.Thread(target=lambda name=name: asyncio.run(write(name))) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # the test's own time limit ends what never ends

    stored = await get(service)
    assert len(stored.events) == 80
    assert len(stored.state) == 81
    for name in "abcd":
        assert [text for text in texts(stored) if text[0] == name] == [f"{name}{n}" for n in range(20)]


def test_the_in_memory_service_needs_no_await():
    service = InMemorySessionService()

    session = service.create_session(**S, state={"k": 1})
    service.append_event(session, event("hi", k=2))
    stored_session = service.get_session(**S)

    assert stored_session and texts(stored_session) == ["hi"] and stored_session.state == {"k": 2}
    assert [stored_session.id for stored_session in service.list_sessions(app_name="app", user_id="u").sessions] == [
        "s"
    ]
    service.delete_session(**S)
    missing = service.get_session(**S)
    assert not missing
    assert repr(missing) == "NoSession()"
    assert service.get_user_state(app_name="app", user_id="u") == {}


def test_a_service_written_for_google_adk_keeps_its_sessions():
    class Mine(BaseSessionService):
        def __init__(self) -> None:
            self.sessions: dict[str, Session] = {}

        async def create_session(self, *, app_name, user_id, state=None, session_id=None):
            session = Session(id=session_id or "s", app_name=app_name, user_id=user_id, state=state or {})
            return self.sessions.setdefault(session.id, session)

        async def get_session(self, *, app_name, user_id, session_id, config=None):
            return self.sessions.get(session_id)

        async def list_sessions(self, *, app_name, user_id=None):
            return ListSessionsResponse(sessions=list(self.sessions.values()))

        async def delete_session(self, *, app_name, user_id, session_id):
            self.sessions.pop(session_id, None)

        async def append_event(self, session: Session, event: Event) -> Event:
            return await super().append_event(session, event)

    async def use(service: BaseSessionService) -> Session:
        session = await service.create_session(**S)
        piece = event("pie", k=9)
        piece.partial = True
        await service.append_event(session, piece)
        await service.append_event(session, event("hi", at=3.0, **{"k": 1, "temp:t": 2}))
        await service.flush()
        with pytest.raises(NotImplementedError, match=r"Mine .*; read a session"):
            await service.get_user_state(app_name="app", user_id="u")
        return session

    session = asyncio.run(use(Mine()))
    assert (texts(session), session.state, session.last_update_time) == (["hi"], {"k": 1, "temp:t": 2}, 3.0)
    assert session.events[0].actions.state_delta == {"k": 1}

    runner = Runner(app_name="app", agent=guide("Hello."), session_service=Mine(), auto_create_session=True)
    messages = [item.text for item in runner.run(user_id="u", session_id="s", new_message="hi")]
    assert messages == ["Hello."]


class Delegating(BaseSessionService):
    """A store of one's own, with what the interface insists on alone."""

    keeps_only_json = True

    def __init__(self) -> None:
        self._kept = InMemorySessionService()

    async def create_session(self, **kwargs: Any) -> Session:
        return self._kept.create_session(**kwargs)

    async def get_session(self, **kwargs: Any) -> Any:
        return self._kept.get_session(**kwargs)

    async def list_sessions(self, **kwargs: Any) -> ListSessionsResponse:
        return self._kept.list_sessions(**kwargs)

    async def delete_session(self, **kwargs: Any) -> None:
        self._kept.delete_session(**kwargs)


def test_a_store_of_ones_own_uses_up_keys_of_its_sessions_alone():
    async def use(service: BaseSessionService) -> list[bool]:
        session = await service.create_session(**S)
        results = [await service.consume(session, "approval:1") for _ in range(2)]
        await service.delete_session(**S)
        results.append(await service.consume(session, "approval:2"))
        return [*results, await service.consume(await service.create_session(**S), "approval:1")]

    assert asyncio.run(use(Delegating())) == [True, False, False, True]


def test_a_store_of_json_shows_what_it_stores_and_keeps_temporary_values_live():
    async def use(service: BaseSessionService) -> tuple[Session, Event]:
        session = await service.create_session(**S)
        return session, await service.append_event(session, event("hi", **{"day": date(2026, 1, 2), "temp:t": {1}}))

    session, stored = asyncio.run(use(Delegating()))

    assert session.state == {"day": "2026-01-02", "temp:t": {1}}
    assert stored.actions.state_delta == {"day": "2026-01-02"}


def test_the_in_memory_service_has_google_adks_names_for_sync_code():
    service = InMemorySessionService()

    create_session_sync = service.create_session_sync(**S, state={"k": 1})

    assert service.get_session_sync(**S) == create_session_sync
    assert [session.id for session in service.list_sessions_sync(app_name="app", user_id="u").sessions] == ["s"]
    service.delete_session_sync(**S)
    assert service.get_session_sync(**S) is None


@awaited
async def test_an_id_that_another_event_of_the_session_has_is_refused(service: BaseSessionService):
    session, once = await create(service), event("once", 1.0, n=1)
    await service.append_event(session, once)
    await service.append_event(session, once.model_copy(update={"timestamp": 2.0}))  # as after a retry
    with pytest.raises(AlreadyExistsError, match=once.id):
        await service.append_event(session, event("twice", 1.0, n=2).model_copy(update={"id": once.id}))

    stored = await get(service)
    assert [event.text for event in stored.events] == ["once"] and stored.state == {"n": 1}
    assert session.state == {"n": 1}


@awaited
async def test_what_may_happen_once_happens_once_in_each_session(service: BaseSessionService):
    own, second = await create(service), await create(service, "other")
    foreign = await create(service, user_id="mallory")

    assert [await service.consume(own, "approval:1") for _ in range(3)] == [True, False, False]
    assert not await service.consume(await get(service), "approval:1")  # whoever reads the session anew
    assert await service.consume(own, "approval:2")
    assert await service.consume(second, "approval:1") and await service.consume(foreign, "approval:1")
    await service.delete_session(**S)
    assert not await service.consume(own, "approval:3")
    assert await service.consume(await create(service), "approval:1")


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.long)])
def test_of_many_that_ask_at_once_one_is_the_first(service: BaseSessionService, count: int):
    session, keys = asyncio.run(_made(service)), [f"approval:{number}" for number in range(count)]
    start, firsts = threading.Barrier(8, timeout=30), list[str]()

    async def ask() -> None:
        firsts.extend([key for key in keys if await service.consume(session, key)])

    def begin() -> None:
        start.wait()
        asyncio.run(ask())

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(firsts) == sorted(keys)


async def _made(service: BaseSessionService) -> Session:
    return await create(service)
