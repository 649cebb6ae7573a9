"""MCP servers that nobody here wrote: those of the npm packages server-everything and server-filesystem."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools.mcp_tool import (
    McpToolset,
    SseConnectionParams,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from tests.servers import programs
from tests.support.polling import eventually
from tests.support.talk import Talk, summaries

pytestmark = pytest.mark.servers

PACKAGES = programs.FOLDER / "@modelcontextprotocol"
EVERYTHING = str(PACKAGES / "server-everything/dist/index.js")
FILESYSTEM = str(PACKAGES / "server-filesystem/dist/index.js")
FORMS = {"trigger-elicitation-request", "trigger-url-elicitation", "simulate-research-query"}
"""What it offers a while after it was connected, to a client that can ask a person."""
ALWAYS = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
]


def stdio(*args: str) -> StdioConnectionParams:
    program = StdioServerParameters(command=programs.node(), args=[*args])
    return StdioConnectionParams(server_params=program, timeout=programs.STARTING)


class Web:
    """server-everything on the web, which can be killed and started anew at the same address."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.port = programs.free_port()
        self.start()

    @property
    def params(self) -> StreamableHTTPConnectionParams | SseConnectionParams:
        if self.way == "sse":
            return SseConnectionParams(url=f"http://127.0.0.1:{self.port}/sse", timeout=programs.STARTING)
        return StreamableHTTPConnectionParams(url=f"http://127.0.0.1:{self.port}/mcp", timeout=programs.STARTING)

    def start(self) -> None:
        command = [programs.node(), EVERYTHING, self.way]
        self.serving = programs.served(command, self.port, {"PORT": str(self.port)})
        self.program = self.serving.__enter__()

    def kill(self) -> None:
        self.serving.__exit__(None, None, None)


@pytest.fixture(scope="module", params=["stdio", "streamableHttp", "sse"])
def params(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "stdio":
        yield stdio(EVERYTHING)
        return
    web = Web(request.param)
    yield web.params
    web.kill()


@pytest.fixture(scope="module")
def everything(params: Any) -> Iterator[McpToolset]:
    toolset = McpToolset(connection_params=params, use_mcp_resources=True, elicitation_callback=fills_in)
    yield toolset
    sync.run(toolset.close())


def fills_in(context: Any, params: Any) -> Any:
    return {"name": "Ada", "check": True} if params.mode == "form" else None


def turn(toolset: McpToolset, *answers: Any, **fields: Any) -> list[Event]:
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(*answers), tools=[toolset], **fields))
    events = talk.say()
    assert talk.error is None
    return events


def results(events: list[Event]) -> list[Any]:
    return [response.response for event in events for response in event.get_function_responses()]


def ask(toolset: McpToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    [result] = results(turn(toolset, call(name, **args), "done"))
    return result


def names(toolset: McpToolset) -> list[str]:
    return [tool.name for tool in sync.run(toolset.get_tools_with_prefix())]


def test_tools_are_listed_by_name_and_those_that_come_later_are_noticed(everything: McpToolset):
    assert [name for name in names(everything) if name not in FORMS] == [*ALWAYS, "load_mcp_resource"]

    eventually(lambda: set(names(everything)) > FORMS)


def test_calls_are_answered_with_content_and_structure(everything: McpToolset):
    weather = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}

    assert ask(everything, "echo", message="hi; $(id)")["content"] == [{"type": "text", "text": "Echo: hi; $(id)"}]
    assert ask(everything, "get-sum", a=2, b=3)["content"][0]["text"] == "The sum of 2 and 3 is 5."
    assert ask(everything, "get-structured-content", location="Chicago") == {
        "content": [{"type": "text", "text": json.dumps(weather, separators=(",", ":"))}],
        "structuredContent": weather,
        "isError": False,
    }


def test_a_picture_goes_to_the_model_beside_the_result(everything: McpToolset):
    events = turn(everything, call("get-tiny-image"), "nice")

    [response] = [function_response for event in events for function_response in event.get_function_responses()]
    [part] = response.parts or []
    assert part.inline_data and part.inline_data.mime_type == "image/png"
    assert (part.inline_data.data or b"")[:8] == b"\x89PNG\r\n\x1a\n"
    assert [block["type"] for block in (response.response or {})["content"]] == ["text", "image", "text"]


