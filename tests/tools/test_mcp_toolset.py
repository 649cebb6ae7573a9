"""Tools of MCP servers, with real ones: a program on its input and output, and services on this machine."""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError, MissingExtraError
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools.mcp_tool import (
    McpToolset,
    SseConnectionParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from tests.support.each import each
from tests.support.late import late
from tests.support.polling import eventually
from tests.support.talk import Talk, summaries
from tests.tools import hostile_mcp_server
from tests.tools.mcp_talk import STARTING, Service, ask, stdio, web

mcp_types, mcp_server = late("mcp.types"), late("tests.tools.mcp_server")


@pytest.fixture(scope="module")
def program() -> Iterator[McpToolset]:
    """One program for all tests that do it no harm: to start one takes long."""
    os.environ["A_SECRET_OF_THIS_PROCESS"] = "x"
    toolset = McpToolset(connection_params=stdio(env={"OWN": "1"}))
    yield toolset
    sync.run(toolset.close())
    del os.environ["A_SECRET_OF_THIS_PROCESS"]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


def connections() -> set[Any]:
    return {task for task in asyncio.all_tasks(sync.loop()) if task.get_name() == "adk-nb-mcp"}


def names(toolset: McpToolset) -> list[str]:
    return [tool.name for tool in sync.run(toolset.get_tools_with_prefix())]


def test_a_program_s_tools_are_offered_by_name(program: McpToolset, caplog: pytest.LogCaptureFixture):
    tools = {tool.name: tool for tool in sync.run(program.get_tools())}

    assert list(tools) == ["add", "ask", "count", "die", "environment", "fail", "hang", "learn", "picture", "who"]
    declared = tools["add"].declaration
    assert declared and declared.description == "Adds two numbers."
    assert declared.parameters_json_schema["properties"]["a"] == {"minimum": 0, "title": "A", "type": "integer"}
    assert "'adk_request_confirmation' is left" in caplog.text


def test_arguments_in_alternatives_or_under_any_name_are_declared_as_the_server_has_them():
    program = StdioServerParameters(command=sys.executable, args=[hostile_mcp_server.__file__, "open schemas"])
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=STARTING))
    names = list(hostile_mcp_server.OPEN_SCHEMAS)
    model = ScriptedLlm([call(name, id="7") for name in names], [call(name, id=7) for name in names], "done")
    talk = Talk(LlmAgent(name="a", model=model, tools=[toolset]))

    events = talk.say()

    sync.run(toolset.close())
    [offered] = model.requests[0].config.tools or ()
    declared = {function.name: function.parameters_json_schema for function in offered.function_declarations or ()}
    assert declared == hostile_mcp_server.OPEN_SCHEMAS
    responses = [response.response or {} for event in events for response in event.get_function_responses()]
    assert ["error" in response for response in responses] == [False] * len(names) + [True] * len(names)


def test_a_call_gives_content_and_structure(program: McpToolset):
    assert ask(program, "add", a=2, b=3) == {
        "content": [{"type": "text", "text": "5"}],
        "structuredContent": {"result": 5},
        "isError": False,
    }


