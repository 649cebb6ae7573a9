"""Graphs by chance: every node runs as often as its routes say, joins wait for all, and every run comes to an end."""

import asyncio
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from adk_nb.events import Event, RequestInput
from adk_nb.runners import InMemoryRunner
from adk_nb.workflow import DEFAULT_ROUTE, START, BaseNode, Edge, JoinNode, Workflow
from tests.support.polling import SECONDS
from tests.support.talk import Talk
from tests.workflow.steps import answer, asked

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MOST = 200
ROUTES = ["x", "y", 1, True]


class Step(BaseNode):
    """Says its routes; with `fails` it raises."""

    routes: list[Any] = Field(default_factory=list)
    fails: bool = False
    ran: Any

    async def _run_impl(self, *, ctx: Any, node_input: Any) -> Any:
        self.ran[self.name] += 1
        await asyncio.sleep(0)
        if self.fails:
            raise OSError(self.name)
        yield Event(output=self.name, route=self.routes or None)


@dataclass
class Drawn:
    """Nodes 0..n, each with the routes it takes, and edges to later nodes with the routes they have."""

    taken: list[list[Any]]
    edges: list[tuple[int, int, Any]]

    def runs(self) -> list[int]:
        """How often each node runs."""
        count = [0] * len(self.taken)
        count[0] = 1
        for node in range(len(self.taken)):
            for end in self.after(node):
                count[end] += count[node]
        return count

    def after(self, node: int) -> list[int]:
        mine = [(end, route) for start, end, route in self.edges if start == node]
        taken = {(type(one), one) for one in self.taken[node]}
        fits = [end for end, route in mine if route is None or (type(route), route) in taken]
        return fits or [end for end, route in mine if route == DEFAULT_ROUTE]

    def graph(self, ran: Counter[str], fails: int | None = None, **fields: Any) -> Workflow:
        nodes = [Step(name=f"n{at}", routes=routes, ran=ran, fails=at == fails) for at, routes in enumerate(self.taken)]
        edges: list[Any] = [(START, nodes[0])]
        edges += [Edge(from_node=nodes[start], to_node=nodes[end], route=route) for start, end, route in self.edges]
        return Workflow(name="wf", edges=edges, allow_multiple_outputs=True, **fields)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    size = draw(st.integers(1, 9))
    taken = [draw(st.lists(st.sampled_from(ROUTES), max_size=2)) for _ in range(size)]
    edges: list[tuple[int, int, Any]] = []
    for end in range(1, size):
        for start in draw(st.sets(st.integers(0, end - 1), min_size=1, max_size=3)):
            edges.append((start, end, draw(st.sampled_from([None, *ROUTES, DEFAULT_ROUTE]))))  # noqa: PERF401
    return Drawn(taken, edges)


@QUICK
@given(drawn(), st.sampled_from([None, 1, 2]))
def test_every_node_runs_as_often_as_its_routes_say(one: Drawn, limit: int | None):
    expected = one.runs()
    if sum(expected) > MOST:
        return
    ran: Counter[str] = Counter()
    talk = Talk(one.graph(ran, max_concurrency=limit))

    talk.say("go")

    assert talk.error is None
    assert [ran[f"n{at}"] for at in range(len(expected))] == expected


@QUICK
@given(drawn(), st.data())
def test_an_error_anywhere_ends_the_run_and_leaves_nothing_running(one: Drawn, data: st.DataObject):
    expected = one.runs()
    if sum(expected) > MOST:
        return
    fails = data.draw(st.integers(0, len(expected) - 1))
    graph = one.graph(Counter(), fails)

    async def run() -> None:
        talk = Talk(graph)
        await asyncio.wait_for(talk.asay("go"), SECONDS)
        assert (talk.error is not None) == bool(expected[fails])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@QUICK
@given(drawn(), st.integers(0, 6))
def test_who_stops_reading_leaves_nothing_running(one: Drawn, count: int):
    if sum(one.runs()) > MOST:
        return
    graph = one.graph(Counter())

    async def run() -> None:
        runner = InMemoryRunner(graph, app_name="app")
        await runner.session_service.create_session(app_name="app", user_id="u", session_id="s")
        seen = 0
        turn = runner.run_async(user_id="u", session_id="s", new_message="go")
        async with asyncio.timeout(SECONDS), aclosing(turn) as events:
            async for _ in events:
                seen += 1
                if seen > count:
                    break
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


def asks(number: int) -> BaseNode:
    class Asks(BaseNode):
        async def _run_impl(self, *, ctx: Any, node_input: Any) -> Any:
            yield RequestInput(interrupt_id=f"i{number}", message="?")

    return Asks(name=f"a{number}")


@QUICK
@given(st.lists(st.integers(0, 4), min_size=2, max_size=5), st.data())
def test_a_join_waits_for_chains_of_any_length_and_for_every_answer(lengths: list[int], data: st.DataObject):
    ran: Counter[str] = Counter()
    waits = data.draw(st.sets(st.sampled_from(range(len(lengths)))))
    join, edges, ends = JoinNode(name="join"), [], []
    for chain, length in enumerate(lengths):
        nodes: list[BaseNode] = [Step(name=f"c{chain}_{at}", ran=ran) for at in range(length + 1)]
        nodes += [asks(chain)] if chain in waits else []
        edges.append((START, *nodes, join))
        ends.append(nodes[-1].name)
    talk = Talk(Workflow(name="wf", edges=edges))

    events = talk.say("go")
    assert sorted(asked(events)) == sorted(f"i{chain}" for chain in waits)
    for chain in data.draw(st.permutations(sorted(waits))):
        assert events[-1].output is None
        events = talk.say(answer(f"i{chain}", chain))

    assert talk.error is None and list(events[-1].output) == ends
    assert events[-1].output == {name: chain if chain in waits else name for chain, name in enumerate(ends)}
    assert set(ran.values()) == {1}
