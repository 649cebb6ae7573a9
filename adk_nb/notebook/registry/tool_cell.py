"""Run a `%%tool` cell as the Python it is, and find the functions that it defines."""

import ast
import builtins
import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adk_nb.errors import ConfigurationError, InputError, closest
from adk_nb.expression import Expression
from adk_nb.notebook.place import Note
from adk_nb.notebook.registry.definitions import ToolDefinition, digest_of_tool
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.variables import user_variables
from adk_nb.sessions.journal import Effect
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, as_condition
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.schema import Signature, signature_of
from adk_nb.tools.tool_decorator import made_of, no_pause

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class CellSyntaxError(InputError):
    """A cell that is no Python; shown as Python shows it, without our lines above it."""

    def __init__(self, error: SyntaxError, shown: list[str]) -> None:
        super().__init__(str(error))
        self._shown = shown

    def _render_traceback_(self) -> list[str]:
        return self._shown


@dataclass(frozen=True, kw_only=True)
class ToolOptions:
    """What the line of a `%%tool` or `%tool` says."""

    name: str | None = None
    """Of the one tool that is made."""
    confirm: str | None = None
    """`always`, `never`, an expression, or the name of a function of the notebook."""
    thread: bool = False
    timeout: float | None = None
    """Seconds."""
    effect: Effect | None = None
    """None: `once`, or as the tool was made."""
    long_running: bool = False
    pause: bool = False
    only: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    """Function -> what the model calls it."""
    replace: bool = False
    """Take the names from agents that have them."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A function that becomes a tool."""

    variable: str
    value: Any
    """The function, or the tool it was made by `@tool`."""
    source: str
    lines: dict[str, int]
    """Parameter -> line of the cell."""
    has_types: bool = True
    """False: it is written without a type at any of its parameters."""


def options_of(asked: Any, cell: str | None) -> ToolOptions:
    """What the line says, in a cell or on its own.

    Raises:
        InputError: It says what cannot be.
    """
    names: list[str] = asked.name
    _refuse_no_names(names, asked)
    if cell is None and not names:
        raise InputError("%tool needs the name of a function; write %tool get_weather, or %%tool with functions below")
    if cell is not None and len(names) > 1:
        raise InputError(f"%%tool takes one name, and there are {len(names)}: {', '.join(names)}; use --rename a=b")
    rename: list[tuple[str, str]] = []
    renamed: list[str] = asked.rename or []
    for word in renamed:
        old, sign, new = word.partition("=")
        if not (sign and old.isidentifier() and new.isidentifier()):
            raise InputError(f"{asked.mark}: --rename takes function=name, and {word!r} is none")
        rename.append((old, new))
    return ToolOptions(
        name=names[0] if cell is not None and names else None,
        confirm=asked.confirm,
        thread=asked.thread,
        timeout=asked.timeout,
        effect=asked.effect,
        long_running=asked.long_running,
        pause=asked.pause,
        only=tuple(asked.only or ()),
        rename=tuple(rename),
        replace=asked.replace,
    )


def _refuse_no_names(names: list[str], asked: Any) -> None:
    for word in names:
        if not word.isidentifier():
            said = " ".join([asked.confirm or "", *names]).removeprefix("always ").strip()
            hint = f'; a condition stands in quotes: --confirm "{said}"' if asked.confirm else ""
            raise InputError(f"{asked.mark}: {word!r} is no name{hint}")
    if asked.confirm not in (None, "always", "never"):
        try:
            Expression(asked.confirm)
        except ConfigurationError as error:
            raise InputError(f"{asked.mark} --confirm: {error}") from None


def define(notebook: Notebook, found: list[Found], options: ToolOptions, cell: int | None) -> list[str]:
    """Make tools of functions and bind each in the place of its function, so that Python sees the tool too.

    Raises:
        ConfigurationError: One cannot be a tool; none is made.
        InputError: Its name is that of a function, and so might be meant as the condition.
    """
    if options.confirm == "always" and _is_function(options.name, notebook) and options.name != found[0].variable:
        raise InputError(
            f"%%tool: {options.name!r} is a function of this notebook; if it says when to ask, write "
            f"--confirm={options.name}, and else name the tool otherwise"
        )
    made = [(one, made_tool(one, options, cell, notebook.variables)) for one in found]
    said = [options.confirm, options.thread, options.timeout, options.effect, options.long_running, options.pause]
    wanted = {
        tool.name: ToolDefinition(tool=tool, cell=cell, digest=digest_of_tool(one.source, tool.name, *said))
        for one, tool in made
    }
    told = notebook.define_tools(wanted, replace=options.replace)
    for one, tool in made:
        notebook.variables[one.variable] = tool
    return told


