"""Default effects of repeated calls: of functions of this package, and of HTTP requests."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakSet

from adk_nb.sessions.journal import Effect

F = TypeVar("F", bound=Callable[..., Any])
_pure: WeakSet[Any] = WeakSet()


def pure(func: F) -> F:
    """Mark a function of this package as free of side effects outside its run."""
    _pure.add(func)
    return func


def effect_of(func: Callable[..., Any]) -> Effect:
    """The effect of repeating a call of `func`, if its author states none."""
    return "pure" if isinstance(func, FunctionType) and func in _pure else "once"


def effect_of_method(method: str) -> Effect:
    """The effect of repeating an HTTP request. Source of the safe methods: RFC 9110, 9.2.1."""
    return "pure" if method in ("GET", "HEAD", "OPTIONS") else "once"
