"""Find and close the toolsets of a tree of agents."""

import asyncio
import logging
from typing import Any

from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_toolset import BaseToolset

logger = logging.getLogger(__name__)


def toolsets_of(agent: Any) -> list[BaseToolset]:
    """The toolsets of `agent`, of all agents under it, and of the agents that these call as tools; each once."""
    toolsets, seen, pending = list[BaseToolset](), set[int](), [agent]
    while pending:
        member = pending.pop()
        if id(member) in seen:
            continue
        seen.add(id(member))
        if isinstance(member, BaseToolset):
            toolsets.append(member)
        elif isinstance(member, AgentTool):
            pending.append(member.agent)
        else:
            pending += [*getattr(member, "sub_agents", ()), *getattr(member, "tools", ())]
    return toolsets


async def close_toolsets(agent: Any, seconds: float) -> None:
    """Close the toolsets under `agent`; an error, or more than `seconds` for one of them, is logged."""
    for toolset in toolsets_of(agent):
        try:
            async with asyncio.timeout(seconds):
                await toolset.close()
        # Each is closed, whatever another one raises.
        except Exception as error:
            message = str(error) or type(error).__name__
            logger.warning("toolset %s did not close: %s", type(toolset).__name__, message)
