"""The Python of a notebook's cells, statement by statement, and as an export needs it."""

import ast
import copy
import symtable
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.extensions.export.target import LEFT_OUT, Target, is_class_there, is_known_there
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_decorator import tool

_MUTATORS = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"}
    | {"sort", "update"}
)
_PYTHON_MAGICS = ("tool", "time", "timeit", "capture", "prun")
"""Cell magics with Python below their line."""
_INLINE_SCOPES = ("listcomp", "setcomp", "dictcomp", "genexpr")
"""Scopes that symtable reports as functions although they run at once."""


@dataclass(frozen=True, eq=False)
class Statement:
    """One statement at the top level of a cell."""

    node: ast.stmt
    text: str
    """Its source in the cell, with the comments directly above it."""
    cell: int
    """n of `In[n]`."""
    binds: frozenset[str]
    changes: frozenset[str]
    """Names whose values it changes without binding them."""
    early: frozenset[str]
    """Names that it needs when it runs."""

    @property
    def place(self) -> tuple[int, int, int]:
        """Statements with a smaller place ran earlier."""
        return self.cell, self.node.lineno, self.node.col_offset

    @property
    def is_magic(self) -> bool:
        """True if only IPython can run it: a magic, or an `await` in no function."""
        return "get_ipython" in self.early or _awaits(self.node)


def statements(cells: Sequence[str], transform: Callable[[str], str]) -> list[Statement]:
    """The statements of all cells, in the order in which they ran; cells that are no Python are left out.

    Args:
        cells: As typed, by the number of the cell.
        transform: Makes Python of what IPython reads as Python.
    """
    found: list[Statement] = []
    for number, raw in enumerate(cells):
        # The Python of the cell, on the lines that it has there.
        if not raw.lstrip().startswith("%%"):
            source = transform(raw)
        else:
            blank, _, rest = raw.partition("%%")
            line, _, body = rest.partition("\n")
            is_python = line.split(maxsplit=1)[:1] and line.split(maxsplit=1)[0] in _PYTHON_MAGICS
            source = "\n" * (blank.count("\n") + 1) + transform(body) if is_python else ""
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        lines = source.split("\n")
        for node in tree.body:
            first, last = _span(node)
            if any(other is not node and _span(other)[0] <= last and _span(other)[1] >= first for other in tree.body):
                text = ast.unparse(node)  # it shares a line with another
            else:
                while first > 1 and lines[first - 2].startswith("#"):  # the syntax tree has no comments
                    first -= 1
                text = "\n".join(lines[first - 1 : last]).rstrip().removesuffix(";")
            early, _, bound = names_in(ast.unparse(_Sync().visit(copy.deepcopy(node))))  # symtable takes text alone
            changes = frozenset(_changed_names(node))
            found.append(Statement(node, text, number, bound - _only_added_to(node), changes, early))
    return found


def _span(node: ast.stmt) -> tuple[int, int]:
    """First and last line, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]), node.end_lineno or node.lineno


def names_in(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Names that a statement needs at once, names that only calls of its functions need, and names that it binds."""
    table = symtable.symtable(text, "<cell>", "exec")
    symbols = table.get_symbols()
    early = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    late: set[str] = set()
    for child in table.get_children():
        _collect_globals(child, early, late)
    return frozenset(early), frozenset(late - early), frozenset(bound)


class _Sync(ast.NodeTransformer):
    """A statement without its `await`s at the top level, which symtable refuses from Python 3.14 on."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        """Leave what is awaited."""
        return self.visit(node.value)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        """Make it a `for`."""
        self.generic_visit(node)
        return ast.For(node.target, node.iter, node.body, node.orelse)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        """Make it a `with`."""
        self.generic_visit(node)
        return ast.With(node.items, node.body)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Make it one that does not wait."""
        self.generic_visit(node)
        return ast.comprehension(node.target, node.iter, node.ifs, is_async=0)


def _collect_globals(table: symtable.SymbolTable, early: set[str], late: set[str]) -> None:
    if table.get_type() == "function" and table.get_name() not in _INLINE_SCOPES:
        early = late
    early |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    for child in table.get_children():
        _collect_globals(child, early, late)


def _changed_names(node: ast.stmt) -> Iterator[str]:
    """Names whose values a statement changes: `x[0] = 1`, `x.y = 1`, `x += 1`, `x.append(1)`, `del x[0]`.

    Also among other targets, and in the blocks of an `if`, `for`, `with`, `try` ...
    """
    for part in _running(node):
        target = None
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            target = part
        elif isinstance(part, ast.AugAssign):
            target = part.target
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
            function = part.value.func
            target = function if isinstance(function, ast.Attribute) and function.attr in _MUTATORS else None
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _only_added_to(node: ast.stmt) -> set[str]:
    """Names that a statement has as `x += 1` alone, which does not bind them."""
    parts = [*_running(node)]
    added = [part.target for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)]
    bound = [part for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    return {target.id for target in added} - {name.id for name in bound if not any(name is own for own in added)}


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, without the bodies of functions and classes."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _running(child)


def _awaits(node: ast.AST) -> bool:
    if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
        return True
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp) and any(of.is_async for of in node.generators):
        return True
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    return not is_function and any(map(_awaits, ast.iter_child_nodes(node)))


