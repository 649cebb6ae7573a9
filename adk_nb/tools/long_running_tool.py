"""`LongRunningFunctionTool`: starts an operation whose outcome is sent later, from outside the run."""

from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.runtime.context import call_state
from adk_nb.sessions.journal import Effect
from adk_nb.tools.conditions import Condition
from adk_nb.tools.function_tool import FunctionTool

_NOTE = (
    "This operation takes time: what it returns first is not its outcome. Do not call it again with the same arguments "
    "while it is under way."
)


class LongRunningFunctionTool(FunctionTool):
    """Wraps a function that starts an operation and returns its first status, or None.

    The model gets the first status at once, as an interim response (`will_continue`); with None it gets nothing, and
    the run ends. The event with the call has the call's id in `long_running_tool_ids`. The outcome, or another interim
    response, is sent as a message: `types.Part(function_response=...)` with the id and the name of the call. Of several
    responses to one call the latest counts.

    A generator, sync or async, responds itself: each yielded value is stored as an interim response, and the last value
    (of a sync one: its return value, unless None) is the outcome, which goes to the model. With `pause=True` the last
    value is interim, too, and the outcome is sent from outside.

    Args:
        pause: The run ends after the first response, and the model is called when a later one arrives.
        timeout: Seconds until the first response; None: no limit.

    The other arguments are those of FunctionTool.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        pause: bool = False,
        require_confirmation: Condition = False,
        auth_config: AuthConfig | None = None,
        thread: bool = False,
        timeout: float | None = None,
        effect: Effect | None = None,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        super().__init__(
            func,
            require_confirmation=require_confirmation,
            auth_config=auth_config,
            thread=thread,
            timeout=timeout,
            effect=effect,
            name=name,
            description=description,
        )
        self.is_long_running = True
        self.pause = pause

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return self.signature.declaration(f"{self.description}\n\n{_NOTE}" if self.description else _NOTE)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Call the function; with `pause` the run ends after its first response."""
        result = await super().run_async(args=args, tool_context=tool_context)
        call_state(tool_context).is_long_running |= self.pause
        return result
