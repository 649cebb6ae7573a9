"""Conditions for approval: always, never, or a function or an expression of the arguments."""

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from adk_nb.errors import ConfigurationError, InputError, closest
from adk_nb.expression import Expression
from adk_nb.locations import cell_location
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.schema import context_parameter

logger = logging.getLogger(__name__)

Condition = bool | str | Callable[..., Any]
"""True or `always`, False or `never`; a text is an `Expression` of the arguments; a callable, sync or async, gets the
arguments that it names. The user is asked if the result is true, and if it cannot be computed, as when it raises."""
_KEYWORDS = {"always": True, "never": False}


def parse_condition(condition: Condition, tool: str, parameters: Iterable[str] | None) -> Condition:
    """Check a condition, and replace `always` and `never` by their value.

    Args:
        condition: The author's condition.
        tool: Name of the tool or toolset, for the error.
        parameters: Names of the tool's parameters. None: not known, or it takes any.

    Raises:
        ConfigurationError: The expression is invalid; or it or the function needs a parameter that the tool lacks.
    """
    if isinstance(condition, str):
        if condition in _KEYWORDS:
            return _KEYWORDS[condition]
        try:
            Expression(condition, parameters)
        except ConfigurationError as error:
            raise ConfigurationError(f"{tool}: {error}") from None
    elif not (callable(condition) or condition in (True, False, None)):
        raise ConfigurationError(
            f"{tool}: a condition must be True (always), False (never), a function or an expression, got "
            f"{condition!r:.60}; write text like 'amount > 100'"
        )
    elif callable(condition) and parameters is not None:
        _refuse_unknown(condition, tool, sorted(parameters))
    return condition


async def condition_holds(condition: Condition, args: Mapping[str, Any], tool_context: ToolContext) -> bool:
    """Evaluate a condition for a call with `args` (JSON values for an expression). True if it fails."""
    if isinstance(condition, str):
        try:
            return _expression(condition).holds(args)
        except (ConfigurationError, InputError) as error:
            _warn(error)
            return True
    if not callable(condition):
        return bool(condition)
    values = dict(args)
    if context_name := context_parameter(condition):
        values[context_name] = tool_context
    try:
        parameters = inspect.signature(condition).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        result = condition(**{key: value for key, value in values.items() if takes_any or key in parameters})
        return bool(await result if is_awaitable(result) else result)
    except Exception as error:
        # Fail safe: without a result the user is asked.
        _warn(error)
        return True


def argument_names(condition: Condition) -> frozenset[str]:
    """Names of the arguments that an expression reads."""
    return _expression(condition).names if isinstance(condition, str) else frozenset()


def with_defaults(schema: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """`args`, with the defaults of a JSON Schema for those that are missing."""
    properties: dict[str, dict[str, Any] | bool] = schema.get("properties") or {}
    defaults = {
        key: field["default"] for key, field in properties.items() if isinstance(field, dict) and "default" in field
    }
    return defaults | dict(args)


def _warn(error: Exception) -> None:
    message, cell = "".join(traceback.format_exception_only(error)).strip(), cell_location(error) or "no cell"
    logger.warning("a person is asked, since it cannot be told whether they have to be: %s (in %s)", message, cell)


@lru_cache(maxsize=256)
def _expression(source: str) -> Expression:
    return Expression(source)


def _refuse_unknown(func: Callable[..., Any], tool: str, names: Sequence[str]) -> None:
    """Raise ConfigurationError if `func` needs an argument that the tool does not have: every call would fail."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError:  # some builtins have no signature
        return
    context_name = context_parameter(func)
    for parameter in parameters:
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        needed = by_name and parameter.default is parameter.empty
        if needed and parameter.name not in names and parameter.name != context_name:
            suggestion = closest(parameter.name, names)
            hint = f"did you mean {suggestion!r}?" if suggestion else f"there is: {', '.join(names) or 'none'}"
            raise ConfigurationError(
                f"{tool}: its condition needs {parameter.name!r}, which is not a parameter of the tool; {hint}"
            )


def is_awaitable(value: Any) -> bool:
    """True if the type of `value` is awaitable. Not an attribute of `value`: reading one of a proxy may raise."""
    return hasattr(cast(Any, type(value)), "__await__")
