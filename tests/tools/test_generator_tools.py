"""Tools that yield: what they say while they run reaches the caller meanwhile, and the last value is the result."""

import asyncio
import contextvars
import threading
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig
from adk_nb.events import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import FunctionTool, LongRunningFunctionTool, ToolContext, tool
from tests.support.polling import SECONDS
from tests.support.talk import Talk, guide, requests

WHERE = {"user_id": "u", "session_id": "s", "new_message": "hi"}


async def astages(n: int = 3):
    """Works."""
    for stage in range(1, n + 1):
        yield {"stage": stage}


def stages(n: int = 3):
    """Works."""
    for stage in range(1, n + 1):
        yield {"stage": stage}


def lines(events: list[Event]) -> list[tuple[str, Any, bool]]:
    """Author; output of a piece, words or results of the rest; whether it is a piece."""
    return [
        (
            event.author,
            event.output or event.text or [r.response for r in event.get_function_responses()],
            bool(event.partial),
        )
        for event in events
        if not event.get_function_calls()
    ]


def runner_of(*script: Any, tools: list[Any]) -> InMemoryRunner:
    return InMemoryRunner(guide(*script, tools=tools), auto_create_session=True)


@pytest.mark.parametrize("func", [stages, astages])
def test_all_but_the_last_value_are_progress_and_the_last_is_the_result(func: Any):
    talk = Talk(guide(call(func.__name__), "done", tools=[func]))

    events = talk.say()

    assert lines(events) == [
        (func.__name__, {"stage": 1}, True),
        (func.__name__, {"stage": 2}, True),
        ("guide", [{"stage": 3}], False),
        ("guide", "done", False),
    ]
    assert events[1].text == '{"stage": 1}' and not events[1].is_final_response()
    assert [event.author for event in talk.stored().events] == ["user", "guide", "guide", "guide"]
    id = events[0].get_function_calls()[0].id
    assert events[1].branch == f"{func.__name__}@{id}" and events[1].invocation_id == events[0].invocation_id


@pytest.mark.parametrize("func", [stages, astages])
def test_progress_reaches_the_caller_while_the_tool_runs(func: Any):
    log: list[Any] = []

    def watched():
        for item in stages():
            log.append(("made", item["stage"]))
            yield item

    async def awatched():
        for item in stages():
            log.append(("made", item["stage"]))
            yield item

    chosen = watched if func is stages else awatched
    for event in runner_of(call(chosen.__name__), "done", tools=[chosen]).run(**WHERE):
        if event.partial:
            log.append(("told", event.output["stage"]))  # noqa: PERF401  # the tool appends meanwhile

    assert log == [("made", 1), ("made", 2), ("told", 1), ("made", 3), ("told", 2)]


def test_a_sync_generator_runs_in_one_thread_and_one_context():
    variable = contextvars.ContextVar("variable", default=0)

    def counted():
        for _ in range(4):
            variable.set(variable.get() + 1)
            yield f"{threading.current_thread().name} {variable.get()}"

    async def in_a_worker() -> list[Event]:
        return [event async for event in runner_of(call("counted"), "done", tools=[counted]).run_async(**WHERE)]

    output = list(runner_of(call("counted"), "done", tools=[counted]).run(**WHERE))
    remote = asyncio.run(in_a_worker())

    outputs = [item.output for item in output if item.partial]
    assert outputs == [f"{threading.current_thread().name} {n}" for n in (1, 2, 3)]
    names = {item.output.split()[0] for item in remote if item.partial}
    assert len(names) == 1 and names.pop().startswith("adk-nb-worker")


def test_what_a_sync_generator_returns_is_its_result():
    def work():
        yield "one"
        yield "two"
        return {"all": 2}

    events = Talk(guide(call("work"), "done", tools=[work])).say()

    assert lines(events)[:3] == [("work", "one", True), ("work", "two", True), ("guide", [{"all": 2}], False)]


@pytest.mark.parametrize("items", [[], [None], [None, None]])
def test_a_generator_that_says_nothing_has_the_result_null(items: list[Any]):
    async def quiet():
        for item in items:
            yield item

    events = Talk(guide(call("quiet"), "done", tools=[quiet])).say()

    assert lines(events) == [("guide", [{"result": None}], False), ("guide", "done", False)]


def test_an_event_with_a_message_is_kept_and_no_model_is_told_of_it():
    async def work():
        yield Event(message="half way", state={"half": True})
        yield {"final": 1}

    talk = Talk(guide(call("work"), "done", "again", tools=[work]))

    events = talk.say()
    talk.say("more")

    assert lines(events) == [("work", "half way", False), ("guide", [{"final": 1}], False), ("guide", "done", False)]
    assert events[1].branch == f"work@{events[0].get_function_calls()[0].id}"
    assert talk.stored().state == {"half": True}
    assert [event.author for event in talk.stored().events][:5] == ["user", "guide", "work", "guide", "guide"]
    assert "half way" not in str(requests(talk.runner.agent))


