from adk_nb.runtime.context import ToolContext as ToolContext
from adk_nb.tools.base_tool import BaseTool as BaseTool
from adk_nb.tools.function_tool import FunctionTool as FunctionTool
from adk_nb.tools.function_tool import tool as tool
from adk_nb.tools.load_artifacts_tool import load_artifacts as load_artifacts
from adk_nb.tools.load_memory_tool import load_memory as load_memory
from adk_nb.tools.preload_memory_tool import preload_memory as preload_memory
