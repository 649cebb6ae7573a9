"""Through every door, on every session service: kept and given back equal, or refused before anything happens."""

import asyncio
import json
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.artifacts import FileArtifactService, InMemoryArtifactService
from adk_nb.errors import ConfigurationError, InputError, StorageError
from adk_nb.events import Event, EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models import call
from adk_nb.runners import Runner
from adk_nb.runtime.context import Context
from adk_nb.sessions import (
    BaseSessionService,
    DatabaseSessionService,
    InMemorySessionService,
    Session,
    SqliteSessionService,
    session_file,
)
from tests.sessions.test_session_services import POSTGRES, SERVICES
from tests.support.bad_input import HALVES, IDS, JSON, LONG, NESTED, NUMBERS, TEXTS, no_state, not_json
from tests.support.each import each
from tests.support.talk import guide
from tests.tools.test_tool_result import HOSTILE

SESSION_KEY: dict[str, Any] = {"user_id": "u", "session_id": "s"}
S: dict[str, Any] = {"app_name": "app", **SESSION_KEY}
STORE_KINDS = ["in memory", "sqlite", "database, its sqlite"]
SERVERS = ["postgres"]


class Store:
    """One place where sessions are kept, whoever opens it."""

    def __init__(self, make: Callable[[], BaseSessionService]) -> None:
        self._make = make

    @asynccontextmanager
    async def service(self) -> AsyncGenerator[BaseSessionService]:
        built = self._make()
        try:
            yield built
        finally:
            if isinstance(built, SqliteSessionService | DatabaseSessionService):
                await built.close()

    def use(self, use: Callable[[BaseSessionService], Awaitable[Any]]) -> Any:
        """What `use` gives, with a service of its own."""

        async def run() -> Any:
            async with self.service() as service:
                return await use(service)

        return asyncio.run(run())

    def read(self, **kwargs: Any) -> Session:
        """A session as another process finds it."""
        result = self.use(lambda service: service.get_session(**(S | kwargs)))
        assert result is not None
        return result


STORES = [*STORE_KINDS, *(pytest.param(name, marks=pytest.mark.postgres) for name in SERVERS)]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if driver := POSTGRES.get(request.param):
        url = request.getfixturevalue("postgres").url(driver)
        return Store(lambda: DatabaseSessionService(url))
    if request.param == "in memory":
        only = InMemorySessionService()
        return Store(lambda: only)
    return Store(lambda: SERVICES[request.param](tmp_path))


def stored_texts(events: list[Event]) -> list[str]:
    """Events as they are in every detail: == takes 1 for 1.0. What is of a tool's or a model's making, in its order."""
    whole = [json.dumps(json.loads(event.model_dump_json(by_alias=True)), sort_keys=True) for event in events]
    calls = [repr(call.args) for event in events for call in event.get_function_calls()]
    return whole + calls + [repr(response.response) for event in events for response in event.get_function_responses()]


async def turn(service: BaseSessionService, agent: Any, message: Any = "hi", **kwargs: Any) -> list[Event]:
    """One turn in session `s`, which is made if it is not there."""
    runner = Runner(
        app_name="app",
        agent=agent,
        session_service=service,
        artifact_service=kwargs.pop("artifacts", None),
        auto_create_session=True,
    )
    session_key = SESSION_KEY | {key: kwargs.pop(key) for key in SESSION_KEY if key in kwargs}
    return [event async for event in runner.run_async(**session_key, new_message=message, **kwargs)]


def test_what_a_user_says_is_kept_as_it_is(store: Store):
    texts = [*TEXTS.values(), *LONG.values()]

    async def say(service: BaseSessionService) -> None:
        agent = guide(*["ok"] * (len(TEXTS) + 2))
        for text in TEXTS.values():
            await turn(service, agent, text)
        await turn(service, agent, [types.Part(text=text) for text in texts])
        odd = types.Blob(data=bytes(range(256)), mime_type="a/b\x00\u202e", display_name="../\u0130")
        await turn(service, agent, types.Part(inline_data=odd))

    store.use(say)

    events = [event for event in store.read().events if event.author == "user"]
    assert [event.text for event in events[: len(TEXTS)]] == list(TEXTS.values())
    assert [part.text for part in events[-2].parts] == texts
    blob = events[-1].parts[0].inline_data
    assert blob and (blob.data, blob.mime_type, blob.display_name) == (
        bytes(range(256)),
        "a/b\x00\u202e",
        "../\u0130",
    )


