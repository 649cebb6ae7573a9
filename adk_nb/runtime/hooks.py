"""The one rule of every callback and plugin: ask in order, stop at the first that answers."""

import inspect
import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast

from adk_nb.errors import ConfigurationError

logger = logging.getLogger(__name__)

Hook = Callable[..., Any]
Hooks = Hook | list[Hook] | None
"""One callback, several asked in order, or none. A sync callback runs on the event loop and holds up all other runs, as
in google-adk 2.13; one that waits for something is `async def`."""


async def first_answer(hooks: Iterable[Hook], /, **said: Any) -> Any:
    """Ask each hook, sync or async, and return the first answer that is not None.

    A hook whose signature has other names is called with the values in their order.

    Raises:
        ConfigurationError: A hook takes fewer values, or needs more.
    """
    for hook in hooks:
        answer = hook(**said) if takes(hook, said) else hook(*said.values())
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is not None:
            return answer
    return None


async def tell(hooks: Iterable[Hook], /, **said: Any) -> None:
    """Tell each hook, whatever the others answer or raise; what one raises is logged."""
    for hook in hooks:
        try:
            await first_answer([hook], **said)
        except Exception:
            logger.exception("a hook that was only told of something raised")


def as_list(hooks: Hooks) -> list[Hook]:
    """A callback field as the list it stands for."""
    if hooks is None:
        return []
    return cast(list[Hook], hooks) if isinstance(hooks, list) else [hooks]


def takes(hook: Hook, said: Iterable[str]) -> bool:
    """True if `hook` has all the names in `said`, or takes any; else it takes that many values in order.

    Raises:
        ConfigurationError: Neither.
    """
    names = tuple(said)
    try:
        return _takes(hook, names)
    except TypeError:  # a method of something that cannot be hashed
        return _takes.__wrapped__(hook, names)


@lru_cache(maxsize=256)  # a signature is read once, not once a turn
def _takes(hook: Hook, names: tuple[str, ...]) -> bool:
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):
        return True
    parameters = signature.parameters
    named = {name for name, one in parameters.items() if one.kind is not one.POSITIONAL_ONLY}
    by_name = named.issuperset(names) or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    try:
        signature.bind(**dict.fromkeys(names)) if by_name else signature.bind(*names)
    except TypeError as error:
        name, told = getattr(hook, "__name__", type(hook).__name__), ", ".join(names)
        raise ConfigurationError(
            f"callback {name!r} cannot be called: {error}; give it the parameters ({told})"
        ) from error
    return by_name
