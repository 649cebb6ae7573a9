"""Operations on values in an expression: JSON types only, limited numbers, time linear in the size of the values.

A value is checked when it is used, and its items when they are: an expression on one entry of a large value does not
check the others.
"""

import ast
import itertools
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, cast

_is_str = partial(operator.is_, str)
MAX_NUMBER = 2**64
MAX_NESTED = 50
"""Depth of nested lists and dicts in a value, and of nested expressions."""
_MAX_DIGITS = 100
"""Longest text that is converted to a number: `int` takes time quadratic in the number of digits."""
SCALARS = (str, int, float, bool, type(None))
_SEQUENCES = (list, tuple)
_CONTAINERS = (*_SEQUENCES, dict)
_KINDS = frozenset([*SCALARS, *_CONTAINERS])


def as_json(value: Any, depth: int = 0) -> Any:
    """A copy of a value that consists of exact JSON types; a subclass is refused, so none of its methods is called."""
    kind = cast(Any, type(value))
    if depth > MAX_NESTED:
        raise ValueError(f"a value is nested more than {MAX_NESTED} deep")
    if kind in _SEQUENCES:
        return cast(Any, kind)([as_json(item, depth + 1) for item in value])
    if kind is dict:
        return {checked_text(key): as_json(item, depth + 1) for key, item in value.items()}
    if kind not in SCALARS or (kind is float and not math.isfinite(value)):
        raise TypeError(f"a value is {kind.__name__ if kind is not float else value}, which is not JSON")
    return value


def checked_value(value: Any) -> Any:
    """`value`, if its type (of a dict: and its keys) is JSON; items are not checked."""
    kind = cast(Any, type(value))
    if kind is dict and not all(map(_is_str, map(type, value))):
        raise TypeError("a dict has keys that are not text")
    if kind not in _KINDS or (kind is float and not math.isfinite(value)):
        raise TypeError(f"a value is {kind.__name__ if kind is not float else value}, which is not JSON")
    return value


def checked_variable(value: Any) -> Any:
    """The value of a name, if it is JSON. A tuple is not, although an expression may contain one."""
    if type(value) is tuple:
        raise TypeError("a value is tuple, which is not JSON")
    return checked_value(value)


def checked_text(value: Any) -> str:
    """`value`, if it is text."""
    if type(value) is not str:
        raise TypeError(f"expected text, got {kind_of(value)}")
    return value


def checked_number(value: Any) -> Any:
    """`value`, if it is a number within the limit; True and False are refused."""
    if type(value) not in (int, float):
        raise TypeError(f"expected a number, got {kind_of(value)}")
    if not abs(value) <= MAX_NUMBER:  # not `>`: NaN is refused, too
        raise OverflowError("a number is larger than 2**64")
    return value


def _check_comparable(first: Any, second: Any) -> None:
    if type(first) is str and type(second) is str:
        return
    if str in (type(first), type(second)):
        raise TypeError(f"{kind_of(first)} and {kind_of(second)} cannot be compared")
    checked_number(first)
    checked_number(second)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(first: Any, second: Any) -> bool:
        _check_comparable(first, second)
        return compare(first, second)

    return check


def _is_in(first: Any, second: Any) -> bool:
    if type(second) is str or type(second) is dict:
        return checked_text(first) in second
    items = _list_of(second)
    if type(first) in _CONTAINERS:
        return as_json(first) in as_json(items)
    if not _KINDS.issuperset(map(type, items)):
        raise TypeError("a list has an entry that is not JSON")
    return first in items  # a scalar never equals a list or a dict, so their items are not compared


def _is_equal(first: Any, second: Any) -> bool:
    if type(first) in _CONTAINERS and type(second) in _CONTAINERS:
        return as_json(first) == as_json(second)
    return first == second


def _list_of(value: Any) -> Any:
    if type(value) not in _SEQUENCES:
        raise TypeError(f"expected a list, got {kind_of(value)}")
    return value


def item_of(container: Any, key: Any) -> Any:
    """`container[key]`."""
    if type(container) is dict:
        return checked_value(cast(Any, container)[checked_text(key)])
    if type(container) is not str and type(container) not in _SEQUENCES:
        raise TypeError(f"{kind_of(container)} has no entries")
    if type(key) is not int:
        raise TypeError(f"an index must be an integer, got {kind_of(key)}")
    return checked_value(container[key])


def _length(value: Any) -> int:
    return len(value if type(value) in (str, dict) else _list_of(value))


def _extreme(least: bool) -> Callable[..., Any]:
    def find(*arguments: Any) -> Any:
        values = _list_of(arguments[0]) if len(arguments) == 1 else arguments
        if len(values) == 1:
            return checked_value(values[0])
        for first, second in itertools.pairwise(values):
            _check_comparable(first, second)
        return min(values) if least else max(values)

    return find


def _sum(values: Any) -> Any:
    return checked_number(sum(checked_number(item) for item in _list_of(values)))


def _magnitude(value: Any) -> Any:
    return abs(checked_number(value))


def _any_of(values: Any) -> bool:
    return any(map(checked_value, _list_of(values)))


def _all_of(values: Any) -> bool:
    return all(map(checked_value, _list_of(values)))


def _entry(value: dict[str, Any], key: Any, default: Any = None) -> Any:
    return checked_value(value.get(checked_text(key), default))


def _values_of(value: dict[str, Any]) -> list[Any]:
    return list(value.values())


def _entries_of(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(value.items())


def _stripped(value: str) -> str:
    return value.strip()  # whitespace only: strip(characters) takes the product of both lengths


def _to_number(kind: type[int] | type[float]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if type(value) is str and len(value) > _MAX_DIGITS:
            raise ValueError(f"a text of more than {_MAX_DIGITS} characters is not a number")
        if type(value) not in (str, int, float, bool):
            raise TypeError(f"{kind_of(value)} is not a number")
        return checked_number(kind(value))

    return convert


def _to_text(value: Any) -> str:
    if type(value) not in SCALARS:
        raise TypeError(f"{kind_of(value)} is not text")
    return str(value)


def kind_of(value: Any) -> str:
    """The type of `value`, for a message."""
    return "None" if value is None else f"a {type(value).__name__}"


ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: cast(Any, operator).truediv,
    ast.FloorDiv: cast(Any, operator).floordiv,
    ast.Mod: operator.mod,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: _is_equal,
    ast.NotEq: lambda first, second: not _is_equal(first, second),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: _is_in,
    ast.NotIn: lambda first, second: not _is_in(first, second),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": _length,
    "min": _extreme(least=True),
    "max": _extreme(least=False),
    "sum": _sum,
    "abs": _magnitude,
    "any": _any_of,
    "all": _all_of,
    "bool": bool,
    "int": _to_number(int),
    "float": _to_number(float),
    "str": _to_text,
}
METHODS: dict[str, tuple[type, Callable[..., Any]]] = {
    "get": (dict, _entry),
    "keys": (dict, list),
    "values": (dict, _values_of),
    "items": (dict, _entries_of),
    "lower": (str, str.lower),
    "upper": (str, str.upper),
    "strip": (str, _stripped),
    "startswith": (str, str.startswith),
    "endswith": (str, str.endswith),
}
"""Method -> the type that has it, and its function."""