def test_a_picture_is_base64_in_the_event_and_goes_to_the_model_beside_the_result(program: McpToolset):
    model, heard = ScriptedLlm(call("picture"), "nice"), list[Any]()

    def after_tool(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        heard.append(tool_response["content"][0]["data"])

    talk = Talk(LlmAgent(name="a", model=model, tools=[program], after_tool_callback=after_tool))

    [response] = talk.say()[1].get_function_responses()

    # as google-adk 2.13, and as the code that reads its events expects
    text = base64.b64encode(mcp_server.PNG).decode()
    assert (response.response or {})["content"] == [{"type": "image", "data": text, "mimeType": "image/png"}]
    assert heard == [text]
    [part] = response.parts or []
    assert part.inline_data and (part.inline_data.data, part.inline_data.mime_type) == (mcp_server.PNG, "image/png")
    [sent] = [one.function_response for one in model.requests[1].contents[-1].parts or []]
    assert sent and sent.parts == response.parts
    assert (sent.response or {})["content"] == [
        {"type": "image", "data": {"media": "image/png", "bytes": 28, "part": 1}, "mimeType": "image/png"}
    ]


def test_a_tool_that_fails_is_an_error_for_the_model(program: McpToolset):
    answer = ask(program, "fail")

    assert answer["isError"] and "the well is dry" in answer["error"]


def test_wrong_arguments_go_back_to_the_model(program: McpToolset):
    answer = ask(program, "add", a=-1)

    assert "add()" in answer["error"] and "arguments: a: -1 is less than the minimum of 0" in answer["error"]


def test_progress_is_reported_while_the_tool_runs(service: Service):
    heard: list[Any] = []
    toolset = web(service, progress_callback=lambda *said: heard.append(said))

    assert ask(toolset, "count", to=2)["structuredContent"] == {"result": "counted"}

    sync.run(toolset.close())
    assert heard == [(1.0, 2.0, "at 1"), (2.0, 2.0, "at 2")]


def test_progress_is_told_to_who_is_made_for_the_call_and_to_the_log(service: Service):
    heard: list[Any] = []

    def made(tool_name: str, *, callback_context: Any = None, **kwargs: Any) -> Any:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            heard.append((tool_name, callback_context.user_id, progress))

        return tell

    toolset = web(service, progress_callback=made)
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("count", to=2), "done"), tools=[toolset]))

    pieces = [event for event in talk.say() if event.partial]

    sync.run(toolset.close())
    assert heard == [("count", "u", 1.0), ("count", "u", 2.0)]
    assert [(event.author, event.text) for event in pieces] == [("count", "at 1 (1 of 2)"), ("count", "at 2 (2 of 2)")]
    assert pieces[1].custom_metadata == {"progress": 2.0, "total": 2.0}
    assert not [event for event in talk.stored().events if event.author == "count"]


def test_a_server_is_used_from_any_event_loop(program: McpToolset):
    async def add(number: int) -> Any:
        agent = LlmAgent(name="a", model=ScriptedLlm(call("add", a=number), "done"), tools=[program])
        runner = InMemoryRunner(agent, app_name="app")
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        return [
            response.response["structuredContent"]["result"]
            async for event in runner.run_async(user_id="u", session_id="s", new_message="hi")
            for response in event.get_function_responses()
            if response.response
        ]

    async def several() -> list[Any]:
        return await asyncio.gather(*(add(number) for number in range(3)))

    assert asyncio.run(several()) == [[1], [2], [3]]
    assert asyncio.run(several()) == [[1], [2], [3]]
    assert sync.run(several()) == [[1], [2], [3]]


def test_a_call_that_is_cancelled_ends_on_the_server_too(program: McpToolset, tmp_path: Path):
    file = tmp_path / "told"
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("hang", told=str(file))), tools=[program]))

    async def begin_and_cancel() -> None:
        task = asyncio.create_task(talk.asay())
        await asyncio.to_thread(eventually, file.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(begin_and_cancel())

    eventually(lambda: file.read_text() == "cut off")
    assert ask(program, "add", a=1)["isError"] is False


def test_a_new_tool_is_offered_from_the_next_message_on_and_a_dead_server_is_started_again(program: McpToolset):
    calls = call("learn"), "yes", call("sing"), "ok", call("die"), "oh", call("sing"), call("add", a=1), "fine"
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(*calls), tools=[program]))
    talk.say()

    assert "sung" in summaries(talk.say())[1][1]
    assert summaries(talk.say())[1][1] == "answers {'error': 'die: Connection closed'}"
    events = summaries(talk.say())  # a new server has not learnt yet

    assert "sing()" in events[1][1]
    assert "'result': 2" in events[3][1]


def test_a_program_gets_few_variables_besides_its_own(program: McpToolset):
    got = ask(program, "environment")["structuredContent"]["result"]

    assert "OWN" in got and "A_SECRET_OF_THIS_PROCESS" not in got


