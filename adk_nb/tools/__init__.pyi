from adk_nb.runtime.context import ToolContext as ToolContext
from adk_nb.tools.base_tool import BaseTool as BaseTool
from adk_nb.tools.function_tool import FunctionTool as FunctionTool
from adk_nb.tools.function_tool import tool as tool
