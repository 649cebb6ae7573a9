"""A node that runs once for each item of a list, at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

from pydantic import Field, InstanceOf

from adk_nb.runtime.context import Context
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.node_context import NodeContext, run_item


class ParallelWorker(BaseNode):
    """Runs `worker` for each item of its input, each on a branch of its own; the output is the list of theirs.

    An input that is not a list is one item. If some fail, the others end first; then the first error is raised.
    """

    worker: InstanceOf[BaseNode]
    max_parallel_workers: int | None = Field(default=None, ge=1)
    """Maximum number that run at a time. None: all."""

    def fingerprint(self) -> str:
        return self.worker.fingerprint()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        items = cast(list[Any], node_input) if isinstance(node_input, list) else [node_input]
        slots = asyncio.Semaphore(self.max_parallel_workers or max(1, len(items)))

        async def run(number: int, item: Any) -> Any:
            async with slots:
                return await run_item(cast(NodeContext, ctx), self.worker, item, number)

        runs = (run(number, item) for number, item in enumerate(items, 1))
        outcomes = await asyncio.gather(*runs, return_exceptions=True)
        if errors := [outcome for outcome in outcomes if isinstance(outcome, BaseException)]:
            # An error comes before the `Paused` of items that wait for an answer.
            raise next((error for error in errors if isinstance(error, Exception)), errors[0])
        yield outcomes