def test_a_program_that_does_not_start_is_told_in_its_words(caplog: pytest.LogCaptureFixture):
    program = StdioServerParameters(command=sys.executable, args=["-c", "import sys; sys.exit('no settings')"])
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=STARTING))
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("alone"), tools=[toolset]))

    assert summaries(talk.say()) == [("a", "alone .")]
    assert "agent 'a' goes" in caplog.text and "tools of McpToolset" in caplog.text
    assert caplog.text.endswith("it said: no settings\n")


@pytest.mark.parametrize("command", ["/no/such/program", sys.executable])
def test_what_is_no_server_is_not_reached(command: str, caplog: pytest.LogCaptureFixture):
    program = StdioServerParameters(command=command, args=["-c", "import sys; sys.stdin.read()"])
    toolset = McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=0.2))

    with pytest.raises(ConnectionError, match=r"^the MCP server '.*' was not reached: "):
        sync.run(toolset.get_tools())


def test_resources_can_be_read_where_that_is_asked_for(service: Service):
    toolset = web(service, use_mcp_resources=True, tool_filter=["load_mcp_resource"])

    [tool] = sync.run(toolset.get_tools())

    assert tool.description == "Reads a resource of the server. There is:\nnote://hello: A greeting."
    [read] = ask(toolset, "load_mcp_resource", uri="note://hello")["contents"]
    assert read["text"] == "hello to you"
    assert "resource 'file:///etc'" in ask(toolset, "load_mcp_resource", uri="file:///etc")["error"]
    sync.run(toolset.close())


def test_a_service_is_asked_with_the_headers_of_whom_the_agent_speaks_for(service: Service):
    params = StreamableHTTPConnectionParams(url=service.address, headers={"X-Other": "1"})
    toolset = McpToolset(
        connection_params=params, tool_name_prefix="web", header_provider=lambda ctx: {"X-User": ctx.user_id}
    )
    model = ScriptedLlm(*[call("web_who"), "done"] * 2)
    talk = Talk(LlmAgent(name="a", model=model, tools=[toolset]))
    talk.open("s", user_id="v")

    answers = [summaries(talk.say(user_id=user))[1][1] for user in ("u", "v")]

    sync.run(toolset.close())
    assert ["'result': 'u'" in answers[0], "'result': 'v'" in answers[1]] == [True, True]


def test_a_service_that_was_started_anew_is_reached_again():
    first = Service()
    toolset = web(first)
    assert ask(toolset, "add", a=1)["isError"] is False
    first.stop()
    eventually(lambda: names_or_error(toolset).startswith("the MCP server "))
    second = Service(first.port)

    answer = ask(toolset, "add", a=1)

    sync.run(toolset.close())
    second.stop()
    assert answer["structuredContent"] == {"result": 2}


def names_or_error(toolset: McpToolset) -> str:
    try:
        return str(names(toolset))
    except Exception as error:
        return str(error)


def test_the_older_way_over_the_web_works_too():
    service = Service(sse=True)
    toolset = McpToolset(connection_params=SseConnectionParams(url=service.address))

    answer = ask(toolset, "add", a=1)

    sync.run(toolset.close())
    service.stop()
    assert answer["structuredContent"] == {"result": 2}


@pytest.mark.parametrize(
    ("condition", "asks"),
    [
        (lambda a: a > 1, True),
        ("a > 1", True),
        ("a > 2", False),
        ("a + b > 2", True),
        ("a > b + 1", False),
        ("amount > 2", True),
    ],
)
def test_a_person_can_be_asked_before_a_call(service: Service, condition: Any, asks: bool):
    toolset = web(service, require_confirmation=condition)
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("add", a=2), "done"), tools=[toolset]))

    events = summaries(talk.say())

    sync.run(toolset.close())
    assert bool([line for _, line in events if "adk_request_confirmation" in line]) is asks


