"""Calls that go wrong: the model hears what happened, in call order, and the run goes on, or ends if told to."""

import asyncio
import threading
from typing import Any

import pytest

from adk_nb.agents import LlmAgent, RunConfig
from adk_nb.agents.run_config import ToolThreadPoolConfig
from adk_nb.errors import LlmCallsLimitExceededError
from adk_nb.events import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.tools import BaseTool, FunctionTool, ToolContext
from tests.support.each import each
from tests.support.polling import SECONDS, patience
from tests.support.talk import Talk, summaries
from tests.support.transcripts import result_line


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def weather(city: str) -> str:
    """How is the weather?"""
    return f"{city}: sunny"


def boom() -> None:
    raise ValueError("bad")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def talk(*answers: Any, tools: list[Any], **fields: Any) -> Talk:
    return Talk(LlmAgent(name="guide", model=ScriptedLlm(*answers), tools=tools, **fields))


def test_an_unknown_tool_is_answered_with_the_closest_name():
    agent = talk(call("wether", city="Oslo"), "done", tools=[weather, boom])

    [result] = results(agent.say())
    for fact in ("wether() was not called", "mean weather()?", "weather, boom"):
        assert fact in result["error"]
    assert agent.error is None


@pytest.mark.parametrize("name", ["", "x" * 10_000, "a.b c\n", "\u00e9\u202e", "weather\u200b", "\ud800"])
def test_odd_names_are_unknown_tools(name: str):
    agent = talk(call(name), "done", tools=[weather])
    events = agent.say()

    [answer] = results(events)
    assert "no such tool" in answer["error"] and len(answer["error"]) < 400
    assert events[-1].text == "done"


def test_an_agent_without_tools_says_so():
    assert "are: none." in results(talk(call("x"), "done", tools=[]).say())[0]["error"]


def test_an_unknown_tool_is_shown_to_callbacks_which_may_answer():
    log: list[Any] = []

    def on_error(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception) -> None:
        log.append((tool.name, args, type(error).__name__))

    def run_before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        return {"instead": tool.name}

    agent = talk(
        call("wether", city="Oslo"),
        "done",
        tools=[weather],
        on_tool_error_callback=on_error,
        before_tool_callback=run_before,
        tool_errors="raise",
    )

    assert results(agent.say()) == [{"instead": "wether"}]
    assert log == [("wether", {"city": "Oslo"}, "ToolNotFoundError")]


@each(
    "error, text",
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (Exception(), "Exception: "),
        (Unspeakable(), "Unspeakable: its message cannot be read (RuntimeError)"),
        (RuntimeError("x" * 10_000), "RuntimeError: " + "x" * 2_000),
        (ValueError("\ud800"), "ValueError: ?"),
        (ExceptionGroup("many", [ValueError("a")]), "ExceptionGroup: many (1 sub-exception)"),
        (StopAsyncIteration("x"), None),
        (StopIteration("x"), None),
        (RecursionError("deep"), "RecursionError: deep"),
        (MemoryError(), "MemoryError: "),
        (TimeoutError("late"), "TimeoutError: late"),
        (BrokenPipeError(32, "pipe"), "BrokenPipeError: [Errno 32] pipe"),
    ],
)
@each("is_async", [False, True])
def test_a_raising_tool_tells_the_model_and_the_run_goes_on(error: Exception, text: str | None, is_async: bool):
    def fail() -> None:
        raise error

    async def afail() -> None:
        raise error

    tool = afail if is_async else fail
    agent = talk(call(tool.__name__), "sorry", tools=[tool])
    events = agent.say()

    [answer] = results(events)
    assert answer == {"error": text} if text is not None else "error" in answer
    assert agent.error is None and events[-1].text == "sorry"


