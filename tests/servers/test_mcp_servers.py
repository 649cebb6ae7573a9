"""MCP servers that nobody here wrote: those of the npm packages server-everything and server-filesystem."""

from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools.mcp_tool import McpToolset, StdioConnectionParams, StdioServerParameters
from tests.servers import programs
from tests.talk import Talk

pytestmark = pytest.mark.servers

EVERYTHING = str(programs.FOLDER / "@modelcontextprotocol/server-everything/dist/index.js")


def stdio(*command: str) -> StdioConnectionParams:
    program = StdioServerParameters(command=programs.node(), args=[*command])
    return StdioConnectionParams(server_params=program, timeout=programs.STARTING)


@pytest.fixture(scope="module")
def everything() -> Iterator[McpToolset]:
    toolset = McpToolset(connection_params=stdio(EVERYTHING))
    yield toolset
    sync.run(toolset.close())


def ask(toolset: McpToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call(name, **args), "done"), tools=[toolset]))
    events = talk.say()
    assert talk.error is None
    [response] = events[1].get_function_responses()
    return response.response


def test_a_call_is_answered(everything: McpToolset):
    assert ask(everything, "echo", message="hi") == {
        "content": [{"type": "text", "text": "Echo: hi"}],
        "isError": False,
    }
