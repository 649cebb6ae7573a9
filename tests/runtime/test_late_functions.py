"""Functions that outlive their timeout, or that of their run: the run ends in time, and says that they go on."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import BaseAgent, LlmAgent, ParallelAgent, RunConfig
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import current_session
from adk_nb.runtime.cancellation import RUN_TIMEOUT
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.workflow import START, Workflow, node
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, look

TIMEOUTS = [0.2, 1.0, 4.0]
"""Of a run, the next one only where a busy machine did not come to the tool in time."""


class Late:
    """Functions that go on until they are released, and then write to the state."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.released = threading.Event()
        self.ended = threading.Event()

    def sync_tool(self, tool_context: ToolContext) -> str:
        """Wait."""
        self.began.set()
        self.released.wait(10 * SECONDS)
        tool_context.state["late"] = "sync"
        self.ended.set()
        return "late"

    def generator_tool(self, tool_context: ToolContext) -> Generator[str, None, None]:
        """Wait for an item."""
        yield "early"
        self.sync_tool(tool_context)
        yield "late"

    async def stubborn_tool(self, tool_context: ToolContext) -> str:
        """Wait, whatever anybody says."""
        self.began.set()
        while not self.released.is_set():
            try:
                await asyncio.sleep(0.01)  # a thread releases it, which cannot wake this loop
            except asyncio.CancelledError:
                continue
        tool_context.state["late"] = "async"
        self.ended.set()
        return "late"


@pytest.fixture
def late() -> Generator[Late, None, None]:
    it = Late()
    yield it
    it.released.set()


def alone(agent: LlmAgent) -> BaseAgent:
    return agent


def in_a_parallel_agent(agent: LlmAgent) -> BaseAgent:
    return ParallelAgent(name="both", sub_agents=[agent, LlmAgent(name="other", model=ScriptedLlm("fine"))])


def in_a_workflow(agent: LlmAgent) -> BaseAgent:
    return Workflow(name="wf", edges=[(START, agent)])


def in_run(talk: Talk, config: RunConfig) -> list[Event]:
    return list(talk.runner.run(**SESSION_KEY, new_message="hi", run_config=config))


def in_run_async(talk: Talk, config: RunConfig) -> list[Event]:
    return sync.run(talk.asay(config=config))


def timed_out(door: Callable[[Talk, RunConfig], list[Event]], make: Callable[[], BaseAgent], late: Late) -> Talk:
    """A conversation whose only run took too long; its function has ended since."""
    watch = threading.Timer(2 * SECONDS, late.released.set)  # a run that waits holds up no other test
    watch.start()
    events, talk, before = list[Event](), Talk(make()), 0.0
    for seconds in TIMEOUTS:
        talk, before = Talk(make()), time.monotonic()
        events = door(talk, RunConfig(timeout=seconds))
        if late.began.is_set():
            break
    watch.cancel()
    assert time.monotonic() - before < SECONDS and not late.released.is_set()
    late.released.set()
    assert late.ended.wait(SECONDS)
    assert events[-1].error_code == RUN_TIMEOUT
    return talk


@pytest.mark.parametrize("door", [in_run, in_run_async])
@pytest.mark.parametrize("place", [alone, in_a_parallel_agent, in_a_workflow])
@pytest.mark.parametrize("kind", ["sync_tool", "generator_tool", "stubborn_tool"])
def test_a_run_ends_in_time_and_names_what_goes_on(
    door: Callable[[Talk, RunConfig], list[Event]],
    place: Callable[[LlmAgent], BaseAgent],
    kind: str,
    late: Late,
    caplog: pytest.LogCaptureFixture,
):
    def make() -> BaseAgent:
        model = ScriptedLlm([call(kind), call("look")], "never")
        return place(LlmAgent(name="guide", model=model, tools=[getattr(late, kind), look]))

    stored = timed_out(door, make, late).stored()

    assert f"{kind}()" in (stored.events[-1].error_message or "")
    assert "never" not in [event.text for event in stored.events]
    results = [one.name for event in stored.events for one in event.get_function_responses()]
    assert set(results) == {kind, "look"}
    assert stored.state == {} and any("'late'" in line and kind in line for line in caplog.messages)


