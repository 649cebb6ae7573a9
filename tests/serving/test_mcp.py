"""The agent as a tool of an MCP server, asked with the official client."""

from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from adk_nb import run, tool
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.redaction import remember
from adk_nb.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from tests.serving.conftest import Served
from tests.support.late import late


@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    """Pay a person."""
    return f"paid {amount:g} to {to}"


def clerk(*answers: Any, **options: Any) -> Agent:
    return Agent(name="clerk", description="Pays what is agreed.", model=ScriptedLlm(*answers), **options)


@asynccontextmanager
async def connected(served: Served):
    async with (
        httpx2.AsyncClient(headers=served.client.headers, timeout=60) as http,
        late("mcp").Client(
            late("mcp.client.streamable_http").streamable_http_client(f"{served.url}/mcp", http_client=http)
        ) as client,
    ):
        yield client


def test_the_agent_is_one_tool_with_a_conversation(serve):
    served = serve(clerk("Good day.", "You are Ada."))

    async def talk() -> tuple[Any, ...]:
        async with connected(served) as client:
            listed = await client.list_tools()
            first = await client.call_tool("clerk", {"message": "I am Ada."})
            session = first.structured_content["session_id"]
            second = await client.call_tool("clerk", {"message": "Who am I?", "session_id": session})
            return listed.tools, first, second

    tools, first, second = run(talk())
    assert [(each.name, each.description) for each in tools] == [("clerk", "Pays what is agreed.")]
    assert first.content[0].text == "Good day." and first.structured_content["status"] == "done"
    assert second.structured_content == {**first.structured_content, "text": "You are Ada."}
    assert len(served.events(first.structured_content["session_id"])) == 4


def test_an_approval_is_said_to_be_pending(serve):
    served = serve(clerk(call("pay", to="Anna", amount=250), tools=[pay]))

    async def talk() -> Any:
        async with connected(served) as client:
            return await client.call_tool("clerk", {"message": "Pay Anna"})

    answer = run(talk())
    assert not answer.is_error and answer.structured_content["status"] == "pending"
    assert answer.structured_content["pending"] == ["pay waits for approval"]
    assert "session_id" in answer.content[0].text


def test_a_known_secret_is_in_no_description_of_a_tool(serve):
    secret = "sk-tulip-4711-Quince"
    remember(secret)
    agent = clerk("Good day.")
    agent.description = f"Pays with {secret}."
    served = serve(agent)

    async def talk() -> Any:
        async with connected(served) as client:
            return await client.list_tools()

    [listed] = run(talk()).tools
    assert listed.description.startswith("Pays with ") and secret not in listed.model_dump_json()


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("clerk", {}, "message"),
        ("clerk", {"message": " "}, "message"),
        ("clerk", {"message": 7}, "message"),
        ("clerk", {"message": "Hi", "session_id": 7}, "session_id"),
        ("clerk", {"message": "Hi", "session_id": "a\nb"}, "control character"),
        ("other", {"message": "Hi"}, "'other'"),
        ("clerk", {"message": "Hi"}, "the service is down"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_tool(serve, name: str, arguments: dict[str, Any], problem: str):
    served = serve(clerk(RuntimeError("the service is down")))

    async def talk() -> Any:
        async with connected(served) as client:
            return await client.call_tool(name, arguments)

    answer = run(talk())
    assert answer.is_error and problem in answer.content[0].text


def test_an_agent_of_this_package_uses_it_as_a_toolset(serve):
    served = serve(clerk("Anna lives in Oslo."))
    params = StreamableHTTPConnectionParams(url=f"{served.url}/mcp", headers=dict(served.client.headers))
    boss = Agent(
        name="boss",
        model=ScriptedLlm(call("clerk", message="Where does Anna live?"), "In Oslo."),
        tools=[McpToolset(connection_params=params)],
    )
    boss_served = serve(boss, name="clerk")
    boss_served.session()
    assert "Anna lives in Oslo." in boss_served.run("Where is Anna?").text
