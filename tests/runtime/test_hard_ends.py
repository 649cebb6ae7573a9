"""What ends harder than an exception: a foreign cancellation, `sys.exit()`, Ctrl-C in a tool, a timeout of a node."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, ParallelAgent, SequentialAgent
from adk_nb.errors import NodeTimeoutError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow import START, Workflow, node
from tests.support.each import each
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, summaries


async def cancelled_elsewhere() -> None:
    """Await a task that was cancelled elsewhere."""
    task = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    await task


async def exits() -> None:
    """Leave the process."""
    sys.exit(3)


def exits_in_a_thread() -> None:
    """Leave the process, from sync code."""
    sys.exit("no disk")


async def ends_as_a_generator() -> None:
    """Raise what closes a generator."""
    raise GeneratorExit


class Hard(BaseException):
    """No Exception, as libraries for cancellation have them."""


async def several_end_hard() -> None:
    """Fail in two tasks at once."""
    raise BaseExceptionGroup("two tasks", [Hard("the disk"), ValueError("the net")])


async def exits_in_a_group() -> None:
    """Raise GeneratorExit in a task of a group."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ends_as_a_generator())


def alone(agent: BaseAgent) -> BaseAgent:
    return agent


def in_a_parallel_agent(agent: BaseAgent) -> BaseAgent:
    return ParallelAgent(name="both", sub_agents=[agent, LlmAgent(name="other", model=ScriptedLlm("fine"))])


def in_a_workflow(agent: BaseAgent) -> BaseAgent:
    return Workflow(name="wf", edges=[(START, agent)])


def in_a_sequence(agent: BaseAgent) -> BaseAgent:
    return SequentialAgent(name="steps", sub_agents=[agent])


PLACES = [alone, in_a_parallel_agent, in_a_workflow, in_a_sequence]


async def within(talk: Talk, message: str = "hi") -> list[Event]:
    async with asyncio.timeout(SECONDS):
        return await talk.asay(message)


def error_results(events: list[Event]) -> list[str]:
    found = [one.response or {} for event in events for one in event.get_function_responses()]
    return [str(one["error"]) for one in found if "error" in one]


@each("place", PLACES)
@each("calls", [1, 2])
@each(
    "tool, fact",
    [
        (cancelled_elsewhere, "cancelled"),
        (exits, "3"),
        (exits_in_a_thread, "no disk"),
        (ends_as_a_generator, "GeneratorExit"),
        (several_end_hard, "the disk"),
    ],
)
def test_a_tool_that_is_cancelled_or_exits_fails_alone(
    place: Callable[[BaseAgent], BaseAgent], calls: int, tool: Callable[..., Any], fact: str
):
    name = tool.__name__
    model = ScriptedLlm([call(name) for _ in range(calls)], "went on")
    talk = Talk(place(LlmAgent(name="guide", model=model, tools=[tool])))

    events = asyncio.run(within(talk))

    failed = error_results(events)
    assert talk.error is None and len(failed) == calls
    assert all(name in one and fact in one for one in failed)
    assert "went on" in [event.text for event in events]
    assert not any(event.error_code for event in talk.stored().events)


@pytest.mark.parametrize("place", PLACES)
def test_the_error_of_such_a_tool_can_end_the_run(place: Callable[[BaseAgent], BaseAgent]):
    agent = LlmAgent(name="guide", model=ScriptedLlm(call("exits"), "never"), tools=[exits], tool_errors="raise")
    talk = Talk(place(agent))

    events = asyncio.run(within(talk))

    assert isinstance(talk.error, Exception) and "exit" in str(talk.error)
    assert events[-1].error_code and "never" not in [event.text for event in events]