def test_wrong_arguments_do_not_reach_the_server(everything: McpToolset):
    answer = ask(everything, "get-structured-content", location="Oslo")

    assert "get-structured-content()" in answer["error"] and "arguments: location: 'Oslo'" in answer["error"]


def test_progress_is_shown_while_the_tool_works(everything: McpToolset):
    events = turn(everything, call("trigger-long-running-operation", duration=0.3, steps=3), "done")

    assert [event.text for event in events if event.partial] == ["1 of 3", "2 of 3", "3 of 3"]
    assert "completed" in results(events)[0]["content"][0]["text"]


def test_resources_are_listed_linked_and_read(everything: McpToolset):
    [tool] = [
        function_tool for function_tool in sync.run(everything.get_tools()) if function_tool.name == "load_mcp_resource"
    ]
    linked = ask(everything, "get-resource-reference", resourceType="Blob", resourceId=2)

    read = ask(everything, "load_mcp_resource", uri="demo://resource/static/document/features.md")

    assert "demo://resource/static/document/architecture.md" in tool.description
    assert read["contents"][0]["text"].startswith("# Everything Server")
    assert [block["type"] for block in linked["content"]] == ["text", "resource", "text"]


def test_what_the_server_asks_is_answered_and_both_are_in_the_log(everything: McpToolset):
    eventually(lambda: set(names(everything)) > FORMS)

    events = turn(everything, call("trigger-elicitation-request"), "done")

    text = "\n".join(block["text"] for block in results(events)[0]["content"])
    assert "User provided the requested information" in text and "Name: Ada" in text
    asked_text, output = [event.text for event in events[1:3]]
    assert asked_text.endswith(" asks: Please provide inputs for the following fields:")
    assert output == "answered: accept"


def test_an_address_that_a_person_does_not_open_is_declined(everything: McpToolset):
    eventually(lambda: set(names(everything)) > FORMS)

    [result] = results(turn(everything, call("trigger-url-elicitation", url="https://example.com/pay"), "done"))

    assert "declined" in result["content"][0]["text"]


def test_many_tools_are_filtered_and_prefixed(params: Any):
    chosen = McpToolset(connection_params=params, tool_filter=["echo", "get-sum"], tool_name_prefix="mcp")
    read_only = McpToolset(
        connection_params=params, tool_filter=lambda tool, ctx: (tool.custom_metadata or {})["openWorldHint"]
    )

    assert names(chosen) == ["mcp_echo", "mcp_get-sum"]
    assert ask(chosen, "mcp_get-sum", a=1, b=1)["isError"] is False
    assert "gzip-file-as-resource" in names(read_only) and "echo" not in names(read_only)
    sync.run(chosen.close())
    sync.run(read_only.close())


def test_several_calls_at_once_on_one_connection_are_told_apart(everything: McpToolset):
    calls = [call("echo", message=f"number {number}") for number in range(20)]

    answers = results(turn(everything, calls, "done"))

    assert [answer["content"][0]["text"] for answer in answers] == [f"Echo: number {number}" for number in range(20)]


def test_a_person_is_asked_before_a_call_and_the_call_then_runs(everything: McpToolset, params: Any):
    careful = McpToolset(connection_params=params, require_confirmation="b > 10")
    model = ScriptedLlm(call("get-sum", a=1, b=100), "done")
    talk = Talk(LlmAgent(name="a", model=model, tools=[careful]))
    calls = [call for event in talk.say() for call in event.get_function_calls()]
    [function_call] = [call for call in calls if call.name == "adk_request_confirmation"]

    yes = types.FunctionResponse(id=function_call.id, name=function_call.name, response={"confirmed": True})
    events = talk.say([types.Part(function_response=yes)])

    sync.run(careful.close())
    assert "is 101." in results(events)[0]["content"][0]["text"]


@pytest.mark.parametrize("kind", ["streamableHttp", "sse"])
def test_a_service_that_is_killed_in_a_call_and_started_anew_is_reached_again(kind: str):
    web = Web(kind)
    toolset = McpToolset(connection_params=web.params)
    cut = cut_off(toolset, web.kill)
    removed_turn = turn(toolset, "alone")
    web.start()

    answer = ask(toolset, "echo", message="back")

    sync.run(toolset.close())
    web.kill()
    assert "error" in cut and summaries(removed_turn) == [("a", "alone .")]
    assert answer["content"][0]["text"] == "Echo: back"


