"""Toolsets of a `%tool` line: a web service, a server, frames and files, a database."""

from adk_nb.notebook.magics.grammar import Option, ToolOption
from adk_nb.notebook.registry import Extension

_TOOLSET = f"{__name__}.toolsets:define"
_DATA = f"{__name__}.data:define"

extension = Extension(
    name="toolsets",
    options={
        "tool": [
            ToolOption(  # before the others: it looks for them on its line
                option=Option(
                    "--data a,b",
                    "%tool: a toolset that asks frames (pandas, polars, Arrow) and files (CSV, Parquet, JSON lines) in "
                    "SQL",
                    names="data",
                ),
                define=_DATA,
            ),
            ToolOption(
                option=Option(
                    "--sql URL",
                    "%tool: a toolset that asks a database, sqlite:///FILE or postgresql://..., and never writes; or "
                    "the variable that has the URL",
                    names="database",
                ),
                define=_DATA,
            ),
            ToolOption(
                option=Option(
                    "--openapi FILE", "%tool: a toolset of the operations of an OpenAPI document", names="document"
                ),
                define=_TOOLSET,
            ),
            ToolOption(option=Option("--mcp URL", "%tool: a toolset of the tools of an MCP server"), define=_TOOLSET),
        ]
    },
)
