"""What a tool is, in a short text that changes when the tool does: an approval holds for that tool only."""

import functools
import hashlib
import inspect
import json
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def fingerprint(tool: BaseTool) -> str:
    """Equal for equal declarations, equal code and equal `bound_to`; the same cell run again gives the same.

    The code is that of the tool's function, of functions it wraps or is closed over, with their constants and
    defaults. What a function looks up when it runs, a global variable or an attribute, is no part of it.
    """
    declared = tool.declaration.model_dump(mode="json", exclude_none=True) if tool.declaration else None
    func: Any = tool.func if isinstance(tool, FunctionTool) else type(tool).run_async
    parts = [type(tool).__qualname__, tool.name, tool.bound_to, json.dumps(declared, sort_keys=True, default=repr)]
    return hashlib.sha256("\0".join([*parts, *_of_value(func, set())]).encode()).hexdigest()[:32]


def code_fingerprint(func: Any) -> str:
    """As `fingerprint`, of a function alone."""
    return hashlib.sha256("\0".join(_of_value(func, set())).encode()).hexdigest()[:32]


def _of_value(value: Any, seen: set[int]) -> Iterator[str]:
    kind = _type(value)
    if kind in _PLAIN:
        yield f"{kind.__name__} {hex(value) if kind is int else repr(value)}"  # a long number has no repr
    elif id(value) in seen:
        yield "again"
    else:
        seen.add(id(value))
        yield kind.__qualname__
        yield from _of_parts(value, seen)


def _of_parts(value: Any, seen: set[int]) -> Iterator[str]:
    """Of what has parts; of any other object only its type is told, which the caller has done."""
    if isinstance(value, CodeType):
        yield from _of_code(value, seen)
    elif isinstance(value, functools.partial):
        held = cast(Any, value)
        yield from _of_each([held.func, *held.args, *held.keywords, *held.keywords.values()], seen)
    elif isinstance(value, MethodType):
        yield from _of_each([value.__func__, value.__self__], seen)
    elif isinstance(value, FunctionType):
        held = [value.__code__, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).items()]
        yield from _of_each([*held, *_closed_over(value)], seen)
    elif isinstance(value, (tuple, list)):
        yield from _of_each(cast(list[Any], value), seen)
    elif isinstance(value, frozenset):  # a constant of `x in {1, 2}`; its order is no part of it
        yield from sorted("\0".join(_of_value(one, seen)) for one in cast(frozenset[Any], value))
    elif isinstance(called := inspect.getattr_static(_type(value), "__call__", None), FunctionType):
        yield from _of_value(called, seen)


def _of_each(values: list[Any], seen: set[int]) -> Iterator[str]:
    for one in values:
        yield from _of_value(one, seen)


def _of_code(code: CodeType, seen: set[int]) -> Iterator[str]:
    """Without names of files and numbers of lines: another cell with the same code is the same."""
    yield code.co_code.hex()
    yield " ".join([*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars])
    yield from _of_each(list(code.co_consts), seen)


def _closed_over(func: FunctionType) -> Iterator[Any]:
    for cell in func.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None


def _type(value: Any) -> Any:
    return cast(Any, type(value))