class Broken(BaseAgent):
    """Awaits what was cancelled elsewhere, in no tool."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, content=None)
        await cancelled_elsewhere()


@pytest.mark.parametrize("place", PLACES)
def test_a_foreign_cancellation_in_no_tool_is_an_error_of_the_run(place: Callable[[BaseAgent], BaseAgent]):
    talk = Talk(place(Broken(name="broken")))

    asyncio.run(within(talk))

    assert isinstance(talk.error, Exception)
    assert "cancelled" in (talk.stored().events[-1].error_message or "")


@each("place", PLACES)
@each("calls", [1, 2])
@each("kind", ["async", "sync"])
def test_ctrl_c_in_a_tool_stops_the_run(place: Callable[[BaseAgent], BaseAgent], calls: int, kind: str):
    async def interrupted() -> None:
        raise KeyboardInterrupt

    def interrupted_in_a_thread() -> None:
        raise KeyboardInterrupt

    tool = interrupted if kind == "async" else interrupted_in_a_thread
    model = ScriptedLlm([call(tool.__name__) for _ in range(calls)], "never")
    talk = Talk(place(LlmAgent(name="guide", model=model, tools=[tool])))

    with pytest.raises(KeyboardInterrupt):
        talk.say()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(within(Talk(place(LlmAgent(name="guide", model=ScriptedLlm(call(tool.__name__)), tools=[tool])))))

    assert "never" not in [event.text for event in talk.stored().events]


def slow_reader(workflow: Workflow, pause: float) -> tuple[list[Event], Exception | None]:
    """All events, each of which is taken only after a pause."""
    events: list[Event] = []
    talk = Talk(workflow)

    async def read() -> None:
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_async(**SESSION_KEY, new_message="hi"):
                events.append(event)
                await asyncio.sleep(pause)

    try:
        asyncio.run(read())
    except Exception as error:
        return events, error
    return events, None


def test_a_nodes_timeout_is_told_also_where_the_reader_is_slow():
    async def talks() -> AsyncGenerator[Any, None]:
        yield Event(message="one")
        await asyncio.Event().wait()

    events, error = slow_reader(Workflow(name="wf", edges=[(START, node(talks, name="talks", timeout=0.05))]), 0.1)

    assert isinstance(error, NodeTimeoutError) and "talks" in str(error)
    assert summaries(events[:1]) == [("wf", "one .")]
    assert events[-1].error_code == "NodeTimeoutError"


def test_a_node_that_never_waits_ends_at_its_timeout():
    async def talks() -> AsyncGenerator[Any, None]:
        while True:
            yield Event(message="more")

    events, error = slow_reader(Workflow(name="wf", edges=[(START, node(talks, name="talks", timeout=0.05))]), 0.02)

    assert isinstance(error, NodeTimeoutError) and len(events) > 1


def test_a_node_that_has_only_to_end_is_not_too_late_for_its_reader():
    async def talks() -> AsyncGenerator[Any, None]:
        yield "done"

    events, error = slow_reader(Workflow(name="wf", edges=[(START, node(talks, name="talks", timeout=0.05))]), 0.1)

    assert error is None and events[-1].output == "done"


def test_a_tool_that_catches_its_cancellation_holds_up_no_failing_sibling():
    began = asyncio.Event()

    async def catches() -> str:
        """Catch the cancellation."""
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "caught"
        return "never"

    class Fails(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            await began.wait()
            raise ValueError("bad")
            yield Event(author=self.name)

    model = ScriptedLlm(call("catches"), "never")
    guide = LlmAgent(name="guide", model=model, tools=[catches])
    talk = Talk(ParallelAgent(name="both", sub_agents=[guide, Fails(name="fails")]))

    asyncio.run(within(talk))

    assert isinstance(talk.error, ValueError) and len(model.requests) == 1


@pytest.mark.parametrize("hard", [ends_as_a_generator, several_end_hard, exits_in_a_group])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_result_of_another_tool_of_the_step_is_kept(hard: Callable[..., Any], is_first: bool):
    def pays() -> str:
        """Pay, in the thread of sync tools."""
        return "paid"

    calls = [call("pays"), call(hard.__name__)]
    model = ScriptedLlm(calls if is_first else calls[::-1], "went on")
    talk = Talk(LlmAgent(name="guide", model=model, tools=[pays, hard]))

    events = asyncio.run(within(talk))

    results = {one.name: one.response for event in events for one in event.get_function_responses()}
    assert results["pays"] == {"result": "paid"} and "error" in (results[hard.__name__] or {})
    assert talk.error is None and summaries(events)[-1] == ("guide", "went on .")
