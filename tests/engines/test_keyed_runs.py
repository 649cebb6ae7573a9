"""Runs with a key are done once, whoever comes with it again, and whatever else works on their session."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from adk_nb.agents import LlmAgent
from adk_nb.engines.keyed_runs import KeyedRuns
from adk_nb.events.event import as_content
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions import SqliteSessionService

SAID: dict[str, Any] = {
    "user_id": "u",
    "session_id": "s",
    "message": as_content("go").model_dump_json(exclude_none=True),
    "state_delta": {"n": 1},
}


def using(path: Path, agent: LlmAgent, use: Callable[[KeyedRuns], Awaitable[Any]]) -> tuple[Any, list[str]]:
    """What `use` gives, and what the session holds after."""

    async def run() -> tuple[Any, list[str]]:
        service = SqliteSessionService(path / "nb.db")
        runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)
        value = await asyncio.wait_for(use(KeyedRuns(runner, RunConfig())), 30)
        session = await service.get_session(app_name="app", user_id="u", session_id="s")
        await service.close()
        assert session
        return value, [f"{event.author}: {event.text}" for event in session.events if event.text]

    return asyncio.run(run())


def test_a_run_that_is_asked_for_again_is_not_done_again(tmp_path: Path):
    agent = LlmAgent(name="clerk", model=ScriptedLlm("one", "two"))

    async def thrice(runs: KeyedRuns) -> list[str]:
        return [await runs.run(key, SAID) for key in ("a", "a", "b")]

    ids, text = using(tmp_path, agent, thrice)

    assert ids[0] == ids[1] != ids[2]
    assert text == ["user: go", "clerk: one", "user: go", "clerk: two"]


def test_two_workers_execute_a_run_once(tmp_path: Path):
    texts: list[str] = []
    began, pair = asyncio.Event(), asyncio.Event()

    async def stamp() -> str:
        texts.append("stamp")
        began.set()
        await pair.wait()
        return "stamped"

    agent = LlmAgent(name="clerk", model=ScriptedLlm(call("stamp"), "done"), tools=[stamp])

    async def at_once(runs: KeyedRuns) -> set[str]:
        tasks = [asyncio.create_task(runs.run("a", SAID)) for _ in range(2)]
        await began.wait()
        assert runs.running() == ["a", "a"]
        pair.set()
        return set(await asyncio.gather(*tasks))

    ids, text = using(tmp_path, agent, at_once)

    assert len(ids) == 1 and texts == ["stamp"] and text == ["user: go", "clerk: done"]


def test_a_run_that_is_stopped_while_it_waits_for_its_session_is_not_begun(tmp_path: Path):
    holds, steps = asyncio.Event(), asyncio.Event()

    async def stamp() -> str:
        holds.set()
        await steps.wait()
        return "stamped"

    agent = LlmAgent(name="clerk", model=ScriptedLlm(call("stamp"), "done"), tools=[stamp])

    async def stopped(runs: KeyedRuns) -> str:
        first = asyncio.create_task(runs.run("a", SAID))
        await holds.wait()
        second = asyncio.create_task(runs.run("b", SAID))
        await asyncio.sleep(0)
        runs.stop("b")
        waited = await second
        steps.set()
        await first
        return waited

    waited, text = using(tmp_path, agent, stopped)

    assert waited == "" and text == ["user: go", "clerk: done"]
