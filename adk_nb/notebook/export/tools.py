"""Tools and toolsets as Python: the function itself, or the tool with the options of its cell."""

import inspect
import os
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.export.code import Piece, call_code, is_data, list_code, text_code
from adk_nb.notebook.export.scope import Scope
from adk_nb.notebook.registry.definitions import ToolsetOrigin
from adk_nb.tools.conditions import names_in
from adk_nb.tools.effects import effect_of
from adk_nb.tools.function_tool import FunctionTool, name_of
from adk_nb.tools.long_running_tool import LongRunningFunctionTool

NAMED = '''\
def _named(function: Any, name: str, description: str) -> Any:
    """A copy of `function` that a model knows by another name or description."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__dict__.update(function.__dict__)
    copy.__doc__ = description
    return copy'''
"""google-adk names a tool as its function; this makes a function of another name. It needs Python's `types`."""
Keywords = dict[str, str | None]


def tool_code(name: str, agent: str, scope: Scope) -> str:
    """The expression of a tool or a toolset that an agent names."""
    if scope.notebook.toolset(name):
        return name
    tool = scope.notebook.tool(name)
    variable = scope.variable_of(tool)
    if variable is None:
        raise InputError(f"%export: {agent} needs tool {name!r}, and no variable holds it; run its cell again")
    if isinstance(tool, FunctionTool) and scope.target.is_google and scope.is_function_of_a_cell(variable):
        for option in _own_options(tool):
            scope.note(f"tool {tool.name}: {option} is left out; google-adk has no such option")
    return scope.renamed.get(variable, variable)


def wrapper(tool: FunctionTool, variable: str, scope: Scope) -> Piece | None:
    """What binds `<variable>_tool` beside the function in `variable`; None: the function alone is this tool.

    Raises:
        InputError: An option cannot be written.
    """
    google = scope.target.is_google
    keywords, early, before = _confirmation(tool, variable, scope)
    if config := _auth_config(tool, scope):
        keywords["auth_config"] = config
        early.append(config)
    function, described = _described(tool, variable, google=google)
    keywords |= described if google else {**_own_options(tool), **described}
    kind = "LongRunningFunctionTool" if isinstance(tool, LongRunningFunctionTool) else "FunctionTool"
    if not (keywords or function != variable or kind != "FunctionTool"):
        return None
    after = ""
    if kind != "FunctionTool" and google and (asks := keywords.pop("require_confirmation", None)):
        after = f"\n{variable}_tool._require_confirmation = {asks}  # which its constructor does not take"
    code = f"{variable}_tool = {call_code(kind, keywords, function)}{after}"
    early += ["_named"] if "_named(" in function else []
    return Piece("\n\n\n".join([*before, code]), [variable, kind, *early])


def toolset(name: str, place: ToolsetOrigin, scope: Scope) -> Piece:
    """What binds the toolset of a `%tool` line.

    Raises:
        InputError: Its confirmation cannot be written.
    """
    asks = place.confirm
    asks = {"always": True, "never": False}.get(asks, asks) if isinstance(asks, str) else asks
    if asks and scope.target.is_google and (place.kind == "openapi" or isinstance(asks, str)):
        raise InputError(
            f"%export: google-adk's toolsets cannot ask for confirmation as {name!r} does; write a script: "
            "%export agent.py"
        )
    confirm, needs = _simple_confirmation(asks, f"toolset {name!r}", scope)
    filtered: Keywords = {"tool_filter": list_code(map(text_code, place.only)) if place.only else None}
    options = filtered | {"require_confirmation": confirm}
    if place.kind == "mcp":
        params = "SseConnectionParams" if place.is_sse else "StreamableHTTPConnectionParams"
        keywords: Keywords = {"connection_params": f"{params}(url={text_code(place.address)})"}
        return Piece(f"{name} = {call_code('McpToolset', keywords | options)}", ["McpToolset", params, *needs])
    path = Path(os.path.relpath(place.address, scope.folder)).as_posix()
    scope.note(f"{name} reads {path}, relative to the written file: take it along")
    keywords = {
        "spec_str": f'Path(__file__).parent.joinpath({text_code(path)}).read_text(encoding="utf-8")',
        "spec_str_type": text_code("json" if Path(place.address).suffix == ".json" else "yaml"),
    }
    return Piece(f"{name} = {call_code('OpenAPIToolset', keywords | options)}", ["OpenAPIToolset", "Path", *needs])