def _is_function(name: str | None, notebook: Notebook) -> bool:
    return name is not None and inspect.isroutine(notebook.variables.get(name))


def run_tool_cell(shell: Any, body: str, number: int, check: Callable[[str], None]) -> list[Found]:
    """Run `body` in the user's namespace; the functions it defines at its top level, in order.

    Names with a leading underscore are the cell's own and become no tools.

    Raises:
        CellSyntaxError: It is no Python; nothing was run.
        InputError: It defines no function. What it did define is there all the same.
        ConfigurationError: `check` refuses the name of a function; nothing was run.
        Exception: What the cell raised.
    """
    __tracebackhide__ = True
    # The line of the magic is line 1 of the cell: tracebacks and messages count from there.
    blank = body[: len(body) - len(body.lstrip())].count("\n")  # which transform_cell takes away
    source = "\n" * (blank + 1) + shell.transform_cell(body)
    name = shell.compile.cache(source, number, raw_code="\n" + body)
    try:
        tree = ast.parse(source, name)
        codes = _compiled(shell, tree, name)
    except SyntaxError as error:
        raise CellSyntaxError(error, shell.SyntaxTB.structured_traceback(type(error), error, [])) from None
    made = [node for node in tree.body if isinstance(node, _Function) and not node.name.startswith("_")]
    for node in made:
        _refuse_builtin(node.name)
        check(node.name)
    for code in codes:
        exec(code, shell.user_ns)
    if not made:
        raise InputError("%%tool defines no function; write `def name(parameter: str) -> str:` below the line")
    last = {node.name: node for node in made}
    return [_found(node, shell.user_ns[node.name], source) for node in last.values()]


def found_variable(variable: str, variables: dict[str, Any]) -> Found:
    """An existing function of the notebook.

    Raises:
        InputError: There is no such variable, or nothing that can be called.
    """
    if variable not in variables:
        known = [name for name in user_variables(variables) if inspect.isroutine(variables[name])]
        near = closest(variable, known)
        hint = f"did you mean {near!r}?" if near else "define it in a cell above"
        raise InputError(f"%tool: there is no function {variable!r}; {hint}")
    value = variables[variable]
    if not (callable(value) or isinstance(value, BaseTool)) or isinstance(value, type):
        raise InputError(f"%tool: {variable!r} is of type {type(value).__name__}, not a function")
    return Found(variable=variable, value=value, source=_source_of(value), lines={})


def chosen(found: list[Found], options: ToolOptions, mark: str) -> list[Found]:
    """Those that the line asks for.

    Raises:
        InputError: `--only`, `--rename` or the name on the line does not fit what there is.
    """
    known = [one.variable for one in found]
    for name in [*options.only, *(old for old, _ in options.rename)]:
        if name not in known:
            near = closest(name, known)
            raise InputError(
                f"{mark}: this cell defines no function {name!r}; "
                + (f"did you mean {near!r}?" if near else f"it defines {', '.join(known)}")
            )
    if options.only:
        found = [one for one in found if one.variable in options.only]
    elif len(found) > 1:
        helpers = untyped_helpers(found, options)
        found = [one for one in found if one.variable != options.confirm and one.variable not in helpers]
    if options.name and len(found) > 1:
        raise InputError(f"{mark} {options.name}: {len(found)} functions cannot have one name; use --only or --rename")
    return found


def untyped_helpers(found: list[Found], options: ToolOptions) -> list[str]:
    """The functions of a cell that only help its tools: without a type at any parameter, beside others that have them.

    Empty if `--only` names the tools, or if none would be left.
    """
    if options.only:
        return []
    spoken_of = {options.confirm, *(old for old, _ in options.rename)}
    functions = [one for one in found if one.variable not in spoken_of]
    helpers = [one.variable for one in functions if _has_no_types(one)]
    return helpers if len(helpers) < len(functions) else []


def _has_no_types(found: Found) -> bool:
    if found.has_types or not inspect.isfunction(found.value):
        return False
    return found.lines.keys() == signature_of(found.value, found.variable).faults.keys()  # `tool_context` is none


def helper_note(names: list[str]) -> str:
    """What to say of functions that became no tools."""
    return Note(
        f"no tool, for {'they have' if len(names) > 1 else 'it has'} no types: {', '.join(names)}; "
        "write types and a docstring to let the model call it"
    )


