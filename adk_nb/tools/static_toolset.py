"""`StaticToolset`: a fixed list of tools as a toolset."""

from collections.abc import Callable, Sequence
from typing import Any

from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.function_tool import FunctionTool


class StaticToolset(BaseToolset):
    """A fixed list of tools; use it for its filter and prefix."""

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        """`tools`: functions are wrapped as FunctionTool."""
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self.tools = [tool if isinstance(tool, BaseTool) else FunctionTool(tool) for tool in tools]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools that the filter accepts."""
        self._warn_unknown_filter_names(self.tools)
        return [tool for tool in self.tools if self._is_tool_selected(tool, readonly_context)]
