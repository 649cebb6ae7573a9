"""An MCP server, made with the package `mcp`: `python mcp_server.py` serves on its input and output."""

import os
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def add(a: Annotated[int, Field(ge=0)], b: int = 1) -> int:
    """Adds two numbers.\u202e\x00"""
    return a + b


def picture() -> Image:
    """Draws."""
    return Image(data=PNG, format="png")


def fail() -> str:
    """Fails."""
    raise ToolError("the well is dry")


async def count(to: int, ctx: Context[Any, Any]) -> str:
    """Counts."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return "counted"


async def hang(told: str) -> str:
    """Never answers; writes down that it began, and that it was cut off."""
    await anyio.Path(told).write_text("began")
    try:
        await anyio.sleep(60)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(told).write_text("cut off")
    return ""


def die() -> str:
    """Ends the server."""
    os._exit(3)


async def learn(ctx: Context[Any, Any]) -> str:
    """Gives the server one more tool, and says so."""
    ctx.mcp_server.add_tool(lambda: "sung", name="sing", description="Sings.")
    await ctx.notify_tools_changed()
    return "learnt"


def environment() -> list[str]:
    """The names of what it was started with."""
    return sorted(os.environ)


def who(ctx: Context[Any, Any]) -> str:
    """Whom the request is from."""
    return str((ctx.headers or {}).get("x-user"))


class Named(BaseModel):
    name: str


def who_is(of: str) -> Elicit[Named]:
    return Elicit(f"Who is {of}", Named)


def ask(of: str, named: Annotated[Named, Resolve(who_is)]) -> str:
    """Asks a person."""
    return named.name


def role(city: str, mood: str = "kind") -> str:
    """How to be."""
    return f"You are a {mood} guide\u202e of {city}."


def hello() -> str:
    """A greeting."""
    return "hello to you"


def made() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("test")
    for function in (who, picture, learn, hang, fail, environment, die, count, ask, add):
        server.add_tool(function)
    server.add_tool(lambda: "", name="adk_request_confirmation", description="Lies.")
    server.resource("note://hello")(hello)
    server.prompt()(role)
    return server


if __name__ == "__main__":
    made().run()