def made_tool(
    found: Found, options: ToolOptions, cell: int | None, variables: Mapping[str, Any]
) -> FunctionTool | BaseTool:
    """The tool that a function becomes; a tool that `@tool` has made stays as it is, unless the line says otherwise.

    Raises:
        ConfigurationError: A parameter has no type, or one that JSON cannot fill, or is `*args`; the condition names
            what is neither a parameter nor a function; options are said of what is a tool, and not made of a function.
    """
    name = options.name or dict(options.rename).get(found.variable)
    value = found.value
    as_it_is = replace(options, name=name, only=(), rename=(), replace=False) == ToolOptions()
    if isinstance(value, BaseTool) and as_it_is:
        return value
    if isinstance(value, BaseTool) and not isinstance(value, FunctionTool):
        raise ConfigurationError(
            f"tool {found.variable!r} is made of no function, and options change only those; "
            f"say it where the {type(value).__name__} is made"
        )
    if isinstance(value, FunctionTool):
        return _changed(value, name, options, variables)
    if not callable(value):
        raise ConfigurationError(
            f"tool {found.variable!r} is of type {type(value).__name__} after its decorators, not a function"
        )
    _refuse_untyped(value, name or found.variable, found, cell)
    return made_of(
        value,
        require_confirmation=_function_or(options.confirm, signature_of(value, found.variable), variables),
        thread=options.thread,
        timeout=options.timeout,
        effect=options.effect or "once",
        long_running=options.long_running,
        pause=options.pause,
        name=name or found.variable,
    )


def _changed(tool: FunctionTool, name: str | None, options: ToolOptions, variables: Mapping[str, Any]) -> FunctionTool:
    """A copy of `tool` that is as the line says, and else as it was made."""
    if options.long_running and not tool.is_long_running:
        tool = LongRunningFunctionTool(
            tool.func,
            require_confirmation=tool.require_confirmation,
            auth_config=tool.auth_config,
            thread=tool.thread,
            timeout=tool.timeout,
            effect=tool.effect,
            name=tool.name,
            description=tool.description,
        )
    made = tool.renamed(name) if name else copy.copy(tool)
    if options.confirm is not None:
        confirm = _function_or(options.confirm, tool.signature, variables)
        known = None if tool.signature.takes_any else tool.signature.names
        made.require_confirmation = as_condition(confirm, f"tool {made.name!r}", known)
    made.timeout = options.timeout or tool.timeout
    made.thread = tool.thread or options.thread or options.timeout is not None
    made.effect = options.effect or tool.effect
    if options.pause:
        if not isinstance(made, LongRunningFunctionTool):
            raise ConfigurationError(no_pause(made.name))
        made.pause = True
    return made


def _function_or(confirm: str | None, signature: Signature, variables: Mapping[str, Any]) -> Decides:
    """The notebook's function of the name `confirm`; `confirm` as it is if it is no such name, or a parameter's."""
    if confirm in (None, "always", "never") or confirm in signature.names:
        return confirm or False
    named = variables.get(confirm)
    if isinstance(named, FunctionTool):
        return named.func
    return named if callable(named) else confirm


def _refuse_untyped(func: Callable[..., Any], name: str, found: Found, cell: int | None) -> None:
    for parameter, fault in signature_of(func, name).faults.items():
        line = found.lines.get(parameter)
        where = f" (In[{cell}] line {line})" if line else ""
        raise ConfigurationError(f"tool {name!r}: {fault}{where}")


def _refuse_builtin(name: str) -> None:
    if hasattr(builtins, name):
        raise InputError(
            f"a function named {name!r} would hide Python's own; write `def {name}_tool(...)`, "
            f"with --rename {name}_tool={name} if the model is to call it {name}"
        )


def _compiled(shell: Any, tree: ast.Module, name: str) -> list[Any]:
    """The cell's code; an expression at its end shows its value, as in any cell."""
    compiler = shell.compile
    if not (tree.body and isinstance(tree.body[-1], ast.Expr)):
        return [compiler(tree, name, "exec")]
    shown = ast.Interactive([tree.body[-1]])
    return [compiler(ast.Module(tree.body[:-1], []), name, "exec"), compiler(shown, name, "single")]


def _found(node: _Function, value: Any, source: str) -> Found:
    starred = [node.args.vararg] if node.args.vararg else []
    given = [*node.args.posonlyargs, *node.args.args, *starred, *node.args.kwonlyargs]
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
    has_types = not given or any(one.annotation for one in given)
    lines = {one.arg: one.lineno for one in given}
    return Found(variable=node.name, value=value, source=text, lines=lines, has_types=has_types)


def _source_of(value: Any) -> str:
    func = value.func if isinstance(value, FunctionTool) else value
    try:
        return inspect.getsource(func)
    except (OSError, TypeError):
        return f"{func!r} {id(func)}"
