"""The base class of tools, functions that a model can call; and the effect of calling one twice."""

import copy
from collections.abc import Callable
from types import FunctionType
from typing import Any, Self, TypeVar
from weakref import WeakSet

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.approvals import RESERVED
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.journal import Effect

F = TypeVar("F", bound=Callable[..., Any])
_pure: WeakSet[Any] = WeakSet()


def pure(func: F) -> F:
    """Mark a function of this package as free of side effects outside its run."""
    _pure.add(func)
    return func


def effect_of(func: Callable[..., Any]) -> Effect:
    """The effect of repeating a call of `func`, if its author states none."""
    return "pure" if isinstance(func, FunctionType) and func in _pure else "once"


def effect_of_method(method: str) -> Effect:
    """The effect of repeating an HTTP request. Source of the safe methods: RFC 9110, 9.2.1."""
    return "pure" if method in ("GET", "HEAD", "OPTIONS") else "once"


class _Declaration:
    """`tool.declaration`, to read; a subclass may have an attribute of its own with this name."""

    def __get__(self, tool: "BaseTool", owner: type) -> types.FunctionDeclaration | None:
        return tool.function_declaration


class BaseTool:
    """A name, a declaration for the model, and a function to run."""

    auth_config: AuthConfig | None = None
    """The credential it needs. It runs only once one is stored, and finds it in `tool_context.auth_credential`."""

    response_for_auth_required: dict[str, Any] | str | None = None
    """The result that the model gets while the user is asked for the credential. None: a default text."""

    effect: Effect = "once"
    """Effect of repeating a call after a run that was interrupted during it. `pure`: the tool has no side effects.
    `idempotent`: they happen once, since the tool honours `tool_context.idempotency_key`. `once`: they may happen
    twice, so the user is asked first. Where an author wrote `once`, the user is also asked before the same call is made
    twice in a turn, see `asks_to_repeat`."""

    bound_to: str = ""
    """The target it acts on, such as a URL, if the code does not name it: an approval is valid for that target only."""

    response_scheduling: types.FunctionResponseScheduling | None = None
    """When a live model reacts to the result: at once, when idle, or silently. None: the service's default."""

    changes_tools: bool = False
    """True: after a call of it, the agent's tools are listed anew."""
    reports_progress: bool = False
    """True: it may report progress while it runs, through `tell` of its invocation."""

    resumable: bool = False
    """True: it can contain open interrupts. It is called again with their answers."""

    runs_task: bool = False
    """True: it runs a task agent. Its result is added to the conversation in the user's name."""

    runs_last: bool = False
    """True: it is called after the other calls of its step have finished, whatever their duration."""

    def __init__(
        self,
        *,
        name: str,
        description: str,
        is_long_running: bool = False,
        custom_metadata: dict[str, Any] | None = None,
        response_scheduling: types.FunctionResponseScheduling | None = None,
    ) -> None:
        self.name = _check_name(name)
        self.description = description
        self.is_long_running = is_long_running
        """True: its result arrives later, from outside the run."""
        self.custom_metadata = custom_metadata
        self.response_scheduling = response_scheduling
        self._declaration_cache: tuple[types.FunctionDeclaration | None] | tuple[()] = ()

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        """The declaration for the model. None: the model never sees the tool. Override this; ADK's name."""
        return None

    @property
    def stands_alone(self) -> bool:
        """True: beside other tools an agent of its own calls it, as the service that runs it takes it only alone."""
        return False

    declaration = _Declaration()

    @property
    def function_declaration(self) -> types.FunctionDeclaration | None:
        """The declaration for the model, built once."""
        if not self._declaration_cache:
            self._declaration_cache = (self._get_declaration(),)
        return self._declaration_cache[0]

    def renamed(self, name: str) -> Self:
        """Copy the tool under another name.

        Raises:
            ConfigurationError: The name is reserved.
        """
        renamed, declaration = copy.copy(self), self.function_declaration
        renamed.name = _check_name(name)
        renamed_declaration = declaration and declaration.model_copy(update={"name": name})
        renamed._declaration_cache = (renamed_declaration,)
        setattr(renamed, "_get_declaration", lambda: renamed_declaration)  # noqa: B010 - of this copy, not of its class
        return renamed

    def check(self, args: dict[str, Any]) -> str | None:
        """Validate `args`. Return an error message for the model; None if they are valid or cannot be checked."""
        return None

    def comparable_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """`args` as the tool gets them, with defaults, to compare calls. The default is `args` as they are."""
        return args

    @property
    def may_need_approval(self) -> bool:
        """True if some calls need an approval."""
        kind = type(self)
        is_overridden = kind.check_require_confirmation is not BaseTool.check_require_confirmation
        return is_overridden or kind.confirmation is not BaseTool.confirmation

    @property
    def states_effect(self) -> bool:
        """True if `effect` was set, for the tool or its class; False if it is the default."""
        if "effect" in vars(self):
            return True
        # A loop: it is asked of every call, and a generator costs more than it does.
        for kind in type(self).__mro__:  # noqa: SIM110
            if kind is not BaseTool and "effect" in kind.__dict__:
                return True
        return False

    @property
    def asks_to_repeat(self) -> bool:
        """True: in one turn a call is made again with equal arguments only if a person agrees.

        So it is with tools that may need an approval, and with those whose author said that their effect is `once`.
        """
        if self.effect == "pure":
            return False
        return self.may_need_approval or (self.effect == "once" and self.states_effect)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the tool. A tool that only prepares requests need not override it.

        Args:
            args: The model's arguments, JSON.
            tool_context: Context of this call: its state writes and actions are stored in the event with the result.

        Returns:
            Any value; the model gets it as JSON, a bare value as `{"result": value}`.

        Raises:
            NotImplementedError: The tool does not override it.
        """
        raise NotImplementedError(f"{type(self).__name__} {self.name!r} has no run_async; override it")

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Prepare a request that offers this tool. The default declares it."""
        llm_request.append_tools([self])

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """Return True if the user must approve this call. Override this or `confirmation`; ADK's name."""
        return False

    def confirmation_hint(self, args: dict[str, Any]) -> str | None:
        """The question for the approver. None: the standard question."""
        return None

    def call_target(self, args: dict[str, Any]) -> str:
        """The target of a call: an approval is valid for that target only. The default is `bound_to`."""
        return self.bound_to

    async def confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> ToolConfirmation | None:
        """The approval to request before this call. None: no approval is needed."""
        if not await self.check_require_confirmation(args, tool_context):
            return None
        return ToolConfirmation(hint=self.confirmation_hint(args) or "")


def _check_name(name: str) -> str:
    if name.startswith(RESERVED):
        raise ConfigurationError(f"tool {name!r}: names that start with {RESERVED!r} are reserved; rename it")
    return name
