"""The Python of a notebook's cells, statement by statement: what each one binds, and which names it needs."""

import ast
import symtable
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

_CHANGES = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"}
    | {"sort", "update"}
)
"""Methods that change what they are called on."""
_PYTHON_BELOW = ("tool", "time", "timeit", "capture", "prun")
"""Cell magics with Python below their line."""
_AT_ONCE = ("listcomp", "setcomp", "dictcomp", "genexpr")
"""Scopes that symtable calls functions, and that run where they stand."""


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level of a cell."""

    node: ast.stmt
    text: str
    """As it stands in the cell, with the remarks right above it."""
    cell: int
    """n of `In[n]`."""
    line: int
    """Of the cell."""
    binds: frozenset[str]
    changes: frozenset[str]
    """Names whose values it changes without binding them."""
    early: frozenset[str]
    """Names that it needs when it runs."""
    late: frozenset[str]
    """Names that what it defines needs when it is called."""

    @property
    def place(self) -> tuple[int, int, int]:
        """Compared with that of others, it tells which ran first."""
        return self.cell, self.line, self.node.col_offset

    @property
    def is_magic(self) -> bool:
        """Whether only IPython can run it: a magic, or an `await` in no function."""
        return "get_ipython" in self.early or _waits(self.node)


def statements(cells: Sequence[str], transform: Callable[[str], str]) -> list[Statement]:
    """All of them, in the order in which they ran; cells that are no Python are left out.

    Args:
        cells: As typed, by the number of the cell.
        transform: Makes Python of what IPython reads as Python.
    """
    return [one for number, raw in enumerate(cells) for one in _of_cell(raw, number, transform)]


def _of_cell(raw: str, number: int, transform: Callable[[str], str]) -> Iterator[Statement]:
    source = _python_of(raw, transform)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.split("\n")
    for node in tree.body:
        text = _text(node, tree.body, lines)
        early, late, bound = names_in(ast.unparse(node))
        changes = frozenset(_changed(node))
        binds = bound - changes  # x += 1 does not make x
        yield Statement(node, text, number, node.lineno, binds, changes, early, late - early)


def _python_of(raw: str, transform: Callable[[str], str]) -> str:
    """The Python of a cell; its line numbers are the cell's. Empty: there is none."""
    if not raw.lstrip().startswith("%%"):
        return transform(raw)
    before, _, below = raw.partition("%%")
    line, _, body = below.partition("\n")
    name = line.split(maxsplit=1)[:1]
    blank = "\n" * (before.count("\n") + 1)
    return blank + transform(body) if name and name[0] in _PYTHON_BELOW else ""


def first_line(node: ast.stmt) -> int:
    """Where it begins, its decorators included."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _text(node: ast.stmt, body: Sequence[ast.stmt], lines: list[str]) -> str:
    first, last = first_line(node), node.end_lineno or node.lineno
    if any(one is not node and first_line(one) <= last and (one.end_lineno or 0) >= first for one in body):
        return ast.unparse(node)  # it shares a line with another
    start = first
    while start > 1 and lines[start - 2].startswith("#"):
        start -= 1
    return "\n".join(lines[start - 1 : last]).rstrip().removesuffix(";")


def names_in(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What is needed at once, what is needed later, and what is bound."""
    table = symtable.symtable(text, "<cell>", "exec")
    early = {one.get_name() for one in table.get_symbols() if one.is_referenced()}
    bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    late: set[str] = set()
    for child in table.get_children():
        _look_into(child, early, late)
    return frozenset(early), frozenset(late), frozenset(bound)


def _look_into(table: symtable.SymbolTable, early: set[str], late: set[str]) -> None:
    into = late if table.get_type() == "function" and table.get_name() not in _AT_ONCE else early
    into |= {one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()}
    for child in table.get_children():
        _look_into(child, late if into is late else early, late)


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names whose values the statement changes: `x[0] = 1`, `x.y = 1`, `x += 1`, `x.append(1)`, `del x[0]`."""
    for target in _targets(node):
        if isinstance(target, ast.Subscript | ast.Attribute) or isinstance(node, ast.AugAssign):
            yield from _root(target)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGES:
        yield from _root(call.func)


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return node.targets
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _root(node: ast.expr) -> Iterator[str]:
    inner = node
    while isinstance(inner, ast.Subscript | ast.Attribute):
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield inner.id


def _waits(node: ast.AST) -> bool:
    if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
        return True
    within = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    return not within and any(map(_waits, ast.iter_child_nodes(node)))


def is_function(statement: Statement) -> bool:
    """Whether it defines a function."""
    return isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports_of(statement: Statement) -> dict[str, tuple[str, str]] | None:
    """Of an import, each name that it binds -> the module, and what of it (empty: the module itself); else None."""
    node = statement.node
    if isinstance(node, ast.Import):
        named = ((one.asname or one.name.partition(".")[0], one) for one in node.names)
        return {name: (one.name, "") for name, one in named}
    if isinstance(node, ast.ImportFrom) and not node.level:
        module = cast(str, node.module)
        return {one.asname or one.name: (module, one.name) for one in node.names if one.name != "*"}
    return None
