"""Graphs built by chance from rows, forks that join, choices, circles, inner workflows and workers: whatever is asked,
fails or is cut short in them, they come to their end.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from adk_nb import Context
from adk_nb.events import Event, RequestInput
from adk_nb.workflow import DEFAULT_ROUTE, START, BaseNode, Edge, JoinNode, Workflow, node
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk
from tests.workflow.steps import answers, asked

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
Block = tuple[Any, ...]
LIMITS = st.sampled_from([None, 1, 2])


@dataclass
class Seen:
    """What the nodes of a graph did, and what they are to do."""

    ran: Counter[str] = field(default_factory=Counter[str])
    joined: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    asks: set[str] = field(default_factory=set[str])
    fails: str | None = None


class Step(BaseNode):
    """Gives its name; or asks, or fails, if it is to."""

    seen: Any
    routes: list[Any] = Field(default_factory=list)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        self.seen.ran[self.name] += 1
        await asyncio.sleep(0)
        if self.seen.fails == self.name:
            raise OSError(self.name)
        if self.name in self.seen.asks:
            yield RequestInput(interrupt_id=ctx.node_path, message="?")
        else:
            yield Event(output=self.name, route=self.routes or None)


class Again(Step):
    """Leads back until it has run `times` times."""

    times: int

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        self.seen.ran[self.name] += 1
        yield Event(output=self.name, route="again" if self.seen.ran[self.name] % self.times else "out")


class Join(JoinNode):
    """Notes what came together."""

    seen: Any

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> Any:
        self.seen.ran[self.name] += 1
        self.seen.joined.append((self.name, *node_input))
        yield node_input


LEAF = st.just(("step",))


def _larger(inner: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("row"), several),
        st.tuples(st.just("fork"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("choice"), st.integers(0, 3), several),
        st.tuples(st.just("circle"), st.integers(1, 3), inner),
        st.tuples(st.just("workflow"), inner),
        st.tuples(st.just("worker"), st.integers(0, 3)),
        st.tuples(st.just("caller"), st.integers(1, 3), st.booleans()),
    )


BLOCKS = st.recursive(LEAF, _larger, max_leaves=8)


@dataclass
class Built:
    """The edges of a block with one way in and one way out."""

    first: Any
    last: Any
    edges: list[Edge]

    def then(self, second: "Built", route: Any = None) -> "Built":
        edge = Edge(from_node=self.last, to_node=second.first, route=route)
        return Built(self.first, second.last, [*self.edges, *second.edges, edge])


@dataclass
class Maker:
    """Makes a graph of a block, and says how often each of its nodes is to run."""

    seen: Seen
    limit: int | None = None
    runs: Counter[str] = field(default_factory=Counter[str])
    joins: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    at_once: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The fewest and the most runs of a node that fail before its error ends the run, where that is not one."""

    def graph(self, block: Block) -> Workflow:
        whole = self.block(block, "b", 1).then(self.step("end", 1))
        return Workflow(name="wf", edges=[(START, whole.first), *whole.edges], max_concurrency=self.limit)

    def step(self, name: str, times: int, **fields: Any) -> Built:
        self.runs[name] = times
        step = Step(name=name, seen=self.seen, **fields)
        return Built(step, step, [])

    def block(self, block: Block, name: str, times: int) -> Built:
        kind, *rest = block
        return getattr(self, f"_{kind}")(name, times, *rest)

    def _step(self, name: str, times: int) -> Built:
        return self.step(name, times)

    def _row(self, name: str, times: int, blocks: list[Block]) -> Built:
        first, *other_parts = self._parts(name, times, blocks)
        for other_part in other_parts:
            first = first.then(other_part)
        return first

    def _fork(self, name: str, times: int, blocks: list[Block]) -> Built:
        fork, parts = self.step(f"{name}fork", times), list(self._parts(name, times, blocks))
        join = Join(name=f"{name}join", seen=self.seen)
        self.runs[join.name] = times
        self.joins[join.name] = tuple(part.last.name for part in parts)
        edges = [Edge(from_node=fork.last, to_node=part.first) for part in parts]
        edges += [Edge(from_node=part.last, to_node=join) for part in parts]
        return Built(fork.first, join, [*edges, *(edge for part in parts for edge in part.edges)])

    def _choice(self, name: str, times: int, index: int, blocks: list[Block]) -> Built:
        """The last is the default."""
        goes = min(index, len(blocks) - 1)
        choose, merge = self.step(f"{name}choose", times, routes=[index]), self.step(f"{name}merge", times)
        edges: list[Edge] = []
        for number, block in enumerate(blocks):
            part = self.block(block, f"{name}{number}", times if number == goes else 0)
            route = DEFAULT_ROUTE if number == len(blocks) - 1 else number
            edges += choose.then(part, route).then(merge).edges
        return Built(choose.first, merge.last, edges)

    def _circle(self, name: str, times: int, passes: int, block: Block) -> Built:
        head, body = self.step(f"{name}head", times * passes), self.block(block, f"{name}0", times * passes)
        tail = Again(name=f"{name}tail", seen=self.seen, times=passes)
        self.runs[tail.name] = times * passes
        whole = head.then(body).then(Built(tail, tail, []))
        whole.edges.append(Edge(from_node=tail, to_node=head.first, route="again"))
        return whole.then(self.step(f"{name}out", times), "out")

    def _workflow(self, name: str, times: int, block: Block) -> Built:
        whole = self.block(block, f"{name}0", times)
        item = node(Workflow(name=name, edges=[(START, whole.first), *whole.edges], max_concurrency=self.limit))
        return Built(item, item, [])

    def _worker(self, name: str, times: int, items: int) -> Built:
        lists = node(lambda: list(range(items)), name=f"{name}list")
        self.runs[f"{name}item"] = times * items
        self.at_once[f"{name}item"] = (items, items)
        work = node(Step(name=f"{name}item", seen=self.seen), parallel_worker=True, max_parallel_workers=self.limit)
        return Built(lists, lists, []).then(Built(work, work, []))

    def _caller(self, name: str, times: int, calls: int, at_once: bool) -> Built:
        self.runs[f"{name}called"] = times * calls
        self.at_once[f"{name}called"] = (1, calls if at_once else 1)
        called = Step(name=f"{name}called", seen=self.seen)

        async def calls_them(ctx: Context) -> list[Any]:
            if at_once:
                return list(await asyncio.gather(*(ctx.run_node(called) for _ in range(calls))))
            return [await ctx.run_node(called) for _ in range(calls)]

        item = node(calls_them, name=name)
        return Built(item, item, [])

    def _parts(self, name: str, times: int, blocks: list[Block]) -> Iterator[Built]:
        return (self.block(block, f"{name}{number}", times) for number, block in enumerate(blocks))

    def check(self) -> None:
        """It has run whole, and once."""
        assert self.seen.ran == +self.runs
        assert Counter(self.seen.joined) == Counter(
            {(name, *earlier_join): self.runs[name] for name, earlier_join in self.joins.items() if self.runs[name]}
        )


