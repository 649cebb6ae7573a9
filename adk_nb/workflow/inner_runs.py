"""Nodes that nodes run: what each of them came to, for the node that runs again after an answer."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import WorkflowConfigurationError
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import without_answers
from adk_nb.runtime.parallel_streams import StreamEnd
from adk_nb.workflow.base_node import BaseNode, is_step
from adk_nb.workflow.kept import as_it_was, kept
from adk_nb.workflow.node_context import How
from adk_nb.workflow.node_like import build_node
from adk_nb.workflow.node_run import NodeRun, Paused


class Adopts(Protocol):
    """What takes in the agents of nodes that are run by nodes."""

    def adopt(self, node: BaseNode, /) -> None: ...


class InnerRuns:
    """The runs of nodes that other nodes of one walk began."""

    def __init__(self, of: Adopts, start: Callable[[NodeRun, InvocationContext], None]) -> None:
        """`start`: lets a run begin; when it has ended, or waits, `over` is to be called."""
        self._of = of
        self._start = start
        self._running: dict[str, asyncio.Future[NodeRun]] = {}
        """What is done when that has ended, or waits, by path."""
        self._ended: dict[str, Any] = {}
        """The outputs, by path, as long as the node that ran them has not ended."""
        self._waiting: dict[str, dict[str, Any]] = {}
        """Those that wait, as they are kept, by path."""
        self._made: dict[int, tuple[BaseAgent, BaseNode]] = {}
        """The nodes of the agents that nodes run, by id."""
        self._given: Mapping[str, Any] = {}

    async def output_of(
        self, caller: NodeRun, ctx: InvocationContext, node_like: Any, node_input: Any, how: How
    ) -> Any:
        """The output of a node that `caller` runs; of one that has ended before a pause, what it gave then.

        Raises:
            Paused: It waits.
            WorkflowConfigurationError: It cannot be run so.
        """
        run = self._run_of(caller, self._node_of(node_like), node_input, how)
        if ctx.checkpoints and run.recall(ctx) and run.is_done_with_output:
            self._settle(run, caller)
        elif run.path in self._ended:
            run.output = self._ended[run.path]
            run.has_output = run.output is not None
            self._settle(run, caller)
        elif under_way := self._running.get(run.path):
            run = await asyncio.shield(under_way)
        elif not (stood := self._waiting.pop(run.path, None)) or self._goes_on(run, stood):
            self._running[run.path] = over = asyncio.get_running_loop().create_future()
            self._start(run, ctx if stood else without_answers(ctx))
            await over
        else:
            self._settle(run, caller)
        if run.waits or (how.raise_on_wait and run.node.wait_for_output and not run.has_output):
            raise Paused
        return run.output

    def over(self, run: NodeRun, end: StreamEnd) -> bool:
        """Take in what came of a run that has ended, or waits. False: it is none of these.

        It counts even if nobody waits for it any more, as in a task group in which another one waits.
        """
        over = self._running.pop(run.path, None)
        if over is None or run.caller is None:
            return False
        if end.error is None:
            self._settle(run, run.caller)
        if not over.done():
            over.set_exception(end.error) if end.error else over.set_result(run)
        return True

    def forget(self, under: NodeRun) -> None:
        """What a node that has ended ran is needed no more."""
        start = f"{under.path}/"
        for path in [one for one in self._ended if one.startswith(start)]:
            del self._ended[path]

    def as_json(self) -> dict[str, Any]:
        """What is kept of them while the walk waits."""
        return {
            "inner_ended": {path: kept(value) for path, value in self._ended.items()},
            "inner_waiting": self._waiting,
        }

    def take_up(self, stood: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Go on with what was kept. `given`: what was answered, by id."""
        self._ended = {path: as_it_was(one) for path, one in stood["inner_ended"].items()}
        self._waiting, self._given = dict(stood["inner_waiting"]), given

    def _run_of(self, caller: NodeRun, node: BaseNode, node_input: Any, how: How) -> NodeRun:
        caller.others[node.name] = number = caller.others.get(node.name, 0) + 1
        if how.run_id is not None and not how.counted:
            _check_run_id(how.run_id, node.name)
        step = f"{node.name}@{how.run_id or number}"
        branch = how.override_branch or caller.branch
        if how.use_sub_branch:
            branch = f"{branch}.{step}" if branch else step
        run = NodeRun(
            node=node,
            number=number,
            run_id=how.run_id,
            author=caller.author,
            outer=caller.path,
            input=node_input,
            branch=branch,
            caller=caller,
            as_output=how.use_as_output,
            isolation_scope=how.override_isolation_scope or caller.isolation_scope,
        )
        if how.use_as_output:
            if caller.given_by not in (None, run.path):
                raise WorkflowConfigurationError(
                    f"node {caller.node.name!r} ran {caller.given_by} with use_as_output=True, and now {run.path}; "
                    "it has one output: write it at one of them"
                )
            caller.given_by = run.path
        return run

    def _settle(self, run: NodeRun, caller: NodeRun) -> None:
        if run.waits:
            self._waiting[run.path] = run.as_json()
            caller.asked += [one for one in run.asked if one not in caller.asked]
            return
        if run.others:
            self.forget(run)
        self._ended[run.path] = run.output
        if run.as_output and run.has_output:
            caller.take_output(run.output)

    def _node_of(self, node_like: Any) -> BaseNode:
        if not isinstance(node_like, BaseAgent):
            node = build_node(node_like)
        elif (made := self._made.get(id(node_like))) is not None:
            return made[1]
        else:
            node = build_node(node_like)
            self._made[id(node_like)] = (node_like, node)
        self._of.adopt(node)
        return node

    def _goes_on(self, run: NodeRun, stood: dict[str, Any]) -> bool:
        """True if a node that waited is to be run again; else it waits still, or the answer was its output."""
        run.answers, run.asked = dict(stood["answers"]), list(stood["asked"])
        run.held, run.let, run.others = stood["held"], stood["let"], dict(stood["others"])
        run.input = as_it_was(stood["input"])
        mine = run.take(self._given)
        if mine and run.runs_again:
            run.asked = []
            return True
        if mine and not run.asked:
            run.output, run.has_output = run.answers[mine[-1]], True
        return False


def _check_run_id(run_id: str, name: str) -> None:
    if not is_step(run_id) or run_id.isdigit():
        raise WorkflowConfigurationError(
            f"run_id={run_id!r} of node {name!r} is none: it is empty, a number, which runs without one are known by, "
            "or has one of / @ . in it; write one like 'first'"
        )
