"""The base class of plugins, with a hook for each point of a run."""

from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool


class BasePlugin:
    """Hooks around everything that a runner's agents do. Override those you need; the others cost nothing.

    Plugins run in order, before the agent's own callback of the same kind. The first result that is not None skips the
    later plugins and that callback. A hook that raises ends the run, except `on_agent_error_callback` and
    `on_run_error_callback`, whose errors are logged.

    Source of names and arguments: google-adk, https://google.github.io/adk-docs/plugins/.
    """

    def __init__(self, name: str) -> None:
        """`name`: unique among the plugins of a runner."""
        self.name = name

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Called before the message is stored. A returned content replaces it."""

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        """Called after the message is stored. A returned content is the answer, and no agent runs."""

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Called at the end of a run, also of a stopped one; not after an error or a cancellation of the task."""

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Called before an event is stored and yielded, except for the user's. A returned event replaces its fields.

        Id, invocation and timestamp stay.
        """

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """Called before an agent runs. A returned content is its answer, and it does not run."""

    async def after_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """Called after an agent ran. A returned content is added after its own answer."""

    async def on_agent_error_callback(self, *, agent: Any, callback_context: CallbackContext, error: Exception) -> None:
        """Called when an agent raised, before the error event. The error propagates."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Called before a model call; may change the request. A returned response replaces the call."""

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Called after each response, partial ones included. A returned response replaces it."""

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Called when a model raised. A returned response replaces its own."""

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Called before a tool runs; may change the arguments. A returned dict is the result; the tool does not run."""

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Called after a tool ran; `result` is its return value, of any type. A returned dict replaces it."""

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Called when a tool raised, or does not exist. A returned dict is the result."""

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """Called when a run ends with an error, after the error event is stored. The error propagates."""

    async def close(self) -> None:
        """Release files and connections. Called when the runner is closed."""