def test_a_toolset_refuses_an_expression_that_is_none(service: Service):
    with pytest.raises(ConfigurationError, match=r"^McpToolset: the expression 'a >' cannot be used"):
        web(service, require_confirmation="a >")


def test_a_closed_toolset_can_be_used_again(service: Service, caplog: pytest.LogCaptureFixture):
    toolset = web(service, tool_filter=["add"])
    before = connections()

    for _ in range(2):
        assert names(toolset) == ["add"]
        sync.run(toolset.close())
        assert connections() == before

    assert [record.message.partition(", ")[2] for record in caplog.records] == [
        "the tool 'adk_request_confirmation' is left out: the name is reserved"
    ]


def test_the_older_way_to_connect_gives_tools_and_what_closes_them(service: Service):
    async def connect() -> list[str]:
        params = StreamableHTTPConnectionParams(url=service.address)
        tools, stack = await McpToolset.from_server(connection_params=params, tool_name_prefix="web")
        async with stack:
            return [tool.name for tool in tools]

    assert "web_add" in sync.run(connect())


def test_without_the_package_the_names_are_there_and_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(MissingExtraError, match=r"'mcp'.*type: %pip install \"mcp>="):
        McpToolset(connection_params=stdio())


@pytest.mark.parametrize("wrong", [None, "python server.py", {"command": "x"}])
def test_a_server_that_cannot_be_known_is_refused_at_once(wrong: Any):
    with pytest.raises(ConfigurationError, match=r"connection_params must.*StdioConnectionParams"):
        McpToolset(connection_params=wrong)


def tricked(trick: str, **options: Any) -> McpToolset:
    program = StdioServerParameters(command=sys.executable, args=[hostile_mcp_server.__file__, trick])
    return McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=STARTING), **options)


def said_in_two_turns(toolset: McpToolset) -> list[str]:
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(*[call("pay", amount=1), "done"] * 2), tools=[toolset]))
    events = [*talk.say(), *talk.say()]
    sync.run(toolset.close())
    return [(one.response or {})["content"][0]["text"] for event in events for one in event.get_function_responses()]


@pytest.mark.parametrize(("seconds", "times"), [(None, 2), (600, 1)])
def test_tools_are_not_listed_again_for_so_long_as_is_said(seconds: float | None, times: int):
    said = said_in_two_turns(tricked("counts", tool_list_cache_ttl_seconds=seconds))

    assert said == ["listed 1 times", f"listed {times} times"]


@pytest.mark.parametrize(
    ("trick", "propagate", "queries"),
    [("grounded", True, ["price of tea"]), ("grounded", False, None), ("badly grounded", True, None)],
)
def test_an_answer_gets_the_grounding_of_a_result(trick: str, propagate: bool, queries: list[str] | None):
    toolset = tricked(trick, propagate_grounding_metadata=propagate)
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("pay", amount=1), "It costs 4."), tools=[toolset]))

    _, _, answer = talk.say()

    sync.run(toolset.close())
    grounding = answer.grounding_metadata
    assert (grounding.web_search_queries if grounding else None) == queries
    assert "temp:_adk_grounding_metadata" not in talk.stored().state


async def answers_samples(context: Any, params: Any) -> Any:
    raise AssertionError("nobody asks")


def test_a_server_is_told_what_of_sampling_the_callback_can_do():
    capability = mcp_types.SamplingCapability(tools=mcp_types.SamplingToolsCapability())
    toolset = tricked("tells of its client", sampling_callback=answers_samples, sampling_capabilities=capability)

    [told, _] = said_in_two_turns(toolset)

    assert json.loads(told)["sampling"] == {"tools": {}}


@each(
    "options, reason",
    lambda: [
        ({"tool_list_cache_ttl_seconds": 0}, "tool_list_cache_ttl_seconds=0"),
        ({"sampling_capabilities": mcp_types.SamplingCapability()}, "sampling_callback"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], reason: str):
    with pytest.raises(ConfigurationError, match=reason):
        tricked("counts", **options)
