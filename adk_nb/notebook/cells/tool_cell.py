"""Run a `%%tool` cell as the Python it is, and make tools of the functions it defines."""

import ast
import builtins
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb.errors import ConfigurationError, InputError, did_you_mean
from adk_nb.expression import Expression
from adk_nb.notebook.cells.definitions import ToolDefinition, digest
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.variables import user_variables
from adk_nb.notebook.view.document import Note
from adk_nb.notebook.view.plain_text import quoted
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Condition, parse_condition
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.schema import Signature, signature_of
from adk_nb.tools.tool_decorator import make_function_tool, pause_error

_OPTIONS = ("confirm", "thread", "timeout", "effect", "long_running", "pause")
"""Options of the line about the behaviour of a tool."""
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class CellSyntaxError(InputError):
    """A SyntaxError in a cell, displayed as for any cell: without the frames of adk_nb."""

    def __init__(self, error: SyntaxError, traceback: list[str]) -> None:
        super().__init__(str(error))
        self._traceback = traceback

    def _render_traceback_(self) -> list[str]:
        return self._traceback


@dataclass(frozen=True, kw_only=True)
class _Function:
    """A function that may become a tool."""

    variable: str
    value: Any
    """The function, or the tool that `@tool` made of it."""
    source: str
    parameters: Sequence[ast.arg] = ()
    """As the cell writes them."""


def define_tools(notebook: Notebook, shell: Any, args: Any, cell: str | None, number: int) -> list[str]:
    """Make tools of functions, and bind each in the place of its function; returns a report, a line each.

    Args:
        notebook: Where they are defined.
        shell: Runs the cell.
        args: The parsed line of `%%tool` or `%tool`.
        cell: The functions; None: those of the notebook that the line names.
        number: n of `In[n]`.

    Raises:
        UserError: The line or a function cannot be used; no tool is made.
        Exception: What the cell raised.
    """
    __tracebackhide__ = True
    tool_names = _check_line(args, cell)
    if cell is None:
        functions = [_function_of_variable(name, shell.user_ns) for name in args.name]
    else:
        functions = _run_cell(
            shell, cell, number, lambda name: notebook.check_function_name(name, replace=args.replace)
        )
    functions, helpers = _choose(functions, args, tool_names, in_a_cell=cell is not None)
    if cell is not None and args.name:
        variable, name = functions[0].variable, args.name[0]
        if len(functions) > 1:
            raise InputError(
                f"{args.mark} {name}: {len(functions)} functions cannot have one name; use --only or --rename"
            )
        if args.confirm == "always" and name != variable and inspect.isroutine(notebook.variables.get(name)):
            raise InputError(
                f"%%tool: {name!r} is a function of this notebook; if it decides when to ask, write "
                f"--confirm={name}, else give the tool another name"
            )
        tool_names[variable] = name
    definitions: dict[str, ToolDefinition] = {}
    tools: dict[str, BaseTool] = {}
    for function in functions:
        try:
            tool = _make_tool(function, tool_names.get(function.variable), args, number, notebook.variables)
        except ConfigurationError as error:
            others = [other.variable for other in functions if other is not function]
            if not (others and args.confirm and f"{args.confirm!r:.80}" in str(error)):
                raise
            raise ConfigurationError(
                f"{error}; --confirm is for all {len(functions)} functions of the cell: leave it out and ask for one "
                f"of them below it, %tool {others[0]} --confirm {quoted(args.confirm)}, or make a tool of that one "
                f"alone: --only {others[0]}"
            ) from None
        options = [tool.name, *(getattr(args, option) for option in _OPTIONS)]
        source_digest = digest([function.source, *map(repr, options)])
        definitions[tool.name] = ToolDefinition(tool=tool, cell=number, digest=source_digest)
        tools[function.variable] = tool
    report = notebook.define_tools(definitions, replace=args.replace)
    notebook.variables.update(tools)
    if silent := [name for name, tool in definitions.items() if not getattr(tool.tool, "description", "").strip()]:
        has, its = ("have", "them") if len(silent) > 1 else ("has", "it")
        report.append(
            Note(f"{', '.join(silent)} {has} no docstring: the model sees no description of {its}; write one below def")
        )
    if helpers:
        have = "have" if len(helpers) > 1 else "has"
        report.append(
            Note(f"no tool: {', '.join(helpers)} {have} no types; write types and a docstring to let the model call it")
        )
    return report


