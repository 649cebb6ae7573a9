"""`%tool --openapi FILE`, `%tool --mcp URL`: a web service's operations, or what a server offers, as one toolset."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adk_nb import sync
from adk_nb.errors import ConfigurationError, CredentialError, InputError, closest
from adk_nb.notebook.registry.definitions import ToolDefinition, ToolsetPlace, digest
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.redaction import redacted
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.conditions import Decides
from adk_nb.tools.mcp_tool.connection_params import SseConnectionParams, StreamableHTTPConnectionParams
from adk_nb.tools.mcp_tool.mcp_toolset import McpToolset
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset

_OF_FUNCTIONS = ("thread", "timeout", "effect", "long-running", "pause", "rename")
_SHOWN = 8
"""Names of tools that are told at once."""


def define(notebook: Notebook, asked: Any, cell: int, folder: Path) -> list[str]:
    """Make the toolset that the line asks for, and bind it.

    Args:
        notebook: Where.
        asked: The line of `%tool`.
        cell: n of `In[n]`.
        folder: What a path is relative to.

    Returns:
        What there is to say of it, a line each; what it offers is among it, if it can be asked.

    Raises:
        UserError: The line, or what it names, is not as it has to be; all is as it was.
    """
    _refuse(asked)
    name = _name(notebook, asked)
    place = ToolsetPlace(
        kind="openapi" if asked.openapi else "mcp",
        address=str(_path(asked.openapi, folder)) if asked.openapi else asked.mcp,
        confirm=_confirm(notebook, asked.confirm),
        only=tuple(asked.only or ()),
    )
    text = _text(asked.openapi, folder) if asked.openapi else ""
    old = notebook.tools.get(name)
    wanted = digest([place.kind, place.address, text, str(place.confirm), *place.only])
    if old and old.digest == wanted and notebook.variables.get(name) is old.tool:
        toolset = old.tool  # its connection may be open
    else:
        toolset = _openapi(place, text) if asked.openapi else _mcp(place)
    offered = _offered(toolset, place.only)
    definition = ToolDefinition(tool=toolset, cell=cell, digest=wanted, place=place)
    told = notebook.define_tools({name: definition}, replace=asked.replace)
    if old and isinstance(old.tool, BaseToolset) and old.tool is not toolset:
        sync.run(old.tool.close())
    notebook.variables[name] = toolset
    return [*told, offered]


def _refuse(asked: Any) -> None:
    mark = f"{asked.mark} --{'openapi' if asked.openapi else 'mcp'}"
    if asked.openapi and asked.mcp:
        raise InputError(f"{asked.mark}: --openapi and --mcp are two toolsets; write a line for each")
    if asked.mark == "%%tool":
        raise InputError(f"{mark} stands on a line of its own; write {mark[1:]} {asked.openapi or asked.mcp}")
    if len(asked.name) > 1:
        raise InputError(f"{mark} makes one toolset, and there are {len(asked.name)} names: {', '.join(asked.name)}")
    for option in _OF_FUNCTIONS:
        if getattr(asked, option.replace("-", "_")):
            raise InputError(f"{mark} has no --{option}, which is of functions; leave it out")


def _name(notebook: Notebook, asked: Any) -> str:
    """What the line calls it, or else what the file or the address is called, if that name is free."""
    place: str = asked.openapi or asked.mcp
    if asked.name:
        name: str = asked.name[0]
        if not name.isidentifier():
            raise InputError(f"{asked.mark}: {name!r} is no name of a variable")
        return name
    parts = urlsplit(place)
    found = Path(place).stem if asked.openapi else parts.path.strip("/").rpartition("/")[2] or parts.hostname or ""
    name = re.sub(r"\W+", "_", found).strip("_").lower()
    held = notebook.variables.get(name)
    taken = name in notebook.variables and not isinstance(held, BaseToolset)
    if not name.isidentifier() or taken or (name in notebook.tools and not isinstance(held, BaseToolset)):
        option = "openapi" if asked.openapi else "mcp"
        why = f"{name!r} is something else here" if taken else f"{found!r} is no name"
        raise InputError(f"{asked.mark}: {why}; give the toolset one, as %tool shop --{option} {place}")
    return name


def _confirm(notebook: Notebook, said: str | None) -> Decides:
    named = notebook.variables.get(said or "")
    return named if callable(named) and said not in ("always", "never") else said or False


def _path(typed: str, folder: Path) -> Path:
    return folder / Path(typed).expanduser()


def _text(typed: str, folder: Path) -> str:
    path = _path(typed, folder)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        around = path.parent.glob("*") if path.parent.is_dir() else ()
        near = closest(path.name, [file.name for file in around if file.is_file()])
        hint = f"did you mean {str(Path(typed).parent / near)!r}?" if near else f"a relative path starts in {folder}"
        why = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"%tool --openapi: {typed} cannot be read ({why}); {hint}") from None


def _openapi(place: ToolsetPlace, text: str) -> BaseToolset:
    kind = "json" if text.lstrip().startswith("{") else "yaml"
    try:
        return OpenAPIToolset(spec_str=text, spec_str_type=kind, require_confirmation=place.confirm)
    except ConfigurationError as error:
        raise ConfigurationError(f"%tool --openapi {Path(place.address).name}: {error}") from None


def _mcp(place: ToolsetPlace) -> BaseToolset:
    url = urlsplit(place.address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise InputError(
            f"%tool --mcp takes an address, as https://example.com/mcp, and {redacted(place.address)!r:.80} is none; "
            "of a program, write shop = McpToolset(connection_params=StdioServerParameters(command=..., args=[...]))"
        )
    params: Any = SseConnectionParams if place.is_sse else StreamableHTTPConnectionParams
    return McpToolset(connection_params=params(url=place.address), require_confirmation=place.confirm)


def _offered(toolset: Any, only: Sequence[str]) -> str:
    """What it offers, of which it is to offer `only` from now on; of what cannot be asked, why.

    Raises:
        InputError: It does not have one of `only`.
    """
    toolset.tool_filter = None
    try:
        found: Sequence[Any] = sync.run(toolset.get_tools_with_prefix())
    except (OSError, CredentialError) as error:
        return f"it cannot be asked yet what it has: {error}; it is asked again at each turn"
    finally:
        toolset.tool_filter = list(only) or None
    names = [one.name for one in found]
    if missing := [one for one in only if one not in names]:
        near = closest(missing[0], names)
        hint = f"did you mean {near!r}?" if near else f"there is: {', '.join(names[:_SHOWN]) or 'none'}"
        raise InputError(f"%tool --only: there is no tool {missing[0]!r}; {hint}")
    names = [one for one in names if not only or one in only]
    more = f" and {len(names) - _SHOWN} more, see %tools --schema" if len(names) > _SHOWN else ""
    return f"{len(names)} tool{'' if len(names) == 1 else 's'}: {', '.join(names[:_SHOWN])}{more}"
