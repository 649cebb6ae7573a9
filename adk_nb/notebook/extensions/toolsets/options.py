"""The options of `%tool` that make toolsets."""

from adk_nb.notebook.magics.grammar import Option, ToolOption

_DEFINE = "adk_nb.notebook.extensions.toolsets.toolsets:define"

OPTIONS = [
    ToolOption(
        option=Option("--openapi FILE", "%tool: a toolset of the operations of an OpenAPI document", names="document"),
        define=_DEFINE,
    ),
    ToolOption(option=Option("--mcp URL", "%tool: a toolset of the tools of an MCP server"), define=_DEFINE),
]
