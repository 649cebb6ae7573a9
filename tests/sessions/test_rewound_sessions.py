"""Rewind and fork, the same in every session service: history is only added to, and a copy is a session of its own."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import parts, types
from adk_nb.agents import LlmAgent
from adk_nb.artifacts import InMemoryArtifactService
from adk_nb.errors import AlreadyExistsError, InputError, SessionNotFoundError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import answer
from adk_nb.sessions import BaseSessionService, DatabaseSessionService, Session, SqliteSessionService, session_file
from adk_nb.tools import FunctionTool, ToolContext
from tests.sessions.test_session_services import SERVICES
from tests.support.talk import content_summaries

S: dict[str, Any] = {"app_name": "app", "user_id": "u"}


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[BaseSessionService]:
    built = SERVICES[request.param](tmp_path)
    yield built
    if isinstance(built, SqliteSessionService | DatabaseSessionService):
        asyncio.run(built.close())


async def note(tool_context: ToolContext, text: str) -> str:
    """Notes."""
    tool_context.state.update({"text": text, "user:last": text})
    await tool_context.save_artifact("note.txt", types.Part(text=text))
    return "noted"


async def noting(service: BaseSessionService) -> tuple[Runner, ScriptedLlm]:
    """A session in which `one` and then `two` was noted."""
    model = ScriptedLlm(call("note", text="one"), "1", call("note", text="two"), "2", "again")
    agent = LlmAgent(name="guide", model=model, tools=[note])
    artifacts = InMemoryArtifactService()
    runner = Runner(app_name="app", agent=agent, session_service=service, artifact_service=artifacts)
    await service.create_session(**S, session_id="s", state={"given": 1})
    await say(runner, "first")
    await say(runner, "second")
    return runner, model


async def say(runner: Runner, text: str | types.Content, session_id: str = "s") -> list[Event]:
    return [event async for event in runner.run_async(user_id="u", session_id=session_id, new_message=text)]


async def stored(runner: Runner, session_id: str = "s") -> Session:
    session = await runner.session_service.get_session(**S, session_id=session_id)
    assert session
    return session


async def note_of(runner: Runner, session_id: str, version: int | None = None) -> str | None:
    assert runner.artifact_service
    session_key = {**S, "session_id": session_id}
    part = await runner.artifact_service.load_artifact(**session_key, filename="note.txt", version=version)
    return part and part.text


def ids(session: Session) -> list[str]:
    return [event.id for event in session.events]


def test_what_is_undone_stays_in_the_session_and_the_next_turn_does_not_see_it(service: BaseSessionService):
    async def use() -> None:
        runner, model = await noting(service)
        earlier_session = await stored(runner)
        second = next(event for event in earlier_session.events if event.text == "second")

        await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=second.invocation_id)

        later_session = await stored(runner)
        assert ids(later_session)[:-1] == ids(earlier_session)
        assert later_session.state == {"given": 1, "text": "one", "user:last": "two"}
        assert await note_of(runner, "s") == "one"
        await say(runner, "third")
        assert [text for _, text in content_summaries(model.requests[-1].contents)] == [
            "first",
            "calls note({'text': 'one'})",
            "answers {'result': 'noted'}",
            "1",
            "third",
        ]

    asyncio.run(use())


def count(tool_context: ToolContext) -> str:
    """Counts, in a number, and in a list that is changed in place."""
    tool_context.state["count"] = tool_context.state["count"] + 1
    tool_context.state["list"].append("more")
    return "counted"


async def counting(service: BaseSessionService) -> tuple[Runner, ScriptedLlm]:
    """Two turns that change what the session was created with."""
    model = ScriptedLlm(call("count"), "one", call("count"), "two", "three")
    agent = LlmAgent(name="guide", model=model, instruction="At {count}.", tools=[count], output_key="answer")
    runner = Runner(app_name="app", agent=agent, session_service=service)
    await service.create_session(**S, session_id="s", state=CREATED)
    await say(runner, "first")
    await say(runner, "second")
    return runner, model


CREATED: dict[str, Any] = {"count": 5, "list": ["given"], "answer": "none yet"}


@pytest.mark.parametrize("undone", ["first", "second"])
def test_a_rewind_brings_back_the_state_that_the_session_was_created_with(service: BaseSessionService, undone: str):
    async def use() -> None:
        runner, model = await counting(service)
        event = next(event for event in (await stored(runner)).events if event.text == undone)

        await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=event.invocation_id)

        after_one = {"count": 6, "list": ["given", "more"], "answer": "one"}
        expected = CREATED if undone == "first" else after_one
        assert (await stored(runner)).state == expected
        await say(runner, "third")
        assert f"At {expected['count']}." in str(model.requests[-1].config.system_instruction)

    asyncio.run(use())


@pytest.mark.parametrize("way", ["fork at an event", "fork of all", "file"])
def test_a_copy_of_a_session_knows_the_state_that_the_first_was_created_with(
    service: BaseSessionService, way: str, tmp_path: Any
):
    async def use() -> None:
        runner, _ = await counting(service)
        session = await stored(runner)
        first = session.events[0]
        if way == "file":
            session_file.write(session, tmp_path / "s.json")
            await session_file.read(tmp_path / "s.json").put(service, **S, session_id="f")
        else:
            at = first.id if way == "fork at an event" else None
            await runner.fork_async(user_id="u", session_id="s", new_session_id="f", at_event_id=at)
        assert (await stored(runner, "f")).state == (CREATED if way == "fork at an event" else session.state)

        await runner.rewind_async(user_id="u", session_id="f", rewind_before_invocation_id=first.invocation_id)

        assert (await stored(runner, "f")).state == CREATED

    asyncio.run(use())


def test_a_fork_is_a_session_of_its_own_with_state_and_files_as_they_were_then(service: BaseSessionService):
    async def use() -> None:
        runner, model = await noting(service)
        earlier_session = await stored(runner)
        event = next(event for event in earlier_session.events if event.text == "1")

        count = await runner.fork_async(user_id="u", session_id="s", new_session_id="f", at_event_id=event.id)

        copy = await stored(runner, "f")
        assert ids(copy) == ids(earlier_session)[:count] and copy.events[-1].text == "1"
        assert copy.state == {"given": 1, "text": "one", "user:last": "two"}  # the user's keys are of all sessions
        assert (await note_of(runner, "f"), await note_of(runner, "s")) == ("one", "two")
        await say(runner, "third", "f")
        assert [text for _, text in content_summaries(model.requests[-1].contents)][-2:] == ["1", "third"]
        assert await stored(runner) == earlier_session

    asyncio.run(use())


def test_a_fork_of_all_has_the_versions_of_the_files_and_can_be_rewound_by_itself(service: BaseSessionService):
    async def use() -> None:
        runner, _ = await noting(service)
        earlier_session = await stored(runner)
        await runner.fork_async(user_id="u", session_id="s", new_session_id="f")
        assert [await note_of(runner, "f", version) for version in (0, 1)] == ["one", "two"]

        second = next(event for event in earlier_session.events if event.text == "second")
        await runner.rewind_async(user_id="u", session_id="f", rewind_before_invocation_id=second.invocation_id)

        assert (await stored(runner, "f")).state["text"] == "one"
        assert (await note_of(runner, "f"), await note_of(runner, "s")) == ("one", "two")
        assert await stored(runner) == earlier_session

    asyncio.run(use())


def test_a_fork_of_what_there_is_not_or_over_another_session_makes_nothing(service: BaseSessionService):
    async def use() -> None:
        runner, _ = await noting(service)
        with pytest.raises(InputError, match="session 's' has no event 'none'"):
            await runner.fork_async(user_id="u", session_id="s", new_session_id="f", at_event_id="none")
        with pytest.raises(SessionNotFoundError):
            await runner.fork_async(user_id="u", session_id="none", new_session_id="f")
        with pytest.raises(AlreadyExistsError):
            await runner.fork_async(user_id="u", session_id="s", new_session_id="s")
        assert [session.id for session in (await service.list_sessions(**S)).sessions] == ["s"]

    asyncio.run(use())


def test_an_answer_that_was_undone_can_be_given_again_and_the_tool_does_not_run_again(service: BaseSessionService):
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    async def use() -> None:
        model = ScriptedLlm(call("pay", amount=5), "Done.", "Done again.")
        agent = LlmAgent(name="guide", model=model, tools=[FunctionTool(pay, require_confirmation=True)])
        runner = Runner(app_name="app", agent=agent, session_service=service)
        await service.create_session(**S, session_id="s")
        await say(runner, "pay 5")
        [request] = open_interrupts((await stored(runner)).events)
        yes = types.Content(role="user", parts=[answer(request, True)])

        await say(runner, yes)
        undone = (await stored(runner)).events[-1].invocation_id
        await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=undone)
        await say(runner, yes)

        assert paid == [5]

    asyncio.run(use())


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_an_approval_can_be_answered_again_once_its_answer_is_undone(
    service: BaseSessionService, first: bool, second: bool
):
    texts: list[str] = []

    def pay(tool_context: ToolContext) -> str:
        """Pays."""
        texts.append("paid")
        tool_context.state["paid"] = True
        return "paid"

    async def use() -> None:
        tool = FunctionTool(pay, require_confirmation=True)
        model = ScriptedLlm(call("pay"), "first", "second")
        agent = LlmAgent(name="guide", model=model, tools=[tool])
        runner = Runner(agent=agent, app_name="app", session_service=service, auto_create_session=True)
        await say(runner, "pay")
        [interrupt] = open_interrupts((await stored(runner)).events)

        async def decide(confirmed: bool) -> list[Event]:
            part = parts.result(interrupt.id, "adk_request_confirmation", {"confirmed": confirmed})
            return await say(runner, parts.content("user", [part]))

        run = (await decide(first))[0].invocation_id
        await runner.rewind_async(user_id="u", session_id="s", rewind_before_invocation_id=run)
        assert "paid" not in (await stored(runner)).state
        assert (await decide(second))[-1].text == "second"

        is_paid = first or second  # a call that was made is not made again, nor is it taken back
        assert texts == ["paid"] * is_paid
        assert (await stored(runner)).state == ({"paid": True} if is_paid else {})
        assert ("answers {'result': 'paid'}" in str(content_summaries(model.requests[-1].contents))) == is_paid
        assert open_interrupts((await stored(runner)).events) == []

    asyncio.run(use())
