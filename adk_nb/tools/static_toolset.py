"""Tools at hand, as a toolset."""

from collections.abc import Callable, Sequence
from typing import Any

from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.function_tool import FunctionTool


class StaticToolset(BaseToolset):
    """Always the same tools; what it is for is the filter and the prefix."""

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
    ) -> None:
        """`tools`: functions become tools."""
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self.tools = [one if isinstance(one, BaseTool) else FunctionTool(one) for one in tools]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        self._look_for_misspelled(self.tools)
        return [tool for tool in self.tools if self._is_tool_selected(tool, readonly_context)]