def test_half_a_character_of_a_user_is_refused_before_anything_is_kept(store: Store):
    async def say(service: BaseSessionService) -> None:
        await service.create_session(**S)
        for half in HALVES.values():
            with pytest.raises(InputError, match="half a character"):
                await turn(service, guide("never"), half)

    store.use(say)
    assert store.read().events == []


def test_what_a_model_gives_a_tool_is_kept_as_the_tool_was_given_it_or_the_tool_is_not_called(store: Store):
    value: list[Any] = []

    def take(a: Any) -> str:
        """Takes."""
        value.append(a)
        return "ok"

    values = [*JSON.values(), *(value for value, _ in not_json().values())]
    calls = [call("take", a=value) for value in values]
    live = store.use(lambda service: turn(service, guide(calls, "Done.", tools=[take])))

    stored = store.read().events
    assert stored_texts(stored[1:]) == stored_texts(live)
    args = [call.args or {} for call in stored[1].get_function_calls()]
    responses = [response.response or {} for response in stored[2].get_function_responses()]
    assert repr([args["a"] for args in args[: len(JSON)]]) == repr([*JSON.values()])
    assert {*map(repr, JSON.values())} <= {*map(repr, value)}  # in threads, whose order is their own
    assert [response.get("result") for response in responses[: len(JSON)]] == ["ok"] * len(JSON)
    for (name, (_, reason)), answer in zip(not_json().items(), responses[len(JSON) :], strict=True):
        assert "take()" in answer["error"] and reason in answer["error"], name
    assert len(value) == len(JSON)


def test_what_a_tool_gives_is_the_same_live_as_another_process_finds_it(store: Store):
    makers: list[Callable[[], Any]] = [
        *(make for name, make in HOSTILE.items() if "frame" not in name),  # 20,000 columns take seconds
        *((lambda value=value: value) for value in [*JSON.values(), *HALVES.values()]),
        *((lambda value=value: value) for value, _ in not_json().values()),
    ]

    def give(number: int) -> Any:
        """Gives."""
        return makers[number]()

    calls = [call("give", number=number) for number in range(len(makers))]
    live = store.use(lambda service: turn(service, guide(calls, "Done.", tools=[give])))

    stored = store.read().events
    assert live[-1].text == "Done." and stored_texts(stored[1:]) == stored_texts(live)
    responses = [response.response or {} for response in stored[2].get_function_responses()]
    assert len(responses) == len(makers) and not any("error" in response for response in responses)
    assert all(json.loads(json.dumps(response, allow_nan=False)) == response for response in responses)


def test_what_is_written_to_the_state_is_there_for_all_whom_it_reaches(store: Store):
    first = {f"{reach}{text}": value for reach in ("", "user:", "app:") for text, value in TEXTS.items()}
    delta = {f"{reach}{text}": text for reach in ("", "user:", "app:") for text in TEXTS.values()}
    delta |= {f"{reach}{name}": value for reach in ("", "user:") for name, value in (NUMBERS | NESTED).items()}

    def write(tool_context: Context) -> str:
        """Writes."""
        for name, value in NESTED.items():
            tool_context.state[f"app:tool {name}"] = value
        return "ok"

    async def make(service: BaseSessionService) -> None:
        await service.create_session(**S, state=first)
        await turn(service, guide(call("write"), "Done.", tools=[write]), state_delta=delta)

    store.use(make)
    want = first | delta | {f"app:tool {name}": value for name, value in NESTED.items()}
    state = store.read().state
    assert {key: repr(value) for key, value in state.items()} == {key: repr(value) for key, value in want.items()}
    foreign = store.use(lambda service: service.get_user_state(app_name="app", user_id="u"))
    assert foreign == {key.removeprefix("user:"): value for key, value in want.items() if key[:5] == "user:" != key}


