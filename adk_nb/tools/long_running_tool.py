"""A tool that only starts something: whoever runs the agent sends the outcome when it is there."""

from collections.abc import Callable
from typing import Any

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.sessions.journal import Effect
from adk_nb.tools.conditions import Decides
from adk_nb.tools.function_tool import FunctionTool

_NOTE = (
    "This operation takes time: what it returns first is not its outcome. Do not call it again with the same arguments "
    "while it is under way."
)


class LongRunningFunctionTool(FunctionTool):
    """Wraps a function that starts a task and returns what is known of it by then, or nothing.

    What it returns is told to the model at once, as an answer that is not the last (`will_continue`); of nothing the
    model hears nothing, and the run ends. The event with the call has the call's id in `long_running_tool_ids`. The
    outcome, or news before it, is a message of its own: `types.Part(function_response=...)` with the id and the name of
    the call. Of several for one call the latest counts.

    A generator, sync or async, tells its news itself: each value that it yields is kept as an answer that is not the
    last, and its last one is the outcome (of a sync one: what it returns, if that is not None), with which the model is
    asked. With `pause=True` that too is news, and the outcome is sent from outside.

    Args:
        func: As for FunctionTool.
        pause: True: the run ends after the first answer, and the model is asked when a later one comes.
        require_confirmation: As for FunctionTool.
        auth_config: As for FunctionTool.
        thread: As for FunctionTool.
        timeout: As for FunctionTool; of the first answer alone.
        effect: As for FunctionTool.
        name: As for FunctionTool.
        description: As for FunctionTool.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        pause: bool = False,
        require_confirmation: Decides = False,
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
        result = await super().run_async(args=args, tool_context=tool_context)
        tool_context.long_running = tool_context.long_running or self.pause
        return result
