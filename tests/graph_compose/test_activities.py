"""`activityConfig`: how long a service, a local model or a function may take, and how often it is asked again."""

import asyncio
import logging
import threading
import urllib.error
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.errors import ConfigurationError, ModelHTTPError
from adk_nb.graph_compose import (
    GraphCompose,
    WorkflowResult,
    create_function_tool,
    create_http_tool,
    create_llm_agent,
    createFunctionTool,
)
from adk_nb.models import HttpLlm, ScriptedLlm, call
from tests.support.each import each
from tests.support.http_service import Answer, Service

SOON = {"maximumAttempts": 3, "initialInterval": "1ms"}
CHAT = {"url": "http://127.0.0.1:1/chat"}


def with_function(tool: Any, *answers: Any) -> GraphCompose:
    graph = GraphCompose()
    agent = create_llm_agent(id="a", model=ScriptedLlm(*answers), tools=["work"], output_key="said")
    graph.adk("flow").with_workflow(lambda b: b.root_agent("a").agent(agent).function_tool(tool).build())
    return graph


def ran(graph: GraphCompose) -> tuple[WorkflowResult, list[Any]]:
    """What came of it, and what its tool answered."""

    async def run() -> tuple[WorkflowResult, list[Any]]:
        handle = await graph.start("go")
        events = await handle.get_session_events()
        result = handle.get_latest_orchestration_result()
        assert result is not None
        return result, [one.response for event in events for one in event.get_function_responses()]

    return sync.run(run())


# ---- what it says


@pytest.mark.parametrize(
    ("given", "one", "all_of_them", "attempts", "first", "growth", "most"),
    [
        ({}, 60, 300, 3, 1, 2, 60),
        ({"startToCloseTimeout": "500ms"}, 0.5, 300, 3, 1, 2, 60),
        ({"startToCloseTimeout": "5m"}, 300, 1_200, 3, 1, 2, 60),
        ({"startToCloseTimeout": "1h", "scheduleToCloseTimeout": "2h"}, 3_600, 7_200, 3, 1, 2, 60),
        ({"start_to_close_timeout": 90, "schedule_to_close_timeout": 100.5}, 90, 100.5, 3, 1, 2, 60),
        ({"startToCloseTimeout": "1.5", "retryPolicy": {"maximumAttempts": 0}}, 1.5, 300, 3, 1, 2, 60),
        (
            {
                "retryPolicy": {
                    "maximumAttempts": 7,
                    "initialInterval": "2s",
                    "backoffCoefficient": 1.5,
                    "maximumInterval": "10s",
                }
            },
            60,
            480,
            7,
            2,
            1.5,
            10,
        ),
    ],
)
def test_times_and_attempts_reach_the_service_agent(
    given: Any, one: float, all_of_them: float, attempts: int, first: float, growth: float, most: float
):
    graph = GraphCompose()
    agent = create_llm_agent(id="a", http_config=CHAT, activity_config=given)
    graph.adk("flow").with_workflow(lambda b: b.root_agent("a").agent(agent).build())
    model = graph.to_app().root_agent.model
    assert isinstance(model, HttpLlm) and model.retry_options
    assert (model.timeout, model.total_timeout) == (one, all_of_them)
    options = model.retry_options
    assert (options.attempts, options.initial_delay, options.exp_base, options.max_delay, options.jitter) == (
        attempts,
        first,
        growth,
        most,
        0,
    )


@each(
    "given, says",
    [
        ({"startToCloseTimeout": "soon"}, "'500ms', '60s', '5m', '1h'"),
        ({"startToCloseTimeout": 0}, "greater than 0"),
        ({"startToCloseTimeout": "-1s"}, "'500ms', '60s', '5m', '1h'"),
        ({"scheduleToCloseTimeout": "1d"}, "'500ms', '60s', '5m', '1h'"),
        ({"retryPolicy": {"maximumAttempts": -1}}, "maximumAttempts"),
        ({"retryPolicy": {"backoffCoefficient": 0.9}}, "backoffCoefficient"),
        ({"retryPolicy": 3}, "retryPolicy"),
        ({"timeout": "60s"}, "'timeout'; .*startToCloseTimeout, scheduleToCloseTimeout, retryPolicy"),
    ],
)
def test_times_and_attempts_that_cannot_be_are_refused(given: Any, says: str):
    with pytest.raises(ConfigurationError, match=says):
        create_llm_agent(id="a", http_config=CHAT, activity_config=given)


@pytest.mark.parametrize("kind", ["agent", "tool"])
def test_all_attempts_of_a_service_together_have_their_time(service: Service, kind: str):
    patience = {
        "startToCloseTimeout": "20ms",
        "scheduleToCloseTimeout": "100ms",
        "retryPolicy": {"maximumAttempts": 1_000, "initialInterval": "1ms", "backoffCoefficient": 1},
    }
    silent, http = Answer(silent=True), {"url": f"{service.url}/silent"}
    service.make("/silent", lambda asked: silent)
    model = ScriptedLlm(call("look"), "Well.")
    agent = {"id": "a", "tools": ["look"]} | (
        {"http_config": http, "activity_config": patience} if kind == "agent" else {"model": model}
    )
    tool = create_http_tool(id="look", http_config=http, activity_config=patience)
    graph = GraphCompose()
    graph.adk("flow").with_workflow(lambda b: b.root_agent("a").agent(create_llm_agent(agent)).http_tool(tool).build())
    result, told = ran(graph)
    assert len(service.asked) < 100
    if kind == "agent":
        assert result.error_details and result.error_details["error_code"] == "HTTP_CONNECTION"
        assert "ToCloseTimeout" in result.error_details["error_message"]  # of the last attempt, or of all of them
    else:
        [response] = told
        assert response["error"].startswith("look: TimeoutError: ") and response["status_code"] is None