def _check_line(args: Any, cell: str | None) -> dict[str, str]:
    """Refuse a line that cannot be used; returns `--rename` as function -> name of its tool."""
    names: list[str] = args.name
    for name in names:
        if not name.isidentifier():
            condition = " ".join([args.confirm or "", *names]).removeprefix("always ").strip()
            hint = f'; a condition stands in quotes: --confirm "{condition}"' if args.confirm else ""
            raise InputError(f"{args.mark}: {name!r} is not a name{hint}")
    if args.confirm not in (None, "always", "never"):
        try:
            Expression(args.confirm)
        except ConfigurationError as error:
            raise InputError(f"{args.mark} --confirm: {error}") from None
    if cell is None and not names:
        raise InputError("%tool needs the name of a function; write %tool get_weather, or %%tool with functions below")
    if cell is not None and len(names) > 1:
        raise InputError(f"%%tool takes one name, and there are {len(names)}: {', '.join(names)}; use --rename a=b")
    renames: dict[str, str] = {}
    for text in args.rename or ():
        function, _, name = text.partition("=")
        if not (function.isidentifier() and name.isidentifier()):
            raise InputError(f"{args.mark}: --rename takes function=name, got {text!r}")
        renames[function] = name
    return renames


# ---- the functions


def _run_cell(shell: Any, body: str, number: int, check_name: Callable[[str], None]) -> list[_Function]:
    """Run a cell in the user's namespace; returns the functions it defines at its top level, in order.

    Names with a leading underscore are the cell's own and become no tools. Names are checked before anything runs.
    """
    __tracebackhide__ = True
    # The line of the magic is line 1 of the cell: tracebacks and messages count from there.
    blank = body[: len(body) - len(body.lstrip())].count("\n")  # transform_cell removes leading blank lines
    source = "\n" * (blank + 1) + shell.transform_cell(body)
    name = shell.compile.cache(source, number, raw_code="\n" + body)
    try:
        tree = ast.parse(source, name)
        last = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) else []
        codes = [shell.compile(tree, name, "exec")]
        if last:  # its value is shown, as in any cell
            codes.append(shell.compile(ast.Interactive(last), name, "single"))
    except SyntaxError as error:
        raise CellSyntaxError(error, shell.SyntaxTB.structured_traceback(type(error), error, [])) from None
    # Of two functions with one name the last counts, as in Python.
    nodes = {node.name: node for node in tree.body if isinstance(node, _FunctionNode) and node.name[0] != "_"}
    for function in nodes:
        if hasattr(builtins, function):
            raise InputError(
                f"a function named {function!r} would hide Python's own; write `def {function}_tool(...)`, "
                f"with --rename {function}_tool={function} if the model is to call it {function}"
            )
        check_name(function)
    for code in codes:
        exec(code, shell.user_ns)
    if not nodes:
        raise InputError("%%tool defines no function; write `def name(parameter: str) -> str:` below the line")
    functions: list[_Function] = []
    for variable, node in nodes.items():
        starred = [node.args.vararg] if node.args.vararg else []
        parameters = [*node.args.posonlyargs, *node.args.args, *starred, *node.args.kwonlyargs]
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
        value = shell.user_ns[variable]
        functions.append(_Function(variable=variable, value=value, source=text, parameters=parameters))
    return functions


def _function_of_variable(variable: str, variables: Mapping[str, Any]) -> _Function:
    if variable not in variables:
        functions = [name for name in user_variables(variables) if inspect.isroutine(variables[name])]
        hint = did_you_mean(variable, functions, "define it in a cell above")
        raise InputError(f"%tool: there is no function {variable!r}; {hint}")
    value = variables[variable]
    if not (callable(value) or isinstance(value, BaseTool)) or isinstance(value, type):
        raise InputError(f"%tool: {variable!r} is of type {type(value).__name__}, not a function")
    func: Any = value.func if isinstance(value, FunctionTool) else value
    try:
        source = inspect.getsource(func)
    except (OSError, TypeError):
        source = f"{func!r} {id(func)}"  # built-in: a new object is a new version
    return _Function(variable=variable, value=value, source=source)


