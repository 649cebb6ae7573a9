"""A plugin that reports to a live view which agents and tools are at work."""

import inspect
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.notebook.view.run_view import RunView
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager
from adk_nb.runtime.context import CallbackContext, ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool

_LIVE_VIEW = "adk_nb_live_view"


class _Watching(BasePlugin):
    """Registered only for live views, so that other runs have no callbacks."""

    def __init__(self, view: RunView) -> None:
        super().__init__(_LIVE_VIEW)
        self.view = view

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.view.agent_begins(*_place_of(agent, callback_context))

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if isinstance(tool, FunctionTool) and inspect.iscoroutinefunction(
            tool.func
        ):  # sync tools do not run on the event loop
            self.view.before_blocking_tool()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.view.tool_failed(tool_context.function_call_id or "", tool.name, tool_args, error)

    async def after_agent_callback(self, *, agent: BaseAgent, callback_context: CallbackContext) -> None:
        self.view.agent_ends(*_place_of(agent, callback_context))


def watch(plugins: PluginManager, view: RunView) -> None:
    """Report to `view` from now on, instead of the view of an earlier run."""
    watching = plugins.get_plugin(_LIVE_VIEW)
    if isinstance(watching, _Watching):
        watching.view = view
    elif view.is_live:
        plugins.register_plugin(_Watching(view))


def _place_of(agent: BaseAgent, context: CallbackContext) -> tuple[str, str | None, str]:
    """The name (of the graph's node, if the agent is that node's own), the branch and the node's path."""
    invocation = context.get_invocation_context()
    path = invocation.node.path if invocation.node else ""
    is_node = invocation.node is not None and invocation.node.agent is agent
    return path.rpartition("/")[2].partition("@")[0] if is_node else agent.name, invocation.branch, path
