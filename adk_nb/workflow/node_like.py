"""What stands for a node becomes one: a function, an agent, a tool, a whole workflow."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.tools.base_tool import BaseTool
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.parallel_worker import ParallelWorker
from adk_nb.workflow.tool_node import ToolNode


def node(node_like: Any = None, /, **options: Any) -> Any:
    """`@node`, `@node(name=...)`, `node(agent, timeout=5)`: a node with other settings than it would have.

    Args:
        node_like: A function, an agent, a tool, a workflow, or a node, which is copied.
        options: Fields of the node; with `parallel_worker=True` and `max_parallel_workers` it runs once for each item
            of the list that is its input.

    Raises:
        WorkflowConfigurationError: It stands for no node, or a setting is wrong.
    """
    if node_like is None:
        return functools.partial(build_node, **options)
    return build_node(node_like, **options)


def build_node(node_like: Any, **options: Any) -> BaseNode:
    """The node that `node_like` stands for. Arguments and errors are those of `node`."""
    if options.pop("parallel_worker", False):
        most = options.pop("max_parallel_workers", None)
        worker = build_node(node_like, **options)
        return ParallelWorker(name=worker.name, worker=worker, max_parallel_workers=most)
    if isinstance(node_like, BaseNode):
        return node_like.model_copy(update=options) if options else node_like
    if isinstance(node_like, BaseTool):
        return ToolNode(**{"name": node_like.name, "description": node_like.description, "tool": node_like} | options)
    if isinstance(node_like, BaseAgent):
        agent = _as_step(node_like)
        return AgentNode(**{"name": agent.name, "description": agent.description, "agent": agent} | options)
    if callable(node_like) and not isinstance(node_like, type):
        func = cast(Callable[..., Any], node_like)
        name = options.get("name") or getattr(func, "__name__", type(func).__name__)
        return FunctionNode(**{"name": name, "description": inspect.getdoc(func) or "", "func": func} | options)
    raise WorkflowConfigurationError(
        f"{node_like!r:.80} is no node; pass a function, an agent, a tool, a workflow, or a node"
    )


def _as_step(agent: BaseAgent) -> BaseAgent:
    """A copy of an agent that is a step in a graph."""
    if not isinstance(agent, LlmAgent):
        return agent.clone()
    said = agent.model_fields_set
    changed: dict[str, Any] = {}
    if "include_contents" not in said:
        changed["include_contents"] = "none"
    if "identity" not in said:
        changed["identity"] = False
    return agent.clone(update=changed)