@pytest.mark.parametrize("store", [store for store in STORES if store != "in memory"], indirect=True)
def test_what_is_no_json_is_refused_where_it_is_written_to_the_state_with_its_reason(store: Store):
    texts: list[str] = []

    def write(tool_context: Context) -> str:
        """Writes."""
        for value, _ in no_state().values():
            try:
                tool_context.state["k"] = value
            except ConfigurationError as error:
                texts.append(str(error))
        return "ok"

    async def make(service: BaseSessionService) -> None:
        session = await service.create_session(**S)
        for value, reason in no_state().values():
            with pytest.raises(ConfigurationError, match=reason):
                await service.create_session(**(S | {"session_id": "another"}), state={"k": value})
            with pytest.raises(ConfigurationError, match=reason):
                await turn(service, guide("never"), state_delta={"user:k": value})
            with pytest.raises(ConfigurationError, match=reason):
                await service.append_event(session, Event(author="a", actions=EventActions(state_delta={"k": value})))
        for half in HALVES.values():
            with pytest.raises(ConfigurationError, match=r"\bstr\b"):
                await turn(service, guide("never"), state_delta={half: 1})
        assert session.events == []
        await turn(service, guide(call("write"), "Done.", tools=[write]))

    store.use(make)
    stored = store.read()
    assert stored.state == {} and len(stored.events) == 4
    for text, (_, reason) in zip(texts, no_state().values(), strict=True):
        assert "state['k'] cannot hold" in text and reason in text
    listed = store.use(lambda service: service.list_sessions(app_name="app")).sessions
    assert [item.id for item in listed] == ["s"]


def test_ids_are_kept_apart_as_they_are_or_refused_by_what_they_are(store: Store):
    ids = list(dict.fromkeys(IDS))

    async def make(service: BaseSessionService) -> list[tuple[str, str, str]]:
        built: list[tuple[str, str, str]] = []
        for number, id in enumerate(ids):
            for key in (("app", "u", id), ("app", id, "s"), (id, "u", "s")):
                app_name, user_id, session_id = key
                state = {"n": [number, *key]}
                try:
                    session = await service.create_session(
                        app_name=app_name, user_id=user_id, session_id=session_id, state=state
                    )
                except InputError as error:
                    name = next(name for name in ("session_id", "user_id", "app_name") if name in str(error))
                    assert name and ("a database" in str(error) or "control character" in str(error))
                    assert await service.get_session(app_name=app_name, user_id=user_id, session_id=session_id) is None
                    continue
                assert id in key and (id or session.id) in (session.id, session.user_id, session.app_name)
                built.append((session.app_name, session.user_id, session.id))
                await service.append_event(session, Event(author=id, id=f"e{number}", branch=id))
        return built

    built = store.use(make)
    assert len(set(built)) == len(built) > 2 * len(ids)

    async def look(service: BaseSessionService) -> None:
        for app_name, user_id, session_id in built:
            session = await service.get_session(app_name=app_name, user_id=user_id, session_id=session_id)
            assert session and (session.app_name, session.user_id, session.id) == (app_name, user_id, session_id)
            assert session.state["n"][1:] == [app_name, user_id, session_id] or session.state["n"][3] == ""
            assert len(session.events) == 1

    store.use(look)


def test_an_id_with_blanks_around_it_is_the_same_for_whoever_makes_and_finds_it(store: Store):
    async def talk(service: BaseSessionService) -> None:
        for session_id in (" s ", "s", "\ts\n"):
            await turn(service, guide("ok"), session_id=session_id)
        assert len((await service.list_sessions(app_name="app")).sessions) == 1
        session = await service.get_session(**(S | {"session_id": " s"}))
        assert session is not None and len(session.events) == 6
        await service.delete_session(**(S | {"session_id": "s "}))
        assert not await service.get_session(**S)

    store.use(talk)


