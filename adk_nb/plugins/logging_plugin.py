"""A plugin that prints a line for everything in a run."""

import sys
from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.redaction import hidden, without_known
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.runtime.debug_output import content_line
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool

_MAX_LINE = 200


class LoggingPlugin(BasePlugin):
    """Logs a line for each message, run, agent, model call, tool call, event and error."""

    def __init__(self, name: str = "logging_plugin", *, write: Callable[[str], object] | None = None) -> None:
        """`write`: receives each line, for example `logging.getLogger("runs").info`. None: standard output."""
        super().__init__(name)
        self._write = write or _to_stdout

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        """Log the user's message."""
        session = invocation_context.session
        source = f"user {session.user_id!r}, session {session.id!r}, {invocation_context.invocation_id}"
        self._log(f"message of {source}", content_line(user_message))

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Log the start of a run."""
        self._log("run begins", f"agent {invocation_context.agent.name!r}")

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Log the end of a run."""
        self._log("run ends", invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Log a failed run."""
        self._log("run failed", _error_text(error))

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Log an event."""
        kind = "piece" if event.partial else "final event" if event.is_final_response() else "event"
        error_note = f" [failed {event.error_code}]" if event.error_code else ""
        state_note = f" [state {sorted(event.actions.state_delta)}]" if event.actions.state_delta else ""
        self._log(f"{kind} of {event.author!r}", f"{_shorten(content_line(event.content))}{error_note}{state_note}")

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        """Log the start of an agent."""
        self._log("agent begins", repr(callback_context.agent_name))

    async def after_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        """Log the end of an agent."""
        self._log("agent ends", repr(callback_context.agent_name))

    async def on_agent_error_callback(self, *, agent: Any, callback_context: CallbackContext, error: Exception) -> None:
        """Log a failed agent."""
        self._log("agent failed", f"{callback_context.agent_name!r}: {_error_text(error)}")

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Log a model request."""
        tools = f", tools {list(llm_request.tools_dict)}" if llm_request.tools_dict else ""
        self._log(
            "model is called", f"{llm_request.model or 'the default'}, {len(llm_request.contents)} contents{tools}"
        )

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Log a complete model response."""
        if llm_response.partial:  # one line per response, not per chunk
            return
        text = llm_response.error_code or content_line(llm_response.content)
        usage = llm_response.usage_metadata
        tokens = f" [tokens {usage.prompt_token_count} in, {usage.candidates_token_count} out]" if usage else ""
        self._log("model answers", f"{_shorten(text)}{tokens}")

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        """Log a failed model call."""
        self._log("model failed", _error_text(error))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Log a tool call."""
        self._log("tool is called", f"{tool.name}({tool_args})")

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        """Log a tool's result."""
        self._log("tool answers", f"{tool.name}: {result}")

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        """Log a failed tool call."""
        self._log("tool failed", f"{tool.name}: {_error_text(error)}")

    def _log(self, title: str, details: str) -> None:
        self._write(f"[{self.name}] {title}: {_shorten(without_known(details))}")


def _to_stdout(line: str) -> None:
    sys.stdout.write(f"{line}\n")  # not bound early: IPython redirects sys.stdout to the running cell


def _error_text(error: Exception) -> str:
    return hidden(f"{type(error).__name__}: {error}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}..."