def is_function(statement: Statement) -> bool:
    """True if a statement defines a function."""
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
    decorators: list[ast.expr] = getattr(ast.parse(text).body[0], "decorator_list", [])
    dropped = {
        line
        for decorator in decorators
        if _resolve(decorator.func if isinstance(decorator, ast.Call) else decorator, variables) is tool
        for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
    }
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in dropped)


def _resolve(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of `name` or `name.attribute`; None for any other expression."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(variables.get(node.value.id), node.attr, None)
    return variables.get(node.id) if isinstance(node, ast.Name) else None


class Rewriter(ast.NodeTransformer):
    """Adapts statements to a target: names of tools, fields and models of agents, imports.

    Args:
        target: The package.
        variables: The notebook's.
        renamed: Variables of the notebook -> the names written in their place.
        code_of_model: Writes a model that google-adk lacks; None if nothing there is like it.
    """

    def __init__(
        self,
        target: Target,
        variables: Mapping[str, Any],
        renamed: Mapping[str, str],
        code_of_model: Callable[[Any], str | None],
    ) -> None:
        self.notes: dict[str, None] = {}
        self.other_models: list[str] = []
        """Agents whose model google-adk lacks."""
        self._is_changed = False
        self._code_of_model = code_of_model
        self._target, self._variables, self._renamed = target, variables, renamed

    def rewrite(self, text: str) -> str:
        """The text for the target; unchanged, with its comments, where nothing differs."""
        self._is_changed = False
        tree = self.visit(ast.parse(text))
        return ast.unparse(ast.fix_missing_locations(tree)) if self._is_changed else text

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id not in self._renamed:
            return node
        self._is_changed = True
        return ast.Name(self._renamed[node.id], node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        kind = _resolve(node.func, self._variables)
        if self._target.is_google and isinstance(kind, type):
            if issubclass(kind, BaseAgent):
                node.keywords = [keyword for keyword in node.keywords if not self._is_left_out(keyword, kind, node)]
                for keyword in node.keywords:
                    if keyword.arg == "model":
                        self._rewrite_model(keyword, node)
            elif issubclass(kind, FunctionTool):
                for keyword in node.keywords:
                    value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                    if keyword.arg == "require_confirmation" and isinstance(value, str):
                        raise InputError(
                            f"google-adk's FunctionTool takes no text as require_confirmation, as {value!r}; "
                            "write @tool(confirm=...) above the function, and %export makes a function of it"
                        )
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.ImportFrom]:
        if node.level or not (node.module or "").startswith("adk_nb") or not self._target.is_google:
            return node
        self._is_changed = True
        places = [(*self._target.place_of(node.module or "", alias.name), alias.asname) for alias in node.names]
        return [ast.ImportFrom(module, [ast.alias(name, asname)], 0) for module, name, asname in places]

    def _rewrite_model(self, keyword: ast.keyword, node: ast.Call) -> None:
        """Replace a model that google-adk lacks, in the call that makes an agent."""
        written = keyword.value
        if isinstance(written, ast.Constant):
            model = kind = written.value
        else:
            kind = _resolve(written.func if isinstance(written, ast.Call) else written, self._variables)
            model = _resolve(written, self._variables)
            if not isinstance(model, BaseLlm):  # made in the call: the agent has it now
                model = getattr(self._variables.get(_agent_name(node)), "model", "")
        if isinstance(written, ast.Constant) or isinstance(kind, str):
            is_known = is_known_there(str(kind))
        else:
            kind = kind if isinstance(kind, type) else type(kind)
            is_known = not issubclass(kind, BaseLlm) or is_class_there(kind)
        if is_known:
            return
        self._is_changed = True
        if code := self._code_of_model(model):
            keyword.value = ast.parse(code, mode="eval").body
            return
        keyword.value = ast.Constant(GEMINI_MODEL)  # so that the file runs; the report says so
        self.other_models.append(_agent_name(node))

    def _is_left_out(self, keyword: ast.keyword, kind: type[BaseAgent], node: ast.Call) -> bool:
        name = keyword.arg or ""
        if name not in LEFT_OUT or (name == "max_iterations" and issubclass(kind, LoopAgent)):
            return False
        if LEFT_OUT[name]:
            raise InputError(
                f"google-adk's {kind.__name__} has no {name}, and {_agent_name(node)} behaves differently without it; "
                f"{LEFT_OUT[name]}, or write a script: %export agent.py"
            )
        self._is_changed = True
        self.notes[f"{_agent_name(node)}: {name} is left out; google-adk's {kind.__name__} has no such field"] = None
        return True


def _agent_name(node: ast.Call) -> str:
    name = next((keyword.value for keyword in node.keywords if keyword.arg == "name"), None)
    return str(name.value) if isinstance(name, ast.Constant) else ast.unparse(node.func)
