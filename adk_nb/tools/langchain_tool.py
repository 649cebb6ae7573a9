"""`LangchainTool`: a tool that was written for LangChain."""

import functools
from typing import Any, cast

from adk_nb.runtime.context import ToolContext
from adk_nb.tools.conditions import Decides
from adk_nb.tools.foreign_tool import ForeignTool, way_to_call, words_of
from adk_nb.tools.function_tool import name_of

_INPUT = "tool_input"
"""The one argument of LangChain's `Tool`. Source: langchain-core 1.7, langchain_core.tools.simple."""


class LangchainTool(ForeignTool):
    """Wraps anything with LangChain's `ainvoke`, or with `run`, `_run` or `func`; LangChain itself is not needed.

    Arguments that LangChain injects are not told to the model. A tool with `return_direct` ends the turn with what it
    returns.
    """

    def __init__(
        self,
        tool: Any,
        name: str | None = None,
        description: str | None = None,
        *,
        require_confirmation: Decides = False,
    ) -> None:
        """Take `tool`; its name and description are the defaults.

        Args:
            tool: What is wrapped.
            name: What the model calls it.
            description: What the model is told.
            require_confirmation: As for FunctionTool.

        Raises:
            ConfigurationError: It has nothing that could be called.
        """
        code = way_to_call(tool, "func", "coroutine", "_run", "run", "ainvoke")
        invoked = callable(getattr(tool, "ainvoke", None))
        # The code stands in the partial too: an approval holds for it.
        func = functools.partial(_invoked, tool, code) if invoked else way_to_call(tool, "run", "_run", "func")
        super().__init__(
            func,
            _schema(tool),
            name=words_of(tool, "name", name) or name_of(code),
            description=words_of(tool, "description", description),
            require_confirmation=require_confirmation,
        )
        self.return_direct = bool(getattr(tool, "return_direct", False))

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        result: Any = await super().run_async(args=args, tool_context=tool_context)
        failed = isinstance(result, dict) and "error" in result
        if self.return_direct and not failed:
            tool_context.actions.skip_summarization = tool_context.speaks = True
        return cast(Any, result)


async def _invoked(tool: Any, code: Any, /, **given: Any) -> Any:
    return await tool.ainvoke(given)


def _schema(tool: Any) -> Any:
    if getattr(tool, "args_schema", None) is None and _INPUT in (getattr(tool, "args", None) or ()):
        return {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}
    return getattr(tool, "tool_call_schema", None) or getattr(tool, "args_schema", None)
