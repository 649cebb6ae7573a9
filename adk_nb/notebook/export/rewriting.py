"""A statement of a cell as it has to stand in what is written: other names for tools, other fields, other imports."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.loop_agent import LoopAgent
from adk_nb.errors import InputError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.export.statements import Statement, first_line
from adk_nb.notebook.export.target import LEFT_OUT, Target, is_class_there, is_known_there
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_decorator import tool

_CHANGES_WHAT_IT_DOES = {
    "exit_condition": "end the loop with the tool exit_loop",
    "template": "give it a function as its instruction",
}
"""Fields without which an agent would not do the same -> what to do instead."""


def without_tool_decorators(statement: Statement, variables: Mapping[str, Any]) -> str:
    """The text of a function without `@tool`: what that says is written beside it."""
    node = statement.node
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    gone: set[int] = set()
    for one in node.decorator_list:
        if _is_tool(one.func if isinstance(one, ast.Call) else one, variables):
            gone |= set(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    lines = statement.text.split("\n")
    remarks = len(lines) - ((node.end_lineno or node.lineno) - first_line(node) + 1)
    before = first_line(node) - remarks
    return "\n".join(line for number, line in enumerate(lines, before) if number not in gone)


def _is_tool(node: ast.expr, variables: Mapping[str, Any]) -> bool:
    value = (
        variables.get(node.value.id) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None
    )
    held = getattr(value, node.attr, None) if isinstance(node, ast.Attribute) else None
    return (variables.get(node.id) if isinstance(node, ast.Name) else held) is tool


class Rewriter(ast.NodeTransformer):
    """Changes a statement for its target; `changed` tells whether anything was."""

    def __init__(self, target: Target, variables: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        """`renamed`: variables of the notebook -> what is written in their place."""
        self.changed = False
        self.notes: list[str] = []
        self.elsewhere: list[str] = []
        """Agents whose model is another there."""
        self._target, self._variables, self._renamed = target, variables, renamed

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._renamed:
            self.changed = True
            return ast.copy_location(ast.Name(self._renamed[node.id], node.ctx), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        kind = self._kind(node.func)
        if self._target.is_google and isinstance(kind, type):
            if issubclass(kind, BaseAgent):
                node.keywords = [one for one in node.keywords if not self._is_left_out(one, kind, node)]
                self._change_model(node)
            elif issubclass(kind, FunctionTool):
                _refuse_text_conditions(node)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level or not (node.module or "").startswith("adk_nb") or not self._target.is_google:
            return node
        self.changed = True
        places = [(*self._target.place_of(node.module or "", one.name), one.asname) for one in node.names]
        made = [ast.ImportFrom(module, [ast.alias(name, asname)], 0) for module, name, asname in places]
        return made[0] if len(made) == 1 else ast.If(ast.Constant(True), [*made], [])

    def _kind(self, func: ast.expr) -> Any:
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            return getattr(self._variables.get(func.value.id), func.attr, None)
        return self._variables.get(func.id) if isinstance(func, ast.Name) else None

    def _change_model(self, node: ast.Call) -> None:
        for one in node.keywords:
            if one.arg == "model" and not self._is_known_there(one.value):
                one.value = ast.Constant(GEMINI_MODEL)
                self.changed = True
                self.elsewhere.append(_named(node))

    def _is_known_there(self, model: ast.expr) -> bool:
        """Whether google-adk has what a cell gives as a model: a name, a variable, or what a class makes."""
        if isinstance(model, ast.Constant):
            return is_known_there(str(model.value))
        held = self._variables.get(model.id) if isinstance(model, ast.Name) else None
        if isinstance(held, BaseLlm):
            return is_class_there(type(held))
        kind = self._kind(model.func) if isinstance(model, ast.Call) else None
        return not (isinstance(kind, type) and issubclass(kind, BaseLlm)) or is_class_there(kind)

    def _is_left_out(self, given: ast.keyword, kind: type[BaseAgent], node: ast.Call) -> bool:
        name = given.arg or ""
        if name not in LEFT_OUT or (name == "max_iterations" and issubclass(kind, LoopAgent)):
            return False
        if (instead := _CHANGES_WHAT_IT_DOES.get(name)) is not None:
            raise InputError(
                f"google-adk's {kind.__name__} has no {name}, and without it {_named(node)} does something else; "
                f"{instead}, or write a script: %export agent.py"
            )
        self.changed = True
        self.notes.append(f"{_named(node)}: {name} is left out, as google-adk's {kind.__name__} has none")
        return True


def _named(node: ast.Call) -> str:
    name = next((one.value for one in node.keywords if one.arg == "name"), None)
    return str(name.value) if isinstance(name, ast.Constant) else ast.unparse(node.func)


def _refuse_text_conditions(node: ast.Call) -> None:
    for one in node.keywords:
        if (
            one.arg == "require_confirmation"
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ):
            raise InputError(
                f"google-adk's FunctionTool takes no text as require_confirmation, as {one.value.value!r}; "
                "write @tool(confirm=...) above the function, and %export makes a function of it"
            )


def rewritten(statement: Statement, rewriter: Rewriter, text: Callable[[Statement], str]) -> str:
    """Its text, as it stood if nothing has to be changed."""
    found = text(statement)
    tree = ast.parse(found)
    rewriter.changed = False
    new = rewriter.visit(tree)
    return ast.unparse(ast.fix_missing_locations(new)) if rewriter.changed else found
