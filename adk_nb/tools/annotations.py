"""Resolves the annotations of a function to types."""

import functools
import inspect
import logging
import sys
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, cast, get_args, get_origin

import typing_extensions
from pydantic import BeforeValidator

logger = logging.getLogger(__name__)

_LOCAL = ".<locals>."
_NEEDS_TYPING_EXTENSIONS = sys.version_info < (3, 12)
"""Before Python 3.12 pydantic needs TypedDict of typing_extensions.

Source: https://docs.pydantic.dev/latest/errors/usage_errors/#typed-dict-version.
"""


def hints_of(func: Callable[..., Any]) -> dict[str, Any]:
    """The type of each parameter, and of `return`, by name. An annotation that cannot be resolved stays text."""
    target = _annotated_function(func)
    try:
        hints = typing.get_type_hints(target, localns=_local_names(target), include_extras=True)
    except Exception:  # an annotation may be any expression, so resolving it may raise anything
        hints = dict[str, Any](getattr(target, "__annotations__", {}))
        for key, hint in hints.items():
            try:
                hints[key] = _resolve(target, key, hint)
            except Exception as error:
                logger.debug("the type of %r cannot be resolved: %s", key, error)
    try:
        return {key: _supported(hint) for key, hint in hints.items()}
    except RecursionError:  # a recursive TypedDict: pydantic reports it, with the fix
        return hints


def call_is(kind: Callable[[Any], bool], func: Callable[..., Any]) -> bool:
    """True if calling `func` calls a function of that `kind`, as in `call_is(iscoroutinefunction, func)`."""
    inner: Any = func.func if isinstance(func, functools.partial) else func
    return kind(inner) or (not inspect.isroutine(inner) and kind(type(inner).__call__))


def is_generator(func: Callable[..., Any]) -> bool:
    """True if `func` is a generator function, sync or async."""
    return call_is(inspect.isgeneratorfunction, func) or call_is(inspect.isasyncgenfunction, func)


def resolution_error(func: Callable[..., Any], name: str, hint: str) -> str | None:
    """The error that keeps an annotation text. None: it can be resolved now."""
    try:
        _resolve(_annotated_function(func), name, hint)
        return None
    except Exception as error:  # an annotation may be any expression, so resolving it may raise anything
        return str(error)


def _annotated_function(func: Callable[..., Any]) -> Any:
    """The function object that has the annotations."""
    target: Any = func.func if isinstance(func, functools.partial) else func
    if isinstance(target, type):
        return cast(Any, target).__init__
    return target if inspect.isroutine(target) else target.__call__


def _resolve(target: Any, key: str, hint: Any) -> Any:
    holder = types.SimpleNamespace(__annotations__={key: hint})
    module_names = getattr(inspect.unwrap(target), "__globals__", {})
    return typing.get_type_hints(holder, module_names, _local_names(target), include_extras=True)[key]


def _local_names(target: Any) -> dict[str, Any]:
    """Local names visible to a nested function: its closure, and the outer function's variables while that runs."""
    inner: Any = inspect.unwrap(target)
    func = getattr(inner, "__func__", inner)
    code: types.CodeType | None = getattr(func, "__code__", None)
    outer_name = getattr(func, "__qualname__", "").rpartition(_LOCAL)[0]
    if code is None or not outer_name:
        return {}
    names: dict[str, Any] = {}
    # A class that the outer function defines is in the closure only if the body uses it; but while the outer function
    # runs, the class is in its frame.
    frame = inspect.currentframe()
    while frame and not (frame.f_code.co_qualname == outer_name and frame.f_globals is func.__globals__):
        frame = frame.f_back
    if frame:
        names.update(frame.f_locals)
    names.update(inspect.getclosurevars(func).nonlocals)
    return names


def _supported(hint: Any) -> Any:
    """The type, with parts that pydantic cannot read replaced by equal ones: TypedDicts, Enum members in a Literal."""
    if _NEEDS_TYPING_EXTENSIONS and typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        fields: dict[str, Any] = {}
        for key, field in typing.get_type_hints(hint, include_extras=True).items():
            # By the field's own mark, else by the class's `total`.
            if (mark := get_origin(field)) in (typing.Required, typing.NotRequired):
                field = get_args(field)[0]
            else:
                mark = typing.Required if key in hint.__required_keys__ else typing.NotRequired
            fields[key] = cast(Any, mark)[_supported(field)]
        typed_dict = cast(Any, typing_extensions.TypedDict)(hint.__name__, fields)
        typed_dict.__doc__, typed_dict.__module__ = hint.__doc__, hint.__module__
        return typed_dict
    args, origin = get_args(hint), get_origin(hint)
    if origin is typing.Literal:
        members = {member.value: member for member in args if isinstance(member, Enum)}

        def member_of(value: Any) -> Any:
            """The Enum member for `value`. pydantic matches only members that are also str or int."""
            return members.get(value, value) if isinstance(value, str | int | float) else value

        return typing.Annotated[hint, BeforeValidator(member_of)] if members else hint
    new_args = [
        [_supported(item) for item in cast(list[Any], arg)] if isinstance(arg, list) else _supported(arg)
        for arg in args
    ]
    if all(new is old or new == old for new, old in zip(new_args, args, strict=True)):
        return hint
    if origin is typing.Annotated:
        return typing.Annotated[tuple(new_args)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(new_args)]  # noqa: UP007  # a value, not an annotation
    return origin[tuple(new_args) if len(new_args) > 1 else new_args[0]]
