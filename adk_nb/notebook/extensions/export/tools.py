"""Tools and toolsets as Python: the function itself, or the tool with the options of its cell."""

import inspect
import os
from pathlib import Path
from typing import Any

from adk_nb.code_executors.isolation import strictest
from adk_nb.errors import InputError
from adk_nb.events.requests import LOAD_SKILL
from adk_nb.notebook.cells.definitions import AgentDefinition, ToolsetOrigin
from adk_nb.notebook.extensions.export.scope import Keywords, Piece, Scope, call_code, is_data, list_code, text_code
from adk_nb.skills.catalog import SkillCatalog
from adk_nb.tools.base_tool import effect_of
from adk_nb.tools.conditions import argument_names
from adk_nb.tools.function_tool import FunctionTool, name_of
from adk_nb.tools.long_running_tool import LongRunningFunctionTool
from adk_nb.tools.skill_tools import LOAD_SKILL_RESOURCE

RENAMED_CODE = '''\
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
    """The code that binds `<variable>_tool` beside the function in `variable`; None: the function alone is this tool.

    Raises:
        InputError: An option cannot be written.
    """
    google = scope.target.is_google
    kind = "LongRunningFunctionTool" if isinstance(tool, LongRunningFunctionTool) else "FunctionTool"
    keywords, needs, condition = _confirmation(tool, variable, scope)
    if config := _auth_config(tool, scope):
        keywords["auth_config"] = config
        needs.append(config)
    function, described = variable, _description(tool)
    if google and described:
        function = f"_named({variable}, {text_code(tool.name)}, {text_code(tool.description)})"
        needs.append("_named")
    elif not google:
        keywords |= {**_own_options(tool), **described}
    if not keywords and function == variable and kind == "FunctionTool":
        return None
    later = ""
    # google-adk 2.13: LongRunningFunctionTool takes a function alone.
    if kind != "FunctionTool" and google and (confirm := keywords.pop("require_confirmation", None)):
        later = f"\n{variable}_tool._require_confirmation = {confirm}  # no argument of its constructor"
    code = f"{variable}_tool = {call_code(kind, keywords, function)}{later}"
    return Piece("\n\n\n".join([*condition, code]), [variable, kind, *needs])


def toolset(name: str, origin: ToolsetOrigin, scope: Scope) -> Piece:
    """The code that binds the toolset of a `%tool` line.

    Raises:
        InputError: Its confirmation cannot be written.
    """
    confirm = {"always": True, "never": False}.get(origin.confirm) if isinstance(origin.confirm, str) else None
    confirm = origin.confirm if confirm is None else confirm
    if confirm and scope.target.is_google and (origin.kind == "openapi" or isinstance(confirm, str)):
        raise InputError(
            f"%export: google-adk's toolsets cannot ask for confirmation as {name!r} does; write a script: "
            "%export agent.py"
        )
    code, needs = _condition_code(confirm, f"toolset {name!r}", scope)
    options: Keywords = {
        "tool_filter": list_code(map(text_code, origin.only)) if origin.only else None,
        "require_confirmation": code,
    }
    if origin.kind == "mcp":
        params = "SseConnectionParams" if origin.is_sse else "StreamableHTTPConnectionParams"
        keywords: Keywords = {"connection_params": f"{params}(url={text_code(origin.address)})"}
        return Piece(f"{name} = {call_code('McpToolset', keywords | options)}", ["McpToolset", params, *needs])
    path = Path(os.path.relpath(origin.address, scope.folder)).as_posix()
    scope.note(f"{name} reads {path}, relative to the written file: take it along")
    keywords = {
        "spec_str": f'Path(__file__).parent.joinpath({text_code(path)}).read_text(encoding="utf-8")',
        "spec_str_type": text_code("json" if Path(origin.address).suffix == ".json" else "yaml"),
    }
    return Piece(f"{name} = {call_code('OpenAPIToolset', keywords | options)}", ["OpenAPIToolset", "Path", *needs])


def skills_code(definition: AgentDefinition, scope: Scope) -> tuple[str, list[str]]:
    """The code that binds `_<agent>_skills`, and the names it needs; empty for an agent without skills.

    google-adk would run scripts without asking, so that they stay texts there.
    """
    if "skills" not in definition.options:
        return "", []
    catalog = SkillCatalog(*definition.options["skills"].value.values())
    catalog.refresh()
    if not catalog.skills:
        return "", []
    needs = ["SkillToolset", "SkillDiscoveryMode", "load_skill_from_dir", "Path"]
    loads: list[str] = []
    for skill in catalog.skills.values():
        path = Path(os.path.relpath(skill.path or "", scope.folder)).as_posix()
        scope.note(f"{definition.name} reads the skill {path}, relative to the written file: take it along")
        loads.append(f"load_skill_from_dir(Path(__file__).parent.joinpath({text_code(path)}))")
    keywords: Keywords = {"skills": list_code(loads), "discovery_mode": "SkillDiscoveryMode.EAGER"}
    scripts = [name for name, skill in catalog.skills.items() if skill.has_scripts]
    if scripts and scope.target.is_google:
        keywords["tool_filter"] = list_code(map(text_code, (LOAD_SKILL, LOAD_SKILL_RESOURCE)))
        scope.note(f"scripts of {', '.join(scripts)} do not run there; google-adk would run them without approval")
    elif scripts and "code_executor" not in definition.fields:
        keywords["code_executor"] = f"UnsafeLocalCodeExecutor(isolation={text_code(strictest())})"
        needs.append("UnsafeLocalCodeExecutor")
    return f"_{definition.name}_skills = {call_code('SkillToolset', keywords)}\n\n", needs


def _auth_config(tool: FunctionTool, scope: Scope) -> str | None:
    if not tool.auth_config:
        return None
    if scope.target.is_google:
        fault = "which google-adk's FunctionTool does not take; write a script: %export agent.py"
    elif variable := scope.variable_of(tool.auth_config):
        return variable
    else:
        fault = "and no variable holds it; give it one"
    raise InputError(f"%export: tool {tool.name!r} has an auth_config, {fault}")


def _own_options(tool: FunctionTool) -> Keywords:
    """Options that only our tools have, where they differ from the default."""
    options: Keywords = {}
    if tool.timeout is not None:
        options["timeout"] = repr(tool.timeout)
    elif tool.thread:
        options["thread"] = "True"
    if tool.effect != effect_of(tool.func) or (tool.effect == "once" and tool.states_effect):
        options["effect"] = text_code(tool.effect)
    if getattr(tool, "pause", False):
        options["pause"] = "True"
    return options


def _description(tool: FunctionTool) -> Keywords:
    """Name and description, where they differ from those of the function."""
    keywords: Keywords = {}
    if tool.name != name_of(tool.func):
        keywords["name"] = text_code(tool.name)
    if tool.description != FunctionTool(tool.func).description:
        keywords["description"] = text_code(tool.description)
    return keywords


# ---- confirmation


def _condition_code(confirm: Any, owner: str, scope: Scope) -> tuple[str | None, list[str]]:
    """`require_confirmation` as an expression, and the variable it needs."""
    if not confirm:
        return None, []
    if confirm is True or isinstance(confirm, str):
        return "True" if confirm is True else text_code(confirm), []
    variable = scope.variable_of(confirm)
    if variable is None:
        raise InputError(
            f"%export: {owner} asks for confirmation when {confirm!r:.60} says so, and no variable holds that "
            "function; define it with a name of its own"
        )
    return variable, [variable]


def _confirmation(tool: FunctionTool, variable: str, scope: Scope) -> tuple[Keywords, list[str], list[str]]:
    """`require_confirmation` as a keyword, the names it needs, and the function written before it."""
    confirm = tool.require_confirmation
    code, needs = _condition_code(confirm, f"tool {tool.name!r}", scope)
    if code is None:
        return {}, [], []
    name, function = f"_{variable}_asks", None
    if scope.target.is_google and isinstance(confirm, str):
        # google-adk passes the arguments by name and leaves defaults out.
        declaration = tool.signature.declaration("")
        schema: dict[str, Any] = (declaration and declaration.parameters_json_schema) or {}
        properties: dict[str, Any] = schema.get("properties", {})
        parameters: list[str] = []
        for parameter in sorted(argument_names(confirm)):
            default = properties.get(parameter, {}).get("default")
            parameters.append(f"{parameter}: Any = {(default if is_data(default) else None)!r}")
        function = (
            f"def {name}({', '.join([*parameters, '**_: Any'])}) -> bool:\n"
            f"    try:\n        return bool({confirm.strip()})\n"
            f"    except Exception:  # the condition cannot be computed: ask\n        return True"
        )
    elif scope.target.is_google and callable(confirm):
        # google-adk passes all arguments of the call, of which the condition may take fewer.
        taken = inspect.signature(confirm).parameters
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
        if not takes_any and not inspect.signature(tool.func).parameters.keys() <= taken.keys():
            prefix, wait = ("async ", "await ") if inspect.iscoroutinefunction(confirm) else ("", "")
            function = (
                f"{prefix}def {name}(**args: Any) -> Any:\n"
                f"    return {wait}{code}(**{{key: args[key] for key in {tuple(taken)!r} if key in args}})"
            )
    if function is None:
        return {"require_confirmation": code}, needs, []
    return {"require_confirmation": name}, ["Any", *needs], [function]
