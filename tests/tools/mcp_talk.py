"""The MCP server of the tests, as a program and on the web, and how an agent's calls of it are made."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools.mcp_tool import (
    McpToolset,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from tests.support.late import late
from tests.support.polling import eventually
from tests.support.talk import Talk

uvicorn, mcp_server = late("uvicorn"), late("tests.tools.mcp_server")

STARTING = 30.0
"""Seconds that a program has to start, on a machine that has other things to do."""


def stdio(env: dict[str, str] | None = None) -> StdioConnectionParams:
    program = StdioServerParameters(command=sys.executable, args=[mcp_server.__file__], env=env)
    return StdioConnectionParams(server_params=program, timeout=STARTING)


class Service:
    """The server on the web, in a thread of its own."""

    def __init__(self, port: int = 0, *, sse: bool = False, behind: Callable[[Any], Any] | None = None) -> None:
        """`behind`: what stands before it, an ASGI app made of the server's."""
        made = mcp_server.made()
        app = made.sse_app() if sse else made.streamable_http_app()
        app = behind(app) if behind else app
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            log_level="critical",  # it calls each open stream that it cuts an error
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=0,  # from Python 3.12 on it waits for open streams else, and still answers
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        eventually(lambda: self.server.started)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/{'sse' if sse else 'mcp'}"

    def stop(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(STARTING)
        assert not self.thread.is_alive(), "the server did not stop"


def web(service: Service, **options: Any) -> McpToolset:
    return McpToolset(connection_params=StreamableHTTPConnectionParams(url=service.address), **options)


def ask(toolset: McpToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call(name, **args), "done"), tools=[toolset]))
    return answer_in(talk.say(), talk)


def answer_in(events: list[Event], talk: Talk) -> Any:
    assert talk.error is None
    [response] = [one for event in events for one in event.get_function_responses() if one.name[:4] != "adk_"]
    return response.response
