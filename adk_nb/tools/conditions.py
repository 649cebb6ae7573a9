"""When a person is asked before a call: always, never, or on a condition, a function or a text on the arguments."""

import inspect
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from adk_nb.cells import in_a_cell
from adk_nb.errors import ConfigurationError, InputError, closest
from adk_nb.expression import Expression
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.schema import context_parameter

logger = logging.getLogger(__name__)

Decides = bool | str | Callable[..., Any]
"""True or `always`, False or `never`. A text is an `Expression` on the arguments. A callable, sync or async, gets those
of them that it names. A person is asked if what it comes to is true, and if it comes to nothing, as when it raises."""
_WORDS = {"always": True, "never": False}


def as_condition(asks: Decides, tool: str, known: Iterable[str] | None) -> Decides:
    """`asks` as a tool keeps it.

    Args:
        asks: What its author says.
        tool: Its name, or that of a toolset, for the error.
        known: Its parameters. None: not known, or it takes any.

    Raises:
        ConfigurationError: The expression is none; it or the function needs what is no parameter.
    """
    if isinstance(asks, str):
        if asks in _WORDS:
            return _WORDS[asks]
        try:
            Expression(asks, known)
        except ConfigurationError as error:
            raise ConfigurationError(f"{tool}: {error}") from None
    elif not (callable(asks) or asks in (True, False, None)):
        raise ConfigurationError(
            f"{tool}: a person is asked always (True), never (False), or on a condition, and {asks!r:.60} is none; "
            "write a function, or text like 'amount > 100'"
        )
    elif callable(asks) and known is not None:
        _refuse_unknown(asks, tool, sorted(known))
    return asks


async def is_asked(asks: Decides, given: Mapping[str, Any], tool_context: ToolContext) -> bool:
    """Whether a person is asked before a call with the arguments `given`; for an expression, JSON."""
    if isinstance(asks, str):
        return _holds(asks, given)
    if not callable(asks):
        return bool(asks)
    said = dict(given)
    if context := context_parameter(asks):
        said[context] = tool_context
    try:
        answer = asks(**_named(asks, said))
        return bool(await answer if can_be_awaited(answer) else answer)
    except Exception as error:
        _warn(error)
        return True


def names_in(asks: Decides) -> frozenset[str]:
    """The arguments that an expression needs."""
    return _expression(asks).names if isinstance(asks, str) else frozenset()


def with_defaults(schema: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """`args`, and what a JSON Schema says of those that are left out."""
    properties: dict[str, dict[str, Any] | bool] = schema.get("properties") or {}
    said = {key: one["default"] for key, one in properties.items() if isinstance(one, dict) and "default" in one}
    return said | dict(args)


def _holds(source: str, given: Mapping[str, Any]) -> bool:
    try:
        return _expression(source).holds(given)
    except (ConfigurationError, InputError) as error:
        _warn(error)
        return True


def _warn(error: Exception) -> None:
    why, where = "".join(traceback.format_exception_only(error)).strip(), in_a_cell(error) or "no cell"
    logger.warning("a person is asked, since it cannot be told whether they have to be: %s (in %s)", why, where)


@lru_cache(maxsize=256)
def _expression(source: str) -> Expression:
    return Expression(source)


def _refuse_unknown(func: Callable[..., Any], tool: str, known: Sequence[str]) -> None:
    """Raise ConfigurationError if `func` needs what the tool does not have: asked, it could only fail."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError:  # one of Python's own, which does not tell
        return
    context = context_parameter(func)
    for one in parameters:
        needed = one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if needed and one.name not in known and one.name != context:
            near = closest(one.name, known)
            hint = f"did you mean {near!r}?" if near else f"there is: {', '.join(known) or 'none'}"
            raise ConfigurationError(f"{tool}: its condition needs {one.name!r}, which is no parameter of it; {hint}")


def _named(func: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """What of `given` the function has a name for."""
    parameters = inspect.signature(func).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return {key: one for key, one in given.items() if takes_any or key in parameters}


def can_be_awaited(answer: Any) -> bool:
    """Told by its type: an object may lie about its class, or raise when asked."""
    return hasattr(cast(Any, type(answer)), "__await__")