@pytest.mark.parametrize("door", [in_run, in_run_async])
@pytest.mark.parametrize("kind", ["sync_tool", "stubborn_tool"])
def test_a_run_ends_in_time_within_its_only_call(door: Callable[[Talk, RunConfig], list[Event]], kind: str, late: Late):
    def make() -> BaseAgent:
        return LlmAgent(name="guide", model=ScriptedLlm(call(kind), "never"), tools=[getattr(late, kind)])

    stored = timed_out(door, make, late).stored()

    assert f"{kind}()" in (stored.events[-1].error_message or "")
    assert "never" not in [event.text for event in stored.events]


@pytest.mark.parametrize("kind", ["sync_node", "stubborn_node"])
def test_a_run_ends_in_time_and_names_its_nodes(kind: str, late: Late, caplog: pytest.LogCaptureFixture):
    def sync_node(ctx: ToolContext) -> str:
        return late.sync_tool(ctx)

    async def stubborn_node(ctx: ToolContext) -> str:
        return await late.stubborn_tool(ctx)

    function = sync_node if kind == "sync_node" else stubborn_node

    stored = timed_out(in_run, lambda: Workflow(name="wf", edges=[(START, node(function, name=kind))]), late).stored()

    assert f"{kind}()" in (stored.events[-1].error_message or "")
    assert stored.state == {} and any("'late'" in line for line in caplog.messages)


def test_a_run_that_ends_its_tools_in_time_names_none():
    async def waits() -> None:
        """Wait."""
        await asyncio.Event().wait()

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("waits")), tools=[waits]))

    events = talk.say(config=RunConfig(timeout=0.2))

    assert events[-1].error_code == RUN_TIMEOUT and "waits" not in (events[-1].error_message or "")


@pytest.mark.parametrize("kind", ["sync_tool", "generator_tool"])
def test_the_model_is_told_that_a_late_sync_tool_may_take_effect(
    kind: str, late: Late, caplog: pytest.LogCaptureFixture
):
    def note(tool: Any, args: Any, tool_context: ToolContext, error: Exception) -> None:
        tool_context.state["failed"] = tool.name

    tool = FunctionTool(getattr(late, kind), timeout=0.5)
    agent = LlmAgent(name="guide", model=ScriptedLlm(call(kind), "ok"), tools=[tool], on_tool_error_callback=note)
    talk = Talk(agent)
    caplog.set_level(logging.WARNING)

    events = talk.say()
    late.released.set()
    assert late.ended.wait(SECONDS)

    [answer] = [one.response or {} for event in events for one in event.get_function_responses()]
    assert "TimeoutError" in answer["error"] and "0.5" in answer["error"] and "may take effect" in answer["error"]
    assert any("'late'" in line and kind in line for line in caplog.messages)
    assert talk.stored().state == {"failed": kind}
    assert asyncio.run(seen_next(talk)) == {"failed": kind}


async def seen_next(talk: Talk) -> dict[str, Any]:
    """The state that the next turn works with."""
    session = await current_session(talk.runner, "u", "s")
    return session.state if session else {}


def test_a_late_sync_node_drops_what_it_writes(late: Late, caplog: pytest.LogCaptureFixture):
    def slow(ctx: ToolContext) -> str:
        return late.sync_tool(ctx)

    talk = Talk(Workflow(name="wf", edges=[(START, node(slow, name="slow", timeout=0.5))]))

    talk.say()
    late.released.set()
    assert late.ended.wait(SECONDS)

    assert talk.stored().state == {} and any("'late'" in line and "slow" in line for line in caplog.messages)
