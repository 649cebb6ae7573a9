"""Runs that a node starts itself, with their outputs for the node that runs again after an answer."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import without_answers
from adk_nb.runtime.parallel_streams import StreamEnd
from adk_nb.workflow.base_node import BaseNode, is_step
from adk_nb.workflow.node_context import NodeOptions
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.node_run import NodeRun, Paused
from adk_nb.workflow.values import from_stored, to_stored


class InnerRuns:
    """The runs of nodes that other nodes of one walk started."""

    def __init__(self, adopt: Callable[[BaseNode], None], start: Callable[[NodeRun, InvocationContext], None]) -> None:
        """`adopt`: adopts the agents of nodes that other nodes run. `start`: starts a run; the caller calls `finish`
        when it has ended, or waits.
        """
        self._adopt = adopt
        self._start = start
        self._running: dict[str, asyncio.Future[NodeRun]] = {}
        """Path -> the future that is done when the run has ended, or waits."""
        self._ended: dict[str, Any] = {}
        """Path -> output, until the node that started the run has ended."""
        self._waiting: dict[str, dict[str, Any]] = {}
        """Path -> the stored form of a waiting run."""
        self._agent_nodes: dict[int, tuple[BaseAgent, BaseNode]] = {}
        """Id of an agent that a node ran -> the agent and its node."""
        self._answers: Mapping[str, Any] = {}

    async def output_of(
        self, caller: NodeRun, ctx: InvocationContext, node_like: Any, node_input: Any, options: NodeOptions
    ) -> Any:
        """The output of a node that `caller` runs; of one that ended before a pause, its stored output.

        Raises:
            Paused: It waits.
            WorkflowConfigurationError: The options exclude each other, or the run id is not valid.
        """
        run = self._run_of(caller, self._node_of(node_like), node_input, options)
        # In this order: output in a stored event, output from before a pause, running, resumable or new, waiting.
        if ctx.checkpoints and run.recall(ctx) and run.ends_with_output:
            self._settle(run, caller)
        elif run.path in self._ended:
            run.output = self._ended[run.path]
            run.has_output = run.output is not None
            self._settle(run, caller)
        elif running := self._running.get(run.path):
            # Shielded: another caller awaits the same run.
            run = await asyncio.shield(running)
        elif not (checkpoint := self._waiting.pop(run.path, None)) or self._can_resume(run, checkpoint):
            self._running[run.path] = future = asyncio.get_running_loop().create_future()
            self._start(run, ctx if checkpoint else without_answers(ctx))
            await future
        else:
            self._settle(run, caller)
        if run.waits or (options.raise_on_wait and run.node.wait_for_output and not run.has_output):
            raise Paused
        return run.output

    def finish(self, run: NodeRun, end: StreamEnd) -> bool:
        """Record the end or the pause of a run. False: it is not an inner run.

        Its outcome counts even if its caller no longer awaits it, as in a task group in which another run waits.
        """
        future = self._running.pop(run.path, None)
        if future is None or run.caller is None:
            return False
        if end.error is None:
            self._settle(run, run.caller)
        if not future.done():
            future.set_exception(end.error) if end.error else future.set_result(run)
        return True

    def forget(self, under: NodeRun) -> None:
        """Forget the runs inside a node that has ended."""
        start = f"{under.path}/"
        for path in [entry for entry in self._ended if entry.startswith(start)]:
            del self._ended[path]

    def as_json(self) -> dict[str, Any]:
        """The runs as they are stored while the walk waits."""
        return {
            "inner_ended": {path: to_stored(value) for path, value in self._ended.items()},
            "inner_waiting": self._waiting,
        }

    def restore(self, checkpoint: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
        """Restore the runs of a checkpoint. `answers`: by interrupt id."""
        self._ended = {path: from_stored(entry) for path, entry in checkpoint["inner_ended"].items()}
        self._waiting, self._answers = dict(checkpoint["inner_waiting"]), answers

    def _run_of(self, caller: NodeRun, node: BaseNode, node_input: Any, options: NodeOptions) -> NodeRun:
        # Counted in the order of the calls: after a pause the caller makes the same calls again.
        caller.inner_counts[node.name] = number = caller.inner_counts.get(node.name, 0) + 1
        run_id = options.run_id
        if run_id is not None and not options.counted and (not is_step(run_id) or run_id.isdigit()):
            raise WorkflowConfigurationError(
                f"run_id={run_id!r} of node {node.name!r} is not valid: it is empty, a number, as runs without a "
                "run_id have, or has one of / @ . in it; write one like 'first'"
            )
        step = f"{node.name}@{options.run_id or number}"
        branch = options.override_branch or caller.branch
        if options.use_sub_branch:
            branch = f"{branch}.{step}" if branch else step
        run = NodeRun(
            node=node,
            number=number,
            run_id=options.run_id,
            author=caller.author,
            outer=caller.path,
            input=node_input,
            branch=branch,
            caller=caller,
            as_output=options.use_as_output,
            isolation_scope=options.override_isolation_scope or caller.isolation_scope,
        )
        if options.use_as_output:
            if caller.output_source not in (None, run.path):
                raise WorkflowConfigurationError(
                    f"node {caller.node.name!r} ran {caller.output_source} with use_as_output=True, and now "
                    f"{run.path}; a node has one output: pass use_as_output to one of them"
                )
            caller.output_source = run.path
        return run

    def _settle(self, run: NodeRun, caller: NodeRun) -> None:
        if run.waits:
            self._waiting[run.path] = run.as_json()
            # The caller waits for the same answers.
            caller.interrupt_ids += [entry for entry in run.interrupt_ids if entry not in caller.interrupt_ids]
            return
        if run.inner_counts:
            self.forget(run)
        self._ended[run.path] = run.output
        if run.as_output and run.has_output:
            caller.set_output(run.output)

    def _node_of(self, node_like: Any) -> BaseNode:
        if not isinstance(node_like, BaseAgent):
            node = build_node(node_like)
        elif (cached := self._agent_nodes.get(id(node_like))) is not None:
            return cached[1]
        else:
            node = build_node(node_like)
            self._agent_nodes[id(node_like)] = (node_like, node)
        self._adopt(node)
        return node

    def _can_resume(self, run: NodeRun, checkpoint: dict[str, Any]) -> bool:
        """True if a node that waited has to run again; else it still waits, or the answer is its output."""
        run.restore(checkpoint)
        answered = run.take(self._answers)
        if answered and run.reruns_node:
            run.interrupt_ids = []
            return True
        if answered and not run.interrupt_ids:
            run.output, run.has_output = run.answers[answered[-1]], True
        return False
