"""A toolset that a `%tool` line has made, as Python."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.export.code import call_code, list_code, text_code
from adk_nb.notebook.export.pieces import Piece
from adk_nb.notebook.export.target import Target
from adk_nb.notebook.registry.definitions import ToolsetPlace


def written(
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
    asks, needs = _asks(name, place, target, variable_of)
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


def _asks(
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
