"""Tells a run on show which agents begin and end, so that it shows who works before the first word is there."""

import inspect
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.notebook.view.run_view import RunView
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_NAME = "adk_nb_live_view"


class _Watching(BasePlugin):
    """Only says who is at work; a run that nobody sees live never has it, and pays nothing for it."""

    def __init__(self, shown: RunView) -> None:
        super().__init__(_NAME)
        self.shown = shown

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.shown.agent_begins(*_where(agent, callback_context))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if isinstance(tool, FunctionTool) and inspect.iscoroutinefunction(tool.func):  # others have a thread
            self.shown.blocks()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.shown.tool_failed(tool_context.function_call_id or "", tool.name, tool_args, error)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.shown.agent_ends(*_where(agent, callback_context))


def watch(plugins: PluginManager, shown: RunView) -> None:
    """Tell `shown`, and no run before it, of the agents of one turn after another; a run that is not live is not told.

    Args:
        plugins: Those of the runner that runs them.
        shown: The turn that begins now.
    """
    watching = plugins.get_plugin(_NAME)
    if isinstance(watching, _Watching):
        watching.shown = shown
    elif shown.is_live:
        plugins.register_plugin(_Watching(shown))


def _where(agent: BaseAgent, context: CallbackContext) -> tuple[str, str | None, str]:
    """Who it is, by the name of the graph's node if it is that node's own; the branch; the node's path."""
    ctx = context.get_invocation_context()
    path = ctx.node.path if ctx.node else ""
    is_node = ctx.node is not None and ctx.node.agent is agent
    return path.rpartition("/")[2].partition("@")[0] if is_node else agent.name, ctx.branch, path