@each("wrong", [*HALVES.values(), 5, b"s", ["s"]])
def test_what_is_no_id_is_refused_and_found_nowhere(store: Store, wrong: Any):
    async def make(service: BaseSessionService) -> None:
        for change in ({"session_id": wrong}, {"user_id": wrong}, {"app_name": wrong}):
            with pytest.raises(InputError, match=rf"the {next(iter(change))} .*\bstr, got"):
                await service.create_session(**(S | change))
        if not isinstance(wrong, list):  # which no dict holds
            with pytest.raises(InputError, match=r"session_id .*(text|str), got"):
                await turn(service, guide("never"), session_id=wrong)
        assert (await service.list_sessions(app_name="app")).sessions == []

    store.use(make)


@pytest.mark.parametrize("on_disk", [False, True], ids=["in memory", "in files"])
def test_a_file_name_is_kept_as_it_is_or_the_tool_hears_why_not(store: Store, on_disk: bool, tmp_path: Path):
    names = [*TEXTS.values(), *HALVES.values(), "user:a.txt", "a/b.txt", "x" * 300, "é" * 127]
    artifacts = FileArtifactService(tmp_path / "files") if on_disk else InMemoryArtifactService()

    async def save(name: str, tool_context: Context) -> str:
        """Saves."""
        version = await tool_context.save_artifact(names[int(name)], types.Part(text="x"))
        return f"version {version}"

    calls = [call("save", name=str(number)) for number in range(len(names))]
    agent = guide(calls, "Done.", tools=[save])
    live = store.use(lambda service: turn(service, agent, artifacts=artifacts))

    stored = store.read().events
    assert stored_texts(stored[1:]) == stored_texts(live)
    responses = [response.response or {} for response in stored[2].get_function_responses()]
    stored_names = {name for name, answer in zip(names, responses, strict=True) if answer == {"result": "version 0"}}
    assert all(answer.get("error", "").startswith("InputError: ") for answer in responses if "result" not in answer)
    one_spelling = {unicodedata.normalize("NFC", name) for name in stored_names}
    assert set(stored[2].actions.artifact_delta) == one_spelling and {"user:a.txt", "a/b.txt"} <= stored_names
    assert not any(half in stored_names for half in HALVES.values())


def test_what_a_model_says_is_kept_as_it_was_heard(store: Store):
    def take() -> str:
        """Takes."""
        return "ok"

    odd = [types.FunctionCall(id=text * 20 or None, name=text or "x", args={}) for text in [*TEXTS.values(), "take"]]
    odd += [types.FunctionCall(id="same", name="take", args=None), types.FunctionCall(id="same", name="take", args={})]
    odd += [
        types.FunctionCall(id="k" * 10_000, name="take", args={}),
        types.FunctionCall(name="adk_request_confirmation"),
    ]
    parts = [types.Part(text=text) for text in TEXTS.values()]
    parts += [types.Part(function_call=item) for item in odd]
    answers: list[Any] = [parts, *HALVES.values(), *TEXTS.values()]

    async def talk(service: BaseSessionService) -> list[Event]:
        agent = guide(*answers, tools=[take])
        return [event for _ in range(len(answers) - 1) for event in await turn(service, agent)]

    live = store.use(talk)
    stored = [event for event in store.read().events if event.author != "user"]
    assert stored_texts(stored) == stored_texts(live)
    assert [event.text for event in live[-len(TEXTS) :]] == list(TEXTS.values())


def test_the_time_of_an_event_is_what_it_said_and_nothing_is_made_of_its_order(store: Store):
    times = [0.0, -0.0, -1.0, 253402300800.0, 1e300, -1e300, 5e-324, 1.0, *[7.25] * 20, 3, 2**70]

    async def write(service: BaseSessionService) -> None:
        session = await service.create_session(**S)
        for number, time in enumerate(times):
            event = Event(author="a", id=f"e{number}")
            event.timestamp = time
            await service.append_event(session, event)
        if not isinstance(service, InMemorySessionService):
            for wrong in (float("nan"), float("inf"), 10**400, "now", None):
                event = Event(author="a")
                event.timestamp = wrong  # pyright: ignore[reportAttributeAccessIssue]
                with pytest.raises(InputError, match="its timestamp is"):
                    await service.append_event(session, event)

    store.use(write)
    text = store.read()
    assert [event.timestamp for event in text.events] == times
    assert [event.id for event in text.events] == [f"e{number}" for number in range(len(times))]
    assert text.last_update_time == times[-1]


