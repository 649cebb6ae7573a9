"""A tool as a node."""

from collections.abc import AsyncGenerator
from typing import Any, cast

from adk_nb.errors import WorkflowDataError
from adk_nb.runtime.context import Context
from adk_nb.tools.base_tool import BaseTool
from adk_nb.workflow.base_node import BaseNode


class ToolNode(BaseNode):
    """Calls `tool` with its input: a dict is the arguments, anything else the only one that the tool takes."""

    tool: BaseTool

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        args = self._arguments(node_input)
        if wrong := self.tool.check(args):
            raise WorkflowDataError(f"node {self.name!r}: {wrong}")
        yield await self.tool.run_async(args=args, tool_context=ctx)

    def _arguments(self, node_input: Any) -> dict[str, Any]:
        if node_input is None:
            return {}
        declared = self.tool.declaration
        schema: dict[str, Any] = (declared and declared.parameters_json_schema) or {}
        names = list(schema.get("properties", {}))
        if isinstance(node_input, dict) and not (len(names) == 1 and names[0] not in node_input):
            return cast(dict[str, Any], node_input)
        if len(names) != 1:
            raise WorkflowDataError(
                f"node {self.name!r}: the tool takes {', '.join(names) or 'nothing'}, and its input is no dict of these"
            )
        return {names[0]: node_input}
