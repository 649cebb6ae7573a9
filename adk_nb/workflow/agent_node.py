"""An agent as a node."""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic import InstanceOf
from pydantic_core import to_json

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.events.event import Event
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import outermost, recipient, without_answers
from adk_nb.wire import replace_fields
from adk_nb.workflow.base_node import BaseNode


class AgentNode(BaseNode):
    """Runs an agent. The output is the agent's last message, or with `output_schema` the JSON value.

    An LlmAgent without a mode is `single_turn`: it sees its input, and the history only with
    `include_contents="default"`.
    """

    agent: InstanceOf[BaseAgent]

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        invocation = self._invocation(ctx, node_input)
        return invocation.agent.run_async(invocation)

    def _invocation(self, ctx: Context, node_input: Any) -> InvocationContext:
        outer = ctx.get_invocation_context()
        answered = outer.calls_answered
        asker = (
            self.agent.find_agent(recipient(history_of(outer.session), answered, outer.branch)) if answered else None
        )
        # An answer goes to the agent that asked, or to the team around it, within this node.
        agent = outermost(asker, under=self.agent.parent_agent) if asker else self.agent
        is_resumed = asker is not None or bool(
            outer.task_call_id and outer.task_call_id.startswith(f"{ctx.node_path}/")
        )
        invocation = outer if is_resumed else without_answers(outer, is_resumed=outer.checkpoints is not None)
        if not isinstance(self.agent, LlmAgent):
            return replace_fields(invocation, agent=agent)
        # A chat is no node to its agent: it sees the conversation, and its messages are no outputs.
        if self.agent.mode == "chat":
            return replace_fields(invocation, agent=agent, node=None)
        sees_all = self.agent.include_contents == "default" and not self.has_task
        if sees_all and (node_input is None or node_input is outer.user_content):
            return replace_fields(invocation, agent=agent)
        return replace_fields(
            invocation,
            agent=agent,
            delegated_input=None if node_input is None else as_message(node_input),
            caller=outer if sees_all else None,
            caller_event_count=len(outer.session.events) if sees_all else 0,
            # The scope of a task is its own run, so that the next run of the node starts without its messages.
            isolation_scope=(None if self.has_task else outer.node and outer.node.isolation_scope) or ctx.node_path,
        )

    def output_of_event(self, event: Event) -> Any:
        """The output of an event of the agent for the next node. None: it has none."""
        if event.output is not None or self.chats or self.has_task:
            return event.output
        if event.partial or not event.is_final_response() or event.error_code or event.long_running_tool_ids:
            return None
        return event.text or None

    @property
    def has_task(self) -> bool:
        """True: it talks with the user until it completes its task."""
        return isinstance(self.agent, LlmAgent) and self.agent.mode == "task"

    @property
    def chats(self) -> bool:
        """True: it talks with the user, and takes no input."""
        return isinstance(self.agent, LlmAgent) and self.agent.mode == "chat"


def as_message(value: Any) -> types.Content:
    """A node's input as a user's message to an agent: text as it is, anything else as JSON."""
    if isinstance(value, types.Content):
        return value
    text = value if isinstance(value, str) else to_json(value).decode()
    return types.Content(role="user", parts=[types.Part(text=text)])
