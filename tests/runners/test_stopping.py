"""Runs that are not walked to their end: left, cancelled, timed out; and what the next turn finds."""

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import parts, types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, call
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.tools import FunctionTool, ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, authors, boom, guide, look, requests, summaries


def test_a_run_that_nobody_walks_through_does_nothing():
    talk = Talk(guide("hello"))

    async def leave() -> None:
        run = talk.runner.run_async(**SESSION_KEY, new_message="hi")
        del run

    asyncio.run(leave())
    talk.runner.run(**SESSION_KEY, new_message="hi")
    gc.collect()

    assert talk.stored().events == []


def test_a_reader_that_has_seen_enough_leaves_no_trace_of_stopping():
    agent = guide("hello", "again")
    talk = Talk(agent)

    for turn in ("hi", "more"):
        for event in talk.runner.run(**SESSION_KEY, new_message=turn):
            if event.is_final_response():
                break

    assert authors(talk) == ["user", "guide"] * 2
    assert requests(agent)[1] == [("user", "hi"), ("model", "hello"), ("user", "more")]


def test_a_reader_that_stops_at_a_call_leaves_it_answered():
    agent = guide(call("look"), "again", tools=[look])
    talk = Talk(agent)

    async def stop_at_the_call() -> None:
        async with aclosing(talk.runner.run_async(**SESSION_KEY, new_message="hi")) as events:
            async for _ in events:
                break

    asyncio.run(stop_at_the_call())

    assert authors(talk) == ["user", "guide", "guide"]
    sealed = talk.stored().events[-1]
    assert sealed.error_code == "INVOCATION_ABORTED"
    assert [one.name for one in sealed.get_function_responses()] == ["look"]
    talk.say("more")
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]


def test_a_break_without_closing_is_sealed_too_and_the_next_turn_does_not_mind():
    agent = guide(call("look"), "again", "and again", tools=[look])
    talk = Talk(agent)

    async def break_and_go_on() -> None:
        async for _ in talk.runner.run_async(**SESSION_KEY, new_message="hi"):
            break
        await talk.asay("more")  # the loop had no chance to close the first run yet
        for _ in range(20):
            await asyncio.sleep(0)
        await talk.asay("and more")

    asyncio.run(break_and_go_on())

    assert [event.error_code for event in talk.stored().events].count("INVOCATION_ABORTED") == 1
    assert requests(agent)[1][0] == ("user", "hi") and requests(agent)[1][-1] == ("user", "more")
    last = [what for _, what in requests(agent)[2]]
    assert last[1].startswith("calls look") and last[2].startswith("answers {'error': ")
    assert last[3:] == ["more", "again", "and more"]


class Waits(BaseLlm):
    """A model that says so when it is asked, and then waits to be cancelled."""

    model: str = "waits"
    asked: threading.Event

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.set()
        await asyncio.Event().wait()
        yield LlmResponse()


async def cancelled_when(started: threading.Event, run: Any) -> None:
    task = asyncio.ensure_future(run)
    await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SECONDS)


def test_a_cancelled_run_is_sealed():
    started = threading.Event()
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=started)))

    asyncio.run(cancelled_when(started, talk.asay("hi")))

    [_, sealed] = talk.stored().events
    assert (sealed.author, sealed.error_code, sealed.content) == ("guide", "INVOCATION_ABORTED", None)
    assert sealed.invocation_id == talk.stored().events[0].invocation_id


def test_a_run_cancelled_in_its_tools_answers_every_call_and_the_next_request_is_well_paired():
    started = threading.Event()

    async def wait(tool_context: ToolContext) -> str:
        """Waits."""
        tool_context.state["half"] = "done"
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = guide([call("look"), call("wait")], "again", tools=[look, wait])
    talk = Talk(agent)

    asyncio.run(cancelled_when(started, talk.asay("hi")))
    talk.say("more")

    sealed = talk.stored().events[2]
    assert [one.name for one in sealed.get_function_responses()] == ["look", "wait"]
    assert "taken effect" in str(sealed.get_function_responses()[1].response)
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user", "user"]
    assert talk.stored().state == {}


def test_after_a_tool_caught_the_cancellation_no_model_is_asked():
    began = asyncio.Event()

    async def catches() -> str:
        """Catch the cancellation."""
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "caught"
        return "never"

    agent = guide(call("catches"), "never", tools=[catches])
    talk = Talk(agent)

    async def cancel() -> None:
        task = asyncio.create_task(talk.asay())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SECONDS)

    asyncio.run(cancel())

    assert len(requests(agent)) == 1
    results = [one.response for event in talk.stored().events for one in event.get_function_responses()]
    assert results == [{"result": "caught"}]
    assert talk.stored().events[-1].error_code == "INVOCATION_ABORTED"


