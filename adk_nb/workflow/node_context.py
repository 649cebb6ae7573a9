"""The context of a graph's node: it has the path of the node, and runs other nodes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import Field, InstanceOf

from adk_nb.runtime.context import Context
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.workflow.base_node import BaseNode


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """The options with which a node runs another node: the arguments of `Context.run_node`."""

    use_as_output: bool = False
    run_id: str | None = None
    use_sub_branch: bool = False
    override_branch: str | None = None
    override_isolation_scope: str | None = None
    raise_on_wait: bool = False
    counted: bool = False
    """`run_id` is a number that the node counts itself."""


RunNode = Callable[[Any, Any, NodeOptions], Awaitable[Any]]
"""`(node, input, options)` -> output."""


class NodeContext(Context):
    """The Context of one attempt of one run of a node."""

    def __init__(
        self,
        invocation_context: InvocationContext,
        *,
        path: str,
        attempt: int,
        answers: Mapping[str, Any],
        run_node: RunNode,
        node: BaseNode,
        interrupt_ids: Callable[[], Iterable[str]],
    ) -> None:
        super().__init__(invocation_context)
        self._node = node
        self._interrupt_ids = interrupt_ids
        self.node_path = path
        self.run_id = path.rpartition("/")[2]
        self.attempt_count = attempt
        self.resume_inputs = answers
        self._run_node = run_node

    @property
    def node(self) -> BaseNode:
        return self._node

    @property
    def interrupt_ids(self) -> set[str]:
        return set(self._interrupt_ids())

    async def run_node(
        self,
        node: Any,
        node_input: Any = None,
        *,
        use_as_output: bool = False,
        run_id: str | None = None,
        use_sub_branch: bool = False,
        override_branch: str | None = None,
        override_isolation_scope: str | None = None,
        raise_on_wait: bool = False,
    ) -> Any:
        options = NodeOptions(
            use_as_output=use_as_output,
            run_id=run_id,
            use_sub_branch=use_sub_branch,
            override_branch=override_branch,
            override_isolation_scope=override_isolation_scope,
            raise_on_wait=raise_on_wait,
        )
        return await self._run_node(node, node_input, options)


async def run_item(context: NodeContext, node: Any, node_input: Any, number: int) -> Any:
    """Run `node` for one of several inputs on a branch of its own; `number` counts from 1."""
    options = NodeOptions(run_id=str(number), use_sub_branch=True, counted=True)
    return await context._run_node(node, node_input, options)  # pyright: ignore[reportPrivateUsage]


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
