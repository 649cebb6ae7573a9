"""Call callbacks and plugin hooks: in order, up to the first that returns a value."""

import inspect
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, cast

from adk_nb import sync
from adk_nb.concurrency.threads import has_threads
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import Context, abandon
from adk_nb.runtime.invocation_context import InvocationContext, InvocationShared

logger = logging.getLogger(__name__)

Hook = Callable[..., Any]
Hooks = Hook | list[Hook] | None
"""A callback, a list called in order, or None. An async one runs on the event loop. A plain function runs in a worker
thread, so that it holds up no other run; those of one run follow one another."""

_run_of_callback: ContextVar[InvocationShared | None] = ContextVar("adk_nb_run_of_callback", default=None)
"""The run whose plain callback this thread executes."""


async def first_result(hooks: Iterable[Hook], /, **arguments: Any) -> Any:
    """Call hooks, sync or async, and return the first result that is not None.

    A hook whose parameters have other names gets positional arguments.

    Raises:
        ConfigurationError: A hook has the wrong number of parameters.
    """
    for hook in hooks:
        by_name = takes_by_name(hook, arguments)
        if not has_threads() or _is_async(hook):
            result = hook(**arguments) if by_name else hook(*arguments.values())
        else:
            result = await _in_thread(hook, arguments, by_name)
        # By the result: a sync function may return a coroutine, as functools.partial does.
        if inspect.isawaitable(result):
            result = await result
        if result is not None:
            return result
    return None


async def _in_thread(hook: Hook, arguments: dict[str, Any], by_name: bool) -> Any:
    """Call a plain function in a worker thread, after the other plain callbacks of its run."""
    context = next(value for value in arguments.values() if isinstance(value, Context | InvocationContext))
    shared = (context.get_invocation_context() if isinstance(context, Context) else context).shared

    def call() -> Any:
        token = _run_of_callback.set(shared)
        try:
            return hook(**arguments) if by_name else hook(*arguments.values())
        finally:
            _run_of_callback.reset(token)

    def on_abandon(outcome: Future[Any]) -> None:
        name = getattr(hook, "__name__", type(hook).__name__)
        if isinstance(context, Context):
            abandon(context, name, outcome)
        else:
            shared.abandoned_functions.append((f"{name}()", outcome))

    # A callback may run an agent of the same run: its callbacks must not wait for the one that waits for them.
    async with nullcontext() if _run_of_callback.get() is shared else shared.callback_lock:
        return await sync.callback_call(call, on_abandon)


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


def _is_async(hook: Any) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(type(hook).__call__)


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
