"""A hash of agents and their tools, with which a resumed run detects edits."""

import hashlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import code_fingerprint, fingerprint, tools_fingerprint


def version_of(root: Any) -> str:
    """The hash of a tree of agents: classes, names, instructions, models and tools; of graphs also nodes and edges.

    Tools of toolsets, and nodes that are made during a run, are not part of it.
    """
    digests = [part for agent in agents_below(root) for part in _agent_parts(agent)]
    return hashlib.sha256("\0".join(digests).encode()).hexdigest()[:32]


def agents_below(root: Any) -> Iterator[Any]:
    """An agent, the agents under it, and those that they call as tools; each once."""
    agents, seen = [root], set[int]()
    while agents:
        agent = agents.pop()
        if id(agent) not in seen:
            seen.add(id(agent))
            yield agent
            agents += _related_agents(agent)


def _agent_parts(value: Any) -> Iterator[str]:
    instruction, model = getattr(value, "instruction", ""), getattr(value, "model", "")
    yield from (type(value).__qualname__, value.name, model if isinstance(model, str) else type(model).__qualname__)
    yield instruction if isinstance(instruction, str) else code_fingerprint(instruction)
    tools: list[Any] = list(getattr(value, "tools", None) or ())
    together = [tool for tool in tools if isinstance(tool, BaseTool | FunctionType)]
    yield tools_fingerprint(together)
    yield from (_tool_digest(tool) for tool in tools if not any(tool is other for other in together))
    if graph := getattr(value, "graph", None):
        for node in graph.nodes.values():
            yield from (type(node).__qualname__, node.name, _tool_digest(node))
        yield repr((graph.edges_from, graph.edges_to_end))


def _related_agents(value: Any) -> Iterator[Any]:
    """The agents under it, and those that it calls as tools."""
    yield from getattr(value, "members" if hasattr(value, "graph") else "sub_agents", None) or ()
    for tool in getattr(value, "tools", None) or ():
        agent = tool if hasattr(tool, "find_agent") else getattr(tool, "agent", None)
        if agent is not None:
            yield agent


def _tool_digest(tool: Any) -> str:
    if hasattr(tool, "fingerprint"):  # a node
        return tool.fingerprint()
    if isinstance(tool, BaseTool):
        return fingerprint(tool)
    return code_fingerprint(tool) if callable(tool) else type(tool).__qualname__
