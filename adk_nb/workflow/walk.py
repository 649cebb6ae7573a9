"""One run of a workflow: the nodes that run, their followers, and its checkpoint while it waits."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from pydantic_core import to_jsonable_python

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions
from adk_nb.events.graph_checkpoint import CHECKPOINT, awaited_keys, checkpoint_in
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.runtime import observer
from adk_nb.runtime.history import History, history_of
from adk_nb.runtime.interrupts import answered_value, read_as
from adk_nb.runtime.invocation_context import CurrentNode, InvocationContext, RunnableAgent
from adk_nb.runtime.open_calls import without_answers
from adk_nb.runtime.parallel_streams import ParallelStreams
from adk_nb.workflow.agent_node import AgentNode
from adk_nb.workflow.base_node import BaseNode, JoinNode
from adk_nb.workflow.graph import START, Graph
from adk_nb.workflow.inner_runs import InnerRuns
from adk_nb.workflow.node_context import NodeOptions
from adk_nb.workflow.node_run import NodeRun
from adk_nb.workflow.tool_node import ToolNode
from adk_nb.workflow.values import from_stored, to_stored

logger = logging.getLogger(__name__)

_RUNNING, _COMPLETED, _WAITING = 2, 3, 4
"""Source: google-adk 2.13, `NodeStatus`, whose numbers are stored."""


class WalkedWorkflow(RunnableAgent, Protocol):
    """A workflow as its walk reads it."""

    @property
    def graph(self) -> Graph:
        """Its nodes and edges."""
        ...

    @property
    def max_concurrency(self) -> int | None:
        """Maximum number of nodes that run at a time. None: no limit."""
        ...

    @property
    def max_steps(self) -> int:
        """Maximum number of repeated node runs in one walk."""
        ...

    @property
    def allow_multiple_outputs(self) -> bool:
        """Several of its nodes may end it with an output."""
        ...

    @property
    def output_schema(self) -> Any:
        """The type of its output."""
        ...

    def adopt(self, node: BaseNode, /) -> None:
        """Become the parent of the agents in a node."""
        ...


class Walk:
    """Walks a graph. Of ended nodes it keeps only the outputs that joins and the end of the run need."""

    def __init__(self, workflow: WalkedWorkflow, ctx: InvocationContext, node: CurrentNode) -> None:
        """`node`: the workflow itself as a node."""
        self._workflow = workflow
        self._name = workflow.name
        self._graph = workflow.graph
        self._ctx = ctx
        self._node = node
        self._path = node.path
        self._running: ParallelStreams[str] = ParallelStreams(workflow.max_concurrency)
        self._runs: dict[str, NodeRun] = {}
        self._waiting: dict[str, NodeRun] = {}
        self._counts: dict[str, int] = {}
        self._joins: dict[str, dict[str, Any]] = {}
        self._branches: dict[str, list[str | None]] = {}
        """Join -> branches of the ended nodes before it."""
        self._inner = InnerRuns(workflow.adopt, self._run)
        self._repeats = 0
        self.outputs: dict[str, Any] = {}
        """Node -> output, of the nodes that nothing follows."""

    @property
    def waits(self) -> bool:
        """True: some of its nodes wait for answers."""
        return bool(self._waiting)

    # -- the walk

    def begin(self) -> bool:
        """Start at the beginning, or resume from the workflow's checkpoint.

        With answers, resume from the checkpoint that asked for them. False: it does not wait for them.
        """
        ctx, history = self._ctx, history_of(self._ctx.session)
        if answered := set(ctx.calls_answered):
            if not ctx.is_resumable:
                pauses = history.pauses()
                newest = next((index for index, event in pauses if _checkpoint_in(event, self._name, self._path)), None)
                # Its newest checkpoint does not wait for them, or all of them have been answered since.
                if newest is not None and (
                    all(history.is_answered_since(key, newest, except_in=ctx.invocation_id) for key in answered)
                    or answered.isdisjoint(awaited_keys(history.events[newest]))
                ):
                    logger.warning(
                        "workflow %r does not wait for an answer to %s any more", self._name, sorted(answered)
                    )
                    return False
            asked = _checkpoint_that_asked(history, self._name, self._path, answered)
            if asked is not None:
                self._restore(asked[0], self._answers(), asked[1])
            return asked is not None
        state = (ctx.checkpoints.state_of(self._workflow, ctx.branch) if ctx.checkpoints else None) or {}
        checkpoint = checkpoint_in(state)
        if checkpoint is None and CHECKPOINT in state:
            raise WorkflowConfigurationError(
                f"workflow {self._name!r} cannot be resumed: its stored checkpoint cannot be read; start again with a "
                "text, and its nodes run anew"
            )
        if checkpoint is not None and checkpoint["path"] == self._path:
            self._restore(checkpoint, {})
        else:
            self._start_next(START, self._graph.next(START, []), self._node.input, ctx.branch)
        return True

    async def events(self) -> AsyncGenerator[Event, None]:
        """Run nodes until all have ended, or the others wait.

        Raises:
            Exception: A node raised it.
        """
        is_resumable, max_steps = self._ctx.is_resumable, self._workflow.max_steps
        if is_resumable:
            yield self._checkpoint()
        async with aclosing(self._running.merged()) as items:
            async for key, item in items:
                if isinstance(item, Event):
                    yield item
                    continue
                run = self._runs.pop(key)
                # Before its error is raised: the caller of an inner run may catch it.
                if run.caller and self._inner.finish(run, item):
                    pass
                elif item.error:
                    raise item.error
                elif run.waits:
                    self._waiting[run.key] = run
                else:
                    if run.inner_counts:
                        self._inner.forget(run)
                    self._start_followers(run)
                if self._repeats > max_steps:
                    raise WorkflowConfigurationError(
                        f"workflow {self._name!r} repeated nodes {self._repeats} times without reaching its end; "
                        "check the routes of its cycles, or raise Workflow(max_steps=...)"
                    )
                if is_resumable:
                    yield self._checkpoint(run)
        # Without resumability a checkpoint is written only for a pause.
        if self._waiting and not is_resumable:
            yield self._checkpoint()
        for name, inputs in self._joins.items() if self.is_over else ():
            missing = ", ".join(entry for entry in self._graph.predecessors[name] if entry not in inputs)
            logger.warning(
                "workflow %r: join %r waited for %s, and no edge led there; if only one of its inputs comes, "
                "lead to the next node without the join",
                self._name,
                name,
                missing,
            )

    def _start_followers(self, run: NodeRun) -> None:
        """Start the nodes after a run that has ended."""
        name = run.node.name
        if run.node.wait_for_output and not run.has_output:
            return
        if self._graph.ends(name):
            if run.has_output:
                self.outputs[name] = run.output
            return
        following = self._graph.next(name, run.routes)
        if not following and self._graph.leads_to_end(name, run.routes):
            if run.has_output:
                self.outputs[name] = run.output
            return
        if not following:
            chose = f"the route {', '.join(map(repr, run.routes))}" if run.routes else "no route"
            choose = "" if run.routes else "let it yield Event(output=..., route=...), or "
            logger.warning(
                "workflow %r: node %r chose %s, and no edge is for that; %sadd one for DEFAULT_ROUTE, or %s -[*]-> END",
                self._name,
                name,
                chose,
                choose,
                name,
            )
        self._start_next(name, following, run.output, run.branch)

    def _start_next(self, name: str, following: list[str], value: Any, branch: str | None) -> None:
        for entry in following:
            node = self._graph.nodes[entry]
            if isinstance(node, JoinNode):
                self._join(node, name, value, branch)
            else:
                # Nodes in parallel must not see each other's events.
                self._start(node, value, branch, on_own_branch=len(following) > 1)

    def _join(self, node: JoinNode, name: str, value: Any, branch: str | None) -> None:
        predecessors = self._graph.predecessors[node.name]
        inputs = self._joins.setdefault(node.name, {})
        inputs[name] = value
        self._branches.setdefault(node.name, []).append(branch)
        if len(inputs) == len(predecessors):
            del self._joins[node.name]
            branches = self._branches.pop(node.name)
            # After a join agents see the events before the fork, and the outputs of the branches.
            self._start(
                node, {entry: inputs[entry] for entry in predecessors}, _common_branch(branches), on_own_branch=False
            )

    def _start(self, node: BaseNode, value: Any, branch: str | None, *, on_own_branch: bool) -> None:
        number = self._counts[node.name] = self._counts.get(node.name, 0) + 1
        step = f"{node.name}@{number}"
        if on_own_branch:
            branch = f"{branch}.{step}" if branch else step
        run = NodeRun(node=node, number=number, author=self._name, outer=self._path, input=value, branch=branch)
        self._set_outer_output(run)
        self._run(run, without_answers(self._ctx))

    def _set_outer_output(self, run: NodeRun) -> None:
        """The output of a node that nothing follows is the workflow's, too."""
        if self._graph.ends(run.node.name):
            run.output_for = [self._path, *self._node.output_for]
            run.outer_schema = None if self._workflow.allow_multiple_outputs else self._workflow.output_schema

    def _run(self, run: NodeRun, ctx: InvocationContext) -> None:
        self._repeats += run.repeats
        key = run.path if run.caller else run.key
        self._runs[key] = run

        def run_node(node_like: Any, node_input: Any, options: NodeOptions) -> Awaitable[Any]:
            return self._inner.output_of(run, ctx, node_like, node_input, options)

        # An inner run does not count towards the limit: its caller has a slot while it waits.
        self._running.start(key, _observed(run, ctx, run.events(ctx, run_node)), limited=not run.caller)

    # -- pauses

    def _checkpoint(self, ended: NodeRun | None = None) -> Event:
        """The event with its checkpoint, from which a later run resumes. `ended`: the run that ended last."""
        running = [run for run in self._runs.values() if not run.caller]
        stored = {
            "waiting": [run.as_json() for run in self._waiting.values()],
            "running": [run.as_json() for run in running],
            **self._inner.as_json(),
            "counts": dict(self._counts),
            "joins": {
                name: {before: to_stored(value) for before, value in inputs.items()}
                for name, inputs in self._joins.items()
            },
            "branches": {name: list(entry) for name, entry in self._branches.items()},
            "outputs": to_jsonable_python(self.outputs, fallback=str),
            "path": self._path,
        }
        state: dict[str, Any] = {CHECKPOINT: stored}
        if self._ctx.is_resumable:
            done = [ended] if ended and not ended.caller else []
            state["nodes"] = {run.node.name: _status(run, _COMPLETED) for run in done}
            state["nodes"] |= {run.node.name: _status(run, _RUNNING) for run in running}
            state["nodes"] |= {run.node.name: _status(run, _WAITING) for run in self._waiting.values()}
        return Event(
            author=self._name,
            branch=self._ctx.branch,
            node_info=NodeInfo(path=self._path),
            actions=EventActions(agent_state=state),
        )

    @property
    def is_over(self) -> bool:
        """True: no node runs, and none waits."""
        return not (self._runs or self._waiting)

    def _restore(
        self, checkpoint: Mapping[str, Any], answers: Mapping[str, Any], since: Mapping[str, list[str]] | None = None
    ) -> None:
        """`since`: requests after the checkpoint, by the path of the node."""
        # Inner runs first: the nodes started below look them up.
        self._inner.restore(checkpoint, answers)
        self._counts, self.outputs = dict(checkpoint["counts"]), dict(checkpoint["outputs"])
        self._branches = {key: list(entry) for key, entry in checkpoint["branches"].items()}
        self._joins = {
            name: {before: from_stored(entry) for before, entry in inputs.items()}
            for name, inputs in checkpoint["joins"].items()
        }
        for entry in checkpoint["waiting"]:
            self._answer(self._restored_run(entry), answers)
        for entry in checkpoint["running"]:
            run = self._restored_run(entry)
            # It asked after the checkpoint, which has it as running, was written.
            if since and run.path in since:
                run.interrupt_ids = since[run.path]
                self._answer(run, answers)
            elif run.recall(self._ctx) and run.ends_with_output:
                self._start_followers(run)
            else:
                self._run(run, without_answers(self._ctx, is_resumed=True))

    def _restored_run(self, entry: Mapping[str, Any]) -> NodeRun:
        node = self._graph.nodes.get(entry["node"])
        if node is None:
            raise WorkflowConfigurationError(
                f"workflow {self._name!r} stopped at node {entry['node']!r}, which its edges no longer have; "
                "put the node back, or start again with a text instead of an answer"
            )
        run = NodeRun.of(entry, node, self._name, self._path)
        self._set_outer_output(run)
        return run

    def _answers(self) -> dict[str, Any]:
        """The answers in the user's message, read by the schemas of their questions.

        A node that waits for text gets it as it is.
        """
        answers: dict[str, Any] = {}
        for response in self._ctx.responses:
            question = history_of(self._ctx.session).calls.newest(response.id)
            args: dict[str, Any] = (question and question.call.args) or {}
            key, value = response.id or "", answered_value(response)
            # A yes is `true`, and no text that reads like it.
            answers[key] = value if key.startswith(NODE_APPROVAL) else read_as(value, args.get("response_schema"))
        return answers | {self._ctx.task_call_id: None} if self._ctx.task_call_id else answers

    def _answer(self, run: NodeRun, answers: Mapping[str, Any]) -> None:
        answered = run.take(answers)
        # A node whose answer is its output waits for all answers; any other runs again after each.
        if not answered or (run.interrupt_ids and not run.reruns_node):
            self._waiting[run.key] = run
        elif run.reruns_node:
            run.unanswered, run.interrupt_ids = run.interrupt_ids, []
            self._run(run, self._ctx)
        else:
            run.output, run.has_output = run.answers[answered[-1]], True
            self._start_followers(run)


