"""`transfer_to_agent`: a model hands the conversation over to another agent of its tree."""

from collections.abc import Sequence
from typing import Any, Protocol

from adk_nb import types
from adk_nb.errors import closest
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.open_calls import TRANSFER
from adk_nb.tools.base_tool import BaseTool, pure

_DESCRIPTION = "Hands the conversation over to another agent, which answers next."
MAX_TRANSFERS = 50
"""Limit per turn, against agents that transfer in a circle."""


class Target(Protocol):
    """The members that the tool reads of a target agent."""

    @property
    def name(self) -> str:
        """Name of the agent."""
        ...

    @property
    def description(self) -> str:
        """Description for the model."""
        ...


@pure
def transfer_to_agent(agent_name: str, tool_context: ToolContext) -> None:
    """Hands the conversation over to another agent, which answers next."""
    tool_context.actions.transfer_to_agent = agent_name


class TransferToAgentTool(BaseTool):
    """Offers the agents that can take over, with their descriptions."""

    runs_last = True
    effect = "pure"

    def __init__(self, agent_names: Sequence[str | Target], parent: Target | None = None) -> None:
        """`parent`: the agent to transfer to when no other fits."""
        super().__init__(name=TRANSFER, description=_DESCRIPTION)
        self._targets = {agent if isinstance(agent, str) else agent.name: agent for agent in agent_names}
        lines = ["These agents can take over the conversation:"]
        for target in self._targets.values():
            is_name = isinstance(target, str)
            lines.append(f"- {target}" if is_name else f"- {target.name}: {target.description or 'no description'}")
        lines.append(
            f"If one of them is better suited to answer than you are, call {TRANSFER} with its name, and write nothing "
            "beside the call. If you are suited best, answer yourself. There are no others to hand over to."
        )
        if parent:
            lines.append(f"If neither you nor one of the others is suited, hand over to {parent.name} above you.")
        self._instruction = "\n".join(lines)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        properties = {
            "agent_name": {"type": "string", "enum": list(self._targets), "description": "Who takes over."},
            "transfer_reason": {"type": "string", "description": "Why, in a few words."},
        }
        schema = {"type": "object", "properties": properties, "required": ["agent_name"]}
        return types.FunctionDeclaration(name=TRANSFER, description=_DESCRIPTION, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        """Check that `agent_name` is one of the targets."""
        name = args.get("agent_name")
        if name in self._targets:
            return None
        suggestion = closest(name, self._targets) if isinstance(name, str) else None
        hint = f"Did you mean {suggestion!r}? " if suggestion else ""
        names = ", ".join(self._targets)
        return f"nothing was handed over: there is no agent {name!r} to take over. {hint}Those that can: {names}."

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Request the transfer."""
        if message := self.check(args):
            return {"error": message}
        shared = tool_context.get_invocation_context().shared
        if shared.transfers >= MAX_TRANSFERS:
            return {"error": f"nothing was handed over: that happened {shared.transfers} times in this turn; answer it"}
        tool_context.actions.transfer_to_agent = args["agent_name"]
        tool_context.actions.transfer_reason = args.get("transfer_reason")
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and list the targets in the instruction."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([self._instruction])