@pytest.mark.parametrize("calls", [1, 2])
def test_a_task_group_that_fails_inside_a_tool_is_that_tools_error_and_no_end_of_the_run(calls: int):
    async def fetch(number: int) -> None:
        await asyncio.sleep(0)
        raise ValueError(f"no page {number}")

    async def pages() -> str:
        """Fetches pages."""
        async with asyncio.TaskGroup() as group:
            group.create_task(fetch(1))
        return "all"

    agent = talk([call("pages") for _ in range(calls)], "sorry", tools=[pages])
    events = agent.say()

    assert agent.error is None and events[-1].text == "sorry"
    assert ["sub-exception" in result["error"] for result in results(events)] == [True] * calls


@pytest.mark.parametrize("place", ["agent", "run"])
def test_where_tool_errors_end_the_run_the_error_is_told_and_raised(place: str):
    agent = talk(call("boom"), "never", tools=[boom], tool_errors="raise" if place == "agent" else "return")
    events = agent.say(config=RunConfig(tool_errors="raise") if place == "run" else None)

    assert summaries(events) == [
        ("guide", "calls boom({})"),
        ("guide", f"{result_line(error='ValueError: bad')} failed ValueError ."),
    ]
    assert events[-1].error_message == "bad"
    assert isinstance(agent.error, ValueError)
    assert summaries(agent.stored().events)[1:] == summaries(events)


def test_a_run_may_say_that_errors_go_to_the_model_after_all():
    agent = talk(call("boom"), "sorry", tools=[boom], tool_errors="raise")

    assert results(agent.say(config=RunConfig(tool_errors="return"))) == [{"error": "ValueError: bad"}]


@pytest.mark.parametrize("mode", ["return", "raise"])
def test_a_callback_may_answer_for_a_raising_tool(mode: str):
    def on_error(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception) -> dict[str, Any]:
        return {"handled": str(error)}

    agent = talk(call("boom"), "done", tools=[boom], tool_errors=mode, on_tool_error_callback=on_error)

    assert results(agent.say()) == [{"handled": "bad"}]
    assert agent.error is None


def test_a_limit_on_model_calls_ends_the_run_even_from_inside_a_tool():
    def ask() -> None:
        raise LlmCallsLimitExceededError("enough")

    agent = talk(call("ask"), "never", tools=[ask])
    agent.say()

    assert isinstance(agent.error, LlmCallsLimitExceededError)


def test_after_an_error_the_next_turn_is_a_normal_one():
    agent = talk(call("boom"), "hello", tools=[boom], tool_errors="raise")
    agent.say()

    assert agent.say()[-1].text == "hello"
    assert [content.role for content in agent.runner.agent.model.requests[-1].contents] == [
        "user",
        "model",
        "user",
        "user",
    ]


def test_parallel_calls_run_side_by_side_and_are_answered_in_call_order():
    meet = threading.Barrier(3, timeout=30)
    ended: list[str] = []

    async def wait(name: str) -> str:
        await asyncio.to_thread(meet.wait)
        for _ in range({"a": 50, "b": 25, "c": 0}[name]):
            await asyncio.sleep(0)
        ended.append(name)
        return name

    agent = talk([call("wait", name=name) for name in "abc"], "done", tools=[wait])
    events = agent.say()

    assert results(events) == [{"result": name} for name in "abc"]
    assert len(events) == 3 and sorted(ended) == ["a", "b", "c"]
    calls = [call.id for call in events[0].get_function_calls()]
    assert [response.id for response in events[1].get_function_responses()] == calls and len(set(calls)) == 3


def test_a_hundred_calls_in_threads_run_side_by_side():
    meet = threading.Barrier(100, timeout=patience(30))

    def wait(number: int) -> int:
        return meet.wait()

    agent = talk(
        [call("wait", number=number) for number in range(100)], "done", tools=[FunctionTool(wait, thread=True)]
    )

    assert sorted(result["result"] for result in results(agent.say())) == list(range(100))


def test_one_failing_call_does_not_touch_the_others():
    agent = talk(
        [call("weather", city="Oslo"), call("boom"), call("nope"), call("weather")], "done", tools=[weather, boom]
    )

    answers = results(agent.say())

    assert answers[0] == {"result": "Oslo: sunny"}
    assert answers[1] == {"error": "ValueError: bad"}
    assert "no such tool" in answers[2]["error"] and "city" in answers[3]["error"]


