"""A tool of an MCP server."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cached_property
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, is_asked, with_defaults
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.mcp_tool.content import plain, plain_schema, result_of
from adk_nb.tools.mcp_tool.elicitation import Elicits, answered, question_of, said
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA
from adk_nb.tools.mcp_tool.mcp_server import McpServer
from adk_nb.tools.mcp_tool.news import News, Progress
from adk_nb.tools.tool_progress import last_of

ProgressCallback = Callable[..., Any]
"""Hears `(progress, total, message)`, sync or async. Or makes one who does, for each call:
`(tool_name, *, callback_context, **kwargs)`, a sync function that takes keywords, as ADK tells the two apart."""


class McpTool(BaseTool):
    """Calls a tool on its server, and hands back the result: `content`, `structuredContent`, `isError`.

    Pictures and sound go to the model beside the result. How far the tool is, and what the server asks a person
    meanwhile, are events. A server that is gone, does not answer in time or refuses the call is `{"error": ...}`; the
    next call connects anew.
    """

    tells = True

    def __init__(
        self,
        declared: Any,
        server: McpServer,
        *,
        require_confirmation: Decides = False,
        progress_callback: ProgressCallback | None = None,
        elicitation_callback: Elicits | None = None,
    ) -> None:
        """`declared`: the `mcp.Tool` that the server has told of; `server`: shared, and not this tool's own."""
        hints = declared.annotations.model_dump(exclude_none=True, by_alias=True) if declared.annotations else None
        super().__init__(
            name=declared.name, description=plain(declared.description or declared.title or ""), custom_metadata=hints
        )
        self.require_confirmation = require_confirmation
        self.progress_callback = progress_callback
        self.elicitation_callback = elicitation_callback
        self.auth_config = server.auth_config
        self.bound_to = f"{declared.name} of {server.sessions.server}"
        self._called = declared.name
        self._schema: dict[str, Any] = plain_schema(declared.input_schema)
        self._output_schema: dict[str, Any] | None = declared.output_schema
        self._server = server

    def __repr__(self) -> str:
        return f"McpTool({self.name})"

    @cached_property
    def _arguments(self) -> JsonArguments:
        return JsonArguments(self._schema, EXTRA)  # of a thousand tools, few are called

    @cached_property
    def _results(self) -> JsonArguments:
        return JsonArguments(self._output_schema or {}, EXTRA)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self._schema if self._schema.get("properties") else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        if wrong := self._arguments.wrong(args):
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."
        return None

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        if not self.require_confirmation or self.check(args):
            return False  # wrong arguments go back to the model; nothing will run
        return await is_asked(self.require_confirmation, with_defaults(self._schema, args), tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        try:
            return await last_of(self._said(args, tool_context), self.name, tool_context)
        except Exception as error:  # whatever goes wrong between here and there: the model is told, and may go on
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}

    async def _said(self, args: dict[str, Any], tool_context: ToolContext) -> AsyncGenerator[Any, None]:
        """What the server says while it works, as events, and then its result."""
        news = News()

        async def call(client: Any) -> dict[str, Any]:
            return self._checked(result_of(await client.call_tool(self._called, args, progress_callback=news.progress)))

        heard = self._progress(tool_context)
        calling = asyncio.ensure_future(self._server.ask(tool_context, call, answers=news.asks))
        async with aclosing(news.until(calling)) as all_news:
            async for one in all_news:
                if not isinstance(one, Progress):
                    yield question_of(one.params, self._server.name)
                    one.answer, how = await answered(self.elicitation_callback, one, self._server.name)
                    yield said(how)
                    continue
                if heard:
                    taken = heard(one.progress, one.total, one.message)
                    await taken if inspect.isawaitable(taken) else None
                yield _on_the_way(one)
        yield calling.result()

    def _checked(self, result: dict[str, Any]) -> dict[str, Any]:
        """`result`, or an error where a server must send content that fits its schema. Source: MCP 2025-06-18."""
        if self._output_schema is None or result["isError"]:
            return result
        if "structuredContent" not in result:
            return {"error": f"{self.name}() has an output schema, and its server sent no structured content"}
        if wrong := self._results.wrong(result["structuredContent"]):
            return {"error": f"{self.name}(): its server sent content that does not fit its own output schema: {wrong}"}
        return result

    def _progress(self, tool_context: ToolContext) -> Callable[..., Any] | None:
        """Who is told how far this call is. Source: google-adk 2.13 for who is asked to make one."""
        heard = self.progress_callback
        if heard is None or inspect.iscoroutinefunction(heard) or not _makes_one(heard):
            return heard
        return heard(self.name, callback_context=tool_context)


def _makes_one(heard: Callable[..., Any]) -> bool:
    try:
        known = inspect.signature(heard).parameters
    except (TypeError, ValueError):  # built in
        return False
    return "callback_context" in known or any(one.kind is one.VAR_KEYWORD for one in known.values())


def _on_the_way(one: Progress) -> Event:
    """No history keeps it: a piece."""
    far = f"{one.progress:g} of {one.total:g}" if one.total is not None else f"{one.progress:g}"
    words = f"{plain(one.message)} ({far})" if one.message else far
    total = {} if one.total is None else {"total": one.total}
    return said(words, partial=True, progress=one.progress, **total)