# ---- local models


def test_a_local_model_is_asked_again_after_what_may_pass_and_not_after_other_errors(
    caplog: pytest.LogCaptureFixture,
):
    model = ScriptedLlm(
        ModelHTTPError(503, "busy", "m"), ConnectionResetError(), "at last", ModelHTTPError(400, "", "m")
    )
    graph = GraphCompose()
    agent = create_llm_agent(id="a", model=model, activity_config={"retryPolicy": SOON})
    graph.adk("flow").with_workflow(lambda b: b.root_agent("a").agent(agent).build())
    with caplog.at_level(logging.WARNING):
        assert sync.run(graph.execute("go")).final_response_text == "at last"
    assert [one.getMessage()[-8:] for one in caplog.records] == [" (try 2)", " (try 3)"]
    failed = sync.run(graph.execute("go"))
    assert failed.error_details and "HTTP 400" in failed.error_details["error_message"]


# ---- functions


@pytest.mark.parametrize("args", [{"n": "many"}, {}], ids=str)
def test_a_call_that_was_not_made_keeps_nothing(args: Any):
    def work(n: int) -> int:
        """Works."""
        return n

    result, [told] = ran(with_function(create_function_tool(work, output_key="worked"), call("work", **args), "Well."))
    assert "was not called" in told["error"] and "worked" not in result.session_state


def test_a_function_is_a_tool_and_keeps_its_result_in_the_state():
    def work(n: int) -> dict[str, int]:
        """Works."""
        return {"done": n}

    tool = create_function_tool(work, output_key="worked")
    assert tool == createFunctionTool(work, outputKey="worked")
    result, told = ran(with_function(tool, call("work", n=3), "Well."))
    assert told == [{"done": 3}]
    assert (result.session_state["worked"], result.session_state["said"]) == ({"done": 3}, "Well.")


class Refused(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


def gone() -> Exception:
    """As clients raise it: an error of their own, with the system's as its cause."""
    error = RuntimeError("no connection")
    error.__cause__ = ConnectionRefusedError()
    return error


@each(
    "error, times",
    [
        (ConnectionResetError(), 3),
        (TimeoutError(), 3),
        (urllib.error.URLError("no such host"), 3),
        (gone(), 3),
        (Refused(408), 3),
        (Refused(429), 3),
        (Refused(503), 3),
        (Refused(404), 1),
        (ValueError("a mistake"), 1),
        (FileNotFoundError("no such file"), 1),
    ],
)
def test_a_function_is_called_again_after_what_may_pass(error: Exception, times: int):
    called: list[int] = []

    def work() -> str:
        """Works."""
        called.append(1)
        if len(called) < 3:
            raise error
        return "done"

    tool = create_function_tool(work, activity_config={"retryPolicy": SOON})
    _, [told] = ran(with_function(tool, call("work"), "Well."))
    assert len(called) == times
    assert ("error" in told) == (times == 1)


def test_without_an_activity_a_function_is_called_once():
    called: list[int] = []

    def work() -> None:
        """Works."""
        called.append(1)
        raise ConnectionResetError

    ran(with_function(work, call("work"), "Well."))
    assert called == [1]


@pytest.mark.parametrize("limit", ["startToCloseTimeout", "scheduleToCloseTimeout"])
def test_a_function_that_takes_too_long_is_left_and_the_agent_is_told(limit: str):
    async def work() -> None:
        """Waits for ever."""
        await asyncio.Event().wait()

    activity = {limit: "20ms", "retryPolicy": {"maximumAttempts": 2, "initialInterval": "1ms"}}
    result, [told] = ran(with_function(create_function_tool(work, activity_config=activity), call("work"), "Well."))
    assert "TimeoutError" in told["error"] and result.final_response_text == "Well."


def test_a_sync_function_is_given_another_attempt_when_one_takes_too_long():
    called: list[int] = []
    ended = threading.Event()

    def work() -> str:
        """Hangs once."""
        called.append(1)
        if len(called) == 1:
            ended.wait(30)
        return "done"

    activity = {"startToCloseTimeout": "500ms", "retryPolicy": {"maximumAttempts": 9, "initialInterval": "1ms"}}
    _, told = ran(with_function(create_function_tool(work, activity_config=activity), call("work"), "Well."))
    ended.set()
    assert told == [{"result": "done"}]
    assert len(called) > 1  # a busy machine may take more than two


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: create_function_tool("work"), "takes a function, got 'work'"),
        (lambda: create_function_tool(lambda: 1), "a lambda has no name"),
        (lambda: create_function_tool(print, id="p", timeout=3), "timeout"),
        (lambda: with_function(create_function_tool(print, id="work"), "x").to_dict(), "JSON cannot hold"),
    ],
)
def test_a_function_tool_put_together_wrongly_says_what_to_write(make: Any, says: str):
    with pytest.raises(ConfigurationError, match=says):
        make()
