"""A plugin that asks the model to correct failed tool calls, a limited number of times."""

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
"""Marks the results of this plugin. Source: google-adk 2.13."""
_MAX_SCOPES = 1_000


class TrackingScope(Enum):
    """The scope of counting consecutive failures of a tool."""

    INVOCATION = "invocation"
    """One run."""
    GLOBAL = "global"
    """All runs, sessions and users of the plugin."""

    def key(self, invocation_id: str) -> str:
        """Key of the scope that a run is in."""
        return invocation_id if self is TrackingScope.INVOCATION else "global"


class FailureCounts:
    """Consecutive failures in each scope, by name; thread-safe."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, dict[str, int]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, scope: str, name: str) -> int:
        """Count a failure; returns the number of consecutive ones."""
        with self._lock:
            counts = self._counts.setdefault(scope, {})
            self._counts.move_to_end(scope)
            counts[name] = counts.get(name, 0) + 1
            if len(self._counts) > _MAX_SCOPES:
                self._counts.popitem(last=False)  # the least recent scope
            return counts[name]

    def reset(self, scope: str, name: str) -> None:
        """Note a success."""
        with self._lock:
            self._counts.get(scope, {}).pop(name, None)


class ReflectAndRetryToolPlugin(BasePlugin):
    """Replaces a tool's error by a result with advice for the model, up to a number of consecutive failures.

    Failures are counted per tool; a success resets the count.

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
        """Configure the retries.

        Args:
            name: Unique among the plugins of a runner.
            max_retries: Consecutive failures that the model may correct; 0 for none.
            throw_exception_if_retry_exceeded: One more failure ends the run with a PluginError whose `__cause__` is the
                tool's error. False: the model is told to stop using the tool.
            tracking_scope: Scope of counting.
        """
        super().__init__(name)
        if max_retries < 0:
            raise ConfigurationError(f"max_retries={max_retries} must not be negative; write 0 for no retries")
        self.max_retries = max_retries
        self.throw_exception_if_retry_exceeded = throw_exception_if_retry_exceeded
        self.scope = tracking_scope
        self._failures = FailureCounts()

    async def extract_error_from_result(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> Any:
        """Return the error in a result of a tool that did not raise, or None (the default). Override this."""
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """Count an error in the result, or reset the count."""
        # The advice for an error passes here, too: it neither counts twice nor resets the count.
        fields = cast(dict[str, Any], result) if isinstance(result, dict) else {}
        if fields.get("response_type") == REFLECT_AND_RETRY_RESPONSE_TYPE:
            return None
        error = await self.extract_error_from_result(
            tool=tool, tool_args=tool_args, tool_context=tool_context, result=result
        )
        if error:
            return self._answer(tool, tool_args, tool_context, error)
        self._failures.reset(self._get_scope_key(tool_context), tool.name)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Count the error, and answer with advice."""
        return self._answer(tool, tool_args, tool_context, error)

    def _get_scope_key(self, tool_context: ToolContext) -> str:
        """Key of a counting scope. Override it to count per user or session; ADK's name."""
        return self.scope.key(tool_context.invocation_id)

    def _answer(self, tool: BaseTool, args: dict[str, Any], context: ToolContext, error: Any) -> dict[str, Any]:
        failures = self._failures.add(self._get_scope_key(context), tool.name)
        if failures <= self.max_retries:
            return _failure_result(
                error,
                failures,
                f"{tool.name}({args}) failed; this is failure {failures}, and after {self.max_retries} in a row the "
                "tool is given up. Do not repeat the same call. Ask yourself: do the arguments fit the tool's "
                "declaration? Has an earlier step not done what this one needs? Is there a tool that fits better, or a "
                "smaller step? Then try again, corrected.",
            )
        if self.throw_exception_if_retry_exceeded:
            raise error if isinstance(error, Exception) else RuntimeError(f"{tool.name}() answered {error}")
        return _failure_result(
            error,
            failures,
            f"{tool.name}() failed {failures} times in a row. Do not call it again for this task: reach the goal in "
            "another way, or tell the user what you could not do and why.",
        )


def _failure_result(error: Any, failures: int, advice: str) -> dict[str, Any]:
    """A result in the format of google-adk's ToolFailureResponse."""
    return {
        "response_type": REFLECT_AND_RETRY_RESPONSE_TYPE,
        "error_type": type(error).__name__ if isinstance(error, Exception) else "ToolError",
        "error_details": hidden(str(error)),
        "retry_count": failures,
        "reflection_guidance": advice,
    }
