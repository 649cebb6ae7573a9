"""One run at a time works on a session that is kept in a file, and what it begins is noted before it happens."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import SequentialAgent
from adk_nb.apps import App, ResumabilityConfig
from adk_nb.errors import ConfigurationError, SessionBusyError, StaleSessionError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.notebook.view.rows import row_text, rows_of
from adk_nb.runners import Runner
from adk_nb.runtime import approvals, session_lease
from adk_nb.runtime.approvals import IN_DOUBT
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.sessions import InMemorySessionService, Session, SqliteSessionService
from adk_nb.sessions.journal import LEASE_SECONDS
from adk_nb.tools import FunctionTool, ToolContext, tool
from tests.runtime.ledger import (
    SESSION_KEY,
    Ledger,
    clerk,
    confirmed,
    cut,
    events_of,
    rows,
    runner_of,
    stored,
    talk,
    texts,
    using,
)
from tests.support.polling import SECONDS

# -- turns


def test_a_second_run_on_a_session_is_told_who_has_it(tmp_path: Path):
    async def use(service: SqliteSessionService) -> None:
        runner = runner_of(clerk("one", "two"), service, serialize_sessions=False)
        async with aclosing(talk(runner)) as events:
            await anext(events)
            second = asyncio.create_task(events_of(talk(runner, "me too")))
            with pytest.raises(SessionBusyError, match=r"session 's' .* process \d+ on .* since") as told:
                await second
            assert told.value.owner and told.value.since > 0
            elsewhere = SqliteSessionService(tmp_path / "nb.db")  # as another process has it
            with pytest.raises(SessionBusyError):
                await events_of(talk(runner_of(clerk("three"), elsewhere, serialize_sessions=False), "me too"))
            await elsewhere.close()
        assert texts((await stored(service)).events) == ["go", "one"]
        assert texts(await events_of(talk(runner, "now"))) == ["two"]

    using(tmp_path / "nb.db", use)


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_second_run_waits_where_the_runner_says_so(tmp_path: Path, kind: str):
    async def run() -> None:
        service = SqliteSessionService(tmp_path / "nb.db") if kind == "file" else InMemorySessionService()
        runner = runner_of(clerk("one", "two"), service, serialize_sessions=True)
        first = talk(runner)
        await anext(first)
        second = asyncio.create_task(events_of(talk(runner, "me too")))
        assert await asyncio.wait({second}, timeout=0.1) == (set(), {second})
        assert [event async for event in first] == []
        assert texts(await asyncio.wait_for(second, SECONDS)) == ["two"]
        assert texts((await stored(service)).events) == ["go", "one", "me too", "two"]
        if isinstance(service, SqliteSessionService):
            await service.close()

    asyncio.run(run())


@pytest.mark.parametrize("is_other_runner", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_a_run_within_a_run_on_the_same_session_is_part_of_it(tmp_path: Path, waits: bool, is_other_runner: bool):
    def look() -> str:
        """Looks."""
        return "seen"

    async def use(service: SqliteSessionService) -> None:
        agent = clerk(call("look"), "inner", "outer", tools=[look])
        runner = runner_of(agent, service, serialize_sessions=waits)
        said: list[str] = []
        inner = runner_of(agent, service, serialize_sessions=waits) if is_other_runner else runner
        async with aclosing(talk(runner)) as events:
            async for event in events:
                if event.get_function_calls():
                    async with asyncio.timeout(SECONDS):
                        within = inner.run_async(user_id="u", session_id=" s", new_message="and this?")  # the same
                        said += texts(await events_of(within))
                said += texts([event])
        assert said == ["inner", "outer"]
        assert texts((await stored(service)).events) == ["go", "and this?", "inner", "outer"]
        assert texts(await events_of(talk(runner_of(clerk("after"), service), "next"))) == ["after"]

    using(tmp_path / "nb.db", use)


def test_sync_code_works_the_same(tmp_path: Path):
    service = SqliteSessionService(tmp_path / "nb.db")
    runner = runner_of(clerk("outer", "inner"), service, serialize_sessions=True)
    said: list[str] = []
    for event in runner.run(**SESSION_KEY, new_message="go"):
        said += texts([event, *runner.run(**SESSION_KEY, new_message="and this?")])
    assert said == ["outer", "inner"]
    asyncio.run(service.close())


def test_and_one_that_a_tool_starts(tmp_path: Path):
    async def use(service: SqliteSessionService) -> None:
        async def ask_again() -> str:
            """Asks."""
            return texts(await events_of(talk(runner, "from within")))[0]

        runner = runner_of(clerk(call("ask_again"), "inner", "outer", tools=[ask_again]), service)
        assert texts(await asyncio.wait_for(events_of(talk(runner)), SECONDS)) == ["outer"]
        assert texts((await stored(service)).events) == ["go", "from within", "inner", "outer"]

    using(tmp_path / "nb.db", use)


def test_a_run_whose_session_was_taken_over_ends_and_writes_nothing_more(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        paused = talk(runner_of(clerk("one", "late"), service), "go")
        await anext(paused)
        ticks[0] += LEASE_SECONDS + 1
        heir = SqliteSessionService(tmp_path / "nb.db")
        agent = clerk("mine")
        assert texts(await events_of(talk(runner_of(agent, heir), "now I"))) == ["mine"]
        await heir.close()
        assert [event async for event in paused] == []  # it had nothing more to write
        assert texts((await stored(service)).events) == ["go", "one", "now I", "mine"]

    using(tmp_path / "nb.db", use)


def test_the_error_of_a_run_that_was_taken_over_is_one(tmp_path: Path, ticks: list[float]):
    async def use(service: SqliteSessionService) -> None:
        async def stand_still() -> str:
            """Stands still."""
            ticks[0] += LEASE_SECONDS + 1
            heir = SqliteSessionService(tmp_path / "nb.db")
            await asyncio.create_task(events_of(talk(runner_of(clerk("mine"), heir), "now I")))
            await heir.close()
            return "moved"

        runner = runner_of(clerk(call("stand_still"), "late", tools=[stand_still]), service)
        seen: list[Event] = []
        with pytest.raises(StaleSessionError, match=r"session 's' .*nothing was written"):
            async for event in talk(runner):
                seen.append(event)  # noqa: PERF401  # what came before the error
        assert [event.get_function_calls()[0].name for event in seen] == ["stand_still"]
        assert texts((await stored(service)).events) == ["go", "now I", "mine"]

    using(tmp_path / "nb.db", use)


# -- how a run ended


def test_the_journal_says_how_each_run_ended(tmp_path: Path):
    def fail() -> None:
        """Fails."""
        raise ValueError("no")

    pay = FunctionTool(lambda: None, name="pay", description="Pays.", require_confirmation=True)
    answers = ["one", call("fail"), call("pay"), "two"]

    async def use(service: SqliteSessionService) -> None:
        runner = runner_of(clerk(*answers, tools=[fail, pay], tool_errors="raise"), service)
        await events_of(talk(runner))
        with pytest.raises(ValueError, match="no"):
            await events_of(talk(runner))
        await events_of(talk(runner))
        stop = asyncio.Event()
        stop.set()
        await events_of(talk(runner, abort_signal=stop))

    using(tmp_path / "nb.db", use)
    outcomes = [outcome for (outcome,) in rows(tmp_path / "nb.db", "SELECT outcome FROM runs ORDER BY rowid")]
    assert outcomes == ["done", "failed", "waiting", "cancelled"]


# -- what tools did


@pytest.mark.parametrize("yes", [True, False])
def test_a_run_that_was_cut_goes_on_and_what_may_have_happened_is_asked_about(
    tmp_path: Path, ticks: list[float], caplog: pytest.LogCaptureFixture, yes: bool
):
    ledger = Ledger(tmp_path / "nb.db")

    async def use(service: SqliteSessionService) -> None:
        run_id = await cut(ledger, ticks)
        before = {name: key for name, _, key in ledger.done}
        assert [attempt for _, attempt, _ in ledger.done] == [1, 1, 1, 1] and len(set(before.values())) == 4
        ledger.done.clear()

        runner = runner_of(clerk("all done", tools=ledger.tools()), service)
        went_on = await events_of(runner.run_async(**SESSION_KEY, invocation_id=run_id))
        assert sorted(ledger.done) == [("look", 2, before["look"]), ("put", 2, before["put"])]
        results = {one.name: one.response for event in went_on for one in event.get_function_responses()}
        repeated = [(event.custom_metadata or {}).get("repeated") for event in went_on if "put" in str(event)]
        names = {one.id: one.name for event in went_on for one in event.get_function_responses()}
        assert [{names[key]: number for key, number in one.items()} for one in repeated if one] == [
            {"look": 2, "put": 2}
        ]
        lines = [row_text(row) for row in rows_of(went_on)]
        assert [line.count("attempt 2") for line in lines if "is done" in line] == [1, 1]
        assert results["send"] == {"result": "stamped"} and results["pay"] == approvals.placeholder(in_doubt=True)
        session = await stored(service)
        assert session.state == {"sent": "stamped"}
        (asked,) = open_interrupts(session.events, APPROVALS)
        assert asked.in_doubt and "pay() started at" in asked.prompt and "taken effect" in asked.prompt

        ledger.done.clear()
        answered = await events_of(talk(runner, confirmed(session.events, yes=yes)))
        assert ledger.done == ([("pay", 2, before["pay"])] if yes else [])
        (result,) = answered[0].get_function_responses()
        told = str(result.response)
        assert ("pay is done" in told) if yes else (IN_DOUBT in told and "did not run" not in told)
        assert texts(answered) == ["all done"]
        assert await service.unfinished(await stored(service)) == []
        assert await events_of(runner.run_async(**SESSION_KEY, invocation_id=run_id)) == []
        assert run_id in caplog.text and "it is finished" in caplog.text

    using(tmp_path / "nb.db", use)


def test_a_call_whose_tools_were_edited_since_is_asked_about(tmp_path: Path, ticks: list[float]):
    ledger = Ledger(tmp_path / "nb.db")

    async def use(service: SqliteSessionService) -> None:
        run_id = await cut(ledger, ticks)
        ledger.done.clear()
        agent = clerk("all done", tools=ledger.tools(), instruction="Another one.")
        await events_of(runner_of(agent, service).run_async(**SESSION_KEY, invocation_id=run_id))
        assert ledger.done == []
        hints = {one.call.name: one.prompt for one in open_interrupts((await stored(service)).events, APPROVALS)}
        assert hints.keys() == {"look", "put", "pay"} and "edited after look() was called" in hints["look"]

    using(tmp_path / "nb.db", use)


def test_an_approval_is_used_up_together_with_the_call_it_allows(tmp_path: Path):
    async def pay(tool_context: ToolContext) -> str:
        """Pays."""
        used = rows(tmp_path / "nb.db", "SELECT key FROM consumed")
        begun = rows(tmp_path / "nb.db", "SELECT name, attempt, key, finished FROM intents")
        assert len(used) == 1 and begun == [("pay", 1, tool_context.idempotency_key, None)]
        return "paid"

    async def use(service: SqliteSessionService) -> None:
        agent = clerk(call("pay"), "done", tools=[FunctionTool(pay, require_confirmation=True)])
        runner = runner_of(agent, service)
        await events_of(talk(runner))
        assert rows(tmp_path / "nb.db", "SELECT * FROM intents") == []
        events = await events_of(talk(runner, confirmed((await stored(service)).events, yes=True)))
        assert [one.response for one in events[0].get_function_responses()] == [{"result": "paid"}]
        (noted,) = rows(tmp_path / "nb.db", "SELECT outcome FROM intents")
        assert '"result": "paid"' in noted[0]
        assert all(event.invocation_id and not event.partial for event in (await stored(service)).events)

    using(tmp_path / "nb.db", use)


def test_a_run_that_becomes_the_one_which_was_answered_is_not_taken_for_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Slow(SqliteSessionService):
        async def claim(self, session: Session, run_id: str, *, owner: str, version: str = "") -> Any:
            lease = await super().claim(session, run_id, owner=owner, version=version)
            await asyncio.sleep(0.01)  # meanwhile it would be renewed, several times
            return lease

    def pay() -> str:
        """Pays."""
        return "paid"

    async def run() -> None:
        service = Slow(tmp_path / "nb.db")
        agent = clerk(call("pay"), "done", tools=[FunctionTool(pay, require_confirmation=True)])
        app = App(name="app", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))
        runner = Runner(app=app, session_service=service, auto_create_session=True)
        await events_of(talk(runner))
        monkeypatch.setattr(session_lease, "LEASE_SECONDS", 0.001)
        yes = confirmed((await stored(service)).events, yes=True)
        assert texts(await events_of(talk(runner, yes))) == ["done"]
        await service.close()

    asyncio.run(run())


def test_calls_of_one_id_are_two_calls(tmp_path: Path):
    keys: list[tuple[int, str]] = []

    async def pay(tool_context: ToolContext) -> str:
        """Pays."""
        keys.append((tool_context.attempt, tool_context.idempotency_key))
        return "paid"

    async def use(service: SqliteSessionService) -> None:
        part = types.Part(function_call=types.FunctionCall(id="call_0", name="pay", args={}))
        await events_of(talk(runner_of(clerk(part, part, "done", tools=[pay]), service)))

    using(tmp_path / "nb.db", use)
    assert [attempt for attempt, _ in keys] == [1, 1] and len({key for _, key in keys}) == 2


def test_without_a_journal_a_tool_has_a_key_all_the_same():
    keys: list[str] = []

    def pay(tool_context: ToolContext) -> str:
        """Pays."""
        assert tool_context.attempt == 1
        keys.extend([tool_context.idempotency_key, tool_context.idempotency_key])
        return "paid"

    agent = clerk([call("pay"), call("pay")], "done", tools=[pay])
    asyncio.run(events_of(talk(runner_of(agent, InMemorySessionService()))))
    assert len(keys) == 4 and len(set(keys)) == 2 and {len(key) for key in keys} == {32}


def test_agents_that_run_others_go_on_only_in_a_resumable_app(tmp_path: Path, ticks: list[float]):
    ledger = Ledger(tmp_path / "nb.db")

    async def use(service: SqliteSessionService) -> None:
        run_id = await cut(ledger, ticks)
        root = SequentialAgent(name="steps", sub_agents=[clerk("one")])
        with pytest.raises(ConfigurationError, match="stores no checkpoints"):
            await events_of(runner_of(root, service).run_async(**SESSION_KEY, invocation_id=run_id))

    using(tmp_path / "nb.db", use)


def test_an_effect_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match=r"'pure', 'idempotent'.*'once', got 'twice'"):
        FunctionTool(len, effect="twice")  # type: ignore[arg-type]
    assert tool(effect="pure")(clerk_tool).effect == "pure" and FunctionTool(clerk_tool).effect == "once"


def clerk_tool() -> str:
    """Works."""
    return "worked"
