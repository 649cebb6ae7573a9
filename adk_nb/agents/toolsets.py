"""The toolsets of a tree of agents: found, and closed together."""

import asyncio
import logging
from typing import Any

from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_toolset import BaseToolset

logger = logging.getLogger(__name__)


def toolsets_of(agent: Any) -> list[BaseToolset]:
    """Those of `agent`, of all agents under it, and of those that any of them calls as tools; each once."""
    toolsets, seen, pending = list[BaseToolset](), set[int](), [agent]
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, BaseToolset):
            toolsets.append(one)
        elif isinstance(one, AgentTool):
            pending.append(one.agent)
        else:
            pending += [*getattr(one, "sub_agents", ()), *getattr(one, "tools", ())]
    return toolsets


async def close_toolsets(agent: Any, seconds: float) -> None:
    """Close the toolsets under `agent`. One that raises, or takes longer than `seconds`, is told in the log."""
    for toolset in toolsets_of(agent):
        try:
            async with asyncio.timeout(seconds):
                await toolset.close()
        except Exception as error:
            message = str(error) or type(error).__name__
            logger.warning("toolset %s did not close: %s", type(toolset).__name__, message)
