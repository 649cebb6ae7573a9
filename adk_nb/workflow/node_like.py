"""Nodes made of functions, agents, tools and workflows."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.tools.base_tool import BaseTool
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.node_context import ParallelWorker
from adk_nb.workflow.tool_node import ToolNode

_NODE_FIELDS = ("retry_config", "timeout", "rerun_on_resume", "wait_for_output")
"""Fields of agents that their nodes take over."""


def node(node_like: Any = None, /, **options: Any) -> Any:
    """`@node`, `@node(name=...)`, `node(agent, timeout=5)`: a node with settings of its own.

    Args:
        node_like: A function, an agent, a tool, a workflow, or a node, which is copied.
        options: Fields of the node; with `parallel_worker=True` and `max_parallel_workers` it runs once for each item
            of the list that is its input.

    Raises:
        WorkflowConfigurationError: `node_like` cannot be a node, or a setting is invalid.
    """
    if node_like is None:
        return functools.partial(build_node, **options)
    return build_node(node_like, **options)


def build_node(node_like: Any, **options: Any) -> BaseNode:
    """Make a node of `node_like`. Arguments and errors are those of `node`."""
    max_workers = options.pop("max_parallel_workers", None)
    if options.pop("parallel_worker", False):
        worker = build_node(node_like, **options)
        return ParallelWorker(name=worker.name, worker=worker, max_parallel_workers=max_workers)
    if max_workers is not None:
        raise WorkflowConfigurationError("max_parallel_workers goes with parallel_worker=True; write both")
    if isinstance(node_like, BaseNode):
        return node_like.with_options(options) if options else node_like
    if isinstance(node_like, BaseTool):
        return ToolNode(**_with(options, name=node_like.name, description=node_like.description, tool=node_like))
    if isinstance(node_like, BaseAgent):
        return _agent_node(node_like, options)
    if callable(node_like) and not isinstance(node_like, type):
        return FunctionNode(**_with(options, func=cast(Callable[..., Any], node_like)))
    raise WorkflowConfigurationError(
        f"{node_like!r:.80} is not a node; pass a function, an agent, a tool, a workflow, or a node"
    )


def _with(options: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    return {**own, **options}


def _agent_node(agent: BaseAgent, options: dict[str, Any]) -> BaseNode:
    """A node with a copy of the agent, which takes the name of the node."""
    changes: dict[str, Any] = {"name": options["name"]} if "name" in options else {}
    if isinstance(agent, LlmAgent) and agent.mode is None:
        changes["mode"] = "single_turn"
    copy = agent.clone(update=changes)
    waits = isinstance(copy, LlmAgent) and copy.mode in ("task", "chat")
    own = {field: value for field in _NODE_FIELDS if (value := getattr(copy, field)) is not None}
    options = {"wait_for_output": waits, **own, **options}
    node = AgentNode(**_with(options, name=copy.name, description=copy.description, agent=copy))
    if isinstance(copy, LlmAgent) and copy.parallel_worker:
        return ParallelWorker(name=node.name, worker=node)
    return node