def test_a_program_that_is_killed_in_a_call_is_started_anew():
    toolset = McpToolset(connection_params=stdio(EVERYTHING))
    other_processes = children()
    names(toolset)
    [program] = children() - other_processes

    cut = cut_off(toolset, lambda: os.kill(program, signal.SIGKILL))

    assert cut == {"error": "trigger-long-running-operation: Connection closed"}
    assert ask(toolset, "echo", message="back")["content"][0]["text"] == "Echo: back"
    sync.run(toolset.close())
    assert children() == other_processes


def cut_off(toolset: McpToolset, kill: Callable[[], Any]) -> Any:
    """What the model gets of a call in whose midst `kill` is called."""
    talk = Talk(
        LlmAgent(name="a", model=ScriptedLlm(call("trigger-long-running-operation", duration=30, steps=300), "oh"))
    )
    talk.runner.agent.tools = [toolset]
    events: list[Event] = []

    async def watch() -> None:
        async for event in talk.runner.run_async(user_id="u", session_id="s", new_message="hi"):
            if event.partial and not any(run_event.partial for run_event in events):
                await asyncio.to_thread(kill)
            events.append(event)

    sync.run(watch())
    [result] = results(events)
    return result


def children() -> set[int]:
    """Programs that this process has started, and that still run."""
    return {process.pid for process in psutil.Process().children() if process.name().startswith("node")}


def test_files_are_read_and_written_within_the_folders_that_were_named(tmp_path: Path):
    folder = tmp_path / "a folder; $(id)"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("no")
    toolset = McpToolset(connection_params=stdio(FILESYSTEM, str(folder)))

    wrote = ask(toolset, "write_file", path=str(folder / "note.txt"), content="hello ✓")
    read = ask(toolset, "read_text_file", path=str(folder / "note.txt"))
    refused = ask(toolset, "read_text_file", path=str(tmp_path / "secret.txt"))
    around = ask(toolset, "read_text_file", path=str(folder / ".." / "secret.txt"))
    listed = ask(toolset, "list_directory", path=str(folder))

    sync.run(toolset.close())
    assert wrote["isError"] is False and (folder / "note.txt").read_text() == "hello ✓"
    assert read["structuredContent"] == {"content": "hello ✓"}
    assert "[FILE] note.txt" in listed["content"][0]["text"]
    assert all(item["isError"] and "Access denied" in item["error"] for item in (refused, around))


def test_two_servers_work_for_one_agent(tmp_path: Path):
    others_run = children()
    (tmp_path / "name.txt").write_text("Ada")
    files = McpToolset(connection_params=stdio(FILESYSTEM, str(tmp_path)), tool_name_prefix="files")
    other_toolset = McpToolset(connection_params=stdio(EVERYTHING), tool_filter=["echo"])
    model = ScriptedLlm(
        call("files_read_text_file", path=str(tmp_path / "name.txt")), call("echo", message="Ada"), "It is Ada."
    )
    talk = Talk(LlmAgent(name="a", model=model, tools=[files, other_toolset]))

    events = talk.say("Whose name is it?")

    sync.run(talk.runner.close())
    assert [result["content"][0]["text"] for result in results(events)] == ["Ada", "Echo: Ada"]
    assert events[-1].text == "It is Ada."
    assert children() == others_run


def test_nothing_is_left_when_the_process_ends_without_closing(tmp_path: Path):
    script = f"""
import psutil
from adk_nb import sync
from adk_nb.tools.mcp_tool import McpToolset, StdioConnectionParams, StdioServerParameters
program = StdioServerParameters(command={programs.node()!r}, args=[{EVERYTHING!r}])
toolset = McpToolset(connection_params=StdioConnectionParams(server_params=program, timeout=60))
assert sync.run(toolset.get_tools())
[program] = psutil.Process().children()
print(program.pid)
"""
    ended = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=100)

    assert ended.returncode == 0 and ended.stderr == ""
    eventually(lambda: not Path(f"/proc/{ended.stdout.strip()}").exists())
