"""A run that is stopped in the middle of its team: what is open is answered, nobody is left at work, all goes on."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, RunConfig, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.tools import ToolContext
from tests.agents.waiting import LeftTalk, agent, open_calls, outcome, pays, words
from tests.support.each import each
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk


class Slow:
    """A tool that takes as long as the run lasts, the first time; and tells when all that were wanted are within, and
    `others` have come as far as they can.
    """

    def __init__(self, number: int, other_number: int = 1) -> None:
        self.within = 0
        self.wanted = number
        self.others = asyncio.Semaphore(0)
        self.all_within = asyncio.Event()
        self._others = other_number

    def beside(self, agent: LlmAgent) -> LlmAgent:
        """`one`, of the others."""
        agent.after_agent_callback = lambda **_: self.others.release()
        return agent

    async def wait(self) -> None:
        await self.all_within.wait()
        for _ in range(self._others):
            await self.others.acquire()

    async def slow(self) -> str:
        """Takes long."""
        self.within += 1
        if self.within == self.wanted:
            self.all_within.set()
        if self.within <= self.wanted:
            await asyncio.Event().wait()
        return "done"


def team(slow: Slow) -> BaseAgent:
    def works(name: str) -> LlmAgent:
        return agent(name, call("slow"), f"{name} goes on", f"{name} again", tools=[slow.slow])

    inner = SequentialAgent(name="line", sub_agents=[works("b"), agent("c", "c out")])
    block = ParallelAgent(
        name="par", sub_agents=[works("a"), inner, slow.beside(agent("quick", "quick out", "quick again"))]
    )
    return SequentialAgent(name="seq", sub_agents=[block, agent("last", "last out")])


async def stopped(talk: Talk, slow: Slow, how: str) -> list[Event]:
    """What a run said that was stopped while both were within their tools, from outside."""
    events: list[Event] = []
    signal = asyncio.Event()

    async def run() -> None:
        turn = talk.runner.run_async(**SESSION_KEY, new_message="go", abort_signal=signal)
        async with aclosing(turn):
            async for event in turn:
                events.append(event)  # noqa: PERF401  # also what came before it was cancelled

    task = asyncio.create_task(run())
    async with asyncio.timeout(SECONDS):
        await slow.wait()
        if how == "signal":
            signal.set()
        elif how == "runner":
            talk.runner.cancel(talk.stored().events[0].invocation_id)
        else:
            task.cancel()
        await asyncio.wait([task])
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return events


@pytest.mark.parametrize("mode", ["signal", "runner", "cancelled"])
def test_each_call_that_is_open_in_a_branch_is_answered_there(mode: str):
    async def run() -> None:
        slow = Slow(2)
        talk = Talk(team(slow))
        await stopped(talk, slow, mode)

        closed = [event for event in talk.stored().events if event.error_code == "INVOCATION_ABORTED"]
        assert sorted((event.author, event.branch) for event in closed) == [("a", "par.a"), ("b", "par.line")]
        assert all(
            "error" in (response.response or {}) for event in closed for response in event.get_function_responses()
        )
        assert sum(len(event.get_function_responses()) for event in closed) == 2
        assert words(talk.stored().events)[1:] == [("quick", "quick out")]
        lines = words(await talk.asay("again"))
        assert (talk.error, sorted(lines[:-1]), lines[-1]) == (
            None,
            [("a", "a goes on"), ("b", "b goes on"), ("c", "c out"), ("quick", "quick again")],
            ("last", "last out"),
        )

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["signal", "cancelled"])
def test_in_a_resumable_app_those_go_on_that_were_cut_short(mode: str):
    async def run() -> None:
        slow = Slow(2)
        talk = LeftTalk(team(slow))
        await stopped(talk, slow, mode)

        lines = words(await talk.asay(None, invocation_id=talk.stored().events[0].invocation_id))

        assert sorted(lines[:-1]) == [("a", "a goes on"), ("b", "b goes on"), ("c", "c out")]
        assert (talk.error, lines[-1]) == (None, ("last", "last out"))

    asyncio.run(run())


def test_a_reader_that_leaves_in_the_middle_leaves_nobody_at_work():
    async def run() -> None:
        slow = Slow(2)
        talk = Talk(team(slow))
        turn = talk.runner.run_async(**SESSION_KEY, new_message="go")
        async with asyncio.timeout(SECONDS), aclosing(turn):
            async for event in turn:
                if event.author == "quick":
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}
        calls = [call.id for event in talk.stored().events for call in event.get_function_calls()]
        results = [response.id for event in talk.stored().events for response in event.get_function_responses()]
        assert sorted(calls) == sorted(results)

    asyncio.run(run())


def test_a_run_that_takes_too_long_is_closed_in_each_branch():
    async def run() -> None:
        slow = Slow(2)
        talk = Talk(team(slow))
        events = await talk.asay("go", config=RunConfig(timeout=0.05))

        codes = {event.error_code for event in events} - {None}
        assert (talk.error, codes) == (None, {"RUN_TIMEOUT"})
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def test_what_waits_for_a_person_beside_what_was_stopped_waits_on():
    async def run() -> None:
        slow = Slow(1)
        works = agent("a", call("slow"), "a goes on", tools=[slow.slow])
        talk = Talk(ParallelAgent(name="par", sub_agents=[works, slow.beside(pays("b"))]))
        events = await stopped(talk, slow, "signal")

        [function_call] = open_calls(events)
        assert words(await talk.asay(outcome(function_call, {"confirmed": True}))) == [("b", "b1")]

    asyncio.run(run())


# -- from within


def stop(tool_context: ToolContext) -> str:
    """Ends the invocation."""
    tool_context.get_invocation_context().end_invocation = True
    return "stopped"


def stops(name: str) -> LlmAgent:
    return agent(name, call("stop"), f"{name} never", tools=[stop])


ENDING: dict[str, Callable[[], BaseAgent]] = {
    "sequence": lambda: SequentialAgent(name="t", sub_agents=[stops("a"), agent("z", "z never")]),
    "loop": lambda: LoopAgent(name="t", sub_agents=[stops("a"), agent("z", "z never")], max_iterations=3),
    "last of a loop": lambda: LoopAgent(name="t", sub_agents=[stops("a")], max_iterations=3, output_key="k"),
    "at once": lambda: SequentialAgent(
        name="t", sub_agents=[ParallelAgent(name="p", sub_agents=[stops("a")]), agent("z", "z never")]
    ),
    "nested": lambda: SequentialAgent(
        name="t",
        sub_agents=[
            LoopAgent(name="l", max_iterations=2, sub_agents=[SequentialAgent(name="s", sub_agents=[stops("a")])]),
            agent("z", "z never"),
        ],
    ),
}


@each("kind", [Talk, LeftTalk])
@each("place", ENDING)
def test_who_ends_the_invocation_is_the_last_to_do_anything(place: str, kind: Any):
    talk = kind(ENDING[place]())

    assert (words(talk.say("go")), talk.error) == ([], None)
    if kind is LeftTalk:
        assert talk.go_on() == []


def test_the_others_at_once_stop_before_their_next_step():
    ended = asyncio.Event()

    def end(tool_context: ToolContext) -> str:
        """Ends the invocation."""
        tool_context.get_invocation_context().end_invocation = True
        ended.set()
        return "ended"

    async def look() -> str:
        """Looks, until the other has ended it."""
        await ended.wait()
        return "seen"

    sub_agent, other_agent = (
        agent("a", call("end"), "a never", tools=[end]),
        agent("b", call("look"), "b never", tools=[look]),
    )
    talk = Talk(ParallelAgent(name="p", sub_agents=[sub_agent, other_agent]))

    assert (words(talk.say("go")), talk.error) == ([], None)


# -- a failure beside a pause


@pytest.mark.parametrize("kind", [Talk, LeftTalk])
def test_one_that_fails_does_not_keep_another_from_being_answered(kind: Any):
    block = ParallelAgent(name="p", on_error="continue", sub_agents=[agent("a", ConnectionError("net")), pays("b")])
    talk = kind(SequentialAgent(name="s", sub_agents=[block, agent("z", "z out")]))

    events = talk.say("go")
    assert [event.error_code for event in events if event.error_code] == ["ConnectionError"]
    assert (words(talk.say(outcome(open_calls(events)[0], {"confirmed": True}))), talk.error) == (
        [("b", "b1"), ("z", "z out")],
        None,
    )