def leaves(runs: Counter[str]) -> list[str]:
    """The nodes that may ask or fail: what leads on by a route has to say it."""
    ends = ("choose", "tail")
    return sorted(name for name in runs if not name.endswith((*ends, "join")))


def ended(events: list[Event]) -> bool:
    return bool(events) and events[-1].node_info.path == "wf@1/end@1" and events[-1].output == "end"


def alone() -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}


@QUICK
@given(BLOCKS, LIMITS)
def test_every_node_runs_as_often_as_its_block_says_and_joins_wait_for_all(block: Block, limit: int | None):
    maker = Maker(Seen(), limit)
    graph = maker.graph(block)

    async def run() -> None:
        talk = Talk(graph)
        events = await asyncio.wait_for(talk.asay("go"), SECONDS)
        assert talk.error is None and ended(events)
        alone()

    asyncio.run(run())
    maker.check()


@QUICK
@given(BLOCKS, LIMITS, st.data())
def test_questions_are_answered_in_any_order_some_at_a_time_by_any_process(
    block: Block, limit: int | None, data: st.DataObject
):
    log = Seen()
    maker = Maker(log, limit)
    graph = maker.graph(block)
    log.asks = data.draw(st.sets(st.sampled_from([name for name in leaves(maker.runs) if name != "end"] or ["none"])))
    questions = sum(maker.runs[name] for name in log.asks)

    async def run() -> None:
        talk = Talk(graph)
        events = await asyncio.wait_for(talk.asay("go"), SECONDS)
        pending_requests, number = set(asked(events)), 0
        while pending_requests:
            assert talk.error is None and not ended(events)
            now = data.draw(st.sets(st.sampled_from(sorted(pending_requests)), min_size=1))
            talk.runner.agent = Maker(log, limit).graph(block)  # another process has only the session
            events = await asyncio.wait_for(talk.asay(answers(dict.fromkeys(sorted(now), "yes"))), SECONDS)
            pending_requests, number = pending_requests - now | set(asked(events)), number + len(now)
            assert number <= questions
        assert talk.error is None and ended(events) and number == questions
        alone()

    asyncio.run(run())
    maker.check()


