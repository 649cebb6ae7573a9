"""`%tool sales --data df`, `%tool shop --sql sqlite:///shop.db`: data as a toolset, results as frames in variables."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adk_nb import sync
from adk_nb.errors import ConfigurationError, InputError, closest
from adk_nb.notebook.cells.definitions import ToolDefinition, digest
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics.output import Host
from adk_nb.notebook.place import folder_of
from adk_nb.redaction import hidden
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.data_tool.frames import SUFFIXES, library_of
from adk_nb.tools.data_tool.toolset import DataToolset, SqlToolset

_FUNCTION_OPTIONS = ("thread", "timeout", "effect", "long-running", "pause", "rename")
_TOOLS = ("describe", "query")
_MAX_NAMES = 8


def define(host: Host, args: Any) -> list[str]:
    """Make the toolset of a `%tool` line and bind it; returns a report with its tables.

    Raises:
        UserError: The line, or what it names, cannot be used; nothing is changed.
    """
    notebook, folder = host.notebook, folder_of(host.shell)
    option = "data" if args.data else "sql"
    mark, value = f"{args.mark} --{option}", args.data or args.sql
    if args.sql and isinstance(url := notebook.variables.get(args.sql), str):
        value = url  # of a variable: a password need not stand in the notebook
    for other in ("sql", "openapi", "mcp"):
        if other != option and getattr(args, other, None):
            raise InputError(f"{args.mark}: --{option} and --{other} are two toolsets; write a line for each")
    if args.mark == "%%tool":
        raise InputError(f"{mark} needs a line magic; write {mark[1:]} {hidden(args.data or args.sql)}")
    if len(args.name) > 1:
        raise InputError(f"{mark} makes one toolset, and there are {len(args.name)} names: {', '.join(args.name)}")
    for function_option in _FUNCTION_OPTIONS:
        if getattr(args, function_option.replace("-", "_")):
            raise InputError(f"{mark} has no --{function_option}, which is for functions; leave it out")
    if unknown := [name for name in args.only or () if name not in _TOOLS]:
        raise InputError(f"%tool --only: there is no tool {unknown[0]!r}; there is: {', '.join(_TOOLS)}")
    sources = [source.strip() for source in value.split(",") if source.strip()] if args.data else [value]
    name = _toolset_name(notebook, args, sources)
    function = None if args.confirm in ("always", "never") else notebook.variables.get(args.confirm or "")
    confirm = function if callable(function) else {"always": True, "never": False}.get(args.confirm, args.confirm)
    old = notebook.tools.get(name)
    new_digest = digest([option, str(folder), *sources, str(confirm), *(args.only or ())])
    if old and old.digest == new_digest and notebook.variables.get(name) is old.tool:
        toolset: Any = old.tool  # its process may be there
    else:
        options: dict[str, Any] = {
            "keep": _keep_in(notebook, name),
            "require_confirmation": confirm or False,
            "tool_filter": list(args.only or _TOOLS),
            "tool_name_prefix": name,
        }
        try:
            if args.data:
                toolset = DataToolset(_tables(notebook, folder, name, sources), **options)
            else:
                toolset = SqlToolset(_absolute(value, folder), **options)
        except (ConfigurationError, InputError) as error:
            raise InputError(f"{mark}: {error}") from None
    listed = sync.run(toolset.describe())
    if "error" in listed:
        sync.run(toolset.close())
        raise InputError(f"{mark}: {listed['error']}")
    report = notebook.define_tools(
        {name: ToolDefinition(tool=toolset, cell=host.cell_number, digest=new_digest)}, replace=args.replace
    )
    if old and isinstance(old.tool, BaseToolset) and old.tool is not toolset:
        sync.run(old.tool.close())
    notebook.variables[name] = toolset
    return [*report, _tables_line(listed)]


def _toolset_name(notebook: Notebook, args: Any, sources: list[str]) -> str:
    """The name on the line, or else that of the file or the database, if it is free."""
    typed = args.name[0] if args.name else ""
    if typed and not typed.isidentifier():
        raise InputError(f"{args.mark}: {typed!r} is not the name of a variable; write letters, digits and _")
    stem = Path(sources[0].partition("?")[0]).stem if len(sources) == 1 else ""
    name = typed or re.sub(r"\W+", "_", stem).strip("_").lower()
    option = f"--data {','.join(sources)}" if args.data else f"--sql {hidden(args.sql)}"  # as it was typed
    example = "sales" if args.data else "shop"
    if not name.isidentifier():
        raise InputError(f"{args.mark}: give the toolset a name, as %tool {example} {option}")
    is_free = name not in notebook.variables or notebook.toolset(name) is not None
    if name in sources or (not typed and not is_free):
        raise InputError(f"{args.mark}: {name!r} is another variable here; give the toolset a name of its own, as "
            f"%tool {example} {option}")  # fmt: skip
    return name


def _tables(notebook: Notebook, folder: Path, name: str, sources: list[str]) -> dict[str, Any]:
    """Name of a table -> a function that finds the variable as it is, or the path of a file.

    One source has the toolset's name, several have their own.
    """
    tables: dict[str, Any] = {}
    for source in sources:
        is_file = Path(source).suffix.lower().removeprefix(".") in SUFFIXES
        label = name if len(sources) == 1 else Path(source).stem if is_file else source
        if label.casefold() in map(str.casefold, tables):
            raise InputError(f"there are two tables {label!r}; put one of them into a line of its own")
        tables[label] = folder / Path(source).expanduser() if is_file else _variable(notebook, source)
        if not is_file:
            tables[label]()
    return tables


def _variable(notebook: Notebook, name: str) -> Callable[[], Any]:
    """A function that returns the frame in a variable as it is then."""

    def frame() -> Any:
        variables = notebook.variables
        if name in variables and library_of(variables[name]):
            return variables[name]
        frames = [other for other, value in variables.items() if library_of(value) and not other.startswith("_")]
        near = closest(name, frames)
        there = f"did you mean {near}?" if near else f"there is: {', '.join(frames[-_MAX_NAMES:]) or 'no frame yet'}"
        if name in variables:
            kind = type(variables[name]).__name__
            raise InputError(f"{name} is no frame of pandas, polars or Arrow, but of type {kind}; {there}")
        raise InputError(f"there is no variable {name}; {there}; run the cell that makes it")

    return frame


def _absolute(url: str, folder: Path) -> str:
    """A URL whose file is found whatever the current folder is."""
    scheme, separator, path = url.partition(":///")
    if not (scheme.startswith("sqlite") and separator and path):
        return url
    return f"{scheme}:///{folder / Path(path).expanduser()}"


def _keep_in(notebook: Notebook, name: str) -> Callable[[Any], str]:
    """A function that keeps a frame in the next free variable: `sales_1`, `sales_2`, ..."""
    count = 0

    def keep(frame: Any) -> str:
        nonlocal count
        count += 1
        while f"{name}_{count}" in notebook.variables or f"{name}_{count}" in notebook.tools:
            count += 1
        notebook.variables[f"{name}_{count}"] = frame
        return f"{name}_{count}"

    return keep


def _tables_line(listed: dict[str, Any]) -> str:
    tables: list[dict[str, Any]] = listed["tables"]
    if not tables:
        return str(listed["note"])
    count = listed.get("table_count", len(tables))
    if count == 1:
        [table] = tables
        columns = list(table["columns"])
        width = table.get("column_count", len(columns))
        more = f" and {width - _MAX_NAMES} more" if width > _MAX_NAMES else ""
        rows = {None: "", 1: " 1 row,"}.get(table["row_count"], f" {table['row_count'] or 0:,} rows,")
        return f"table {table['name']}:{rows} columns {', '.join(columns[:_MAX_NAMES])}{more}"
    names = [table["name"] for table in tables[:_MAX_NAMES]]
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{count} tables: {', '.join(names)}{more}"
