"""Services that fail: the run ends with one error or goes on as configured, what was committed stays, and the next
message works.
"""

import logging
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.graph_compose import (
    GraphCompose,
    WorkflowHandle,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
)
from adk_nb.runners import InMemoryRunner
from tests.graph_compose.test_flow_signals import LOOK, asked, graph_of, ran, say
from tests.support.http_service import Answer, Service

ONCE = {"retryPolicy": {"maximumAttempts": 1}}


BROKEN: dict[str, tuple[Answer, str]] = {
    "500": (Answer(b"", 500), "HTTP_500"),
    "429": (Answer(b"", 429, {"Retry-After": "0"}), "HTTP_429"),
    "302": (Answer(b"", 302, {"Location": "/a"}), "HTTP_302"),
    "garbage": (Answer(b"\xff garbage"), "INVALID_RESPONSE"),
    "HTML": (Answer(b"<html>", headers={"Content-Type": "text/html"}), "INVALID_RESPONSE"),
    "no call": (Answer({"toolCalls": [{"function_args": {}}]}), "INVALID_RESPONSE"),
    "half": (Answer({"content": "half a body"}, cut=9), "HTTP_CONNECTION"),
    "killed": (Answer({"content": "half a body"}, cut=9, reset=True), "HTTP_CONNECTION"),
    "silent": (Answer(silent=True), "HTTP_CONNECTION"),
}


def agent(service: Service, name: str, **kwargs: Any) -> Any:
    return create_llm_agent(
        id=name,
        http_config={"url": f"{service.url}/{name}"},
        **{"activity_config": ONCE, "output_key": name, **kwargs},
    )


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("container", ["sequence", "loop", "parallel"])
def test_a_failing_service_ends_the_run_with_one_error_and_the_next_message_works(
    service: Service, container: str, kind: str
):
    answer, code = BROKEN[kind]
    agents = {"id": "root", "sub_agents": ["a", "b"]}
    if container == "sequence":
        root, earlier_texts = create_sequential_agent(agents), ["a"]
    elif container == "loop":
        root, earlier_texts = create_loop_agent({**agents, "maxAgentLoopIterations": 1}), ["a"]
    else:
        root, earlier_texts = create_parallel_agent(agents), []
    say(service, b=answer)
    service.make("/a", lambda request: {"content": "A"})
    impatient = {**ONCE, "startToCloseTimeout": "50ms"} if answer.silent else ONCE
    graph = graph_of(service, root, agent(service, "a"), agent(service, "b", activity_config=impatient))

    async def talk() -> tuple[WorkflowHandle, list[Any]]:
        handle = await graph.start()
        handle.runner.agent.find_agent("b").model.timeout = 60
        failed = handle.get_latest_orchestration_result()
        events = await handle.get_session_events()
        service.say_now("/b", {"content": "B"})
        return handle, [failed, events, await handle.receive_message("again")]

    _, (failed, events, repeated) = sync.run(talk())
    assert failed.error_details["error_code"] == code and failed.error_details["agent"] == "b"
    assert [event.error_code for event in events if event.error_code] == [code]
    assert all(failed.session_state[name] == "A" for name in earlier_texts)
    assert (repeated.error_details, repeated.session_state["a"], repeated.session_state["b"]) == (None, "A", "B")


def test_a_service_that_is_killed_between_two_agents_loses_nothing():
    with Service() as first, Service() as second:
        line = create_sequential_agent(id="line", sub_agents=["a", "b"])

        def last_words(request: Any) -> Any:
            return {"content": "A"}

        first.make("/a", last_words)
        second.close()
        result = ran(graph_of(first, line, agent(first, "a"), agent(second, "b")))
    assert result.error_details and result.error_details["error_code"] == "HTTP_CONNECTION"
    assert result.session_state["a"] == "A" and result.final_response_text == "A"


def test_a_busy_service_is_asked_again_as_its_activity_says(service: Service, caplog: pytest.LogCaptureFixture):
    patient = {"retryPolicy": {"maximumAttempts": 4, "initialInterval": "1ms", "backoffCoefficient": 1}}
    later = Answer(b"", 429, {"Retry-After": "0"})
    say(service, a=[Answer(b"", 503), later, Answer({}, cut=0), {"content": "A"}])
    with caplog.at_level(logging.WARNING):
        result = ran(graph_of(service, agent(service, "a", activity_config=patient)))
    assert (result.error_details, result.final_response_text, len(service.asked)) == (None, "A", 4)
    assert [record.getMessage().partition("asking again")[1] for record in caplog.records] == ["asking again"] * 3


# ---- tools


def with_tool(service: Service, **tool: Any) -> GraphCompose:
    graph = GraphCompose(secrets={"token": "tool-secret-99"})
    config = create_http_tool(
        id="look", **{"activity_config": ONCE, "http_config": {"url": f"{service.url}/look"}, **tool}
    )
    graph.adk("tools").with_workflow(
        lambda b: b.root_agent("a").agent(agent(service, "a", tools=["look"])).http_tool(config).build()
    )
    return graph