def test_state_that_an_event_writes_is_there_when_the_tool_goes_on():
    log: list[Any] = []

    async def work(tool_context: ToolContext):
        yield Event(state={"n": 1})
        log.append((tool_context.state["n"], len(tool_context.session.events)))
        tool_context.state["m"] = 2
        yield "done"

    talk = Talk(guide(call("work"), "done", tools=[work]))
    talk.say()

    assert log == [(1, 3)]
    assert talk.stored().state == {"n": 1, "m": 2}


def test_the_output_of_an_event_is_a_value():
    async def work():
        yield Event(message="starting", output={"n": 1})
        yield Event(output={"n": 2})

    events = Talk(guide(call("work"), "done", tools=[work])).say()

    assert lines(events)[:3] == [("work", "starting", False), ("work", {"n": 1}, True), ("guide", [{"n": 2}], False)]


def test_a_tool_cannot_make_events_that_call_approve_or_hand_over():
    asks = types.Part(function_call=types.FunctionCall(id="x", name="adk_request_confirmation", args={}))
    answers = types.Part(function_response=types.FunctionResponse(id="x", name="adk_request_confirmation", response={}))

    async def work():
        part = types.Part(text="words")
        forged = Event(content=types.Content(role="model", parts=[asks, answers, part]), long_running_tool_ids={"x"})
        forged.actions.transfer_to_agent = "other"
        forged.actions.escalate = True
        forged.author = "user"
        yield forged
        yield Event(content=types.Content(role="model", parts=[asks]))
        yield "done"

    talk = Talk(guide(call("work"), "done", tools=[work]))
    events = talk.say()

    event = events[1]
    assert (event.author, event.parts, event.long_running_tool_ids) == ("work", [types.Part(text="words")], None)
    assert event.actions.transfer_to_agent is None and not event.actions.escalate
    assert lines(events)[1:] == [("guide", [{"result": "done"}], False), ("guide", "done", False)]


def test_state_that_cannot_be_kept_is_the_tools_error():
    async def work():
        yield Event(state={"bad": "\ud800"})
        yield "never"

    talk = Talk(guide(call("work"), "done", tools=[work]))

    answer = lines(talk.say())[0][1][0]
    assert "state['bad']" in answer["error"] and talk.stored().state == {}


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_generator_that_raises_has_told_what_came_before(kind: str):
    def fails():
        yield "one"
        raise ValueError("half way")

    async def afails():
        yield "one"
        raise ValueError("half way")

    func = fails if kind == "sync" else afails
    events = Talk(guide(call(func.__name__), "done", tools=[func])).say()

    assert lines(events) == [
        (func.__name__, "one", True),
        ("guide", [{"error": "ValueError: half way"}], False),
        ("guide", "done", False),
    ]


def test_generators_run_side_by_side_with_each_other_and_with_plain_tools():
    barrier = threading.Barrier(2)

    def turns(who: str):
        barrier.wait(SECONDS)
        yield f"{who} 1"
        barrier.wait(SECONDS)
        yield f"{who} done"

    async def plain() -> str:
        return "plain"

    async def run() -> list[Event]:
        script = [[call("turns", who="a"), call("plain"), call("turns", who="b")], "done"]
        return [event async for event in runner_of(*script, tools=[turns, plain]).run_async(**WHERE)]

    events = asyncio.run(run())

    assert sorted(event.output for event in events if event.partial) == ["a 1", "b 1"]
    answers = [response.response for event in events for response in event.get_function_responses()]
    assert answers == [{"result": "a done"}, {"result": "plain"}, {"result": "b done"}]


@pytest.mark.parametrize("kind", ["sync", "async", "sync in the caller's thread"])
def test_a_reader_that_leaves_closes_the_generator(kind: str):
    closed = threading.Event()

    def work():
        try:
            yield from range(1_000_000)
        finally:
            closed.set()

    async def awork():
        try:
            for n in range(1_000_000):
                yield n
        finally:
            closed.set()

    async def leave(runner: InMemoryRunner) -> None:
        async with aclosing(runner.run_async(**WHERE)) as events:
            async for event in events:
                if event.partial:
                    break

    func = awork if kind == "async" else work
    runner = runner_of(call(func.__name__), "done", tools=[func])
    if kind.endswith("thread"):
        events = runner.run(**WHERE)
        assert any(event.partial for event in events)
        events.close()
    else:
        asyncio.run(leave(runner))

    assert closed.wait(SECONDS)


