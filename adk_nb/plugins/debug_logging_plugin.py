"""A plugin that logs everything in a run as JSON lines."""

import threading
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from adk_nb import clock, types
from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.redaction import hidden, without_known
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool


class DebugLoggingPlugin(BasePlugin):
    """Appends a JSON line to a file for each message, request, response, tool call, result, event and error.

    Each line has `time` (seconds since the epoch), `invocation_id`, `session_id`, `agent` and `kind`; further fields
    depend on the kind. Texts of users and tools are included as they are, bytes in base64; keys and headers of requests
    are not.
    """

    def __init__(
        self,
        output_path: str | Path = "adk_debug.jsonl",
        *,
        name: str = "debug_logging_plugin",
        include_session_state: bool = True,
        include_system_instruction: bool = True,
    ) -> None:
        """Configure the log.

        Args:
            output_path: The file, created with its folder if missing.
            name: Unique among the plugins of a runner.
            include_session_state: Add the session's state at the end of each run.
            include_system_instruction: Add the instruction to each request.
        """
        super().__init__(name)
        self._path = Path(output_path)
        self._include_state = include_session_state
        self._excluded = {"http_options"} | (set[str]() if include_system_instruction else {"system_instruction"})
        self._lock = threading.Lock()

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        """Log `user_message`."""
        self._write_entry(invocation_context, "user_message", content=user_message)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Log `run_begins`."""
        self._write_entry(invocation_context, "run_begins")

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Log `run_ends`, with the state."""
        state = {"state": invocation_context.session.state} if self._include_state else {}
        self._write_entry(invocation_context, "run_ends", **state)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Log `run_failed`."""
        self._write_entry(invocation_context, "run_failed", error=error)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Log `event`."""
        self._write_entry(invocation_context, "event", event=event)

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        """Log `agent_begins`."""
        self._write_entry(callback_context.get_invocation_context(), "agent_begins")

    async def after_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        """Log `agent_ends`."""
        self._write_entry(callback_context.get_invocation_context(), "agent_ends")

    async def on_agent_error_callback(self, *, agent: Any, callback_context: CallbackContext, error: Exception) -> None:
        """Log `agent_failed`."""
        self._write_entry(callback_context.get_invocation_context(), "agent_failed", error=error)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Log `request`."""
        self._write_entry(
            callback_context.get_invocation_context(),
            "request",
            model=llm_request.model,
            contents=llm_request.contents,
            config=llm_request.config.model_dump(exclude=self._excluded, exclude_none=True),
        )

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Log `response`."""
        self._write_entry(callback_context.get_invocation_context(), "response", response=llm_response)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        """Log `model_failed`."""
        self._write_entry(callback_context.get_invocation_context(), "model_failed", error=error)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Log `tool_called`."""
        self._write_call(tool, tool_context, "tool_called", args=tool_args)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Log `tool_answered`."""
        self._write_call(tool, tool_context, "tool_answered", result=result)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """Log `tool_failed`."""
        self._write_call(tool, tool_context, "tool_failed", args=tool_args, error=error)

    def _write_call(self, tool: BaseTool, context: ToolContext, kind: str, **fields: Any) -> None:
        call = {"tool": tool.name, "function_call_id": context.function_call_id}
        self._write_entry(context.get_invocation_context(), kind, **call, **fields)

    def _write_entry(self, ctx: InvocationContext, kind: str, **fields: Any) -> None:
        common = {
            "time": clock.now(),
            "invocation_id": ctx.invocation_id,
            "session_id": ctx.session.id,
            "agent": ctx.agent.name,
            "kind": kind,
        }
        entry = common | fields

        def plain(value: Any) -> Any:
            if isinstance(value, BaseException):
                return hidden(f"{type(value).__name__}: {value}")
            return value.model_dump(exclude_none=True) if isinstance(value, BaseModel) else repr(value)

        try:
            json_line = to_json(entry, exclude_none=True, by_alias=False, bytes_mode="base64", fallback=plain)
        except (ValueError, RecursionError):  # a recursive value, or one nested too deeply
            json_line = to_json(
                {key: value if isinstance(value, str | float) else repr(value) for key, value in entry.items()}
            )
        # Secrets are removed from the whole line: they may be in any field.
        line = without_known(json_line.decode()).encode()
        try:
            with self._lock:  # lines of concurrent runs must not mix
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("ab") as file:
                    file.write(line + b"\n")
        except OSError as error:
            raise StorageError(f"{str(self._path)!r} cannot be written: {error}; give another output_path") from error
