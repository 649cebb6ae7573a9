"""What a tool is, in a short text that changes when the tool does: an approval holds for that tool only."""

import dis
import functools
import hashlib
import inspect
import json
from collections.abc import Collection, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, cast

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class _Token(str):
    """A piece of the text itself, and no value that has one."""


def fingerprint(tool: BaseTool) -> str:
    """Equal for equal declarations, equal code and equal `bound_to`; the same cell run again gives the same.

    The code is that of the tool's function, of functions it wraps or is closed over, with their constants, and with
    defaults and variables that they do not change. Data is no part of it, which a tool may change while it works: what
    it looks up in global variables and attributes, what it assigns to with `nonlocal`, and what is in a list or a dict.
    Another version of Python compiles other code: what was asked under it has to be asked anew.
    """
    declared = tool.declaration.model_dump(mode="json", exclude_none=True) if tool.declaration else None
    func: Any = tool.func if isinstance(tool, FunctionTool) else type(tool).run_async
    parts = [type(tool).__qualname__, tool.name, tool.bound_to, json.dumps(declared, sort_keys=True, default=repr)]
    return hashlib.sha256("\0".join([*parts, *_of_value(func)]).encode()).hexdigest()[:32]


def code_fingerprint(func: Any) -> str:
    """As `fingerprint`, of a function alone."""
    return hashlib.sha256("\0".join(_of_value(func)).encode()).hexdigest()[:32]


def _of_value(value: Any) -> Iterator[str]:
    rebound = {id(cell) for one in _functions_in(value) for cell in _cells(one, _assigned(one.__code__))}
    seen: dict[int, Any] = {}  # the values too, so that none of their addresses is another's meanwhile
    left: list[Any] = [value]
    while left:
        one = left.pop()
        kind = _type(one)
        if kind is _Token:
            yield one
        elif kind in _PLAIN:
            yield f"{kind.__name__} {hex(one) if kind is int else repr(one)}"  # a long number has no repr
        elif id(one) in seen:
            yield "again"
        else:
            seen[id(one)] = one
            yield kind.__qualname__
            left += reversed(_parts_of(one, rebound))


def _functions_in(value: Any) -> Iterator[FunctionType]:
    seen: dict[int, Any] = {}
    left: list[Any] = [value]
    while left:
        one = left.pop()
        if id(one) not in seen and _type(one) not in _PLAIN:
            seen[id(one)] = one
            left += _parts_of(one, ())
            if isinstance(one, FunctionType):
                yield one


def _cells(func: FunctionType, names: Collection[str]) -> list[CellType]:
    pairs = zip(func.__code__.co_freevars, func.__closure__ or (), strict=True)
    return [cell for name, cell in pairs if name in names]


@functools.lru_cache(maxsize=1024)
def _assigned(code: CodeType) -> frozenset[str]:
    """The variables of outer functions that the code assigns to, or code in it does."""
    found, left = set[str](), [code]
    while left:
        one = left.pop()
        stores = (step.argval for step in dis.get_instructions(one) if step.opname in ("STORE_DEREF", "DELETE_DEREF"))
        found.update(name for name in stores if name in one.co_freevars)
        left += [const for const in one.co_consts if isinstance(const, CodeType)]
    return frozenset(found)


def _parts_of(value: Any, rebound: Collection[int]) -> list[Any]:
    """Of what has parts; of any other object only its type is told. `rebound`: ids of cells that are left out."""
    if isinstance(value, CodeType):
        # Without names of files and numbers of lines: another cell with the same code is the same.
        names = [*value.co_names, *value.co_varnames, *value.co_freevars, *value.co_cellvars]
        return [_Token(value.co_code.hex()), _Token(" ".join(names)), *value.co_consts]
    if isinstance(value, functools.partial):
        held = cast(Any, value)
        return [held.func, *held.args, *held.keywords, *held.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        named = [part for key, one in (value.__kwdefaults__ or {}).items() for part in (_Token("tuple"), key, one)]
        return [value.__code__, *(value.__defaults__ or ()), *named, *_closed_over(value, rebound)]
    if isinstance(value, tuple):
        return list(cast(tuple[Any, ...], value))
    if isinstance(value, frozenset):  # a constant of `x in {1, 2}`; its order is no part of it
        return [_Token(text) for text in sorted("\0".join(_of_value(one)) for one in cast(frozenset[Any], value))]
    called = inspect.getattr_static(_type(value), "__call__", None)
    return [called] if isinstance(called, FunctionType) else []


def _closed_over(func: FunctionType, rebound: Collection[int]) -> Iterator[Any]:
    for cell in func.__closure__ or ():
        try:
            if id(cell) not in rebound:
                yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None


def _type(value: Any) -> Any:
    return cast(Any, type(value))
