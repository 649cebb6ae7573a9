"""A node that waits for all nodes before it."""

from collections.abc import AsyncGenerator
from typing import Any

from adk_nb.runtime.context import Context
from adk_nb.workflow.base_node import BaseNode


class JoinNode(BaseNode):
    """Runs once all nodes before it have ended. Its output is theirs, by name, in the order of the edges."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        yield node_input