@QUICK
@given(BLOCKS, LIMITS, st.data())
def test_an_error_is_told_once_and_leaves_nothing_behind(block: Block, limit: int | None, data: st.DataObject):
    log = Seen()
    maker = Maker(log, limit)
    graph = maker.graph(block)
    log.fails = data.draw(st.sampled_from(leaves(maker.runs)))
    reached = bool(maker.runs[log.fails])

    async def run() -> None:
        talk = Talk(graph)
        events = await asyncio.wait_for(talk.asay("go"), SECONDS)
        alone()
        failed = [event for event in events if event.error_code]
        assert isinstance(talk.error, OSError) == reached
        fewest, most = maker.at_once.get(log.fails or "", (1, 1)) if reached else (0, 0)
        assert fewest <= len(failed) <= most
        assert all(count <= maker.runs[name] for name, count in log.ran.items())
        await again(talk, maker)

    asyncio.run(run())


@QUICK
@given(BLOCKS, LIMITS, st.integers(0, 12), st.sampled_from(["leave", "cancel", "abort"]))
def test_who_cuts_a_run_short_leaves_nothing_running(block: Block, limit: int | None, count: int, how: str):
    maker = Maker(Seen(), limit)
    graph = maker.graph(block)

    async def run() -> None:
        talk = Talk(graph)
        claimed, stop = asyncio.Event(), asyncio.Event()

        async def reads() -> None:
            number = 0
            turn = talk.runner.run_async(**SESSION_KEY, new_message="go", abort_signal=stop)
            async with aclosing(turn) as events:
                async for _ in events:
                    number += 1
                    if number == count:
                        claimed.set()
                        if how == "leave":
                            break
                        if how == "abort":
                            stop.set()

        reader = asyncio.create_task(reads())
        watch = asyncio.create_task(claimed.wait())
        await asyncio.wait({reader, watch}, return_when=asyncio.FIRST_COMPLETED, timeout=SECONDS)
        if how == "cancel":
            reader.cancel()
        watch.cancel()
        await asyncio.wait({reader, watch}, timeout=SECONDS)
        assert reader.done() and (reader.cancelled() or reader.exception() is None)
        alone()
        assert all(ran <= maker.runs[name] for name, ran in maker.seen.ran.items())
        await again(talk, maker)

    asyncio.run(run())


async def again(talk: Talk, built: Maker) -> None:
    """The next message runs the whole graph."""
    built.seen.fails = None
    built.seen.ran.clear()
    built.seen.joined.clear()
    events = await asyncio.wait_for(talk.asay("once more"), SECONDS)
    assert talk.error is None and ended(events)
    built.check()
    alone()
