"""A plugin that tells of everything a run does, a line each."""

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
from adk_nb.runtime.event_lines import words_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool

_LONGEST = 200


class LoggingPlugin(BasePlugin):
    """Writes a line for each message, run, agent, model call, tool call, event and error."""

    def __init__(self, name: str = "logging_plugin", *, write: Callable[[str], object] | None = None) -> None:
        """`write`: is given each line, such as `logging.getLogger("runs").info`. None: standard output."""
        super().__init__(name)
        self._write = write or _to_stdout

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        session = invocation_context.session
        where = f"user {session.user_id!r}, session {session.id!r}, {invocation_context.invocation_id}"
        self._say(f"message of {where}", words_of(user_message))

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self._say("run begins", f"agent {invocation_context.agent.name!r}")

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        self._say("run ends", invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        self._say("run failed", _words(error))

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        kind = "piece" if event.partial else "final event" if event.is_final_response() else "event"
        failed = f" [failed {event.error_code}]" if event.error_code else ""
        written = f" [state {sorted(event.actions.state_delta)}]" if event.actions.state_delta else ""
        self._say(f"{kind} of {event.author!r}", f"{_cut(words_of(event.content))}{failed}{written}")

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        self._say("agent begins", repr(callback_context.agent_name))

    async def after_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> None:
        self._say("agent ends", repr(callback_context.agent_name))

    async def on_agent_error_callback(self, *, agent: Any, callback_context: CallbackContext, error: Exception) -> None:
        self._say("agent failed", f"{callback_context.agent_name!r}: {_words(error)}")

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        offered = f", tools {list(llm_request.tools_dict)}" if llm_request.tools_dict else ""
        self._say(
            "model is asked", f"{llm_request.model or 'the default'}, {len(llm_request.contents)} contents{offered}"
        )

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        if llm_response.partial:
            return
        said = llm_response.error_code or words_of(llm_response.content)
        usage = llm_response.usage_metadata
        tokens = f" [tokens {usage.prompt_token_count} in, {usage.candidates_token_count} out]" if usage else ""
        self._say("model answers", f"{_cut(said)}{tokens}")

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> None:
        self._say("model failed", _words(error))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        self._say("tool is called", f"{tool.name}({tool_args})")

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> None:
        self._say("tool answers", f"{tool.name}: {result}")

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self._say("tool failed", f"{tool.name}: {_words(error)}")

    def _say(self, what: str, more: str) -> None:
        self._write(f"[{self.name}] {what}: {_cut(without_known(more))}")


def _to_stdout(line: str) -> None:
    sys.stdout.write(f"{line}\n")  # looked up now: a cell's output, not that of the cell where the plugin was made


def _words(error: Exception) -> str:
    return hidden(f"{type(error).__name__}: {error}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
