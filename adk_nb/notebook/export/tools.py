"""Tools and toolsets as Python: the function itself, or what wraps it and says what its cell says."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.export.code import Piece, call_code, is_data, list_code, text_code
from adk_nb.notebook.export.target import Target
from adk_nb.notebook.registry.definitions import ToolsetPlace
from adk_nb.tools.conditions import names_in
from adk_nb.tools.effects import effect_of
from adk_nb.tools.function_tool import FunctionTool, name_of
from adk_nb.tools.long_running_tool import LongRunningFunctionTool

NAMED = '''\
def _named(function: Any, name: str, description: str) -> Any:
    """A copy of `function` that a model knows by another name or description."""
    made = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    made.__dict__.update(function.__dict__)
    made.__doc__ = description
    return made'''
"""What such a copy is made by in google-adk, whose tools are named as their functions; it needs Python's `types`."""
_OURS_ALONE = ("timeout", "thread", "effect", "pause")


def wrapper(
    tool: FunctionTool, variable: str, target: Target, variable_of: Callable[[Any], str | None]
) -> tuple[Piece | None, list[str]]:
    """What has to be written beside the function; None: the function alone is this tool.

    Args:
        tool: As the notebook has it.
        variable: What the function is called.
        target: For whom.
        variable_of: The variable that holds an object, if one does.

    Returns:
        The piece that binds `<variable>_tool`, and what there is to say of it.

    Raises:
        InputError: It has what cannot be written.
    """
    config = variable_of(tool.auth_config) if tool.auth_config else None
    if tool.auth_config and (target.is_google or not config):
        raise InputError(
            f"%export: tool {tool.name!r} has an auth_config, "
            + ("which google-adk's FunctionTool does not take; write a script: %export agent.py" if config else "")
            + ("" if config else "and no variable holds it; give it one")
        )
    given, early, before = _asks(tool, variable, target, variable_of)
    if config:
        given["auth_config"] = config
        early.append(config)
    ours = _settings(tool)
    notes = (
        [f"tool {tool.name}: {name} is left out, as google-adk has none" for name in ours] if target.is_google else []
    )
    function, more = _as_the_model_knows_it(tool, variable, target)
    given |= more if target.is_google else {**ours, **more}
    kind = "LongRunningFunctionTool" if isinstance(tool, LongRunningFunctionTool) else "FunctionTool"
    if not (given or function != variable or kind != "FunctionTool"):
        return None, notes
    made = f"{variable}_tool = {call_code(kind, given, function)}"
    if kind != "FunctionTool" and target.is_google and (asks := given.pop("require_confirmation", None)):
        made = f"{variable}_tool = {call_code(kind, given, function)}\n"
        made += f"{variable}_tool._require_confirmation = {asks}  # which its constructor does not take"
    text = "\n\n\n".join([*before, made]) if before else made
    return Piece(text, [variable, kind, *early, *(["_named"] if "_named(" in function else [])]), notes


def _settings(tool: FunctionTool) -> dict[str, str | None]:
    """What only our tools have, where it is not as it always is."""
    found: dict[str, str | None] = {}
    if tool.timeout is not None:
        found["timeout"] = repr(tool.timeout)
    elif tool.thread:
        found["thread"] = "True"
    if tool.effect != effect_of(tool.func):
        found["effect"] = text_code(tool.effect)
    if getattr(tool, "pause", False):
        found["pause"] = "True"
    return found


def _as_the_model_knows_it(tool: FunctionTool, variable: str, target: Target) -> tuple[str, dict[str, str | None]]:
    """The function's expression, and the arguments that name and describe it."""
    plain = FunctionTool(tool.func)
    other: dict[str, str | None] = {}
    if tool.name != name_of(tool.func):
        other["name"] = text_code(tool.name)
    if tool.description != plain.description:
        other["description"] = text_code(tool.description)
    if not (other and target.is_google):
        return variable, other
    return f"_named({variable}, {text_code(tool.name)}, {text_code(tool.description)})", {}


