"""Tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseTool": "adk_nb.tools.base_tool",
        "FunctionTool": "adk_nb.tools.function_tool",
        "LongRunningFunctionTool": "adk_nb.tools.long_running_tool",
        "ToolContext": "adk_nb.runtime.context",
        "built_in_code_execution": "adk_nb.tools.built_in_code_execution_tool",
        "get_user_choice": "adk_nb.tools.get_user_choice_tool",
        "load_artifacts": "adk_nb.tools.load_artifacts_tool",
        "load_memory": "adk_nb.tools.load_memory_tool",
        "preload_memory": "adk_nb.tools.preload_memory_tool",
        "tool": "adk_nb.tools.function_tool",
    },
)
