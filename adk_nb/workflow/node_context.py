"""What a node of a graph is handed: a Context that knows where it stands, and can run other nodes."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from adk_nb.events.event_actions import no_actions
from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.state import State

RunsNode = Callable[[Any, Any, str | None, bool], Awaitable[Any]]
"""`(node, input, run id, on a branch of its own)` -> its output."""


class NodeContext(Context):
    """The Context of one attempt of one run of a node."""

    def __init__(
        self,
        invocation: InvocationContext,
        *,
        path: str,
        attempt: int,
        answers: Mapping[str, Any],
        run_node: RunsNode,
    ) -> None:
        super().__init__(invocation)
        self.node_path = path
        self.run_id = path.rpartition("/")[2]
        self.attempt_count = attempt
        self.resume_inputs = answers
        self._run_node = run_node

    def act_anew(self) -> None:
        """What was to be done is on its way with an event; the next event does what is said from now on."""
        self.actions = no_actions()
        invocation = self._invocation
        self._state = State(invocation.session.state, self.actions.state_delta, invocation.state_schema)

    async def run_node(
        self, node: Any, node_input: Any = None, *, run_id: str | None = None, use_sub_branch: bool = False
    ) -> Any:
        return await self._run_node(node, node_input, run_id, use_sub_branch)
