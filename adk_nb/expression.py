"""A condition as text over JSON values: read by its own rules and never run as Python, so all it can do is look."""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NoReturn

from adk_nb.errors import ConfigurationError, InputError, closest
from adk_nb.expression_values import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    MAX_NESTED,
    MAX_NUMBER,
    METHODS,
    SCALARS,
    as_json,
    item_of,
    kind_of,
    named,
    number,
    plain,
    text,
)

MAX_CHARACTERS = 2_000
MAX_NODES = 400

_CONSTANTS = {"true": "True", "false": "False", "none": "None", "null": "None"}
"""As JSON or a slip has them -> as they are written."""
_Names = Mapping[str, Any]
_Read = Callable[[_Names], Any]
_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)


class Expression:
    """Something like `amount > 100 and currency in ("EUR", "USD")`, in Python's spelling.

    It has names, text, numbers, lists, dicts and `x[...]`; `and`, `or`, `not`, `a if b else c`; comparisons, `in`, and
    `is None`; `+ - * / // %` of numbers; the functions and methods of `FUNCTIONS` and `METHODS`. Numbers are compared
    with numbers and text with text. It takes time in proportion to the values, changes none, and calls no code of
    theirs: they have to be JSON.

    Args:
        source: At most 2,000 characters, 400 parts, 50 deep.
        known: The names that it may use. None: any.

    Raises:
        ConfigurationError: It is none, or says what none may; the message names the place.
    """

    def __init__(self, source: str, known: Iterable[str] | None = None) -> None:
        self.source = source
        self._known = None if known is None else frozenset(known)
        self._used: set[str] = set()
        self._read = self._reader(self._parsed(), 0)
        self.names = frozenset(self._used)
        """Those that it uses."""

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"

    def holds(self, names: _Names) -> bool:
        """Whether its value is true, in the time that its parts take: a large value is not copied.

        Raises:
            InputError: As for `value`.
        """
        return bool(self._value(names))

    def value(self, names: _Names) -> Any:
        """Its value, as a copy.

        Raises:
            InputError: A name is missing or its value no JSON, types do not go together, a key is not there, a number
                is too large.
        """
        return self._value(names, as_json)

    def _value(self, names: _Names, result: Callable[[Any], Any] = plain) -> Any:
        try:
            return result(self._read(names))
        except _FAILURES as error:
            why = f"there is no {error}" if isinstance(error, LookupError) else str(error)
            raise InputError(f"the expression {self.source!r:.80} has no value here: {why}") from None

    # -- reading

    def _parsed(self) -> ast.expr:
        if len(self.source) > MAX_CHARACTERS:
            self._refuse(f"it has {len(self.source):,} characters, and may have {MAX_CHARACTERS:,}")
        try:
            tree = ast.parse(self.source.strip(), mode="eval").body
        except SyntaxError as error:
            at = f"character {error.offset}" if error.offset else "the end"
            self._refuse(f"{error.msg} at {at}; write it as in Python, like amount > 100 and currency != 'EUR'")
        except (ValueError, RecursionError, MemoryError):
            self._refuse("Python cannot read it; it may be nested too deep")
        if sum(isinstance(node, ast.expr) for node in ast.walk(tree)) > MAX_NODES:
            self._refuse(f"it has more than {MAX_NODES} parts; take a function")
        return tree

    def _refuse(self, why: str, node: ast.AST | None = None) -> NoReturn:
        part = ast.get_source_segment(self.source.strip(), node) if node else None
        where = f"in {part!r:.60}: " if part and part != self.source.strip() else ""
        raise ConfigurationError(f"the expression {self.source!r:.80} cannot be used: {where}{why}")

    def _reader(self, node: ast.expr, depth: int) -> _Read:
        if depth > MAX_NESTED:
            self._refuse(f"it is nested more than {MAX_NESTED} deep")
        read = self._KINDS.get(type(node))
        if read is None:
            self._refuse(f"it may only look at values, and {type(node).__name__} does more; take a function", node)
        return read(self, node, depth + 1)

    def _readers(self, nodes: Iterable[ast.expr], depth: int) -> list[_Read]:
        return [self._reader(node, depth) for node in nodes]

    def _constant(self, node: ast.Constant, depth: int) -> _Read:
        value: Any = node.value
        if type(value) not in SCALARS:
            self._refuse(f"a constant is text, a number, True, False or None, and not {kind_of(value)}", node)
        if type(value) is int and value > MAX_NUMBER:
            self._refuse("a number may be as large as 2**64", node)
        return lambda names: value

    def _name(self, node: ast.Name, depth: int) -> _Read:
        name = node.id
        if self._known is not None and name not in self._known:
            near = _CONSTANTS.get(name.lower()) or closest(name, self._known)
            there = f"; did you mean {near}?" if near else f"; there is: {', '.join(sorted(self._known)) or 'none'}"
            self._refuse(f"there is no {name!r}{there}")
        self._used.add(name)
        return lambda names: named(names[name])

    def _list(self, node: ast.List | ast.Tuple, depth: int) -> _Read:
        items = self._readers(node.elts, depth)
        kind: Any = list if isinstance(node, ast.List) else tuple
        return lambda names: kind(item(names) for item in items)

    def _dict(self, node: ast.Dict, depth: int) -> _Read:
        keys = [self._reader(key, depth) if key else self._refuse("a dict holds no **", node) for key in node.keys]
        pairs = list(zip(keys, self._readers(node.values, depth), strict=True))
        return lambda names: {text(key(names)): value(names) for key, value in pairs}

    def _item(self, node: ast.Subscript, depth: int) -> _Read:
        if isinstance(node.slice, ast.Slice):
            self._refuse("there are no slices", node)
        whole, key = self._reader(node.value, depth), self._reader(node.slice, depth)
        return lambda names: item_of(whole(names), key(names))

    def _any_or_all(self, node: ast.BoolOp, depth: int) -> _Read:
        first, *others = self._readers(node.values, depth)
        ends = isinstance(node.op, ast.Or)

        def read(names: _Names) -> Any:
            value = first(names)
            for other in others:
                if bool(value) is ends:
                    break
                value = other(names)
            return value

        return read

    def _one_sided(self, node: ast.UnaryOp, depth: int) -> _Read:
        of = self._reader(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda names: not of(names)
        if isinstance(node.op, ast.Invert):
            self._refuse("there is no ~", node)
        sign = -1 if isinstance(node.op, ast.USub) else 1
        return lambda names: sign * number(of(names))

    def _two_sided(self, node: ast.BinOp, depth: int) -> _Read:
        work = ARITHMETIC.get(type(node.op))
        if work is None:
            self._refuse("numbers have + - * / // % alone", node)
        left, right = self._reader(node.left, depth), self._reader(node.right, depth)
        return lambda names: number(work(number(left(names)), number(right(names))))

    def _choice(self, node: ast.IfExp, depth: int) -> _Read:
        test, yes, no = self._readers([node.test, node.body, node.orelse], depth)
        return lambda names: yes(names) if test(names) else no(names)

    def _comparison(self, node: ast.Compare, depth: int) -> _Read:
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and not (_is_single(left) or _is_single(right)):
                self._refuse("`is` goes with None, True and False; write ==", node)
        first, *others = self._readers(sides, depth)
        steps = [(COMPARISONS[type(op)], other) for op, other in zip(node.ops, others, strict=True)]

        def read(names: _Names) -> bool:
            left = first(names)
            for compare, other in steps:
                right = other(names)
                if not compare(left, right):
                    return False
                left = right
            return True

        return read

    def _call(self, node: ast.Call, depth: int) -> _Read:
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            self._refuse("a function takes plain values, without names and stars", node)
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, self._readers(node.args, depth), depth)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = FUNCTIONS.get(name)
        if function is None:
            self._refuse(_no_such("function", name, FUNCTIONS), node)
        given = self._readers(node.args, depth)
        return lambda names: function(*[one(names) for one in given])

    def _method(self, node: ast.Attribute, given: list[_Read], depth: int) -> _Read:
        name, of = node.attr, self._reader(node.value, depth)
        if name not in METHODS:
            self._refuse(_no_such("method", name, METHODS), node)
        kind, method = METHODS[name]

        def read(names: _Names) -> Any:
            value = of(names)
            if type(value) is not kind:
                raise TypeError(f"{kind_of(value)} has no .{name}()")
            return method(value, *[one(names) for one in given])

        return read

    def _attribute(self, node: ast.Attribute, depth: int) -> _Read:
        self._refuse(f"values have no attributes; an entry of a dict is [{node.attr!r}]", node)

    _KINDS: ClassVar[dict[type[ast.expr], Any]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Dict: _dict,
        ast.Subscript: _item,
        ast.BoolOp: _any_or_all,
        ast.UnaryOp: _one_sided,
        ast.BinOp: _two_sided,
        ast.IfExp: _choice,
        ast.Compare: _comparison,
        ast.Call: _call,
        ast.Attribute: _attribute,
    }


def _is_single(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _no_such(what: str, name: str, known: Iterable[str]) -> str:
    near = closest(name, known)
    return f"there is no {what} {name!r}; " + (f"did you mean {near}?" if near else f"there is: {', '.join(known)}")