def tool_result(service: Service, graph: GraphCompose) -> Any:
    service.say("/a", LOOK, {"content": "Well.", "exitFlow": True})
    result = sync.run(graph.execute("go"))
    assert result.error_details is None
    [text] = service.bodies("/a")[-1]["messages"][-1]["content"]
    return text["function_response"]["response"]


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (Answer({"why": "no such thing"}, 404), 404, "no such thing"),
        (Answer(b"busy", 503), 503, "busy"),
        (Answer(b"", 302, {"Location": "/elsewhere"}), 302, "302"),
        (Answer({"half": "body"}, cut=4), None, "RemoteProtocolError"),
    ],
)
def test_a_failing_tool_is_reported_to_the_agent(service: Service, answer: Answer, status: int | None, text: str):
    service.say("/look", answer)
    lines = tool_result(service, with_tool(service, http_config={"url": f"{service.url}/look", "method": "GET"}))
    assert lines["status_code"] == status and text in lines["error"]
    assert "elsewhere" not in asked(service)


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (Answer(b"\xff\xfehello"), {"result": "\ufffd\ufffdhello"}),
        (Answer(b"<html>"), {"result": "<html>"}),
        (Answer(b""), {"result": ""}),
        (Answer(b"null"), {"result": None}),
        (Answer({"error": "no such customer"}), {"error": "no such customer"}),
        (Answer(b'{"n": NaN}'), "JSON: the number nan"),
        (Answer(b'{"n": 1e999}'), "JSON: the number inf"),
        (Answer(b'{"n": "\\ud800"}'), "JSON: text with half"),
        (Answer(b"[" * 150 + b"]" * 150), "JSON: lists and dicts"),
        (Answer(b"x" * (8 * 1024 * 1024 + 1)), "8,388,608 bytes"),
        (Answer(b"x", headers={"Content-Encoding": "gzip, gzip"}), "packed more than once"),
        (Answer({"half": "body"}, cut=4, reset=True), "look: ReadError: the connection broke"),
        (Answer(b"", 404), "look: HTTP 404"),
    ],
)
def test_what_a_tool_answers_is_told_and_kept_and_what_is_no_answer_is_told_alone(
    service: Service, answer: Answer, lines: Any
):
    service.say("/look", answer)
    service.say("/a", LOOK, {"content": "Well.", "exitFlow": True})
    result = sync.run(with_tool(service, output_key="found").execute("go"))
    assert result.error_details is None
    [text] = service.bodies("/a")[-1]["messages"][-1]["content"]
    response = text["function_response"]["response"]
    assert response == lines if isinstance(lines, dict) else lines in response["error"]
    assert result.session_state.get("found") == (lines if isinstance(lines, dict) else None)


def test_a_tool_that_is_too_slow_is_told_to_the_agent(service: Service):
    service.say("/look", Answer(silent=True))
    activity = {**ONCE, "startToCloseTimeout": 0.05}
    assert "TimeoutError" in tool_result(service, with_tool(service, activity_config=activity))["error"]


def test_a_busy_tool_is_called_again(service: Service):
    service.say("/look", Answer(b"", 500), Answer(b"", 429, {"Retry-After": "0"}), {"seen": 1})
    activity = {"retryPolicy": {"maximumAttempts": 3, "initialInterval": "1ms"}}
    assert tool_result(service, with_tool(service, activity_config=activity)) == {"seen": 1}


def test_a_tool_may_give_the_answer_as_it_came(service: Service):
    service.say("/look", Answer([1], headers={"X-Page": "1"}))
    raw = tool_result(service, with_tool(service, raw=True))
    assert (raw["status_code"], raw["body"], raw["error"], raw["headers"]["x-page"]) == (200, [1], None, "1")


def test_a_tool_is_filled_in_and_its_secret_is_kept_from_agents_and_state(service: Service):
    service.make("/shops/a%2Fb", lambda request: {"echo": request.headers["authorization"]})
    http = {
        "url": f"{service.url}/shops/{{{{state.shop}}}}",
        "headers": {"Authorization": "Bearer {{$secret('token')}}"},
        "body": {"shop": "{{state.shop}}"},
    }
    graph = with_tool(service, http_config=http, output_key="found")
    graph.workflow.state = {"shop": "a/b"}
    lines = tool_result(service, graph)
    [request] = [request for request in service.asked if request.path.startswith("/shops")]
    assert request.headers["authorization"] == "Bearer tool-secret-99"
    assert (request.body["shop"], request.body["session_state"]) == ("a/b", {"shop": "a/b"})
    assert lines == service.bodies("/a")[-1]["state"]["found"] == {"echo": "[secret]"}
    assert "tool-secret-99" not in str(service.bodies("/a"))


def test_wrong_arguments_do_not_reach_a_tool_with_a_schema(service: Service):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    lines = tool_result(service, with_tool(service, parameters=schema))
    assert "wrong arguments" in lines["error"] and "look" not in asked(service)
    assert service.bodies("/a")[0]["tools"][0]["function"]["parameters"] == schema


def test_an_app_runs_in_any_runner(service: Service):
    say(service, a=[Answer(b"", 500), {"content": "A"}])
    runner = InMemoryRunner(app=graph_of(service, agent(service, "a")).to_app())

    async def talk() -> list[str]:
        events: list[Any] = []
        for message in ("one", "two"):
            try:
                events += await runner.run_debug(message, quiet=True)
            except Exception as error:
                events.append(error)
        return [str(getattr(event, "text", "") or event) for event in events]

    first, second = sync.run(talk())
    assert "HTTP 500" in first and second == "A"