def _checkpoint_in(event: Event, name: str, path: str) -> dict[str, Any] | None:
    """The workflow's checkpoint in an event. None: there is none."""
    if event.author != name or event.node_info.path != path:
        return None
    return checkpoint_in(event.actions.agent_state)


def _status(run: NodeRun, status: int) -> dict[str, Any]:
    return {"status": status, "interrupts": list(run.interrupt_ids)}


def _observed(run: NodeRun, ctx: InvocationContext, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    # Agents and tools are observed where they run.
    if observer.registered is None or isinstance(run.node, AgentNode | ToolNode | JoinNode):
        return events
    return observer.registered.node(run.node.name, ctx, run.path, events)


def _common_branch(branches: Iterable[str | None]) -> str | None:
    """The longest common prefix of the branches. None: empty."""
    steps = [branch.split(".") if branch else [] for branch in branches]
    shared: list[str] = []
    for level in zip(*steps, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return ".".join(shared) or None


def _checkpoint_that_asked(
    history: History, name: str, path: str, ids: set[str]
) -> tuple[dict[str, Any], dict[str, list[str]]] | None:
    """The newest checkpoint that waits for one of `ids`, or whose nodes then requested it; and these later requests."""
    since: dict[str, list[str]] = {}
    for _, event in history.pauses():
        node_path = event.node_info.path
        if checkpoint := _checkpoint_in(event, name, path):
            running = {f"{path}/{entry['node']}@{entry['number']}" for entry in checkpoint["running"]}
            asked = [entry["asked"] for entry in checkpoint["waiting"]] + [
                since[entry] for entry in running & since.keys()
            ]
            if any(ids.intersection(entry) for entry in asked):
                return checkpoint, since
        # Without node approvals: a node that runs again requests its approval anew.
        elif asked := [entry for entry in event.long_running_tool_ids or () if not entry.startswith(NODE_APPROVAL)]:
            since[node_path] = [*since.get(node_path, ()), *asked]
    return None
