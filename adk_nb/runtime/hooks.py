"""The one rule of every callback and plugin: ask in order, stop at the first that answers."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, cast

Hook = Callable[..., Any]
Hooks = Hook | list[Hook] | None
"""One callback, several asked in order, or none."""


async def first_answer(hooks: Iterable[Hook], /, **said: Any) -> Any:
    """Ask each hook, sync or async, and return the first answer that is not None.

    A hook whose signature has other names is called with the values in their order.
    """
    for hook in hooks:
        answer = hook(**said) if takes(hook, said) else hook(*said.values())
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is not None:
            return answer
    return None


def as_list(hooks: Hooks) -> list[Hook]:
    """A callback field as the list it stands for."""
    if hooks is None:
        return []
    return cast(list[Hook], hooks) if isinstance(hooks, list) else [hooks]


def takes(hook: Hook, said: Iterable[str]) -> bool:
    """True if `hook` has all the names in `said`, or takes any."""
    try:
        parameters = inspect.signature(hook).parameters
    except (TypeError, ValueError):
        return True
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return True
    named = {name for name, one in parameters.items() if one.kind is not one.POSITIONAL_ONLY}
    return named.issuperset(said)
