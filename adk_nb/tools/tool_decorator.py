"""`@tool`: a function of one's own as a tool."""

from collections.abc import Callable
from typing import Any, overload

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError, closest
from adk_nb.sessions.journal import Effect
from adk_nb.tools.conditions import Decides
from adk_nb.tools.function_tool import FunctionTool, name_of
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.schema import signature_of

_SPELLED_HERE = {"require_confirmation": "confirm", "is_long_running": "long_running"}
"""Names of other tools' options -> those of `@tool`."""


@overload
def tool(func: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    confirm: Decides = False,
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
    confirm: Decides = False,
    auth_config: AuthConfig | None = None,
    thread: bool = False,
    timeout: float | None = None,
    effect: Effect | None = None,
    long_running: bool = False,
    pause: bool = False,
    name: str | None = None,
    description: str | None = None,
    **others: Any,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """`@tool`, `@tool(confirm=True)`: a function becomes a FunctionTool, and can still be called as a function.

    Args:
        func: The function.
        confirm: Ask a human before it runs; `require_confirmation` of FunctionTool.
        auth_config: What it has to be let in with; see `tool_context.auth_credential`.
        thread: Run a sync function on a worker thread.
        timeout: Seconds after which a call fails; a sync function then runs on a worker thread.
        effect: `pure`, `idempotent` or `once`, which it is if nothing is said; see `BaseTool.effect`.
        long_running: It only starts something: it becomes a LongRunningFunctionTool.
        pause: As LongRunningFunctionTool has it.
        name: What the model calls it. None: the function's name.
        description: What the model is told. None: the docstring.
        others: None; a name that FunctionTool has for one of these is told apart from a slip.

    Raises:
        ConfigurationError: A parameter has no type, or one that JSON cannot fill, or is `*args`; `pause` without
            `long_running`; an option that there is not.
    """
    for option in others:
        raise ConfigurationError(_no_option(option))

    def wrap(func: Callable[..., Any]) -> FunctionTool:
        _refuse_untyped(func, name)
        return made_of(
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


def made_of(func: Callable[..., Any], *, long_running: bool, pause: bool, **options: Any) -> FunctionTool:
    """A FunctionTool or, of what only starts something, a LongRunningFunctionTool; `options` are those of both.

    Raises:
        ConfigurationError: As of both; `pause` without `long_running`.
    """
    if long_running:
        return LongRunningFunctionTool(func, pause=pause, **options)
    if pause:
        raise ConfigurationError(no_pause(options.get("name") or name_of(func)))
    return FunctionTool(func, **options)


def no_pause(name: str) -> str:
    """What is wrong with a tool that is to pause, and is not long running."""
    return (
        f"tool {name!r}: only a tool whose outcome comes later can pause; say long_running=True, or --long-running, too"
    )


def _no_option(option: str) -> str:
    known = ("confirm", "auth_config", "thread", "timeout", "effect", "long_running", "pause", "name", "description")
    better = _SPELLED_HERE.get(option) or closest(option, known)
    hint = f"write @tool({better}=...)" if better else f"there is: {', '.join(known)}"
    return f"@tool takes no {option!r}; {hint}"


def _refuse_untyped(func: Callable[..., Any], name: str | None) -> None:
    """Raise ConfigurationError if a parameter has no type or is `*args`: a tool made on purpose says what it takes."""
    if not callable(func):
        raise ConfigurationError(
            f"@tool stands above a function and takes its options by name, and {func!r:.60} is neither; "
            "write @tool, or @tool(name='...', confirm=True)"
        )
    name = name or name_of(func)
    for fault in signature_of(func, name).faults.values():
        raise ConfigurationError(f"tool {name!r}: {fault}")