def test_where_one_error_ends_the_run_what_others_did_is_told_first():
    cancelled: list[bool] = []

    async def fail() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        raise ValueError("bad")

    async def good(tool_context: ToolContext) -> dict[str, int]:
        tool_context.state["good"] = 1
        return {"g": 1}

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    agent = talk([call("good"), call("fail"), call("endless")], tools=[good, fail, endless], tool_errors="raise")
    events = agent.say()

    assert summaries(events)[1] == ("guide", "answers {'g': 1} => {'good': 1}")
    assert summaries(events)[2][1].startswith(f"{result_line(error='ValueError: bad')}; answers {{'error': ")
    assert summaries(events)[2][1].endswith(" failed ValueError .") and len(events) == 3
    assert isinstance(agent.error, ValueError) and cancelled == [True]
    assert agent.stored().state == {"good": 1}


def test_what_a_thread_has_finished_counts_although_another_call_has_just_ended_the_run():
    go, is_over = threading.Event(), threading.Event()
    has_failed = asyncio.Event()

    def stamp(tool_context: ToolContext) -> str:
        assert go.wait(SECONDS)
        tool_context.state["stamped"] = True
        return "stamped"

    def follow() -> None:
        is_over.set()  # in the only thread, so `stamp` is over

    async def hold() -> None:
        await has_failed.wait()
        # The loop is busy here between the error and the end of the step, and hears of `stamp` after it.
        go.set()
        assert is_over.wait(SECONDS)

    async def fail() -> None:
        has_failed.set()
        raise ValueError("bad")

    agent = talk(
        [call("stamp"), call("follow"), call("hold"), call("fail")],
        tools=[stamp, follow, hold, fail],
        tool_errors="raise",
    )
    events = agent.say(config=RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=1), timeout=SECONDS))

    assert results(events)[0] == {"result": "stamped"}
    assert isinstance(agent.error, ValueError) and agent.stored().state == {"stamped": True}


@pytest.mark.slow
def test_two_hundred_calls_at_once():
    ns: list[int] = []

    def count(n: int) -> int:
        ns.append(n)
        return n

    async def acount(n: int) -> int:
        await asyncio.sleep(0)
        return count(n)

    for tool in (count, acount):
        ns.clear()
        agent = talk([call(tool.__name__, n=n) for n in range(200)], "done", tools=[tool])
        assert results(agent.say()) == [{"result": n} for n in range(200)]
        assert sorted(ns) == list(range(200))


def test_of_two_calls_with_one_id_both_run_and_are_told_apart():
    first, second = call("weather", city="Oslo"), call("weather", city="Rome")
    first.function_call.id = second.function_call.id = "X"
    agent = talk([first, second], "done", tools=[weather])
    events = agent.say()

    ids = [response.id for response in events[1].get_function_responses()]
    assert results(events) == [{"result": "Oslo: sunny"}, {"result": "Rome: sunny"}]
    assert ids[0] == "X" and len(set(ids)) == 2
    assert ids == [call.id for call in events[0].get_function_calls()]


def test_an_id_that_a_model_uses_again_in_a_later_step_is_a_new_call():
    def named(city: str):
        part = call("weather", city=city)
        part.function_call.id = "X"
        return part

    agent = talk(named("Oslo"), named("Rome"), "done", tools=[weather])

    assert results(agent.say()) == [{"result": "Oslo: sunny"}, {"result": "Rome: sunny"}]


def test_arguments_nested_too_deeply_to_copy_are_refused():
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    agent = talk(call("weather", city=deep), "done", tools=[weather])

    [result] = results(agent.say())
    assert "weather() was not" in result["error"] and "100 deep" in result["error"]


def test_callbacks_may_replace_a_result_with_anything():
    def run_after(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any) -> Any:
        return {"was": tool_response, "set": {1}}

    agent = talk(call("weather", city="Oslo"), "done", tools=[weather], after_tool_callback=run_after)

    assert results(agent.say()) == [{"was": "Oslo: sunny", "set": [1]}]
