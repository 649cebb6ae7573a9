"""`@tool` turns a function into a tool."""

from collections.abc import Callable
from typing import Any, cast, overload

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError, closest
from adk_nb.sessions.journal import Effect
from adk_nb.tools.conditions import Condition
from adk_nb.tools.function_tool import FunctionTool, name_of
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.schema import signature_of

_RENAMED_OPTIONS = {"require_confirmation": "confirm", "is_long_running": "long_running"}
"""Option of FunctionTool and BaseTool -> the option of `@tool`."""
_OPTIONS = ("confirm", "auth_config", "thread", "timeout", "effect", "long_running", "pause", "name", "description")


@overload
def tool(func: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    confirm: Condition = False,
    auth_config: AuthConfig | None = None,
    thread: bool = False,
    timeout: float | None = None,
    effect: Effect | None = None,
    long_running: bool = False,
    pause: bool = False,
    name: str | None = None,
    description: str | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    confirm: Condition = False,
    auth_config: AuthConfig | None = None,
    thread: bool = False,
    timeout: float | None = None,
    effect: Effect | None = None,
    long_running: bool = False,
    pause: bool = False,
    name: str | None = None,
    description: str | None = None,
    **unknown: Any,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Turn a function into a FunctionTool, which can still be called as a function: `@tool`, `@tool(confirm=True)`.

    Args:
        func: The function.
        confirm: Ask the user before it runs; `require_confirmation` of FunctionTool.
        auth_config: The credential it needs; see `tool_context.auth_credential`.
        thread: Run a sync function on a worker thread.
        timeout: Seconds after which a call fails; a sync function then runs on a worker thread.
        effect: `pure`, `idempotent` or `once` (the default); see `BaseTool.effect`.
        long_running: The function only starts an operation: make a LongRunningFunctionTool.
        pause: See LongRunningFunctionTool.
        name: The name for the model. None: the function's name.
        description: The description for the model. None: the docstring.
        unknown: Refused, with a suggestion.

    Raises:
        ConfigurationError: A parameter has no type, or one that JSON cannot fill, or is `*args`; `pause` without
            `long_running`; an unknown option.
    """
    if unknown:
        option = next(iter(unknown))
        suggestion = _RENAMED_OPTIONS.get(option) or closest(option, _OPTIONS)
        hint = f"write @tool({suggestion}=...)" if suggestion else f"there is: {', '.join(_OPTIONS)}"
        raise ConfigurationError(f"@tool takes no {option!r}; {hint}")

    def wrap(func: Callable[..., Any]) -> FunctionTool:
        """Make the tool."""
        if not callable(cast(Any, func)):
            raise ConfigurationError(
                f"@tool takes a function, or options by name, got {func!r:.60}; "
                "write @tool, or @tool(name='...', confirm=True)"
            )
        tool_name = name or name_of(func)
        for fault in signature_of(func, tool_name).faults.values():
            raise ConfigurationError(f"tool {tool_name!r}: {fault}")
        return make_function_tool(
            func,
            long_running=long_running,
            pause=pause,
            require_confirmation=confirm,
            auth_config=auth_config,
            thread=thread,
            timeout=timeout,
            effect=effect,
            name=name,
            description=description,
        )

    return wrap(func) if func else wrap


def make_function_tool(func: Callable[..., Any], *, long_running: bool, pause: bool, **options: Any) -> FunctionTool:
    """Make a FunctionTool or, if `long_running`, a LongRunningFunctionTool, with the options of both.

    Raises:
        ConfigurationError: As for both; `pause` without `long_running`.
    """
    if long_running:
        return LongRunningFunctionTool(func, pause=pause, **options)
    if pause:
        raise ConfigurationError(pause_error(options.get("name") or name_of(func)))
    return FunctionTool(func, **options)


def pause_error(name: str) -> str:
    """Error message for `pause` on a tool that is not long running."""
    return f"tool {name!r}: pause needs a long-running tool; add long_running=True, or --long-running"
