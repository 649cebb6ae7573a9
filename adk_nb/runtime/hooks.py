"""Call callbacks and plugin hooks: in order, up to the first that returns a value."""

import inspect
import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast

from adk_nb.errors import ConfigurationError

logger = logging.getLogger(__name__)

Hook = Callable[..., Any]
Hooks = Hook | list[Hook] | None
"""A callback, a list called in order, or None. A sync callback blocks the event loop and all other runs, as in
google-adk 2.13; make a slow one `async def`."""


async def first_result(hooks: Iterable[Hook], /, **arguments: Any) -> Any:
    """Call hooks, sync or async, and return the first result that is not None.

    A hook whose parameters have other names gets positional arguments.

    Raises:
        ConfigurationError: A hook has the wrong number of parameters.
    """
    for hook in hooks:
        result = hook(**arguments) if takes_by_name(hook, arguments) else hook(*arguments.values())
        # By the result: a sync function may return a coroutine, as functools.partial does.
        if inspect.isawaitable(result):
            result = await result
        if result is not None:
            return result
    return None


async def notify(hooks: Iterable[Hook], /, **arguments: Any) -> None:
    """Call every hook and ignore the results; exceptions are logged."""
    for hook in hooks:
        try:
            await first_result([hook], **arguments)
        except Exception:
            logger.exception("a notification hook raised")


def as_list(hooks: Hooks) -> list[Hook]:
    """The callbacks of a field as a list."""
    if hooks is None:
        return []
    return cast(list[Hook], hooks) if isinstance(hooks, list) else [hooks]


def takes_by_name(hook: Hook, argument_names: Iterable[str]) -> bool:
    """True if `hook` accepts `argument_names` as keywords; False if it accepts as many positional arguments.

    Raises:
        ConfigurationError: It accepts neither.
    """
    names = tuple(argument_names)
    try:
        return _takes_by_name(hook, names)
    except TypeError:  # a bound method of an unhashable object
        return _takes_by_name.__wrapped__(hook, names)


@lru_cache(maxsize=256)  # reading a signature is slow, and hooks are called many times a turn
def _takes_by_name(hook: Hook, names: tuple[str, ...]) -> bool:
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):  # some built-in callables have no signature
        return True
    parameters = signature.parameters
    keywords = {name for name, parameter in parameters.items() if parameter.kind is not parameter.POSITIONAL_ONLY}
    by_name = keywords.issuperset(names) or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
    try:
        signature.bind(**dict.fromkeys(names)) if by_name else signature.bind(*names)
    except TypeError as error:
        name, expected = getattr(hook, "__name__", type(hook).__name__), ", ".join(names)
        raise ConfigurationError(
            f"callback {name!r} cannot be called: {error}; give it the parameters ({expected})"
        ) from error
    return by_name
