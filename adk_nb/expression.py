"""Conditions as text over JSON values: a subset of Python's syntax, interpreted without running any Python code.

Values are of JSON's types only, numbers are limited, and the time is linear in the size of the values.
"""

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, NoReturn, cast

from adk_nb.errors import ConfigurationError, InputError, closest

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


MAX_CHARACTERS = 2_000
MAX_NODES = 400

_CONSTANTS = {"true": "True", "false": "False", "none": "None", "null": "None"}
"""Lower-case spelling, as in JSON or by mistake -> the constant in Python."""
_Values = Mapping[str, Any]
_Evaluator = Callable[[_Values], Any]
_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class Expression:
    """An expression such as `amount > 100 and currency in ("EUR", "USD")`, in Python's syntax.

    Supported: names, text, numbers, lists, dicts and `x[...]`; `and`, `or`, `not`, `a if b else c`; comparisons, `in`,
    and `is None`; `+ - * / // %` of numbers; the functions and methods of `FUNCTIONS` and `METHODS`. Numbers are
    compared with numbers and text with text. Values must be JSON; evaluation takes time linear in their size, does not
    change them and calls none of their methods.

    Args:
        source: At most 2,000 characters, 400 parts, 50 deep.
        allowed: Names that it may use. None: any.

    Raises:
        ConfigurationError: A syntax error, or syntax that is not allowed; the message names the place.
    """

    def __init__(self, source: str, allowed: Iterable[str] | None = None) -> None:
        self.source = source
        self._allowed = None if allowed is None else frozenset(allowed)
        self._used: set[str] = set()
        self._evaluate = self._compile(self._parse(), 0)
        self.names = frozenset(self._used)
        """The names in the expression."""

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def holds(self, names: _Values) -> bool:
        """True if its value is truthy; large values are not copied.

        Raises:
            InputError: As for `value`.
        """
        return bool(self._value(names))

    def value(self, names: _Values) -> Any:
        """Its value, as a copy.

        Raises:
            InputError: A name or a key is missing, a value is not JSON, types do not match, or a number is too large.
        """
        return self._value(names, as_json)

    def _value(self, names: _Values, convert: Callable[[Any], Any] = checked_value) -> Any:
        try:
            return convert(self._evaluate(names))
        except _FAILURES as error:
            reason = f"there is no {error}" if isinstance(error, LookupError) else str(error)
            raise InputError(f"the expression {self.source!r:.80} has no value here: {reason}") from None

    # -- compiling

    def _parse(self) -> ast.expr:
        if len(self.source) > MAX_CHARACTERS:
            self._refuse(f"it has {len(self.source):,} characters, and may have {MAX_CHARACTERS:,}")
        try:
            tree = ast.parse(self.source.strip(), mode="eval").body
        except SyntaxError as error:
            position = f"character {error.offset}" if error.offset else "the end"
            self._refuse(f"{error.msg} at {position}; write it as in Python, like amount > 100 and currency != 'EUR'")
        except (ValueError, RecursionError, MemoryError):
            self._refuse("Python cannot read it; it may be nested too deep")
        if sum(isinstance(node, ast.expr) for node in ast.walk(tree)) > MAX_NODES:
            self._refuse(f"it has more than {MAX_NODES} parts; use a function")
        return tree

    def _refuse(self, reason: str, node: ast.AST | None = None) -> NoReturn:
        part = ast.get_source_segment(self.source.strip(), node) if node else None
        place = f"in {part!r:.60}: " if part and part != self.source.strip() else ""
        raise ConfigurationError(f"the expression {self.source!r:.80} cannot be used: {place}{reason}")

    def _compile(self, node: ast.expr, depth: int) -> _Evaluator:
        if depth > MAX_NESTED:
            self._refuse(f"it is nested more than {MAX_NESTED} deep")
        compile_node = self._KINDS.get(type(node))
        if compile_node is None:
            self._refuse(f"{type(node).__name__} is not allowed in an expression; use a function", node)
        return compile_node(self, node, depth + 1)

    def _compile_all(self, nodes: Iterable[ast.expr], depth: int) -> list[_Evaluator]:
        return [self._compile(node, depth) for node in nodes]

    def _constant(self, node: ast.Constant, depth: int) -> _Evaluator:
        value: Any = node.value
        if type(value) not in SCALARS:
            self._refuse(f"a constant must be text, a number, True, False or None, got {kind_of(value)}", node)
        if type(value) is int and value > MAX_NUMBER:
            self._refuse("a number must be at most 2**64", node)
        return lambda names: value

    def _name(self, node: ast.Name, depth: int) -> _Evaluator:
        name = node.id
        if self._allowed is not None and name not in self._allowed:
            closest_name = _CONSTANTS.get(name.lower()) or closest(name, self._allowed)
            names = ", ".join(sorted(self._allowed)) or "none"
            hint = f"did you mean {closest_name}?" if closest_name else f"there is: {names}"
            self._refuse(f"there is no {name!r}; {hint}")
        self._used.add(name)
        return lambda names: checked_variable(names[name])

    def _list(self, node: ast.List | ast.Tuple, depth: int) -> _Evaluator:
        items = self._compile_all(node.elts, depth)
        kind: Any = list if isinstance(node, ast.List) else tuple
        return lambda names: kind(item(names) for item in items)

    def _dict(self, node: ast.Dict, depth: int) -> _Evaluator:
        keys = [self._compile(key, depth) if key else self._refuse("a dict cannot have **", node) for key in node.keys]
        pairs = list(zip(keys, self._compile_all(node.values, depth), strict=True))
        return lambda names: {checked_text(key(names)): value(names) for key, value in pairs}

    def _item(self, node: ast.Subscript, depth: int) -> _Evaluator:
        if isinstance(node.slice, ast.Slice):
            self._refuse("there are no slices", node)
        container, key = self._compile(node.value, depth), self._compile(node.slice, depth)
        return lambda names: item_of(container(names), key(names))

    def _any_or_all(self, node: ast.BoolOp, depth: int) -> _Evaluator:
        first, *rest = self._compile_all(node.values, depth)
        stops_at = isinstance(node.op, ast.Or)

        def evaluate(names: _Values) -> Any:
            value = first(names)
            for operand in rest:
                if bool(value) is stops_at:
                    break
                value = operand(names)
            return value

        return evaluate

    def _unary(self, node: ast.UnaryOp, depth: int) -> _Evaluator:
        operand = self._compile(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda names: not operand(names)
        if isinstance(node.op, ast.Invert):
            self._refuse("there is no ~", node)
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return lambda names: sign * checked_number(operand(names))

    def _binary(self, node: ast.BinOp, depth: int) -> _Evaluator:
        operation = ARITHMETIC.get(type(node.op))
        if operation is None:
            self._refuse("the operators of numbers are + - * / // %", node)
        first, second = self._compile(node.left, depth), self._compile(node.right, depth)
        return lambda names: checked_number(operation(checked_number(first(names)), checked_number(second(names))))

    def _choice(self, node: ast.IfExp, depth: int) -> _Evaluator:
        test, yes, no = self._compile_all([node.test, node.body, node.orelse], depth)
        return lambda names: yes(names) if test(names) else no(names)

    def _comparison(self, node: ast.Compare, depth: int) -> _Evaluator:
        sides = [node.left, *node.comparators]
        for op, first_side, second_side in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and not (_is_singleton(first_side) or _is_singleton(second_side)):
                self._refuse("`is` goes with None, True and False; write ==", node)
        first, *rest = self._compile_all(sides, depth)
        steps = [(COMPARISONS[type(op)], operand) for op, operand in zip(node.ops, rest, strict=True)]

        def evaluate(names: _Values) -> bool:
            first_side = first(names)
            for compare, operand in steps:
                second_side = operand(names)
                if not compare(first_side, second_side):
                    return False
                first_side = second_side
            return True

        return evaluate

    def _call(self, node: ast.Call, depth: int) -> _Evaluator:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            self._refuse("a function takes positional values only, no name=value and no *values", node)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, self._compile_all(node.args, depth), depth)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = FUNCTIONS.get(name)
        if function is None:
            self._refuse(_unknown_name("function", name, FUNCTIONS), node)
        arguments = self._compile_all(node.args, depth)
        return lambda names: function(*[argument(names) for argument in arguments])

    def _method(self, node: ast.Attribute, arguments: list[_Evaluator], depth: int) -> _Evaluator:
        name, target = node.attr, self._compile(node.value, depth)
        if name not in METHODS:
            self._refuse(_unknown_name("method", name, METHODS), node)
        kind, method = METHODS[name]

        def evaluate(names: _Values) -> Any:
            value = target(names)
            if type(value) is not kind:
                raise TypeError(f"{kind_of(value)} has no .{name}()")
            return method(value, *[argument(names) for argument in arguments])

        return evaluate

    def _attribute(self, node: ast.Attribute, depth: int) -> _Evaluator:
        self._refuse(f"values have no attributes; an entry of a dict is [{node.attr!r}]", node)

    _KINDS: ClassVar[dict[type[ast.expr], Any]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Dict: _dict,
        ast.Subscript: _item,
        ast.BoolOp: _any_or_all,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.IfExp: _choice,
        ast.Compare: _comparison,
        ast.Call: _call,
        ast.Attribute: _attribute,
    }


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _unknown_name(kind: str, name: str, names: Iterable[str]) -> str:
    near = closest(name, names)
    return f"there is no {kind} {name!r}; " + (f"did you mean {near}?" if near else f"there is: {', '.join(names)}")
