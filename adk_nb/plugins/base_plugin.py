"""What a plugin may override: one hook for each point that every run passes, whatever its agents."""

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

    Plugins are asked in their order, before the agent's own callback of the same kind. The first answer that is not
    None stops the later plugins and that callback. A hook that raises ends the run, but for the two that only hear of
    an error: what they raise is logged.

    Source of names and arguments: google-adk, https://google.github.io/adk-docs/plugins/.
    """

    def __init__(self, name: str) -> None:
        """`name`: no other plugin of the same runner has it."""
        self.name = name

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Before the message is stored. A content takes its place."""
        return None

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        """After the message is stored. A content is the answer, and no agent runs."""
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """After the last event; not when the run failed or was stopped."""
        return None

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Before an event is stored and shown, the user's own apart. What is set in the answer takes its place.

        Its id, invocation and time stay.
        """
        return None

    async def before_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """Before an agent works. A content is its answer, and it does not run."""
        return None

    async def after_agent_callback(self, *, agent: Any, callback_context: CallbackContext) -> types.Content | None:
        """After an agent's work. A content is said after its own answer."""
        return None

    async def on_agent_error_callback(self, *, agent: Any, callback_context: CallbackContext, error: Exception) -> None:
        """When an agent raised, before the event that tells of it. The error goes on."""
        return None

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Before a model is asked; the request may be changed. A response is taken instead of asking."""
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """After each response, pieces included. A response takes its place."""
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """When a model raised. A response is taken as its own."""
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Before a tool runs; the arguments may be changed. A dict is the result, and it does not run."""
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """After a tool ran; `result` is what it returned, any value. A dict takes its place."""
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """When a tool raised, or is not there. A dict is the result."""
        return None

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """When a run ends in an error, after the event that tells of it is stored. The error goes on."""
        return None

    async def close(self) -> None:
        """Let go of files and connections, when the runner is closed."""
