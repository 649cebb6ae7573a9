"""What a workflow's agents call that runs here: other agents of it, and Python functions."""

from functools import partial
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.graph_compose.configs import AgentToolConfig, FunctionToolConfig
from adk_nb.graph_compose.patience import patiently
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.function_tool import FunctionTool


class CalledAgent(AgentTool):
    """Another agent of the workflow, whose answer is kept in the state."""

    def __init__(self, agent: BaseAgent, config: AgentToolConfig) -> None:
        super().__init__(agent, config.skip_summarization)
        self._key = config.output_key

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return _kept(self._key, await super().run_async(args=args, tool_context=tool_context), tool_context)


class CalledFunction(FunctionTool):
    """A function that is called again as its activity says, and whose result is kept in the state.

    What it wrote to the state in an attempt that failed stays written.
    """

    def __init__(self, config: FunctionToolConfig) -> None:
        self._key = config.output_key
        self._activity = config.activity_config
        super().__init__(
            config.func,
            name=config.id,
            description=config.description or None,
            timeout=self._activity.start_to_close_timeout if self._activity else None,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        once = partial(super().run_async, args=args, tool_context=tool_context)
        answer = await (patiently(once, self._activity, self.name, "tool") if self._activity else once())
        return _kept(self._key, answer, tool_context)


def _kept(key: str | None, answer: Any, context: ToolContext) -> Any:
    failed = isinstance(answer, dict) and "error" in answer
    if key and not failed:
        context.state[key] = answer
    return cast(Any, answer)
