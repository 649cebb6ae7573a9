"""What it means to call something again, where nobody says: of functions of our own, and of HTTP requests."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakSet

from adk_nb.sessions.journal import Effect

F = TypeVar("F", bound=Callable[..., Any])
_pure: WeakSet[Any] = WeakSet()


def pure(func: F) -> F:
    """Decorates a function of this package that a model can call, and that does nothing outside its run."""
    _pure.add(func)
    return func


def effect_of(func: Callable[..., Any]) -> Effect:
    """What it means to call `func` again, if its author does not say."""
    return "pure" if isinstance(func, FunctionType) and func in _pure else "once"


def effect_of_method(method: str) -> Effect:
    """The same, of an HTTP request. Source: RFC 9110, 9.2.1, safe methods."""
    return "pure" if method in ("GET", "HEAD", "OPTIONS") else "once"
