"""`McpTool`: a tool of an MCP server."""

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.invocation_context import GROUNDING
from adk_nb.tools.conditions import Condition
from adk_nb.tools.function_tool import run_with_progress
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.mcp_tool.content import CallMessages, Progress, clean_schema, clean_text, convert_result
from adk_nb.tools.mcp_tool.elicitation import ElicitationCallback, answer_question, notice_event, question_event
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA
from adk_nb.tools.mcp_tool.mcp_server import McpServer
from adk_nb.tools.remote_tool import RemoteTool
from adk_nb.tools.shape import error_text

logger = logging.getLogger(__name__)

ProgressCallback = Callable[..., Any]
"""Receives `(progress, total, message)`, sync or async. Or a factory of such a callback for each call: a sync function
`(tool_name, *, callback_context, **kwargs)`, recognized by its parameters as in ADK."""


_TELLING = ("properties", "patternProperties", "additionalProperties", "$ref", "anyOf", "oneOf", "allOf", "if")
"""Keywords of which a schema has at least one that is not empty, if its tool takes arguments."""


class McpTool(RemoteTool):
    """Calls a tool on its server. The result has `content`, `structuredContent`, `isError`.

    Images and audio go to the model beside the result. Progress, and questions of the server to the user, become
    events. A server that is gone, too slow or refuses the call gives `{"error": ...}`; the next call reconnects.
    """

    reports_progress = True
    extra = EXTRA

    def __init__(
        self,
        definition: Any,
        server: McpServer,
        *,
        require_confirmation: Condition = False,
        progress_callback: ProgressCallback | None = None,
        elicitation_callback: ElicitationCallback | None = None,
        propagate_grounding_metadata: bool = False,
    ) -> None:
        """`definition`: the server's `mcp.Tool`. `server`: shared, so not closed here."""
        hints = definition.annotations.model_dump(exclude_none=True, by_alias=True) if definition.annotations else None
        super().__init__(
            name=definition.name,
            description=clean_text(definition.description or definition.title or ""),
            custom_metadata=hints,
        )
        self.require_confirmation = require_confirmation
        self.progress_callback = progress_callback
        self.elicitation_callback = elicitation_callback
        self.propagate_grounding_metadata = propagate_grounding_metadata
        self.auth_config = server.auth_config
        self.bound_to = f"{definition.name} of {server.sessions.server}"
        self._remote_name = definition.name
        self.set_schema(clean_schema(definition.input_schema))
        self._output_schema: dict[str, Any] | None = definition.output_schema
        self._server = server

    def __repr__(self) -> str:
        return f"McpTool({self.name})"

    @cached_property
    def _results(self) -> JsonArguments:
        return JsonArguments(self._output_schema or {}, EXTRA)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self._schema if any(map(self._schema.get, _TELLING)) else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the tool on its server."""
        if message := self.check(args):
            return {"error": message}
        try:
            return await run_with_progress(self._items(args, tool_context), self.name, tool_context)
        except Exception as error:  # any failure of the connection or the server is a result for the model
            return {"error": f"{self.name}: {str(error) or type(error).__name__}"}

    async def _items(self, args: dict[str, Any], tool_context: ToolContext) -> AsyncGenerator[Any, None]:
        """Progress and questions of the server as events, and then its result."""
        messages, grounding = CallMessages(), list[types.GroundingMetadata]()

        async def call(client: Any) -> dict[str, Any]:
            """Call the tool on the connection's loop."""
            result = await client.call_tool(self._remote_name, args, progress_callback=messages.progress)
            if self.propagate_grounding_metadata:
                grounding[:] = self._grounding(result.meta)
            answer = convert_result(result)
            # `structuredContent` must match the output schema. Source: MCP 2025-06-18.
            if self._output_schema is None or answer["isError"]:
                return answer
            if "structuredContent" not in answer:
                return {"error": f"{self.name}() has an output schema, and its server sent no structured content"}
            if fault := self._results.error_message(answer["structuredContent"]):
                sent = "its server sent content that does not fit its own output schema"
                return {"error": f"{self.name}(): {sent}: {fault}"}
            return answer

        callback = self.progress_callback
        if callback and not inspect.iscoroutinefunction(callback):
            try:
                parameters = list(inspect.signature(callback).parameters.values())
            except (TypeError, ValueError):  # built in
                parameters = []
            # A factory of a callback for each call. Source of the distinction: google-adk 2.13.
            if any(
                parameter.kind is parameter.VAR_KEYWORD or parameter.name == "callback_context"
                for parameter in parameters
            ):
                callback = callback(self.name, callback_context=tool_context)
        calling = asyncio.ensure_future(self._server.call(tool_context, call, answers=messages.asks))
        async with aclosing(messages.until(calling)) as events:
            async for event in events:
                if not isinstance(event, Progress):
                    yield question_event(event.params, self._server.name)
                    event.answer, summary = await answer_question(self.elicitation_callback, event, self._server.name)
                    yield notice_event(summary)
                    continue
                if callback:
                    result = callback(event.progress, event.total, event.message)
                    await result if inspect.isawaitable(result) else None
                yield _progress_event(event)
        result = calling.result()
        if grounding:
            tool_context.state[GROUNDING] = grounding[0]
        yield result

    def _grounding(self, meta: dict[str, Any] | None) -> list[types.GroundingMetadata]:
        """The grounding in a result's `_meta`: one, or none."""
        try:
            found = (meta or {}).get("adk_grounding_metadata")
            return [] if found is None else [types.GroundingMetadata.model_validate(found)]
        except ValidationError as error:
            logger.warning("%s(): the grounding metadata of its server was ignored: %s", self.name, error_text(error))
            return []


def _progress_event(progress: Progress) -> Event:
    """A partial event, which is not stored."""
    amount = f"{progress.progress:g} of {progress.total:g}" if progress.total is not None else f"{progress.progress:g}"
    text = f"{clean_text(progress.message)} ({amount})" if progress.message else amount
    total = {} if progress.total is None else {"total": progress.total}
    return notice_event(text, partial=True, progress=progress.progress, **total)
