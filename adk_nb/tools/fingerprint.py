"""Fingerprints of tools: an approval is valid only for the tool that was shown to the approver."""

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
    """A piece of text that goes into the hash as it is, unlike a str that the function contains."""


def fingerprint(tool: BaseTool, args: dict[str, Any] | None = None) -> str:
    """A hash of a tool's declaration, code and target. Running the same cell again gives the same hash.

    `args`: of the call that an approval is about, for `BaseTool.call_target`. None: the target is `bound_to`.

    Covers the function's code, the functions that it wraps or closes over, their constants, and defaults and variables
    that they do not change. Data that a tool may change while it works is left out: global variables, attributes,
    `nonlocal` variables that are assigned to, and the contents of lists and dicts. Another version of Python compiles
    other bytecode, so its approvals must be asked for again.
    """
    declared = tool.declaration.model_dump(mode="json", exclude_none=True) if tool.declaration else None
    func: Any = tool.func if isinstance(tool, FunctionTool) else type(tool).run_async
    target = tool.bound_to if args is None else tool.call_target(args)
    # Parts are joined with a null character, so that adjacent parts cannot merge.
    parts = [type(tool).__qualname__, tool.name, target, json.dumps(declared, sort_keys=True, default=repr)]
    return hashlib.sha256("\0".join([*parts, *_tokens(func)]).encode()).hexdigest()[:32]


def code_fingerprint(func: Any) -> str:
    """A hash of a plain function's code, as in `fingerprint`."""
    return hashlib.sha256("\0".join(_tokens(func)).encode()).hexdigest()[:32]


def _tokens(value: Any) -> Iterator[str]:
    rebound_cells = {id(cell) for func in _functions_in(value) for cell in _cells(func, _assigned_names(func.__code__))}
    seen: dict[int, Any] = {}  # keeps the values alive, so that no id is reused during the walk
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        kind = _type(item)
        if kind is _Token:
            yield item
        elif kind in _PLAIN:
            yield f"{kind.__name__} {hex(item) if kind is int else repr(item)}"  # repr refuses very long integers
        elif id(item) in seen:
            yield "again"  # a cycle, or the same object in two places
        else:
            seen[id(item)] = item
            yield kind.__qualname__
            pending += reversed(_parts(item, rebound_cells))  # a stack: reversed keeps the parts in order


def _functions_in(value: Any) -> Iterator[FunctionType]:
    seen: dict[int, Any] = {}
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if id(item) not in seen and _type(item) not in _PLAIN:
            seen[id(item)] = item
            pending += _parts(item, ())
            if isinstance(item, FunctionType):
                yield item


def _cells(func: FunctionType, names: Collection[str]) -> list[CellType]:
    pairs = zip(func.__code__.co_freevars, func.__closure__ or (), strict=True)
    return [cell for name, cell in pairs if name in names]


@functools.lru_cache(maxsize=1024)
def _assigned_names(code: CodeType) -> frozenset[str]:
    """Variables of outer functions that the code, or code nested in it, assigns to."""
    names, pending = set[str](), [code]
    while pending:
        current = pending.pop()
        stores = (
            instruction.argval
            for instruction in dis.get_instructions(current)
            if instruction.opname in ("STORE_DEREF", "DELETE_DEREF")
        )
        names.update(name for name in stores if name in current.co_freevars)
        pending += [const for const in current.co_consts if isinstance(const, CodeType)]
    return frozenset(names)


def _parts(value: Any, skipped_cells: Collection[int]) -> list[Any]:
    """Parts of a value that count; of other objects only the type does. `skipped_cells`: ids of cells to leave out."""
    if isinstance(value, CodeType):
        # File names and line numbers are left out, so that the same code in another cell is equal.
        names = [*value.co_names, *value.co_varnames, *value.co_freevars, *value.co_cellvars]
        return [_Token(value.co_code.hex()), _Token(" ".join(names)), *value.co_consts]
    if isinstance(value, functools.partial):
        partial = cast(Any, value)
        return [partial.func, *partial.args, *partial.keywords, *partial.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        keyword_defaults = [
            part for key, default in (value.__kwdefaults__ or {}).items() for part in (_Token("tuple"), key, default)
        ]
        return [value.__code__, *(value.__defaults__ or ()), *keyword_defaults, *_closed_over(value, skipped_cells)]
    if isinstance(value, tuple):
        return list(cast(tuple[Any, ...], value))
    if isinstance(value, frozenset):  # a constant of `x in {1, 2}`; its order is arbitrary
        return [_Token(text) for text in sorted("\0".join(_tokens(item)) for item in cast(frozenset[Any], value))]
    call_method = inspect.getattr_static(_type(value), "__call__", None)  # without running code of the object
    return [call_method] if isinstance(call_method, FunctionType) else []


def _closed_over(func: FunctionType, skipped_cells: Collection[int]) -> Iterator[Any]:
    for cell in func.__closure__ or ():
        try:
            if id(cell) not in skipped_cells:
                yield cell.cell_contents
        except ValueError:  # an empty cell
            yield None


def _type(value: Any) -> Any:
    return cast(Any, type(value))
