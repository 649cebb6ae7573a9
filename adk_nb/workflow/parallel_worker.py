"""A node that runs once for each item of a list, at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

from pydantic import Field, InstanceOf

from adk_nb.runtime.context import Context
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.node_context import NodeContext


class ParallelWorker(BaseNode):
    """Runs `worker` for each item of its input, each on a branch of its own; the output is theirs, in that order.

    An input that is no list is one item. When some fail, the others come to their end first, and then the error of the
    first of them is raised.
    """

    worker: InstanceOf[BaseNode]
    max_parallel_workers: int | None = Field(default=None, ge=1)
    """The most that run at a time. None: all."""

    def fingerprint(self) -> str:
        return self.worker.fingerprint()

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        items = cast(list[Any], node_input) if isinstance(node_input, list) else [node_input]
        room = asyncio.Semaphore(self.max_parallel_workers or max(1, len(items)))

        async def one(number: int, item: Any) -> Any:
            async with room:
                return await cast(NodeContext, ctx).run_item(self.worker, item, number)

        done = await asyncio.gather(*(one(*each) for each in enumerate(items, 1)), return_exceptions=True)
        failed = [outcome for outcome in done if isinstance(outcome, BaseException)]
        if failed:
            raise next(
                (error for error in failed if isinstance(error, Exception)), failed[0]
            )  # those beside it may wait
        yield done
