"""The agent as one tool of an MCP server, over streamable HTTP.

Source: https://modelcontextprotocol.io/specification, and the package `mcp` 2.3.
"""

import json
from contextlib import AbstractAsyncContextManager, aclosing
from importlib.metadata import version
from typing import Any

import mcp_types
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import BaseRoute, Route

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.redaction import hidden, without_known
from adk_nb.runtime.history import History
from adk_nb.serving.access import MAX_BODY, USER
from adk_nb.serving.agent_service import AgentService, Call
from adk_nb.serving.http_bodies import error_text

_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "description": "the message to the agent"},
        "session_id": {
            "type": "string",
            "description": "goes on with an earlier conversation; its id is in the earlier result",
        },
    },
    "required": ["message"],
}
_RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "session_id": {"type": "string"},
        "status": {"enum": ["done", "pending"]},
        "pending": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text", "session_id", "status"],
}


class McpTool:
    """The endpoint; `run` has to be open while it is used."""

    def __init__(self, service: AgentService) -> None:
        self._service = service
        server: Server[Any] = Server(
            service.name,
            version=version("adk-nb"),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # Host, Origin and token were checked before.
        checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            app=server, stateless=True, json_response=False, security_settings=checked, max_request_body_size=MAX_BODY
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        """The context in which requests are answered."""
        return self._manager.run()

    def routes(self) -> list[BaseRoute]:
        """The route."""
        return [Route("/mcp", StreamableHTTPASGIApp(self._manager))]

    async def _list(self, context: Any, params: Any) -> mcp_types.ListToolsResult:
        agent = self._service.agent
        tool = mcp_types.Tool(
            name=self._service.name,
            description=without_known(getattr(agent, "description", "") or f"ask the agent {agent.name}"),
            input_schema=_PARAMETERS,
            output_schema=_RESULT,
        )
        return mcp_types.ListToolsResult(tools=[tool])

    async def _call(self, context: Any, params: Any) -> mcp_types.CallToolResult:
        arguments: dict[str, Any] = params.arguments or {}
        try:
            if params.name != self._service.name:
                raise InputError(f"no tool {params.name!r} here; there is {self._service.name!r}")
            result = await self._answer(arguments.get("message"), arguments.get("session_id"))
        except Exception as error:
            return mcp_types.CallToolResult(content=[_text(error_text(error))], is_error=True)
        pending = f"\n\n({', '.join(result['pending'])}: {_ASK_AGAIN})" if result["pending"] else ""
        return mcp_types.CallToolResult(content=[_text(result["text"] + pending)], structured_content=result)

    async def _answer(self, message: Any, session_id: Any) -> dict[str, Any]:
        if not isinstance(message, str) or not message.strip():
            raise InputError("'message' must be text; say what the agent should do")
        if session_id is not None and not isinstance(session_id, str):
            raise InputError("'session_id' must be text; leave it out for a new conversation")
        session_id = session_id or f"mcp-{clock.new_id()[:8]}"
        content = types.Content(role="user", parts=[types.Part(text=message)])
        call = Call(user_id=USER, session_id=session_id, message=content, client="MCP client", streaming=False)
        text, error = "", ""
        async with aclosing(self._service.events(call)) as events:
            async for event in events:
                error = event.error_message or error
                if event.author == "user" or event.partial or not event.is_final_response():
                    continue
                parts = (event.content and event.content.parts) or []
                said = "".join(part.text for part in parts if part.text and not part.thought)
                output = json.dumps(event.output, default=str) if event.output is not None else ""
                text = said or output or text
        if error:
            raise InputError(hidden(error))
        session = await self._service.session(USER, session_id)
        open_ = History(session.events).interrupts() if session else []
        pending = [f"{', '.join(interrupt.names)} waits for {interrupt.kind}" for interrupt in open_]
        status = "pending" if pending else "done"
        return without_known({"text": text, "session_id": session_id, "status": status, "pending": pending})


_ASK_AGAIN = "a person answers that; ask again with this session_id afterwards"


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)
