"""One run of a workflow: which nodes run, what follows on each, and where it stands when it waits."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

from pydantic_core import to_jsonable_python

from adk_nb.errors import WorkflowConfigurationError
from adk_nb.events.event import Event, NodeInfo
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.runtime.history import CHECKPOINT, History, awaited_keys, history_of
from adk_nb.runtime.interrupts import answered_value
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.nested_calls import without_answers
from adk_nb.runtime.parallel_streams import ParallelStreams, StreamEnd
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.graph import START, Graph
from adk_nb.workflow.inner_runs import Adopts, InnerRuns
from adk_nb.workflow.join_node import JoinNode
from adk_nb.workflow.kept import as_it_was, kept
from adk_nb.workflow.node_context import How
from adk_nb.workflow.node_run import NodeRun

logger = logging.getLogger(__name__)

_RUNS, _DONE, _WAITS = 2, 3, 4
"""How google-adk 2.13 numbers what a node is at."""


class Walk:
    """Walks a graph. What has ended is forgotten, but for what joins and the end of the run still need."""

    def __init__(
        self,
        of: Adopts,
        name: str,
        graph: Graph,
        ctx: InvocationContext,
        path: str,
        output_for: list[str],
        *,
        limit: int | None,
    ) -> None:
        self._name = name
        self._graph = graph
        self._ctx = ctx
        self._path = path
        self._output_for = output_for
        self._running: ParallelStreams[str] = ParallelStreams(limit)
        self._runs: dict[str, NodeRun] = {}
        self._waiting: dict[str, NodeRun] = {}
        self._counts: dict[str, int] = {}
        self._joins: dict[str, dict[str, Any]] = {}
        self._branches: dict[str, list[str | None]] = {}
        """Of those that lead to a join, and have ended."""
        self._inner = InnerRuns(of, self._run)
        self._steps = 0
        self.outputs: dict[str, Any] = {}
        """What nodes gave after which nothing follows, by name."""

    @property
    def waits(self) -> bool:
        """True: some of its nodes wait for answers."""
        return bool(self._waiting)

    # -- what it does

    def begin(self, of: Any, node_input: Any) -> bool:
        """Start at the beginning, or go on from where it was left. `of`: the agent that stood there.

        With an answer, go on from where that was asked. False: it did not wait for that.
        """
        if self._ctx.calls_answered:
            return self._take_up()
        if not self._go_on(of):
            self._go(START, self._graph.next(START, []), node_input, self._ctx.branch)
        return True

    async def events(self, max_steps: int) -> AsyncGenerator[Event, None]:
        """Walk on until all have ended, or the others wait.

        Raises:
            Exception: What a node raised.
        """
        if told := self._ctx.is_resumable:
            yield self._standing()
        async with aclosing(self._running.merged()) as taken:
            async for key, news in taken:
                if isinstance(news, Event):
                    yield news
                    continue
                run = self._ended(key, news)
                if self._steps > max_steps:
                    raise WorkflowConfigurationError(
                        f"workflow {self._name!r} ran {self._steps} nodes without coming to an end; "
                        "look at the routes of its circles, or raise Workflow(max_steps=...)"
                    )
                if told := self._ctx.is_resumable:
                    yield self._standing(run)
        if self._waiting and not told:
            yield self._standing()
        if self.is_over:
            self._warn_of_joins()

    def _warn_of_joins(self) -> None:
        for name, there in self._joins.items():
            missing = ", ".join(one for one in self._graph.before[name] if one not in there)
            logger.warning(
                "workflow %r: join %r waited for %s, and no way led there; where only one of them comes, "
                "lead to what follows without the join",
                self._name,
                name,
                missing,
            )

    def _ended(self, key: str, end: StreamEnd) -> NodeRun:
        run = self._runs.pop(key)
        if run.caller and self._inner.over(run, end):
            return run
        if end.error:
            raise end.error
        if run.waits:
            self._waiting[run.key] = run
        else:
            if run.others:
                self._inner.forget(run)
            self._follow(run)
        return run

    def _follow(self, run: NodeRun) -> None:
        """Let those run that follow on a run that has ended."""
        name = run.node.name
        if run.node.wait_for_output and not run.has_output:
            return
        if self._graph.ends(name):
            if run.has_output:
                self.outputs[name] = run.output
            return
        following = self._graph.next(name, run.taken)
        if not following and self._graph.leads_out(name, run.taken):
            if run.has_output:
                self.outputs[name] = run.output
            return
        if not following:
            chose = f"the route {', '.join(map(repr, run.taken))}" if run.taken else "no route"
            choose = "" if run.taken else "let it give Event(output=..., route=...), or "
            logger.warning(
                "workflow %r: node %r chose %s, and no edge is for that; %sadd one for DEFAULT_ROUTE, or %s -[*]-> END",
                self._name,
                name,
                chose,
                choose,
                name,
            )
        self._go(name, following, run.output, run.branch)

    def _go(self, name: str, following: list[str], value: Any, branch: str | None) -> None:
        for one in following:
            node = self._graph.nodes[one]
            if isinstance(node, JoinNode):
                self._join(node, name, value, branch)
            else:
                self._start(node, value, branch, apart=len(following) > 1)

    def _join(self, node: JoinNode, name: str, value: Any, branch: str | None) -> None:
        before = self._graph.before[node.name]
        there = self._joins.setdefault(node.name, {})
        there[name] = value
        self._branches.setdefault(node.name, []).append(branch)
        if len(there) == len(before):
            del self._joins[node.name]
            branches = self._branches.pop(node.name)
            self._start(node, {one: there[one] for one in before}, _common(branches), apart=False)

    def _start(self, node: BaseNode, value: Any, branch: str | None, *, apart: bool) -> None:
        number = self._counts[node.name] = self._counts.get(node.name, 0) + 1
        step = f"{node.name}@{number}"
        if apart:
            branch = f"{branch}.{step}" if branch else step
        run = NodeRun(
            node=node,
            number=number,
            author=self._name,
            outer=self._path,
            input=value,
            branch=branch,
            output_for=self._output_of(node.name),
        )
        self._run(run, without_answers(self._ctx))

    def _output_of(self, name: str) -> list[str]:
        return [self._path, *self._output_for] if self._graph.ends(name) else []

    def _run(self, run: NodeRun, ctx: InvocationContext) -> None:
        self._steps += 1
        key = run.path if run.caller else run.key
        self._runs[key] = run

        def run_node(node_like: Any, node_input: Any, how: How) -> Awaitable[Any]:
            return self._inner.output_of(run, ctx, node_like, node_input, how)

        self._running.start(key, run.events(ctx, run_node), limited=not run.caller)

    # -- what waits

    def _standing(self, ended: NodeRun | None = None) -> Event:
        """The event that says where it stands, for the run that goes on with it. `ended`: what came to its end last."""
        running = [run for run in self._runs.values() if not run.caller]
        stands = {
            "waiting": [run.as_json() for run in self._waiting.values()],
            "running": [run.as_json() for run in running],
            **self._inner.as_json(),
            "counts": dict(self._counts),
            "joins": {
                name: {before: kept(value) for before, value in there.items()} for name, there in self._joins.items()
            },
            "branches": {name: list(one) for name, one in self._branches.items()},
            "outputs": to_jsonable_python(self.outputs, fallback=str),
            "path": self._path,
        }
        state: dict[str, Any] = {CHECKPOINT: stands}
        if self._ctx.is_resumable:
            done = [ended] if ended and not ended.caller else []
            state["nodes"] = {run.node.name: _status(run, _DONE) for run in done}
            state["nodes"] |= {run.node.name: _status(run, _RUNS) for run in running}
            state["nodes"] |= {run.node.name: _status(run, _WAITS) for run in self._waiting.values()}
        return Event(
            author=self._name,
            branch=self._ctx.branch,
            node_info=NodeInfo(path=self._path),
            actions=EventActions(agent_state=state),
        )

    def _take_up(self) -> bool:
        history, ids = history_of(self._ctx.session), set(self._ctx.calls_answered)
        if not self._ctx.is_resumable and self._is_past(history, ids):
            logger.warning("workflow %r does not wait for an answer to %s any more", self._name, sorted(ids))
            return False
        stood = _standing_that_asked(history, self._name, self._path, ids)
        if stood is not None:
            self._restore(stood[0], self._given(), stood[1])
        return stood is not None

    def _is_past(self, history: History, ids: set[str]) -> bool:
        """True: where it stood last it did not wait for `ids`; or a run has gone on from there with answers to all of
        them, and no error came of it.
        """
        mine = self._name, self._path
        newest = next((at for at, event in history.pauses() if _checkpoint_in(event, *mine)), None)
        if newest is None:
            return False
        own = self._ctx.invocation_id
        if all(history.is_answered_since(key, newest, except_in=own) for key in ids):
            return True
        return ids.isdisjoint(awaited_keys(history.events[newest]))

    def _go_on(self, of: Any) -> bool:
        standing = self._ctx.checkpoints
        stood = ((standing.state_of(of, self._ctx.branch) if standing else None) or {}).get(CHECKPOINT)
        if stood is None or stood["path"] != self._path:
            return False
        self._restore(stood, {})
        return True

    @property
    def is_over(self) -> bool:
        """True: nothing is left to be done, and nothing waits."""
        return not (self._runs or self._waiting)

    def _restore(
        self, stood: Mapping[str, Any], given: Mapping[str, Any], since: Mapping[str, list[str]] | None = None
    ) -> None:
        """`since`: what nodes have asked that had not come to it there yet, by their paths."""
        self._inner.take_up(stood, given)
        self._counts, self.outputs = dict(stood["counts"]), dict(stood["outputs"])
        self._branches = {key: list(one) for key, one in stood["branches"].items()}
        self._joins = {
            name: {before: as_it_was(one) for before, one in there.items()} for name, there in stood["joins"].items()
        }
        for one in stood["waiting"]:
            self._answer(self._as_it_stood(one), given)
        for one in stood["running"]:
            run = self._as_it_stood(one)
            if since and run.path in since:
                run.asked = since[run.path]
                self._answer(run, given)
            elif run.recall(self._ctx) and run.is_done_with_output:
                self._follow(run)
            else:
                self._run(run, without_answers(self._ctx, is_resumed=True))

    def _as_it_stood(self, one: Mapping[str, Any]) -> NodeRun:
        node = self._graph.nodes.get(one["node"])
        if node is None:
            raise WorkflowConfigurationError(
                f"workflow {self._name!r} stands at its node {one['node']!r}, and its edges have none of that name "
                "now; put it back, or begin anew with words instead of an answer"
            )
        run = NodeRun.of(one, node, self._name, self._path)
        run.output_for = self._output_of(node.name)
        return run

    def _given(self) -> dict[str, Any]:
        """What the user's message answers; to a node that waits for words, it is there as it is."""
        given = {response.id or "": answered_value(response) for response in self._ctx.responses}
        return given | {self._ctx.task_call_id: None} if self._ctx.task_call_id else given

    def _answer(self, run: NodeRun, given: Mapping[str, Any]) -> None:
        mine = run.take(given)
        if not mine or (run.asked and not run.runs_again):
            self._waiting[run.key] = run
        elif run.runs_again:
            run.left, run.asked = run.asked, []
            self._run(run, self._ctx)
        else:
            run.output, run.has_output = run.answers[mine[-1]], True
            self._follow(run)