def _choose(
    functions: list[_Function], args: Any, tool_names: Mapping[str, str], *, in_a_cell: bool
) -> tuple[list[_Function], list[str]]:
    """The functions that become tools, and the names of their helper functions.

    Raises:
        InputError: `--only` or `--rename` names no function.
    """
    only: list[str] = args.only or []
    names = [function.variable for function in functions]
    for name in (*only, *tool_names):
        if name not in names:
            hint = did_you_mean(name, names, f"it defines {', '.join(names)}")
            raise InputError(f"{args.mark}: this cell defines no function {name!r}; {hint}")
    if only:
        return [function for function in functions if function.variable in only], []
    if len(functions) == 1:
        return functions, []
    functions = [function for function in functions if function.variable != args.confirm]
    if not in_a_cell:
        return functions, []
    unnamed = [function for function in functions if function.variable not in tool_names]
    helpers: list[str] = []  # probably: no parameter has a type, and none is `tool_context`
    for function in unnamed:
        if not function.parameters or any(parameter.annotation for parameter in function.parameters):
            continue
        if inspect.isfunction(function.value):
            faults = signature_of(function.value, function.variable).faults
            if {parameter.arg for parameter in function.parameters} == faults.keys():
                helpers.append(function.variable)
    if len(helpers) == len(unnamed):
        helpers = []
    return [function for function in functions if function.variable not in helpers], helpers


# ---- the tools


def _make_tool(function: _Function, name: str | None, args: Any, number: int, variables: Mapping[str, Any]) -> BaseTool:
    """The tool of a function, or a copy of a tool with the options of the line.

    Raises:
        ConfigurationError: A parameter has no type, or one that JSON cannot fill, or is `*args`; the condition names
            what is neither a parameter nor a function; options for a tool that is not made of a function.
    """
    value, variable = function.value, function.variable
    if isinstance(value, BaseTool) and not (name or any(getattr(args, option) for option in _OPTIONS)):
        return value
    if isinstance(value, FunctionTool):
        return _with_options(value, name, args, variables)
    if isinstance(value, BaseTool):
        raise ConfigurationError(
            f"tool {variable!r} is made of no function, and options change only those; "
            f"say it where the {type(value).__name__} is made"
        )
    if not callable(value):
        raise ConfigurationError(
            f"tool {variable!r} is of type {type(value).__name__} after its decorators, not a function"
        )
    signature = signature_of(value, name or variable)
    for parameter, fault in signature.faults.items():
        line = next((node.lineno for node in function.parameters if node.arg == parameter), None)
        location = f" (In[{number}] line {line})" if line else ""
        raise ConfigurationError(f"tool {name or variable!r}: {fault}{location}")
    options = {option: getattr(args, option) for option in _OPTIONS if option != "confirm"}
    confirm = _condition(args.confirm, signature, variables)
    return make_function_tool(value, require_confirmation=confirm, name=name or variable, **options)


def _with_options(tool: FunctionTool, name: str | None, args: Any, variables: Mapping[str, Any]) -> FunctionTool:
    """A copy of a tool with the options of the line."""
    if args.long_running and not tool.is_long_running:
        fields = ["require_confirmation", "auth_config", "thread", "timeout", "name", "description"]
        fields += ["effect"] if tool.states_effect else []
        tool = LongRunningFunctionTool(tool.func, **{field: getattr(tool, field) for field in fields})
    changed = tool.renamed(name) if name else copy.copy(tool)
    if args.confirm is not None:
        parameters = None if tool.signature.takes_any else tool.signature.names
        confirm = _condition(args.confirm, tool.signature, variables)
        changed.require_confirmation = parse_condition(confirm, f"tool {changed.name!r}", parameters)
    changed.timeout = args.timeout or tool.timeout
    changed.thread = tool.thread or args.thread or args.timeout is not None
    if args.effect:
        changed.effect = args.effect
    if args.pause and not isinstance(changed, LongRunningFunctionTool):
        raise ConfigurationError(pause_error(changed.name))
    if isinstance(changed, LongRunningFunctionTool):
        changed.pause = changed.pause or args.pause
    return changed


def _condition(confirm: str | None, signature: Signature, variables: Mapping[str, Any]) -> Condition:
    """`--confirm`: a function of the notebook by its name, unless a parameter has that name; else as typed."""
    if confirm in (None, "always", "never") or confirm in signature.names:
        return confirm or False
    value = variables.get(confirm)
    if isinstance(value, FunctionTool):
        return value.func
    return value if callable(value) else confirm
