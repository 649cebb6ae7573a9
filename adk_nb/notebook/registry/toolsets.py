"""`%tool --openapi FILE`, `%tool --mcp URL`: a web service's operations, or the tools of a server, as one toolset."""

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
from adk_nb.tools.mcp_tool.connection_params import SseConnectionParams, StreamableHTTPConnectionParams
from adk_nb.tools.mcp_tool.mcp_toolset import McpToolset
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset

_OF_FUNCTIONS = ("thread", "timeout", "effect", "long-running", "pause", "rename")
_MOST_NAMES = 8


def define(notebook: Notebook, asked: Any, cell: int, folder: Path) -> list[str]:
    """Make the toolset of a `%tool` line and bind it; returns a report with the tools it offers, a line each.

    Args:
        notebook: Where it is defined.
        asked: The parsed line.
        cell: n of `In[n]`.
        folder: Where a relative path starts.

    Raises:
        UserError: The line, or what it names, cannot be used; nothing is changed.
    """
    _check_line(asked)
    name = _name(notebook, asked)
    text = _read(asked.openapi, folder) if asked.openapi else ""
    function = notebook.variables.get(asked.confirm or "")
    place = ToolsetPlace(
        kind="openapi" if asked.openapi else "mcp",
        address=str(folder / Path(asked.openapi).expanduser()) if asked.openapi else asked.mcp,
        confirm=function if callable(function) and asked.confirm not in ("always", "never") else asked.confirm or False,
        only=tuple(asked.only or ()),
    )
    old = notebook.tools.get(name)
    new_digest = digest([place.kind, place.address, text, str(place.confirm), *place.only])
    if old and old.digest == new_digest and notebook.variables.get(name) is old.tool:
        toolset = old.tool  # its connection may be open
    else:
        toolset = _openapi(place, text) if asked.openapi else _mcp(place)
    offer = _offer(toolset, place.only)
    definition = ToolDefinition(tool=toolset, cell=cell, digest=new_digest, place=place)
    report = notebook.define_tools({name: definition}, replace=asked.replace)
    if old and isinstance(old.tool, BaseToolset) and old.tool is not toolset:
        sync.run(old.tool.close())
    notebook.variables[name] = toolset
    return [*report, offer]


def _check_line(asked: Any) -> None:
    mark = f"{asked.mark} --{'openapi' if asked.openapi else 'mcp'}"
    if asked.openapi and asked.mcp:
        raise InputError(f"{asked.mark}: --openapi and --mcp are two toolsets; write a line for each")
    if asked.mark == "%%tool":
        raise InputError(f"{mark} stands on a line of its own; write {mark[1:]} {asked.openapi or asked.mcp}")
    if len(asked.name) > 1:
        raise InputError(f"{mark} makes one toolset, and there are {len(asked.name)} names: {', '.join(asked.name)}")
    for option in _OF_FUNCTIONS:
        if getattr(asked, option.replace("-", "_")):
            raise InputError(f"{mark} has no --{option}, which is for functions; leave it out")


def _name(notebook: Notebook, asked: Any) -> str:
    """The name on the line, or else that of the file or the address, if it is free."""
    if asked.name:
        name: str = asked.name[0]
        if not name.isidentifier():
            raise InputError(f"{asked.mark}: {name!r} is no name of a variable; write letters, digits and _")
        return name
    place: str = asked.openapi or asked.mcp
    url = urlsplit(place)
    stem = Path(place).stem if asked.openapi else url.path.strip("/").rpartition("/")[2] or url.hostname or ""
    name = re.sub(r"\W+", "_", stem).strip("_").lower()
    taken = name in {*notebook.variables, *notebook.tools} and notebook.toolset(name) is None
    if taken or not name.isidentifier():
        why = f"{name!r} is something else here" if taken else f"{stem!r} is no name"
        option = "openapi" if asked.openapi else "mcp"
        raise InputError(f"{asked.mark}: {why}; give the toolset one, as %tool shop --{option} {place}")
    return name


def _read(typed: str, folder: Path) -> str:
    path = folder / Path(typed).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        files = [file.name for file in path.parent.glob("*") if file.is_file()] if path.parent.is_dir() else []
        near = closest(path.name, files)
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


def _offer(toolset: Any, only: Sequence[str]) -> str:
    """The tools it offers, from now on only those in `only`; why, if it cannot be asked.

    Raises:
        InputError: It has no tool of a name in `only`.
    """
    toolset.tool_filter = None
    try:
        names = [tool.name for tool in sync.run(toolset.get_tools_with_prefix())]
    except (OSError, CredentialError) as error:
        return f"its tools cannot be listed yet: {error}; this is tried again at each turn"
    finally:
        toolset.tool_filter = list(only) or None
    if missing := [name for name in only if name not in names]:
        near = closest(missing[0], names)
        hint = f"did you mean {near!r}?" if near else f"there is: {', '.join(names[:_MOST_NAMES]) or 'none'}"
        raise InputError(f"%tool --only: there is no tool {missing[0]!r}; {hint}")
    names = [name for name in names if not only or name in only]
    more = f" and {len(names) - _MOST_NAMES} more, see %tools --schema" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} tool{'' if len(names) == 1 else 's'}: {', '.join(names[:_MOST_NAMES])}{more}"