def _checkpoint_in(event: Event, name: str, path: str) -> dict[str, Any] | None:
    """The checkpoint that an event is of the workflow of that name and path. None: it is none."""
    state = event.actions.agent_state
    if not state or event.author != name or event.node_info.path != path:
        return None
    return cast(dict[str, Any] | None, state.get(CHECKPOINT))


def _status(run: NodeRun, status: int) -> dict[str, Any]:
    return {"status": status, "interrupts": list(run.asked)}


def _common(branches: Iterable[str | None]) -> str | None:
    """What all of them begin with."""
    steps = [branch.split(".") if branch else [] for branch in branches]
    shared: list[str] = []
    for level in zip(*steps, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return ".".join(shared) or None


def _standing_that_asked(
    history: History, name: str, path: str, ids: set[str]
) -> tuple[dict[str, Any], dict[str, list[str]]] | None:
    """Where the workflow stood last when it asked one of `ids`, or was about to; and what nodes asked after that."""
    since: dict[str, list[str]] = {}
    for _, event in history.pauses():
        where = event.node_info.path
        if stood := _checkpoint_in(event, name, path):
            running = {f"{path}/{one['node']}@{one['number']}" for one in stood["running"]}
            asked = [one["asked"] for one in stood["waiting"]] + [since[one] for one in running & since.keys()]
            if any(ids.intersection(one) for one in asked):
                return stood, since
        elif asked := [one for one in event.long_running_tool_ids or () if not one.startswith(NODE_APPROVAL)]:
            since[where] = [*since.get(where, ()), *asked]
    return None
