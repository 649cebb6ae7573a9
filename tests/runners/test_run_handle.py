"""Runs that are stopped from outside, in time or by a signal; and those that go on in the background."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from adk_nb import sync, types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, RunConfig
from adk_nb.agents.run_config import ToolThreadPoolConfig
from adk_nb.errors import InputError
from adk_nb.events import Event
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, call
from adk_nb.runtime.cancellation import INVOCATION_ABORTED, RUN_TIMEOUT
from adk_nb.runtime.invocation_context import new_invocation_id
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, authors, guide, look, requests, summaries
from tests.support.transcripts import result_line


class Waits:
    """A tool that says that it runs, and then waits for what never comes."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = False

    async def wait(self) -> str:
        """Waits."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "never"


async def in_time(work: Any) -> Any:
    return await asyncio.wait_for(work, SECONDS)


def run_async(test: Callable[..., Any]) -> Callable[..., None]:
    """The test is a coroutine function; it gets a loop of its own."""

    def run() -> None:
        asyncio.run(in_time(test()))

    run.__name__ = test.__name__
    return run


@run_async
async def test_a_signal_cancels_the_tools_and_the_run_ends_in_order():
    waits, signal = Waits(), asyncio.Event()
    agent = guide([call("look"), call("wait")], "again", tools=[look, waits.wait])
    talk = Talk(agent)
    run = asyncio.ensure_future(talk.asay("hi", abort_signal=signal))
    await waits.begun.wait()

    signal.set()
    events = await run

    assert talk.error is None and waits.cancelled
    assert run.cancelling() == 0
    assert events[-1].error_code == INVOCATION_ABORTED
    assert [one.name for one in events[-1].get_function_responses()] == ["look", "wait"]
    assert events[-1].content and events[-1].content.role == "user"
    assert talk.stored().events[-1].id == events[-1].id
    assert summaries(await talk.asay("more")) == [("guide", "again .")]
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]


@run_async
async def test_a_signal_that_was_given_before_ends_the_run_before_the_model_is_asked():
    agent, signal = guide("never"), asyncio.Event()
    talk = Talk(agent)
    signal.set()

    assert summaries(await talk.asay("hi", abort_signal=signal)) == [("guide", f"failed {INVOCATION_ABORTED}")]
    assert requests(agent) == []
    assert authors(talk) == ["user", "guide"]


@run_async
async def test_a_signal_between_two_events_is_heard_before_the_next_step():
    agent, signal = guide(call("look"), "never", tools=[look]), asyncio.Event()
    talk = Talk(agent)
    events: list[Event] = []

    async for event in talk.runner.run_async(**SESSION_KEY, new_message="hi", abort_signal=signal):
        events.append(event)
        signal.set()

    assert summaries(events)[0] == ("guide", "calls look({})")
    assert [event.error_code for event in events] == [None, INVOCATION_ABORTED]
    assert "may or may not" in summaries(events)[1][1]


@run_async
async def test_a_signal_nobody_gives_changes_nothing():
    talk, before = Talk(guide(call("look"), "done", tools=[look])), asyncio.all_tasks()

    assert len(await talk.asay("hi", abort_signal=asyncio.Event(), config=RunConfig(timeout=60))) == 3
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@run_async
async def test_a_run_that_takes_longer_than_it_may_ends_with_an_event():
    waits = Waits()
    agent = guide(call("wait"), "again", tools=[waits.wait])
    talk = Talk(agent)

    events = await talk.asay("hi", config=RunConfig(timeout=0.3))

    # On a busy machine the time may be over before the tool begins.
    assert talk.error is None and waits.cancelled == waits.begun.is_set()
    assert events[-1].error_code == RUN_TIMEOUT == "RUN_TIMEOUT"
    for fact in ("0.3 seconds", "RunConfig.timeout"):
        assert fact in str(events[-1].error_message)
    assert [one.name for one in events[-1].get_function_responses()] == ["wait"]
    assert summaries(await talk.asay("more", config=RunConfig(timeout=60))) == [("guide", "again .")]


class Chatters(BaseLlm):
    """A model that says more and more and never waits."""

    model: str = "chatters"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for _ in range(1_000_000):
            yield LlmResponse(content=types.ModelContent("and "), partial=True)


@run_async
async def test_a_run_that_never_waits_ends_in_time_too():
    events = await Talk(LlmAgent(name="guide", model=Chatters())).asay("hi", config=RunConfig(timeout=0.02))

    assert events[-1].error_code == RUN_TIMEOUT
    assert "%config AdkNb.timeout" in (events[-1].error_message or "")


@run_async
async def test_a_run_whose_caller_is_cancelled_raises_that_even_if_it_was_to_stop():
    waits, signal = Waits(), asyncio.Event()
    talk = Talk(guide(call("wait"), tools=[waits.wait]))
    run = asyncio.ensure_future(talk.asay("hi", abort_signal=signal))
    await waits.begun.wait()

    run.cancel()
    signal.set()

    with pytest.raises(asyncio.CancelledError):
        await run
    assert [event.error_code for event in talk.stored().events] == [None, None, INVOCATION_ABORTED]


@run_async
async def test_a_tool_that_will_not_be_cancelled_ends_its_step_and_then_the_run_ends():
    begun, signal = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        """Finishes what it began."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished"
        return "never"

    talk = Talk(guide(call("stubborn"), "never", tools=[stubborn]))
    run = asyncio.ensure_future(talk.asay("hi", abort_signal=signal))
    await begun.wait()
    signal.set()
    events = await run

    assert run.cancelling() == 0
    assert summaries(events)[1:] == [
        ("guide", "answers {'result': 'finished'}"),
        ("guide", f"failed {INVOCATION_ABORTED}"),
    ]