def test_a_stopped_run_and_a_failed_one_leave_no_state_behind():
    seen: list[dict[str, Any]] = []
    started = threading.Event()

    async def write_and(end: str, tool_context: ToolContext) -> str:
        """Writes, and does not come to an end."""
        tool_context.state["uncommitted"] = end
        tool_context.state["temp:scrap"] = end
        if end == "fail":
            raise ValueError("bad")
        started.set()
        await asyncio.Event().wait()
        return "never"

    def remember(callback_context: Any) -> None:
        seen.append(callback_context.state.to_dict())

    agent = guide(
        call("write_and", end="fail"), call("write_and", end="wait"), "fine", tools=[write_and],
        tool_errors="raise", before_agent_callback=remember,
    )  # fmt: skip
    talk = Talk(agent, state={"kept": 1})

    talk.say("fail")
    assert isinstance(talk.error, ValueError)
    asyncio.run(cancelled_when(started, talk.asay("wait")))
    talk.say("fine")

    assert seen == [{"kept": 1}] * 3
    assert talk.stored().state == {"kept": 1}


def test_a_run_that_is_stopped_after_its_session_was_deleted_stops_quietly():
    started = threading.Event()
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=started)))

    async def delete_and_stop() -> None:
        task = asyncio.ensure_future(talk.asay("hi"))
        await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
        await talk.service.delete_session(app_name="app", **SESSION_KEY)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SECONDS)

    asyncio.run(delete_and_stop())


def test_a_run_that_takes_too_long_may_be_timed_out():
    talk = Talk(LlmAgent(name="guide", model=Waits(asked=threading.Event())))

    async def limited() -> None:
        async with asyncio.timeout(0.05):
            await talk.asay("hi")

    with pytest.raises(TimeoutError):
        asyncio.run(limited())
    assert talk.stored().events[-1].error_code == "INVOCATION_ABORTED"


def approve(events: list[Event]) -> list[types.Part]:
    [asked] = [
        one for event in events for one in event.get_function_calls() if one.id in (event.long_running_tool_ids or ())
    ]
    return [parts.result(asked.id, APPROVAL_REQUEST, {"confirmed": True})]


def test_a_reader_that_stops_at_the_question_may_still_say_yes():
    ran: list[int] = []

    def delete() -> str:
        """Deletes."""
        ran.append(1)
        return "deleted"

    agent = guide(call("delete"), "done", tools=[FunctionTool(delete, require_confirmation=True)])
    talk = Talk(agent)
    events: list[Event] = []
    for event in talk.runner.run(**SESSION_KEY, new_message="go"):
        events.append(event)
        if event.is_final_response():
            break

    assert ran == []
    assert [what for _, what in summaries(talk.say(approve(events)))] == ["answers {'result': 'deleted'}", "done ."]
    assert ran == [1]
    assert [role for role, _ in requests(agent)[-1]] == ["user", "model", "user"]


def test_a_run_stopped_while_an_approved_tool_runs_leaves_nothing_to_approve():
    started = threading.Event()

    async def delete() -> str:
        """Deletes."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    agent = guide(call("delete"), "what now?", tools=[FunctionTool(delete, require_confirmation=True)])
    talk = Talk(agent)
    asked = talk.say("go")
    assert len(open_interrupts(talk.stored().events, APPROVALS)) == 1

    asyncio.run(cancelled_when(started, talk.asay(approve(asked))))

    assert open_interrupts(talk.stored().events, APPROVALS) == []
    sealed = talk.stored().events[-1]
    assert [one.name for one in sealed.get_function_responses()] == ["delete"]
    talk.say("hm")
    assert "taken effect" in requests(agent)[-1][2][1]


def test_an_approved_tool_that_ends_the_run_with_its_error_leaves_nothing_to_approve():
    agent = guide(call("boom"), "what now?", tools=[FunctionTool(boom, require_confirmation=True)], tool_errors="raise")
    talk = Talk(agent)

    failed = talk.say(approve(talk.say("go")))

    assert [event.error_code for event in failed] == ["ValueError"]
    assert open_interrupts(talk.stored().events, APPROVALS) == []
    assert summaries(talk.say("hm")) == [("guide", "what now? .")]
