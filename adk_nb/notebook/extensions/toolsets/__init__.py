"""`%tool --openapi` and `%tool --mcp`: the operations of a web service, or the tools of a server."""

from adk_nb.notebook.magics.grammar import Option, ToolOption
from adk_nb.notebook.registry import Extension

_DEFINE = f"{__name__}.toolsets:define"

extension = Extension(
    name="toolsets",
    options={
        "tool": [
            ToolOption(
                option=Option(
                    "--openapi FILE", "%tool: a toolset of the operations of an OpenAPI document", names="document"
                ),
                define=_DEFINE,
            ),
            ToolOption(option=Option("--mcp URL", "%tool: a toolset of the tools of an MCP server"), define=_DEFINE),
        ]
    },
)
