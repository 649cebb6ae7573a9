"""Detect loops that no agent could end."""

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool


def could_leave(agent: BaseAgent) -> bool:
    """False: neither a tool of `agent`, nor a callback, nor a model or an agent of somebody's own could escalate; nor
    could one of those under it.
    """
    return _could_itself(agent) or any(could_leave(child) for child in agent.sub_agents)


def _could_itself(agent: BaseAgent) -> bool:
    if any(getattr(agent, name) for name in type(agent).model_fields if name.endswith("_callback")):
        return True
    if not isinstance(agent, LlmAgent):
        return not (agent.runs_others and type(agent).__module__.startswith("adk_nb.agents."))
    if agent.toolsets or any(_could_say_so(tool) for tool in agent.tools_now()):
        return True
    return not _has_a_vendors_model(agent)


def _could_say_so(tool: BaseTool) -> bool:
    return not isinstance(tool, FunctionTool) or tool.signature.context_parameter is not None


def _has_a_vendors_model(agent: LlmAgent) -> bool:
    """True if its model is known by a name; an object of a model may say more than words."""
    current: BaseAgent | None = agent
    while current and not getattr(current, "model", None):
        current = current.parent_agent
    return current is None or isinstance(getattr(current, "model", ""), str)
