"""What a model can call."""

import copy
from typing import Any, Self

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.journal import Effect


class BaseTool:
    """A name, a declaration for the model, and something to run."""

    auth_config: AuthConfig | None = None
    """What it has to be let in with: it runs only when that is at hand, as `tool_context.auth_credential`."""

    response_for_auth_required: dict[str, Any] | str | None = None
    """What the model has as result while a person is asked for that. None: words of our own."""

    effect: Effect = "once"
    """What it means to call it again with the same arguments, after a run was cut in its midst: `pure`, nothing;
    `idempotent`, nothing, if it goes by `tool_context.idempotency_key`; `once`, that it may happen twice, so that a
    person is asked first.
    """

    bound_to: str = ""
    """What it acts on, such as an address, where its code does not say so: an approval holds for that only."""

    response_scheduling: types.FunctionResponseScheduling | None = None
    """When a live model reacts to the result: at once, when it is idle, or silently. None: as its service does."""

    tells: bool = False
    """True: while it runs it has something to say, through its invocation's `tell`."""

    takes_up: bool = False
    """True: what waits inside its work can be answered: it is called again then, and goes on (`waits_inside`)."""

    hands_back: bool = False
    """True: an agent that was given a task answers by it, and its result is told in the user's name."""

    comes_last: bool = False
    """True: it is called when the other calls of its step have their results, however long those take."""

    def __init__(
        self,
        *,
        name: str,
        description: str,
        is_long_running: bool = False,
        custom_metadata: dict[str, Any] | None = None,
        response_scheduling: types.FunctionResponseScheduling | None = None,
    ) -> None:
        self.name = _unreserved(name)
        self.description = description
        self.is_long_running = is_long_running
        """True: its result comes later, from outside the run."""
        self.custom_metadata = custom_metadata
        self.response_scheduling = response_scheduling
        self._declared: tuple[types.FunctionDeclaration | None] | tuple[()] = ()

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        """What the model is told of this tool. None: the model never sees it. Override this; ADK's name."""
        return None

    @property
    def declaration(self) -> types.FunctionDeclaration | None:
        """What the model is told, made once."""
        if not self._declared:
            self._declared = (self._get_declaration(),)
        return self._declared[0]

    def renamed(self, name: str) -> Self:
        """A copy that a model knows by another name.

        Raises:
            ConfigurationError: The name is reserved.
        """
        other, declared = copy.copy(self), self.declaration
        other.name = _unreserved(name)
        prefixed = declared and declared.model_copy(update={"name": name})
        other._declared = (prefixed,)
        setattr(other, "_get_declaration", lambda: prefixed)  # noqa: B010 - of this copy, not of its class
        return other

    def check(self, args: dict[str, Any]) -> str | None:
        """What is wrong with `args`, in words for whoever sent them. None: nothing, or the tool cannot tell."""
        return None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Do the work. A tool that only prepares requests need not override it.

        Args:
            args: The model's arguments, JSON.
            tool_context: This call's own: its state writes and actions land on the event with the result.

        Returns:
            Anything; the model gets it as JSON, a bare value as `{"result": value}`.

        Raises:
            NotImplementedError: The tool does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} {self.name!r} has no run_async; override it")

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Prepare a request this tool is offered in. By default: declare the tool."""
        llm_request.append_tools([self])

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """Whether a human is asked before this call may run. Override this, or `confirmation`; ADK's name."""
        return False

    def confirmation_hint(self, args: dict[str, Any]) -> str | None:
        """What the human is asked then. None: whether the call may run."""
        return None

    async def confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> ToolConfirmation | None:
        """What a human is asked before this call may run. None: it may run."""
        if not await self.check_require_confirmation(args, tool_context):
            return None
        return ToolConfirmation(hint=self.confirmation_hint(args) or "")


def _unreserved(name: str) -> str:
    if name.startswith(RESERVED):
        raise ConfigurationError(f"tool {name!r}: names that start with {RESERVED!r} are reserved; rename it")
    return name