def _auth_config(tool: FunctionTool, scope: Scope) -> str | None:
    """The variable that holds the tool's `auth_config`; None: it has none."""
    if not tool.auth_config:
        return None
    if scope.target.is_google:
        why = "which google-adk's FunctionTool does not take; write a script: %export agent.py"
    elif variable := scope.variable_of(tool.auth_config):
        return variable
    else:
        why = "and no variable holds it; give it one"
    raise InputError(f"%export: tool {tool.name!r} has an auth_config, {why}")


def _own_options(tool: FunctionTool) -> Keywords:
    """Options that only our tools have, where they differ from the default."""
    options: Keywords = {}
    if tool.timeout is not None:
        options["timeout"] = repr(tool.timeout)
    elif tool.thread:
        options["thread"] = "True"
    if tool.effect != effect_of(tool.func):
        options["effect"] = text_code(tool.effect)
    if getattr(tool, "pause", False):
        options["pause"] = "True"
    return options


def _described(tool: FunctionTool, variable: str, *, google: bool) -> tuple[str, Keywords]:
    """The function's expression, and the keywords that name and describe the tool otherwise than the function."""
    keywords: Keywords = {}
    if tool.name != name_of(tool.func):
        keywords["name"] = text_code(tool.name)
    if tool.description != FunctionTool(tool.func).description:
        keywords["description"] = text_code(tool.description)
    if not (keywords and google):
        return variable, keywords
    return f"_named({variable}, {text_code(tool.name)}, {text_code(tool.description)})", {}


def _simple_confirmation(asks: Any, owner: str, scope: Scope) -> tuple[str | None, list[str]]:
    """`require_confirmation` as an expression, and the variable it needs."""
    if not asks or asks is True or isinstance(asks, str):
        return (text_code(asks) if isinstance(asks, str) else "True") if asks else None, []
    variable = scope.variable_of(asks)
    if variable is None:
        raise InputError(
            f"%export: {owner} asks for confirmation when {asks!r:.60} says so, and no variable holds that function; "
            "define it with a name of its own"
        )
    return variable, [variable]


def _confirmation(tool: FunctionTool, variable: str, scope: Scope) -> tuple[Keywords, list[str], list[str]]:
    """`require_confirmation` as a keyword, the names it needs, and the function that is written before it."""
    asks = tool.require_confirmation
    confirm, needs = _simple_confirmation(asks, f"tool {tool.name!r}", scope)
    if confirm is None:
        return {}, [], []
    name = f"_{variable}_asks"
    if scope.target.is_google and isinstance(asks, str):
        return {"require_confirmation": name}, ["Any"], [_condition(tool, asks, name)]
    if scope.target.is_google and callable(asks) and (parameters := _fewer_parameters(asks, tool)) is not None:
        return {"require_confirmation": name}, ["Any", *needs], [_call_with(asks, confirm, parameters, name)]
    return {"require_confirmation": confirm}, needs, []


def _fewer_parameters(asks: Any, tool: FunctionTool) -> list[str] | None:
    """The parameters of a condition that lacks some of its tool's; google-adk passes all of them."""
    parameters = inspect.signature(asks).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    return None if inspect.signature(tool.func).parameters.keys() <= parameters.keys() else [*parameters]


def _call_with(asks: Any, function: str, parameters: list[str], name: str) -> str:
    is_async, wait = ("async ", "await ") if inspect.iscoroutinefunction(asks) else ("", "")
    return (
        f"{is_async}def {name}(**args: Any) -> Any:\n"
        f"    return {wait}{function}(**{{key: args[key] for key in {tuple(parameters)!r} if key in args}})"
    )


def _condition(tool: FunctionTool, expression: str, name: str) -> str:
    """A condition as a function for google-adk, which passes the arguments by name and leaves defaults out."""
    declaration = tool.signature.declaration("")
    schema: dict[str, Any] = (declaration and declaration.parameters_json_schema) or {}
    properties: dict[str, Any] = schema.get("properties", {})
    parameters: list[str] = []
    for parameter in sorted(names_in(expression)):
        default = properties.get(parameter, {}).get("default")
        parameters.append(f"{parameter}: Any = {(default if is_data(default) else None)!r}")
    return (
        f"def {name}({', '.join([*parameters, '**_: Any'])}) -> bool:\n"
        f"    try:\n        return bool({expression.strip()})\n"
        f"    except Exception:  # the condition cannot be computed: ask\n        return True"
    )