def test_an_interrupt_out_of_a_callback_leaves_the_session_fit_for_the_next_turn():
    interrupts = [True]

    def interrupted(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt

    agent = guide(call("look"), "again", tools=[look], after_tool_callback=interrupted)
    talk = Talk(agent)

    async def turn() -> None:
        async for _ in talk.runner.run_async(**SESSION_KEY, new_message="hi"):
            pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(turn())

    assert [event.error_code for event in talk.stored().events] == [None, None, INVOCATION_ABORTED]
    assert summaries(talk.say("more")) == [("guide", "again .")]
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]


class Two(BaseAgent):
    """Has two others speak, one after the other."""

    first: BaseAgent
    second: BaseAgent

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in (self.first, self.second):
            async for event in agent.run_async(ctx):
                yield event


def named(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return guide(*answers, **fields).model_copy(update={"name": name})


@run_async
async def test_open_calls_are_answered_by_the_agent_that_made_them():
    waits, signal = Waits(), asyncio.Event()
    second = named("second", call("wait"), "again", tools=[waits.wait])
    talk = Talk(Two(name="two", first=named("first", "one"), second=second))
    run = asyncio.ensure_future(talk.asay("hi", abort_signal=signal))
    await waits.begun.wait()
    signal.set()

    assert summaries(await run)[-1][0] == "second"
    assert authors(talk) == ["user", "first", "second", "second"]


def test_agents_share_the_count_of_model_calls_and_the_end_of_the_run():
    two = Two(name="two", first=named("first", "one"), second=named("second", "two"))
    talk = Talk(two)

    assert summaries(talk.say("hi", config=RunConfig(max_llm_calls=1))) == [
        ("first", "one ."),
        ("second", "failed LlmCallsLimitExceededError"),
    ]

    def end(callback_context: Any) -> None:
        callback_context.get_invocation_context().end_invocation = True

    ended = Two(name="two", first=named("first", "one", after_model_callback=lambda **_: None), second=two.second)
    ended.first.before_agent_callback = end
    assert summaries(Talk(ended).say("hi")) == []


@run_async
async def test_a_started_run_goes_on_by_itself_and_its_events_can_be_read_at_any_time():
    talk = Talk(guide(call("look"), "done", tools=[look]))

    handle = talk.runner.start(**SESSION_KEY, new_message="hi")
    assert talk.runner.is_active(handle.invocation_id) and not handle.done

    first = [event async for event in handle.events()]
    again = [event async for event in handle.events()]

    assert handle.done and not talk.runner.is_active(handle.invocation_id)
    assert [what for _, what in summaries(first)] == ["calls look({})", "answers {'result': 'seen'}", "done ."]
    assert [event.id for event in first] == [event.id for event in again]
    assert {event.invocation_id for event in first} == {handle.invocation_id}
    assert "done" in repr(handle)


def test_a_run_started_without_a_loop_goes_on_in_the_background():
    talk = Talk(guide("done"))

    handle = talk.runner.start(**SESSION_KEY, new_message="hi")

    assert summaries(list(sync.iterate(handle.events()))) == [("guide", "done .")]
    assert summaries(list(asyncio.run(collected(handle.events())))) == [("guide", "done .")]


async def collected(events: AsyncGenerator[Event, None]) -> list[Event]:
    return [event async for event in events]


@run_async
async def test_a_started_run_is_cancelled_by_its_handle_or_by_its_id():
    for how in ("handle", "id"):
        waits = Waits()
        talk = Talk(guide(call("wait"), tools=[waits.wait]))
        handle = talk.runner.start(**SESSION_KEY, new_message="hi")
        await waits.begun.wait()

        if how == "handle":
            await handle.cancel()
            assert handle.done
        else:
            assert talk.runner.cancel(handle.invocation_id)

        events = [event async for event in handle.events()]
        assert [event.error_code for event in events] == [None, INVOCATION_ABORTED]
        assert waits.cancelled
        await handle.cancel()
        assert not talk.runner.cancel(handle.invocation_id)


def test_a_run_in_the_background_is_cancelled_from_another_thread():
    begun = threading.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    talk = Talk(guide(call("wait"), tools=[wait]))
    handle = talk.runner.start(**SESSION_KEY, new_message="hi")
    assert begun.wait(SECONDS)

    assert talk.runner.cancel(handle.invocation_id)

    assert list(sync.iterate(handle.events()))[-1].error_code == INVOCATION_ABORTED


@run_async
async def test_any_run_is_known_by_its_id_while_it_lasts():
    waits = Waits()
    talk = Talk(guide(call("wait"), tools=[waits.wait]))
    events: list[Event] = []

    async def walk() -> None:
        async for event in talk.runner.run_async(**SESSION_KEY, new_message="hi", yield_user_message=True):
            events.append(event)  # noqa: PERF401

    run = asyncio.ensure_future(walk())
    await waits.begun.wait()
    assert talk.runner.is_active(events[0].invocation_id)
    assert talk.runner.cancel(events[0].invocation_id)
    await run

    assert events[-1].error_code == INVOCATION_ABORTED
    assert not talk.runner.is_active(events[0].invocation_id)
    assert not talk.runner.cancel(new_invocation_id())


@run_async
async def test_a_tool_may_stop_its_own_run_and_its_result_is_kept():
    async def stop(tool_context: Any) -> str:
        """Stops."""
        return f"stopped: {talk.runner.cancel(tool_context.invocation_id)}"

    talk = Talk(guide(call("stop"), "never", tools=[stop]))

    events = await talk.asay("hi")

    assert summaries(events)[1:] == [
        ("guide", result_line(result="stopped: True")),
        ("guide", f"failed {INVOCATION_ABORTED}"),
    ]


@run_async
async def test_what_a_started_run_raises_comes_after_its_events_each_time_they_are_read():
    talk = Talk(guide(ValueError("bad")))

    handle = talk.runner.start(**SESSION_KEY, new_message="hi")
    for _ in range(2):
        events: list[Event] = []
        with pytest.raises(ValueError, match="bad"):
            async for event in handle.events():
                events.append(event)  # noqa: PERF401
        assert [event.error_code for event in events] == ["ValueError"]

    refused = talk.runner.start(user_id="u", session_id="s", new_message=cast(Any, 7))
    with pytest.raises(InputError):
        await anext(refused.events())
    await refused.cancel()


@run_async
async def test_a_reader_of_a_started_run_that_gives_up_does_not_disturb_others():
    waits = Waits()
    talk = Talk(guide(call("wait"), tools=[waits.wait]))
    handle = talk.runner.start(**SESSION_KEY, new_message="hi")
    await waits.begun.wait()
    readers = [asyncio.ensure_future(collected(handle.events())) for _ in range(2)]
    await asyncio.sleep(0)

    readers[0].cancel()
    await asyncio.sleep(0)
    await handle.cancel()

    assert len(await readers[1]) == 2


@run_async
async def test_closing_a_runner_stops_what_it_started():
    waits = Waits()
    talk = Talk(guide(call("wait"), tools=[waits.wait]))
    handle = talk.runner.start(**SESSION_KEY, new_message="hi")
    await waits.begun.wait()

    await talk.runner.close()
    await talk.runner.close()

    assert handle.done and waits.cancelled


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_says_how_many_threads_run_its_sync_tools(workers: int):
    lock, counts = threading.Lock(), {"now": 0, "most": 0, "begun": 0}
    all_in = threading.Event()

    def work(number: int) -> str:
        """Works until as many work as can."""
        with lock:
            counts["now"] += 1
            counts["begun"] += 1
            counts["most"] = max(counts["most"], counts["now"])
            if counts["now"] == workers:
                all_in.set()
        all_in.wait(SECONDS)
        with lock:
            counts["now"] -= 1
        return threading.current_thread().name

    talk = Talk(guide([call("work", number=number) for number in range(6)], "done", tools=[work]))
    config = RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=workers))

    events = asyncio.run(talk.asay("hi", config=config))

    assert len(events[1].get_function_responses()) == counts["begun"] == 6
    assert counts["most"] <= workers