def test_what_no_store_gives_back_equal_is_refused_wherever_in_an_event_it_is(store: Store):
    def places(value: Any) -> list[Event]:
        def acts(**fields: Any) -> Event:
            return Event(author="a", actions=EventActions.model_construct(**(EventActions().__dict__ | fields)))

        request = ToolConfirmation.model_construct(hint="", confirmed=False, payload=value)
        part = types.Part.model_construct(function_call=types.FunctionCall.model_construct(name="f", args={"a": value}))
        answer = types.Part.model_construct(
            function_response=types.FunctionResponse.model_construct(name="f", response={"a": value})
        )
        meta = types.Part(text="x", part_metadata={"a": value})
        return [
            Event(author="a", output=value),
            Event(author="a", custom_metadata={"a": value}),
            acts(agent_state={"a": value}),
            acts(set_model_response=[value]),
            acts(route=[value]),
            acts(requested_tool_confirmations={"c": request}),
            *(Event(author="a", content=types.Content(role="model", parts=[item])) for item in (part, answer, meta)),
        ]

    async def write(service: BaseSessionService) -> None:
        session = await service.create_session(**S)
        if isinstance(service, InMemorySessionService):
            return  # it keeps the event itself
        for name, (value, reason) in not_json().items():
            for number, event in enumerate(places(value)):
                with pytest.raises(InputError, match=f"event of 'a' .*: .*{reason}"):
                    await service.append_event(session, event)
                    pytest.fail(f"{name} {number}")
        assert session.events == []

    store.use(write)
    assert store.read().events == []


@pytest.mark.parametrize("name", [*HALVES.values(), "", " ", "a\x00b", "~nobody-of-that-name/x", "x" * 300, "."])
def test_a_path_that_is_none_is_refused_and_nothing_is_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="a file name"):
        session_file.read(name)
    with pytest.raises(InputError, match="a file name"):
        session_file.write(Session(id="s"), name)
    with pytest.raises((InputError, StorageError), match=r"file path|read or written"):
        Store(lambda: SqliteSessionService(name or "sqlite:///")).use(lambda service: service.create_session(**S))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*(text for text in TEXTS.values() if text.strip() and text.isprintable()), "\u202e"])
def test_a_saved_session_is_read_back_equal_from_any_file(name: str, tmp_path: Path):
    path = tmp_path / (name.replace("/", "_")[:120] + ".json")
    state = {f"{reach}{key}": value for reach in ("", "user:", "app:") for key, value in JSON.items()}
    parts = [types.Part(text=text) for text in TEXTS.values()]
    event = Event(author="a", content=types.Content(role="user", parts=parts), output=JSON)
    session = Session(id=name, state=state | {"temp:x": object()}, events=[event])

    session_file.write(session, path)

    loaded = session_file.read(path)
    assert (loaded.name, repr(loaded.state)) == (name, repr(state)) and stored_texts(loaded.events) == stored_texts(
        [event]
    )
    assert repr(loaded.events[0].output) == repr(JSON)


def test_what_no_file_gives_back_equal_is_not_saved_and_the_file_stays_as_it_was(tmp_path: Path):
    path = tmp_path / "s.json"
    session_file.write(Session(id="s", state={"k": 1}), path)
    earlier_data = path.read_bytes()
    for value, reason in not_json().values():
        with pytest.raises(InputError, match=f"'s' .*: event 1: output .*{reason}"):
            session_file.write(Session(id="s", events=[Event(author="a", output=value)]), path)
    for value, reason in no_state().values():
        with pytest.raises(ConfigurationError, match=reason):
            session_file.write(Session(id="s", state={"k": value}), path)
    for half in HALVES.values():
        with pytest.raises(InputError, match=r"cannot be saved: .*half a character"):
            session_file.write(Session(id="s", events=[Event(author=half)]), path)
    assert path.read_bytes() == earlier_data
