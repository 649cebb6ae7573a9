"""The types that a function's parameters have, as objects, wherever the function was written."""

import functools
import inspect
import logging
import sys
import types
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, cast, get_args, get_origin

import typing_extensions
from pydantic import BeforeValidator

logger = logging.getLogger(__name__)

_LOCAL = ".<locals>."
_OLD = sys.version_info < (3, 12)
"""pydantic cannot read what `typing.TypedDict` makes, only what typing_extensions makes. Source: pydantic 2."""


def hints_of(func: Callable[..., Any]) -> dict[str, Any]:
    """Parameter, and `return`, -> its type. One that cannot be resolved stays the text that it is."""
    target = _holder(func)
    try:
        hints = typing.get_type_hints(target, localns=_names_around(target), include_extras=True)
    except Exception:  # an annotation may be any expression, so resolving it may raise anything
        written: dict[str, Any] = getattr(target, "__annotations__", {})
        hints = {key: _resolved(target, key, one) for key, one in written.items()}
    try:
        return {key: _readable(one) for key, one in hints.items()}
    except RecursionError:  # a TypedDict within itself: pydantic says what to write
        return hints


def gives(kind: Callable[[Any], bool], func: Callable[..., Any]) -> bool:
    """True if `func`, called, gives what a function of that `kind` gives, as in `gives(iscoroutinefunction, func)`."""
    inner: Any = func.func if isinstance(func, functools.partial) else func
    return kind(inner) or (not inspect.isroutine(inner) and kind(type(inner).__call__))


def yields(func: Callable[..., Any]) -> bool:
    """True for a generator function, sync or async."""
    return gives(inspect.isgeneratorfunction, func) or gives(inspect.isasyncgenfunction, func)


def why_unresolved(func: Callable[..., Any], name: str, hint: str) -> str | None:
    """What is wrong with an annotation that stayed text. None: nothing."""
    try:
        _resolve(_holder(func), name, hint)
        return None
    except Exception as error:  # an annotation may be any expression
        return str(error)


def _holder(func: Callable[..., Any]) -> Any:
    """What holds the annotations."""
    target: Any = func.func if isinstance(func, functools.partial) else func
    if isinstance(target, type):
        return cast(Any, target).__init__
    return target if inspect.isroutine(target) else target.__call__


def _resolve(target: Any, key: str, hint: Any) -> Any:
    alone = types.SimpleNamespace(__annotations__={key: hint})
    around = getattr(inspect.unwrap(target), "__globals__", {})
    return typing.get_type_hints(alone, around, _names_around(target), include_extras=True)[key]


def _resolved(target: Any, key: str, hint: Any) -> Any:
    try:
        return _resolve(target, key, hint)
    except Exception as error:  # as above
        logger.debug("the type of %r cannot be resolved: %s", key, error)
        return hint


def _names_around(target: Any) -> dict[str, Any]:
    """The local names that a function inside a function sees: those it uses, and all of the outer one while it runs."""
    inner: Any = inspect.unwrap(target)
    func = getattr(inner, "__func__", inner)
    code: types.CodeType | None = getattr(func, "__code__", None)
    outer = getattr(func, "__qualname__", "").rpartition(_LOCAL)[0]
    if code is None or not outer:
        return {}
    names: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame and not (frame.f_code.co_qualname == outer and frame.f_globals is func.__globals__):
        frame = frame.f_back
    if frame:
        names.update(frame.f_locals)
    names.update(inspect.getclosurevars(func).nonlocals)
    return names


def _readable(hint: Any) -> Any:
    """The type, with what pydantic cannot read replaced by an equal that it can: TypedDicts, members of an Enum."""
    if _OLD and _is_old_typed_dict(hint):
        return _newer(hint)
    args = get_args(hint)
    if get_origin(hint) is typing.Literal:
        members = {one.value: one for one in args if isinstance(one, Enum)}
        return typing.Annotated[hint, BeforeValidator(functools.partial(_member, members))] if members else hint
    if not args:
        return hint
    parts = [
        [_readable(one) for one in cast(list[Any], arg)] if isinstance(arg, list) else _readable(arg) for arg in args
    ]
    return hint if _same(parts, args) else _with_args(hint, parts)


def _member(members: dict[Any, Enum], value: Any) -> Any:
    """What stands for `value` in a Literal; pydantic itself finds only members that are str or int too."""
    return members.get(value, value) if isinstance(value, str | int | float) else value


def _same(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return all(one is other or one == other for one, other in zip(new, old, strict=True))


def _with_args(hint: Any, args: list[Any]) -> Any:
    origin: Any = get_origin(hint)
    if origin is typing.Annotated:
        return typing.Annotated[tuple(args)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(args)]  # noqa: UP007  # a value, not an annotation
    return origin[tuple(args) if len(args) > 1 else args[0]]


def _is_old_typed_dict(hint: Any) -> bool:
    return typing.is_typeddict(hint) and type(hint).__module__ == "typing"


def _newer(old: Any) -> Any:
    fields = {
        key: _marked(one, key in old.__required_keys__)
        for key, one in typing.get_type_hints(old, include_extras=True).items()
    }
    made = cast(Any, typing_extensions.TypedDict)(old.__name__, fields)
    made.__doc__, made.__module__ = old.__doc__, old.__module__
    return made


def _marked(hint: Any, required: bool) -> Any:
    """A field's type, and whether the field must be there: as it is marked, else as the class says."""
    origin: Any = get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin[_readable(get_args(hint)[0])]
    kind: Any = typing.Required if required else typing.NotRequired
    return kind[_readable(hint)]
