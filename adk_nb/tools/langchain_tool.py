"""`LangchainTool` wraps a tool written for LangChain."""

import functools
from typing import Any, cast

from adk_nb.runtime.context import ToolContext, call_state
from adk_nb.tools.conditions import Condition
from adk_nb.tools.foreign_tool import ForeignTool, find_callable, text_attribute
from adk_nb.tools.function_tool import name_of

_INPUT = "tool_input"
"""The one argument of LangChain's `Tool`. Source: langchain-core 1.7, langchain_core.tools.simple."""


class LangchainTool(ForeignTool):
    """Wraps an object with LangChain's `ainvoke`, or with `run`, `_run` or `func`; LangChain need not be installed.

    Injected arguments are hidden from the model. The result of a tool with `return_direct` ends the turn.
    """

    def __init__(
        self,
        tool: Any,
        name: str | None = None,
        description: str | None = None,
        *,
        require_confirmation: Condition = False,
    ) -> None:
        """Wrap `tool`; its name and description are the defaults.

        Args:
            tool: The object to wrap.
            name: The name for the model.
            description: The description for the model.
            require_confirmation: As for FunctionTool.

        Raises:
            ConfigurationError: It has no method that can be called.
        """
        code = find_callable(tool, "func", "coroutine", "_run", "run", "ainvoke")
        has_ainvoke = callable(getattr(tool, "ainvoke", None))
        # The code is bound to the partial so that the tool's fingerprint covers it.
        func = functools.partial(_ainvoke, tool, code) if has_ainvoke else find_callable(tool, "run", "_run", "func")
        super().__init__(
            func,
            _schema(tool),
            name=text_attribute(tool, "name", name) or name_of(code),
            description=text_attribute(tool, "description", description),
            require_confirmation=require_confirmation,
        )
        self.return_direct = bool(getattr(tool, "return_direct", False))

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the tool; with `return_direct` its result ends the turn."""
        result: Any = await super().run_async(args=args, tool_context=tool_context)
        has_failed = isinstance(result, dict) and "error" in result
        if self.return_direct and not has_failed:
            tool_context.actions.skip_summarization = call_state(tool_context).is_spoken = True
        return cast(Any, result)


async def _ainvoke(tool: Any, code: Any, /, **args: Any) -> Any:
    return await tool.ainvoke(args)


def _schema(tool: Any) -> Any:
    # LangChain's `Tool`, unlike its `StructuredTool`, takes one text and has no `args_schema`.
    if getattr(tool, "args_schema", None) is None and _INPUT in (getattr(tool, "args", None) or ()):
        return {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}
    return getattr(tool, "tool_call_schema", None) or getattr(tool, "args_schema", None)
