"""A tree of agents: those in it, the hash by which a resumed run detects edits, and its toolsets."""

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.fingerprint import code_fingerprint, fingerprint, tools_fingerprint

logger = logging.getLogger(__name__)


def version_of(root: Any) -> str:
    """The hash of a tree of agents: classes, names, instructions, models and tools; of graphs also nodes and edges.

    Tools of toolsets, and nodes that are made during a run, are not part of it.
    """
    digests: list[str] = []
    for agent in agents_below(root):
        instruction, model = getattr(agent, "instruction", ""), getattr(agent, "model", "")
        digests += [type(agent).__qualname__, agent.name, model if isinstance(model, str) else type(model).__qualname__]
        digests.append(instruction if isinstance(instruction, str) else code_fingerprint(instruction))
        tools: list[Any] = list(getattr(agent, "tools", None) or ())
        together = [tool for tool in tools if isinstance(tool, BaseTool | FunctionType)]
        digests.append(tools_fingerprint(together))
        digests += [_tool_digest(tool) for tool in tools if not any(tool is other for other in together)]
        if graph := getattr(agent, "graph", None):
            for node in graph.nodes.values():
                digests += [type(node).__qualname__, node.name, _tool_digest(node)]
            digests.append(repr((graph.edges_from, graph.edges_to_end)))
    return hashlib.sha256("\0".join(digests).encode()).hexdigest()[:32]


def agents_below(root: Any) -> Iterator[Any]:
    """An agent, the agents under it, and those that they call as tools; each once."""
    agents, seen = [root], set[int]()
    while agents:
        agent = agents.pop()
        if id(agent) not in seen:
            seen.add(id(agent))
            yield agent
            agents += getattr(agent, "members" if hasattr(agent, "graph") else "sub_agents", None) or ()
            for tool in getattr(agent, "tools", None) or ():
                agents += [called for called in (tool, getattr(tool, "agent", None)) if hasattr(called, "find_agent")]


def _tool_digest(tool: Any) -> str:
    if hasattr(tool, "fingerprint"):  # a node
        return tool.fingerprint()
    if isinstance(tool, BaseTool):
        return fingerprint(tool)
    return code_fingerprint(tool) if callable(tool) else type(tool).__qualname__


async def close_toolsets(agent: Any, seconds: float) -> None:
    """Close the toolsets in a tree, each once; an error, or more than `seconds` for one of them, is logged."""
    toolsets = [
        tool
        for member in agents_below(agent)
        for tool in getattr(member, "tools", None) or ()
        if isinstance(tool, BaseToolset)
    ]
    for toolset in {id(toolset): toolset for toolset in toolsets}.values():
        try:
            async with asyncio.timeout(seconds):
                await toolset.close()
        # Each is closed, whatever another one raises.
        except Exception as error:
            message = str(error) or type(error).__name__
            logger.warning("toolset %s did not close: %s", type(toolset).__name__, message)
