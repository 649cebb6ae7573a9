"""`transfer_to_agent` in a workflow, where a service knows agents by their ids."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.transfer_to_agent_tool import TransferToAgentTool


@dataclass(frozen=True)
class _Known:
    name: str
    description: str


class HandOver(TransferToAgentTool):
    """Offers the agents that can take over under their ids, which need not be names."""

    def __init__(self, targets: Mapping[str, BaseAgent], parent: BaseAgent | None) -> None:
        """`targets`: by id. `parent`: the one of them to turn to when none fits."""
        known = {key: _Known(key, one.description) for key, one in targets.items()}
        above = next((known[key] for key, one in targets.items() if one is parent), None)
        super().__init__(list(known.values()), above)
        self._names = {key: one.name for key, one in targets.items()}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        result = await super().run_async(args=args, tool_context=tool_context)
        if asked := tool_context.actions.transfer_to_agent:
            tool_context.actions.transfer_to_agent = self._names.get(asked, asked)
        return result
