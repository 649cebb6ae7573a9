"""Agents at work at the same time change values in place: no change is lost, and none reaches history or the others."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent, ParallelAgent
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import BaseSessionService, InMemorySessionService, Session, SqliteSessionService
from adk_nb.tools import AgentTool, ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk


def agent(name: str, tool: Callable[..., Any], calls: int = 1) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*[call(tool.__name__)] * calls, "done"), tools=[tool])


async def run(
    service: BaseSessionService, team: ParallelAgent, committed: asyncio.Event, state: dict[str, Any]
) -> Session:
    """Run the team, set `committed` when the first event with a state delta is history, and load the session."""
    await service.create_session(app_name="app", user_id="u", session_id="s", state=state)
    runner = Runner(app_name="app", agent=team, session_service=service)
    async with asyncio.timeout(SECONDS), aclosing(runner.run_async(**SESSION_KEY, new_message="hi")) as events:
        async for event in events:
            if event.actions.state_delta:
                committed.set()
    session = await service.get_session(app_name="app", **SESSION_KEY)
    assert session is not None
    return session


def deltas(session: Session) -> list[dict[str, Any]]:
    return [event.actions.state_delta for event in session.events if event.actions.state_delta]


@pytest.mark.parametrize("is_file", [False, True], ids=["memory", "sqlite"])
def test_a_list_read_before_a_sibling_s_commit_may_be_changed_after_it(tmp_path: Path, is_file: bool):
    service = SqliteSessionService(tmp_path / "s.db") if is_file else InMemorySessionService()
    written_event, committed = asyncio.Event(), asyncio.Event()

    async def write(tool_context: ToolContext) -> None:
        """Writes."""
        tool_context.state["items"] = ["x"]
        written_event.set()

    async def extend(tool_context: ToolContext) -> None:
        """Extends."""
        await written_event.wait()
        items = tool_context.state["items"]
        await committed.wait()
        items.append("y")

    team = ParallelAgent(name="team", sub_agents=[agent("writer", write), agent("extender", extend)])
    session = sync.run(run(service, team, committed, {}))

    assert session.state["items"] == ["x", "y"]
    assert deltas(session) == [{"items": ["x"]}, {"items": ["x", "y"]}]


def test_isolated_agents_do_not_see_each_other_s_changes_in_place():
    committed, log = asyncio.Event(), list[list[str]]()

    async def write(tool_context: ToolContext) -> None:
        """Writes."""
        tool_context.state["items"].append("x")

    async def look(tool_context: ToolContext) -> None:
        """Looks."""
        await committed.wait()
        log.append(list(tool_context.state["items"]))

    pair = [agent("writer", write), agent("looker", look)]
    team = ParallelAgent(name="team", sub_agents=pair, isolate_state=True)
    session = sync.run(run(InMemorySessionService(), team, committed, {"items": ["old"]}))

    assert log == [["old"]]
    assert session.state["items"] == ["old", "x"]


def test_an_isolated_agent_s_later_change_in_place_leaves_its_first_event_as_it_was():
    def extend(tool_context: ToolContext) -> None:
        """Extends."""
        tool_context.state.setdefault("items", []).append("x")

    team = ParallelAgent(name="team", sub_agents=[agent("extender", extend, calls=2)], isolate_state=True)
    session = sync.run(run(InMemorySessionService(), team, asyncio.Event(), {}))

    assert deltas(session) == [{"items": ["x"]}, {"items": ["x", "x"]}]


@pytest.fixture
def rapid_switches() -> Iterator[None]:
    """Let threads take turns a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.slow
@pytest.mark.usefixtures("rapid_switches")
def test_a_sync_tool_writes_state_while_agents_that_are_called_begin():
    calls, rounds, started, over = 20, 3, list[str](), threading.Event()

    def write(tool_context: ToolContext) -> str:
        """Writes until the agents are done."""
        over.clear()
        state = tool_context.state
        inner = state.setdefault("inner", {"values": {f"n{n}": n for n in range(300)}})["values"]
        for n in range(100_000):
            if over.is_set():
                break
            state[f"k{n % 500}"] = inner[f"n{n % 700}"] = n
            state.pop(f"k{n * 7 % 500}", None)
            inner.pop(f"n{n * 7 % 700}", None)
        return f"{len(list(state)) > 0}"

    def note(callback_context: CallbackContext) -> None:
        started.append(callback_context.agent_name)
        if len(started) % calls == 0:
            over.set()

    helper = LlmAgent(name="helper", model=ScriptedLlm(*["ok"] * calls * rounds), after_agent_callback=note)
    step = [call("write"), *(call("helper", request=f"x{n}") for n in range(calls))]
    boss = LlmAgent(name="boss", model=ScriptedLlm(*[step, "done"] * rounds), tools=[write, AgentTool(helper)])
    talk = Talk(boss, {f"s{n}": n for n in range(300)})
    for _ in range(rounds):
        responses = [response.response for event in talk.say() for response in event.get_function_responses()]
        assert responses == [{"result": "True"}, *[{"result": "ok"}] * calls]
