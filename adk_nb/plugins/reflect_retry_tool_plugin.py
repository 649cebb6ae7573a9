"""A plugin that lets a model mend a tool call that failed, and not for ever."""

import threading
from collections import OrderedDict
from enum import Enum
from typing import Any, cast

from adk_nb.errors import ConfigurationError
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.redaction import hidden
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool

REFLECT_AND_RETRY_RESPONSE_TYPE = "ERROR_HANDLED_BY_REFLECT_AND_RETRY_PLUGIN"
"""Marks the results that this plugin wrote. Source: google-adk 2.13."""
_SCOPES_KEPT = 1_000


class TrackingScope(Enum):
    """How long a tool's failures in a row are counted."""

    INVOCATION = "invocation"
    """Within one run."""
    GLOBAL = "global"
    """Across all runs, sessions and users of the plugin."""


class ReflectAndRetryToolPlugin(BasePlugin):
    """Answers a tool's error with what went wrong and how to think about it, up to a number of failures in a row.

    Failures are counted for each tool; a success begins anew.

    Raises:
        ConfigurationError: `max_retries` is negative.
    """

    def __init__(
        self,
        name: str = "reflect_retry_tool_plugin",
        max_retries: int = 3,
        throw_exception_if_retry_exceeded: bool = True,
        tracking_scope: TrackingScope = TrackingScope.INVOCATION,
    ) -> None:
        """Say how often is enough.

        Args:
            name: No other plugin of the same runner has it.
            max_retries: Failures in a row that the model is asked to mend; 0 for none.
            throw_exception_if_retry_exceeded: One more ends the run with the tool's error as the `__cause__` of a
                PluginError. False: the model is told to give the tool up.
            tracking_scope: How long failures are counted.
        """
        super().__init__(name)
        if max_retries < 0:
            raise ConfigurationError(f"max_retries={max_retries} is no number of retries; write 0 for none")
        self.max_retries = max_retries
        self.throw_exception_if_retry_exceeded = throw_exception_if_retry_exceeded
        self.scope = tracking_scope
        self._failures: OrderedDict[str, dict[str, int]] = OrderedDict()
        """Scope -> tool -> failures in a row."""
        self._lock = threading.Lock()

    async def extract_error_from_result(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> Any:
        """What in a result is an error, though the tool did not raise. Override it; by default None, nothing is."""
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        if _is_ours(result):
            return None
        error = await self.extract_error_from_result(
            tool=tool, tool_args=tool_args, tool_context=tool_context, result=result
        )
        if error:
            return self._answer(tool, tool_args, tool_context, error)
        with self._lock:
            self._failures.get(self._get_scope_key(tool_context), {}).pop(tool.name, None)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        return self._answer(tool, tool_args, tool_context, error)

    def _get_scope_key(self, tool_context: ToolContext) -> str:
        """Whose failures count together. Override it to count by user or session; ADK's name."""
        return tool_context.invocation_id if self.scope is TrackingScope.INVOCATION else "global"

    def _answer(self, tool: BaseTool, args: dict[str, Any], context: ToolContext, error: Any) -> dict[str, Any]:
        failed = self._count(self._get_scope_key(context), tool.name)
        if failed <= self.max_retries:
            return _told(error, failed, _advice(tool.name, args, failed, self.max_retries))
        if self.throw_exception_if_retry_exceeded:
            raise error if isinstance(error, Exception) else RuntimeError(f"{tool.name}() answered {error}")
        return _told(
            error,
            failed,
            f"{tool.name}() failed {failed} times in a row. Do not call it again for this task: reach the goal in "
            "another way, or tell the user what you could not do and why.",
        )

    def _count(self, scope: str, tool: str) -> int:
        with self._lock:
            counts = self._failures.setdefault(scope, {})
            self._failures.move_to_end(scope)
            counts[tool] = counts.get(tool, 0) + 1
            if len(self._failures) > _SCOPES_KEPT:
                self._failures.popitem(last=False)
            return counts[tool]


def _is_ours(result: Any) -> bool:
    told = cast(dict[str, Any], result) if isinstance(result, dict) else {}
    return told.get("response_type") == REFLECT_AND_RETRY_RESPONSE_TYPE


def _told(error: Any, failed: int, advice: str) -> dict[str, Any]:
    """The result in the shape of google-adk's ToolFailureResponse."""
    return {
        "response_type": REFLECT_AND_RETRY_RESPONSE_TYPE,
        "error_type": type(error).__name__ if isinstance(error, Exception) else "ToolError",
        "error_details": hidden(str(error)),
        "retry_count": failed,
        "reflection_guidance": advice,
    }


def _advice(tool: str, args: dict[str, Any], failed: int, most: int) -> str:
    return (
        f"{tool}({args}) failed; this is failure {failed}, and after {most} in a row the tool is given up. "
        "Do not repeat the same call. Ask yourself: do the arguments fit the tool's declaration? Has an earlier step "
        "not done what this one needs? Is there a tool that fits better, or a smaller step? Then try again, corrected."
    )
