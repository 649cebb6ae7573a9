"""Tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseTool": "adk_nb.tools.base_tool",
        "FunctionTool": "adk_nb.tools.function_tool",
        "ToolContext": "adk_nb.runtime.context",
        "load_artifacts": "adk_nb.tools.load_artifacts_tool",
        "load_memory": "adk_nb.tools.load_memory_tool",
        "preload_memory": "adk_nb.tools.preload_memory_tool",
        "tool": "adk_nb.tools.function_tool",
    },
)