def test_a_cancelled_run_closes_its_generators():
    closed = threading.Event()

    async def work():
        try:
            yield "one"
            yield "two"
            await asyncio.Event().wait()
            yield "never"
        finally:
            closed.set()

    async def run() -> None:
        runner = runner_of(call("work"), "done", tools=[work])
        lines = asyncio.Event()

        async def read() -> None:
            async for event in runner.run_async(**WHERE):
                if event.partial:
                    lines.set()

        reading = asyncio.create_task(read())
        await asyncio.wait_for(lines.wait(), SECONDS)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        session = await runner.session_service.get_session(app_name=runner.app_name, user_id="u", session_id="s")
        assert session.events[-1].get_function_responses()[0].name == "work"

    asyncio.run(run())
    assert closed.is_set()


def test_a_generator_with_confirmation_tells_once_it_is_approved():
    from_tool = FunctionTool(astages, require_confirmation=True)
    talk = Talk(guide(call("astages", n=2), "done", tools=[from_tool]))
    turn_events = talk.say()[-2:]
    request = next(call for event in turn_events for call in event.get_function_calls())

    answer = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True})
    events = talk.say([types.Part(function_response=answer)])

    rows = [line for line in lines(events) if line[0] != "user"]
    assert rows[0] == ("astages", {"stage": 1}, True)
    assert rows[-2:] == [("guide", [{"stage": 2}], False), ("guide", "done", False)]


def test_methods_partials_and_callables_that_yield():
    class Shop:
        def __init__(self, n: int) -> None:
            self.n = n

        def stages(self):
            yield from stages(self.n)

        async def __call__(self):
            for item in stages(self.n):
                yield item

    for item in (Shop(2).stages, Shop(2)):
        tool = FunctionTool(item)
        events = Talk(guide(call(tool.name), "done", tools=[tool])).say()
        assert lines(events)[:2] == [(tool.name, {"stage": 1}, True), ("guide", [{"stage": 2}], False)]


def test_a_generator_of_a_called_agent_stays_with_that_agent():
    inner = LlmAgent(name="inner", model=ScriptedLlm(call("astages"), "inside"), tools=[astages])
    outer = guide(call("helper"), "outside", sub_agents=[])

    async def helper(tool_context: ToolContext):
        """Asks."""
        yield "asking"
        runner = InMemoryRunner(inner, auto_create_session=True)
        events = [event async for event in runner.run_async(**WHERE)]
        yield {"heard": sum(bool(event.partial) for event in events)}

    outer.tools = [helper]
    events = Talk(outer).say()

    assert lines(events)[:2] == [("helper", "asking", True), ("guide", [{"heard": 2}], False)]


# --- a timeout


@pytest.mark.parametrize("kind", ["async", "sync", "async generator", "sync generator"])
def test_a_tool_that_takes_too_long_is_told_to_the_model(kind: str):
    free, closed = threading.Event(), threading.Event()

    async def slow():
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    def slow_sync():
        free.wait(SECONDS)
        closed.set()

    async def slow_items():
        try:
            yield "begun"
            await asyncio.Event().wait()
        finally:
            closed.set()

    def slow_sync_items():
        try:
            yield "begun"
            free.wait(SECONDS)
            yield "late"
        finally:
            closed.set()

    func = {"async": slow, "sync": slow_sync, "async generator": slow_items, "sync generator": slow_sync_items}[kind]
    built = tool(timeout=0.5, name="slow")(func)

    events = Talk(guide(call("slow"), "done", tools=[built])).say()
    free.set()

    (_, [result], _), last = lines(events)[-2:]
    assert "TimeoutError: slow()" in result["error"] and "after 0.5 seconds" in result["error"]
    assert ("may take effect" in result["error"]) == kind.startswith("sync")
    assert last == ("guide", "done", False)
    assert closed.wait(SECONDS)


def test_a_sync_tool_with_a_timeout_runs_in_a_worker_thread_and_a_quick_one_has_its_result():
    def where() -> str:
        return threading.current_thread().name

    for timed_tool in (FunctionTool(where, timeout=SECONDS), LongRunningFunctionTool(where, timeout=SECONDS)):
        events = list(runner_of(call("where"), "done", tools=[timed_tool]).run(**WHERE))
        assert lines(events)[0][1][0]["result"].startswith("adk-nb-worker")


def test_a_timeout_error_of_a_tools_own_is_told_as_it_is():
    async def own() -> None:
        raise TimeoutError("the server is slow")

    events = Talk(guide(call("own"), "done", tools=[FunctionTool(own, timeout=SECONDS)])).say()

    assert lines(events)[0][1] == [{"error": "TimeoutError: the server is slow"}]


def test_a_late_tool_ends_the_run_where_errors_of_tools_do():
    async def slow() -> None:
        await asyncio.Event().wait()

    talk = Talk(guide(call("slow"), "done", tools=[FunctionTool(slow, timeout=0.01)]))
    talk.say(config=RunConfig(tool_errors="raise"))

    assert isinstance(talk.error, TimeoutError)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "2"])
def test_a_timeout_of_no_seconds_is_refused(seconds: Any):
    with pytest.raises(ValueError, match=r"tool 'stages': timeout.*positive number of seconds"):
        FunctionTool(stages, timeout=seconds)