def _asks(
    tool: FunctionTool, variable: str, target: Target, variable_of: Callable[[Any], str | None]
) -> tuple[dict[str, str | None], list[str], list[str]]:
    """`require_confirmation` as an argument, the names that it needs, and what stands before it."""
    asks = tool.require_confirmation
    if not asks:
        return {}, [], []
    if asks is True:
        return {"require_confirmation": "True"}, [], []
    if isinstance(asks, str):
        if not target.is_google:
            return {"require_confirmation": text_code(asks)}, [], []
        name = f"_{variable}_asks"
        return {"require_confirmation": name}, ["Any"], [_condition(tool, asks, name)]
    held = variable_of(asks)
    if held is None:
        raise InputError(
            f"%export: tool {tool.name!r} asks a person when {asks!r:.60} says so, and no variable holds that "
            "function; define it with a name of its own"
        )
    if target.is_google and (wanted := _takes_less(asks, tool)) is not None:
        name = f"_{variable}_asks"
        return {"require_confirmation": name}, ["Any", held], [_called_with(asks, held, wanted, name)]
    return {"require_confirmation": held}, [held], []


def _takes_less(asks: Any, tool: FunctionTool) -> list[str] | None:
    """What a condition names, if that is not all that the tool takes; google-adk gives it everything."""
    parameters = inspect.signature(asks).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return None
    takes = inspect.signature(tool.func).parameters
    return None if takes.keys() <= parameters.keys() else [*parameters]


def _called_with(asks: Any, held: str, wanted: list[str], name: str) -> str:
    mark, wait = ("async ", "await ") if inspect.iscoroutinefunction(asks) else ("", "")
    return (
        f"{mark}def {name}(**given: Any) -> Any:\n"
        f"    return {wait}{held}(**{{key: given[key] for key in {tuple(wanted)!r} if key in given}})"
    )


def _condition(tool: FunctionTool, asks: str, name: str) -> str:
    """An expression as a function that google-adk can call: it gets the arguments by name, without their defaults."""
    defaults = tool.signature.declaration("")
    schema: dict[str, Any] = (defaults.parameters_json_schema if defaults else None) or {}
    properties: dict[str, Any] = schema.get("properties", {})
    given: list[str] = []
    for one in sorted(names_in(asks)):
        default = properties.get(one, {}).get("default", ...)
        given.append(f"{one}: Any = {default!r}" if default is not ... and is_data(default) else f"{one}: Any = None")
    return (
        f"def {name}({', '.join([*given, '**_: Any'])}) -> bool:\n"
        f"    try:\n        return bool({asks.strip()})\n"
        f"    except Exception:  # whether a person is needed cannot be told\n        return True"
    )


def toolset_piece(
    name: str, place: ToolsetPlace, target: Target, beside: Path, variable_of: Callable[[Any], str | None]
) -> tuple[Piece, list[str]]:
    """What binds it, and what there is to say of it.

    Args:
        name: Its variable.
        place: What its line says.
        target: For whom.
        beside: The folder of the file that is written.
        variable_of: The variable that holds an object, if one does.

    Raises:
        InputError: It asks a person in a way that cannot be written.
    """
    more: dict[str, str | None] = {"tool_filter": list_code(map(text_code, place.only)) if place.only else None}
    asks, needs = _toolset_confirmation(name, place, target, variable_of)
    more["require_confirmation"] = asks
    if place.kind == "mcp":
        params = "SseConnectionParams" if place.is_sse else "StreamableHTTPConnectionParams"
        given = {"connection_params": f"{params}(url={text_code(place.address)})"}
        return Piece(f"{name} = {call_code('McpToolset', given | more)}", ["McpToolset", params, *needs]), []
    near = Path(os.path.relpath(place.address, beside)).as_posix()
    given = {
        "spec_str": f'Path(__file__).parent.joinpath({text_code(near)}).read_text(encoding="utf-8")',
        "spec_str_type": text_code("json" if Path(place.address).suffix == ".json" else "yaml"),
    }
    piece = Piece(f"{name} = {call_code('OpenAPIToolset', given | more)}", ["OpenAPIToolset", "Path", *needs])
    return piece, [f"{name} reads {near}, seen from there: take it along"]


def _toolset_confirmation(
    name: str, place: ToolsetPlace, target: Target, variable_of: Callable[[Any], str | None]
) -> tuple[str | None, list[str]]:
    asks = place.confirm
    asks = {"always": True, "never": False}.get(asks, asks) if isinstance(asks, str) else asks
    if not asks:
        return None, []
    if target.is_google and (place.kind == "openapi" or isinstance(asks, str)):
        raise InputError(
            f"%export: toolset {name!r} asks a person in a way that google-adk has not for such toolsets; write a "
            "script: %export agent.py"
        )
    if asks is True or isinstance(asks, str):
        return ("True" if asks is True else text_code(asks)), []
    held = variable_of(asks)
    if held is None:
        raise InputError(f"%export: toolset {name!r} asks when a function says so that no variable holds; give it one")
    return held, [held]
