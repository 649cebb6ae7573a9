"""The front door: what a message finds, what it may be, what is raised, and what sync code sees."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import sync, types
from adk_nb.agents import BaseAgent, InvocationContext, RunConfig
from adk_nb.errors import ConfigurationError, InputError, SessionNotFoundError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.runners import InMemoryRunner, Runner
from adk_nb.runtime.context import Context
from adk_nb.sessions import BaseSessionService, InMemorySessionService, SqliteSessionService
from tests.support.talk import SESSION_KEY, Talk, authors, guide, look, requests, summaries


def test_a_runner_needs_the_name_of_its_app():
    with pytest.raises(ConfigurationError, match="app_name="):
        Runner(app_name="", agent=guide(), session_service=InMemorySessionService())


def test_a_missing_session_is_told_with_the_way_to_make_it():
    talk = Talk(guide())

    assert talk.say(session_id="x") == []
    assert isinstance(talk.error, SessionNotFoundError)
    assert "'x'" in str(talk.error) and ": s;" in str(talk.error)
    assert "create_session(app_name='app'" in str(talk.error) and "user_id=" in str(talk.error)


def test_a_missing_session_names_the_users_own_sessions_and_nobody_elses():
    talk = Talk(guide())
    talk.open("secret-plan", user_id="w")
    talk.open("plan", user_id="v")

    talk.say(user_id="v", session_id="secret-plans")
    of_another = str(talk.error)
    talk.say(user_id="v", session_id="plam")

    assert "secret-plan'" not in of_another and "'w'" not in of_another and "'u'" not in of_another
    assert "there is: plan" in of_another and "user_id='v'" in of_another
    assert "mean 'plan'?" in str(talk.error)


def test_a_missing_session_is_made_where_that_is_wanted():
    runner = InMemoryRunner(guide("hello", "again"), auto_create_session=True)

    for _ in range(2):
        list(runner.run(user_id="u", session_id="new", new_message="hi"))

    stored = runner.session_service.get_session(app_name="InMemoryRunner", user_id="u", session_id="new")
    assert len(stored.events) == 4


class Elsewhere(BaseSessionService):
    """A service written with coroutines, as for google-adk; it cannot tell whether a copy is current."""

    def __init__(self) -> None:
        self.inner = InMemorySessionService()

    async def create_session(self, **said: Any) -> Any:
        return await self.inner.create_session(**said)

    async def get_session(self, **said: Any) -> Any:
        return await self.inner.get_session(**said)

    async def list_sessions(self, **said: Any) -> Any:
        return await self.inner.list_sessions(**said)

    async def delete_session(self, **said: Any) -> None:
        await self.inner.delete_session(**said)

    async def append_event(self, session: Any, event: Event) -> Event:
        await asyncio.sleep(0)
        return await self.inner.append_event(session, event)


def test_a_service_of_coroutines_serves_as_well():
    agent = guide(call("look"), "seen it", "again", tools=[look])
    service = Elsewhere()
    runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)

    events = [*runner.run(**SESSION_KEY, new_message="hi"), *runner.run(**SESSION_KEY, new_message="more")]

    assert [what for _, what in summaries(events)] == [
        "calls look({})",
        "answers {'result': 'seen'}",
        "seen it .",
        "again .",
    ]
    assert len(requests(agent)[-1]) == 5
    with pytest.raises(SessionNotFoundError):
        list(Runner(app_name="app", agent=agent, session_service=Elsewhere()).run(**SESSION_KEY, new_message="hi"))


def test_a_message_may_be_words_parts_a_content_or_nothing():
    agent = guide(*"abcd")
    talk = Talk(agent)

    for message in ("words", [types.Part(text="part")], types.Content(parts=[types.Part(text="content")]), None):
        talk.say(message)

    assert [one for one in requests(agent)[-1] if one[0] == "user"] == [
        ("user", "words"),
        ("user", "part"),
        ("user", "content"),
    ]
    assert authors(talk) == ["user", "guide"] * 4


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([call("look")], "cannot call functions"),
        (
            [
                types.Part(text="hi"),
                types.Part(function_response=types.FunctionResponse(id="1", name="f", response={})),
            ],
            "function responses … not both",
        ),
        (
            [types.Part(function_response=types.FunctionResponse(id="1", name="f", response={}))],
            "response '1' … no call … 's'",
        ),
        (5, "types.Content … types.Part, got 5"),
    ],
)
def test_a_message_that_cannot_be_is_refused_and_nothing_is_stored(parts: Any, said: str):
    talk = Talk(guide("hello"))

    assert talk.say(parts) == []
    assert isinstance(talk.error, InputError) and mentions(talk.error, said)
    assert talk.stored().events == []


def test_state_given_with_the_message_is_written_with_it():
    talk = Talk(guide("hello", instruction="For {name}."))

    talk.say("hi", state_delta={"name": "Ann", "user:seen": True})

    assert talk.stored().events[0].actions.state_delta == {"name": "Ann", "user:seen": True}
    assert talk.stored().state == {"name": "Ann", "user:seen": True}


def test_state_that_a_store_cannot_keep_is_refused_with_the_message_and_nothing_is_stored(tmp_path: Path):
    talk = Talk(guide("hello"))
    service = SqliteSessionService(tmp_path / "nb.db")
    talk.service = talk.runner.session_service = service
    talk.open("s")

    assert talk.say("hi", state_delta={"who": object()}) == []
    assert isinstance(talk.error, ConfigurationError) and "state['who']" in str(talk.error)
    assert talk.stored().events == []
    sync.run(service.close())


def test_state_that_is_not_json_is_kept_in_memory_from_a_tool_to_the_next_turn():
    moment = datetime.now()

    def look_at_the_clock(tool_context: Context) -> str:
        """Looks."""
        tool_context.state["now"] = moment
        return "ok"

    talk = Talk(guide(call("look_at_the_clock"), "Done.", "Still here.", tools=[look_at_the_clock]))
    talk.say()
    talk.say(state_delta={"seen": {moment}})

    assert talk.error is None
    assert talk.stored().state == {"now": moment, "seen": {moment}}
    assert talk.stored().events[2].model_dump(mode="json")["actions"]["state_delta"] == {"now": moment.isoformat()}


def test_the_users_event_comes_first_where_it_is_wanted_and_is_history_by_then():
    talk = Talk(guide("hello"))
    stored: list[int] = []

    async def watch() -> list[Event]:
        events: list[Event] = []
        async for event in talk.runner.run_async(**SESSION_KEY, new_message="hi", yield_user_message=True):
            events.append(event)
            session = await talk.service.get_session(app_name="app", **SESSION_KEY)
            stored.append(len(session.events))
        return events

    events = asyncio.run(watch())

    assert summaries(events) == [("user", "hi ."), ("guide", "hello .")]
    assert stored == [1, 2]
    assert events[0].invocation_id == events[1].invocation_id != ""


def test_what_a_model_raises_is_an_event_and_then_raised():
    talk = Talk(guide(RuntimeError("the line is dead"), "back again"))

    events = talk.say("hi")

    assert summaries(events) == [("guide", "failed RuntimeError")]
    assert events[0].error_message == "the line is dead"
    assert isinstance(talk.error, RuntimeError)
    assert talk.stored().events[-1] == events[0]
    assert summaries(talk.say("still there?")) == [("guide", "back again .")]


def test_a_missing_key_of_the_instruction_is_an_event_and_then_raised():
    talk = Talk(guide("never", "hello Ann", instruction="For {name}."))

    events = talk.say("hi")

    assert summaries(events) == [("guide", "failed KeyError")]
    assert str(talk.error) == events[0].error_message
    assert "`name`" in str(talk.error) and "'guide'" in str(talk.error)
    assert summaries(talk.say("hi", state_delta={"name": "Ann"})) == [("guide", "never .")]


def test_what_goes_wrong_in_the_reader_is_not_the_runs_error():
    talk = Talk(guide("hello"))

    async def read() -> None:
        async with aclosing(talk.runner.run_async(**SESSION_KEY, new_message="hi")) as events:
            async for _ in events:
                raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        asyncio.run(read())
    assert authors(talk) == ["user", "guide"]


class Says(BaseAgent):
    """Says what it is given."""

    events: list[Event]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for event in self.events:
            yield event


def test_an_agent_in_code_needs_no_model_and_its_events_get_the_runs_id():
    said = [Event(author="coder", message="one", state={"k": 1}), Event(author="coder", message="piece", partial=True)]
    talk = Talk(Says(name="coder", events=said))

    events = talk.say()

    assert summaries(events) == [("coder", "one => {'k': 1} ."), ("coder", "piece...")]
    assert {event.invocation_id for event in events} == {talk.stored().events[0].invocation_id}
    assert talk.stored().state == {"k": 1}
    assert authors(talk) == ["user", "coder"]


def test_an_agent_in_code_that_says_nothing_of_what_it_does_is_told_so():
    talk = Talk(BaseAgent(name="idle"))

    talk.say()

    assert isinstance(talk.error, NotImplementedError) and "_run_async_impl" in str(talk.error)


def test_run_works_inside_a_running_loop():
    talk = Talk(guide("hello"))

    async def cell() -> list[Event]:
        return list(talk.runner.run(**SESSION_KEY, new_message="hi"))

    assert summaries(asyncio.run(cell())) == [("guide", "hello .")]


def test_sync_tools_run_in_the_callers_thread():
    threads: list[threading.Thread] = []

    def where() -> str:
        """Where am I?"""
        threads.append(threading.current_thread())
        return "here"

    talk = Talk(guide(call("where"), "done", tools=[where]))
    list(talk.runner.run(**SESSION_KEY, new_message="hi"))

    assert threads == [threading.current_thread()]


def test_an_error_reaches_sync_code_after_its_event():
    talk = Talk(guide(RuntimeError("dead")))
    events: list[Event] = []

    with pytest.raises(RuntimeError, match="dead"):
        for event in talk.runner.run(**SESSION_KEY, new_message="hi", run_config=RunConfig()):
            events.append(event)  # noqa: PERF402  # kept up to the error

    assert summaries(events) == [("guide", "failed RuntimeError")]
