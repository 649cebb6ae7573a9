"""The Python of a notebook's cells, statement by statement, and as it has to stand in an export."""

import ast
import symtable
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.export.target import LEFT_OUT, Target, is_class_there, is_known_there
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_decorator import tool

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
    """For an import, each name it binds -> the module and the name in it (empty: the module itself); else None."""
    node = statement.node
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.partition(".")[0]: (alias.name, "") for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        module = cast(str, node.module)
        return {alias.asname or alias.name: (module, alias.name) for alias in node.names if alias.name != "*"}
    return None


def without_tool_decorators(text: str, variables: Mapping[str, Any]) -> str:
    """The text of a function without `@tool`, whose options are written beside it."""
    node = ast.parse(text).body[0]
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    left_out = {
        line
        for decorator in decorators
        if _resolved(decorator.func if isinstance(decorator, ast.Call) else decorator, variables) is tool
        for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
    }
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in left_out)


def _resolved(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of `name` or `name.attribute`; None for any other expression."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(variables.get(node.value.id), node.attr, None)
    return variables.get(node.id) if isinstance(node, ast.Name) else None


class Rewriter(ast.NodeTransformer):
    """Changes statements for a target: names of tools, fields and models of agents, imports."""

    def __init__(self, target: Target, variables: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        """`renamed`: variables of the notebook -> what is written in their place."""
        self.notes: list[str] = []
        self.other_models: list[str] = []
        """Agents whose model google-adk lacks."""
        self._changed = False
        self._target, self._variables, self._renamed = target, variables, renamed

    def rewritten(self, text: str) -> str:
        """The text as the target needs it; unchanged, comments included, if nothing differs."""
        self._changed = False
        tree = self.visit(ast.parse(text))
        return ast.unparse(ast.fix_missing_locations(tree)) if self._changed else text

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._renamed:
            self._changed = True
            return ast.copy_location(ast.Name(self._renamed[node.id], node.ctx), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        kind = _resolved(node.func, self._variables)
        if self._target.is_google and isinstance(kind, type):
            if issubclass(kind, BaseAgent):
                node.keywords = [keyword for keyword in node.keywords if not self._is_left_out(keyword, kind, node)]
                self._replace_model(node)
            elif issubclass(kind, FunctionTool):
                _refuse_text_conditions(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.ImportFrom]:
        if node.level or not (node.module or "").startswith("adk_nb") or not self._target.is_google:
            return node
        self._changed = True
        places = [(*self._target.place_of(node.module or "", alias.name), alias.asname) for alias in node.names]
        return [ast.ImportFrom(module, [ast.alias(name, asname)], 0) for module, name, asname in places]

    def _replace_model(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg == "model" and not self._is_known_there(keyword.value):
                keyword.value = ast.Constant(GEMINI_MODEL)
                self._changed = True
                self.other_models.append(_agent_name(node))

    def _is_known_there(self, model: ast.expr) -> bool:
        """Whether google-adk has the model that an expression is: a name, a variable, or a call of a class."""
        if isinstance(model, ast.Constant):
            return is_known_there(str(model.value))
        kind = _resolved(model.func if isinstance(model, ast.Call) else model, self._variables)
        kind = kind if isinstance(kind, type) else type(kind)
        return not issubclass(kind, BaseLlm) or is_class_there(kind)

    def _is_left_out(self, keyword: ast.keyword, kind: type[BaseAgent], node: ast.Call) -> bool:
        name = keyword.arg or ""
        if name not in LEFT_OUT or (name == "max_iterations" and issubclass(kind, LoopAgent)):
            return False
        if instead := LEFT_OUT[name]:
            raise InputError(
                f"google-adk's {kind.__name__} has no {name}, and {_agent_name(node)} behaves differently without it; "
                f"{instead}, or write a script: %export agent.py"
            )
        self._changed = True
        self.notes.append(f"{_agent_name(node)}: {name} is left out; google-adk's {kind.__name__} has no such field")
        return True


def _agent_name(node: ast.Call) -> str:
    name = next((keyword.value for keyword in node.keywords if keyword.arg == "name"), None)
    return str(name.value) if isinstance(name, ast.Constant) else ast.unparse(node.func)


def _refuse_text_conditions(node: ast.Call) -> None:
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "require_confirmation" and isinstance(value, str):
            raise InputError(
                f"google-adk's FunctionTool takes no text as require_confirmation, as {value!r}; "
                "write @tool(confirm=...) above the function, and %export makes a function of it"
            )
