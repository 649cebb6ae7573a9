"""`%tool --openapi FILE`, `%tool --mcp URL`: a web service's operations, or the tools of a server, as one toolset."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adk_nb import sync
from adk_nb.errors import ConfigurationError, CredentialError, InputError, closest, did_you_mean
from adk_nb.notebook.cells.definitions import ToolDefinition, ToolsetOrigin, digest
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics.output import Host
from adk_nb.notebook.place import folder_of
from adk_nb.redaction import redacted
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.mcp_tool.connection_params import SseConnectionParams, StreamableHTTPConnectionParams
from adk_nb.tools.mcp_tool.mcp_toolset import McpToolset
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset

_FUNCTION_OPTIONS = ("thread", "timeout", "effect", "long-running", "pause", "rename")
_MAX_NAMES = 8


def define(host: Host, args: Any) -> list[str]:
    """Make the toolset of a `%tool` line and bind it; returns a report with its tools, a line each.

    Raises:
        UserError: The line, or what it names, cannot be used; nothing is changed.
    """
    notebook, folder = host.notebook, folder_of(host.shell)
    mark = f"{args.mark} --{'openapi' if args.openapi else 'mcp'}"
    if args.openapi and args.mcp:
        raise InputError(f"{args.mark}: --openapi and --mcp are two toolsets; write a line for each")
    if args.mark == "%%tool":
        raise InputError(f"{mark} needs a line magic; write {mark[1:]} {args.openapi or args.mcp}")
    if len(args.name) > 1:
        raise InputError(f"{mark} makes one toolset, and there are {len(args.name)} names: {', '.join(args.name)}")
    for option in _FUNCTION_OPTIONS:
        if getattr(args, option.replace("-", "_")):
            raise InputError(f"{mark} has no --{option}, which is for functions; leave it out")
    name = _toolset_name(notebook, args)
    text, path = "", folder / Path(args.openapi or "").expanduser()
    try:
        text = path.read_text(encoding="utf-8") if args.openapi else ""
    except (OSError, UnicodeDecodeError) as error:
        files = [entry.name for entry in path.parent.glob("*") if entry.is_file()] if path.parent.is_dir() else []
        near = closest(path.name, files)
        start = f"a relative path starts in {folder}"
        hint = f"did you mean {str(Path(args.openapi).parent / near)!r}?" if near else start
        cause = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"%tool --openapi: {args.openapi} cannot be read ({cause}); {hint}") from None
    function = None if args.confirm in ("always", "never") else notebook.variables.get(args.confirm or "")
    origin = ToolsetOrigin(
        kind="openapi" if args.openapi else "mcp",
        address=str(path) if args.openapi else args.mcp,
        confirm=function if callable(function) else args.confirm or False,
        only=tuple(args.only or ()),
    )
    old = notebook.tools.get(name)
    new_digest = digest([origin.kind, origin.address, text, str(origin.confirm), *origin.only])
    if old and old.digest == new_digest and notebook.variables.get(name) is old.tool:
        toolset: Any = old.tool  # its connection may be open
    else:
        toolset = _new_toolset(origin, text)
    tools_line = _filter_tools(toolset, origin.only)
    definition = ToolDefinition(tool=toolset, cell=host.cell_number, digest=new_digest, origin=origin)
    report = notebook.define_tools({name: definition}, replace=args.replace)
    if old and isinstance(old.tool, BaseToolset) and old.tool is not toolset:
        sync.run(old.tool.close())
    notebook.variables[name] = toolset
    return [*report, tools_line]


def _toolset_name(notebook: Notebook, args: Any) -> str:
    """The name on the line, or else that of the file or the server, if it is free."""
    if args.name:
        name: str = args.name[0]
        if not name.isidentifier():
            raise InputError(f"{args.mark}: {name!r} is not the name of a variable; write letters, digits and _")
        return name
    url = urlsplit(args.mcp or "")
    stem = Path(args.openapi).stem if args.openapi else url.path.strip("/").rpartition("/")[2] or url.hostname or ""
    name = re.sub(r"\W+", "_", stem).strip("_").lower()
    is_free = name not in {*notebook.variables, *notebook.tools} or notebook.toolset(name) is not None
    if is_free and name.isidentifier():
        return name
    fault = f"{stem!r} is not a name" if is_free else f"{name!r} is another variable here"
    option = f"--openapi {args.openapi}" if args.openapi else f"--mcp {args.mcp}"
    raise InputError(f"{args.mark}: {fault}; give the toolset one, as %tool shop {option}")


def _new_toolset(origin: ToolsetOrigin, text: str) -> BaseToolset:
    """The toolset of a document, whose text it is, or of a server."""
    if origin.kind == "openapi":
        kind = "json" if text.lstrip().startswith("{") else "yaml"
        try:
            return OpenAPIToolset(spec_str=text, spec_str_type=kind, require_confirmation=origin.confirm)
        except ConfigurationError as error:
            raise ConfigurationError(f"%tool --openapi {Path(origin.address).name}: {error}") from None
    url = urlsplit(origin.address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise InputError(
            f"%tool --mcp takes a URL, as https://example.com/mcp, got {redacted(origin.address)!r:.80}; for a "
            "program, write shop = McpToolset(connection_params=StdioServerParameters(command=..., args=[...]))"
        )
    params: Any = SseConnectionParams if origin.is_sse else StreamableHTTPConnectionParams
    return McpToolset(connection_params=params(url=origin.address), require_confirmation=origin.confirm)


def _filter_tools(toolset: Any, only: tuple[str, ...]) -> str:
    """Let a toolset offer the tools in `only`, or all; returns a line with their names, or why they are not known.

    Raises:
        InputError: It has no tool of a name in `only`.
    """
    toolset.tool_filter = None
    try:
        names = [tool.name for tool in sync.run(toolset.get_tools_with_prefix())]
    except (OSError, CredentialError) as error:
        return f"its tools cannot be listed yet: {error}; this is tried again at each turn"
    finally:
        toolset.tool_filter = list(only) or None  # also if it was not reached: it is asked again later
    if missing := [name for name in only if name not in names]:
        hint = did_you_mean(missing[0], names, f"there is: {', '.join(names[:_MAX_NAMES]) or 'none'}")
        raise InputError(f"%tool --only: there is no tool {missing[0]!r}; {hint}")
    names = [name for name in names if not only or name in only]
    more = f" and {len(names) - _MAX_NAMES} more, see %tools --schema" if len(names) > _MAX_NAMES else ""
    return f"{len(names)} tool{'' if len(names) == 1 else 's'}: {', '.join(names[:_MAX_NAMES])}{more}"
