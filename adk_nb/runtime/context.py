"""What callbacks and tools are handed: the session's state to read and write, and nothing of the machinery."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.session import Session
from adk_nb.sessions.state import State


class ReadonlyContext:
    """The part of a context that instruction providers get: everything to read, nothing to change."""

    def __init__(self, invocation: InvocationContext) -> None:
        self._invocation = invocation

    @property
    def agent_name(self) -> str:
        return self._invocation.agent.name

    @property
    def invocation_id(self) -> str:
        return self._invocation.invocation_id

    @property
    def user_id(self) -> str:
        return self._invocation.session.user_id

    @property
    def user_content(self) -> types.Content | None:
        """The message that started this invocation."""
        return self._invocation.user_content

    @property
    def session(self) -> Session:
        return self._invocation.session

    @property
    def run_config(self) -> RunConfig:
        return self._invocation.run_config

    @property
    def state(self) -> Mapping[str, Any]:
        return MappingProxyType(self._invocation.session.state)


class Context(ReadonlyContext):
    """Handed to callbacks (`CallbackContext`) and tools (`ToolContext`): one class, three names."""

    def __init__(
        self,
        invocation: InvocationContext,
        actions: EventActions | None = None,
        *,
        function_call_id: str | None = None,
        tool_confirmation: ToolConfirmation | None = None,
    ) -> None:
        super().__init__(invocation)
        self.actions = actions or EventActions()
        """What the event that follows will do; a tool's land on the event with its result."""
        self.function_call_id = function_call_id
        """The call that this tool answers; None in callbacks of agents and models."""
        self.tool_confirmation = tool_confirmation
        """What a human decided of this call. None: nobody was asked yet."""
        self._state = State(invocation.session.state, self.actions.state_delta)

    @property
    def state(self) -> State:
        """The session's state. A write is seen at once by what runs later, and kept with the event that follows."""
        return self._state

    def get_invocation_context(self) -> InvocationContext:
        """The invocation itself; set its `end_invocation` to stop before the next step."""
        return self._invocation

    def request_confirmation(self, *, hint: str | None = None, payload: Any = None) -> None:
        """Ask a human before going on: the run pauses after this step, and the tool is called again with the answer.

        Args:
            hint: What the person is asked. None: whether the call may run.
            payload: JSON to be filled in beside yes or no.

        Raises:
            ConfigurationError: Called outside a tool.
        """
        if not self.function_call_id:
            raise ConfigurationError("request_confirmation belongs to a tool call; a callback has none to confirm")
        asked = ToolConfirmation(hint=hint or "", payload=payload)
        self.actions.requested_tool_confirmations[self.function_call_id] = asked


ToolContext = CallbackContext = Context
