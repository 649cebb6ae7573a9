"""What can be written as a graph, and what is said of a graph that cannot be."""

import functools
from typing import Any

import pytest
from support.messages import mentions

from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.errors import ConfigurationError, WorkflowConfigurationError
from adk_nb.events import Event
from adk_nb.tools import FunctionTool
from adk_nb.workflow import (
    DEFAULT_ROUTE,
    END,
    START,
    AgentNode,
    BaseNode,
    Edge,
    FunctionNode,
    JoinNode,
    RetryConfig,
    ToolNode,
    Workflow,
    build_node,
    node,
)
from tests.support.each import each
from tests.support.talk import Talk
from tests.workflow.steps import step, walked


def a(node_input: Any) -> str:
    """Says a."""
    return "a"


def b(node_input: Any) -> str:
    return f"{node_input}b"


def c(node_input: Any) -> str:
    return f"{node_input}c"


def wf(*edges: Any, **fields: Any) -> Workflow:
    return Workflow(**{"name": "wf", "edges": list(edges), **fields})


def outputs(graph: Workflow, message: str = "q") -> list[Any]:
    talk = Talk(graph)
    events = talk.say(message)
    assert talk.error is None
    return [event.output for event in events]


def test_edges_are_chains_or_edges() -> None:
    for edges in (
        [(START, a, b, c)],
        [("START", a), (a, b), (b, c), (c, "END")],
        [(START, a), Edge(from_node=a, to_node=b), Edge(from_node=b, to_node=c), (c, END)],
    ):
        assert outputs(wf(*edges)) == ["a", "ab", "abc"]


def test_sets_lead_from_each_to_each() -> None:
    join = JoinNode(name="join")
    graph = wf((START, (a, b), join))
    assert graph.graph.predecessors["join"] == ["a", "b"]
    assert [edge.end for edge in graph.graph.edges_from[START]] == ["a", "b"]


def test_an_edge_can_have_several_routes() -> None:
    def choose(node_input: Any) -> Event:
        return Event(output="q", route="y")

    graph = wf((START, choose), Edge(from_node=choose, to_node=b, route=["x", "y"]))
    assert outputs(graph) == ["q", "qb"]


def test_routes_lead_on_to_sets_and_to_the_end() -> None:
    def choose(node_input: Any, ctx: Any) -> str:
        ctx.route = "both"
        return "q"

    graph = wf((START, choose, {"both": (a, b), "stop": END, DEFAULT_ROUTE: c}), allow_multiple_outputs=True)
    assert outputs(graph) == ["q", "a", "qb", {"a": "a", "b": "qb"}]


def test_what_a_node_is_made_of() -> None:
    assert isinstance(build_node(a), FunctionNode) and build_node(a).description == "Says a."
    assert isinstance(build_node(step("x", "X")), AgentNode)
    assert isinstance(build_node(wf((START, a))), AgentNode)
    assert isinstance(build_node(FunctionTool(a)), ToolNode)
    ready = build_node(a)
    assert build_node(ready) is ready
    assert build_node(ready, name="other").name == "other" and ready.name == "a"
    assert build_node(functools.partial(a)).name == "a"


def test_an_agent_keeps_its_place_and_the_graph_has_a_copy() -> None:
    agent = step("x", "X")
    first, second = wf((START, agent)), wf((START, agent), name="other")
    assert agent.parent_agent is None and agent.include_contents == "default"
    one, two = first.find_agent("x"), second.find_agent("x")
    assert one is not two and one and one.parent_agent is first and two and two.parent_agent is second
    assert isinstance(one, LlmAgent) and one.mode == "single_turn" and one.include_contents == "none"
    SequentialAgent(name="row", sub_agents=[agent])


def test_an_agent_stands_in_two_places_under_two_names() -> None:
    agent = step("x", "first", "second")
    talk = Talk(wf((START, agent, node(agent, name="y"))))
    events = talk.say("q")
    assert walked(events) == ["wf/x: says first", "wf/y: says second for wf"]
    assert [event.author for event in events] == ["x", "y"]


def test_agents_have_the_model_of_what_is_above_the_workflow() -> None:
    graph = wf((START, LlmAgent(name="x")))
    top = step("top", "t", sub_agents=[graph])
    found = top.find_agent("x")
    assert isinstance(found, LlmAgent) and found.canonical_model is top.model


def test_a_workflow_is_cloned_with_nodes_of_its_own() -> None:
    graph = wf((START, step("x", "X"), b))
    copy = graph.clone(update={"name": "copy"})
    assert copy.find_agent("x") is not graph.find_agent("x")
    assert walked(Talk(copy).say("q")) == ["copy/x: says X", "copy/b: gives 'Xb' for copy"]


def test_methods_of_one_object_are_one_node() -> None:
    class Works:
        def one(self, node_input: Any) -> str:
            return "one"

        def two(self, node_input: Any) -> str:
            return f"{node_input} two"

    works = Works()
    assert outputs(wf((START, works.one), (works.one, works.two))) == ["one", "one two"]


def choose(node_input: Any) -> Event:
    return Event(output="q", route="x")


@each(
    "edges, told",
    [
        ([], "no edge … 'START'; write ('START', first_node)"),
        ([(START,)], "not an edge; write ('START', first, second)"),
        ([a], "is not an edge"),
        ([{"x": a}], "is not an edge"),
        ([(START, "a")], "'a' is not a node; … 'START' or 'END': … function or the agent"),
        ([(START, 3)], "3 is not a node; … function, … agent, … tool, … workflow, … node"),
        ([(START, FunctionTool)], "is not a node"),
        ([(START, a), (b, c)], "leads to b, c"),
        ([(START, a, START)], "back to START"),
        ([(END, a)], "after END"),
        ([(START, {"x": a})], "an edge from START has no route"),
        ([({"x": a}, b)], "routes lead on"),
        ([(START, a), (START, a)], "START -> a is there twice"),
        ([(START, a, b, a)], "a -> b -> a never ends"),
        ([(START, choose, {2.5: a})], "a route … got 2.5"),
        ([(START, a), Edge(from_node=a, to_node=b, route=["x", DEFAULT_ROUTE])], "DEFAULT_ROUTE … list of routes"),
        ([(START, a, node(b, name="a"))], "two nodes … 'a'"),
        ([(START, lambda node_input: 1)], "node '': '' … it is empty"),
        ([(START, node(a, name="START"))], "name of the start or the end"),
        ([(START, node(a, name="END"))], "name of the start or the end"),
    ],
)
def test_an_invalid_graph_is_reported_when_it_is_built(edges: Any, told: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        wf(*edges)
    assert mentions(raised.value, told)


@each(
    "build, told",
    [
        (lambda: node(a, tiemout=3), "did you mean 'timeout'"),
        (lambda: node(build_node(a), tiemout=3), "did you mean 'timeout'"),
        (lambda: node(step("x"), tiemout=3), "did you mean 'timeout'"),
        (lambda: node(FunctionTool(a), tiemout=3), "did you mean 'timeout'"),
        (lambda: JoinNode(nmae="x"), "did you mean 'name'"),
        (lambda: node(a, timeout=0), "timeout"),
        (lambda: node(a, retry_config={"max_attemps": 3}), "did you mean 'max_attempts'"),
        (
            lambda: RetryConfig(max_attemps=3),
            "RetryConfig: … no field 'max_attemps'; did you mean 'max_attempts'",
        ),
        (lambda: node(a, max_parallel_workers=3), "parallel_worker=True"),
        (lambda: node(a, parallel_worker=True, max_parallel_workers=0), "max_parallel_workers"),
        (lambda: node(a, name="a/b"), "'a/b' is not a valid node name"),
        (lambda: node(a, parameter_binding="input"), "parameter_binding"),
        (lambda: Edge(from_nod=a, to_node=b), "did you mean 'from_node'"),
        (lambda: wf((START, a), max_concurency=3), "did you mean 'max_concurrency'"),
        (lambda: wf((START, a), max_steps=0), "max_steps"),
        (lambda: Workflow(name="w"), "'edges' is missing"),
        (lambda: Workflow(name="w", edges=(START, a)), "edges"),
    ],
)
def test_a_setting_that_is_none_is_named(build: Any, told: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        build()
    assert mentions(raised.value, told)


def test_a_lambda_needs_a_name() -> None:
    assert outputs(wf((START, node(lambda node_input: "x", name="x"), b))) == ["x", "xb"]


def test_a_node_has_no_work_of_its_own() -> None:
    talk = Talk(wf((START, BaseNode(name="base"))))
    talk.say("q")
    assert "override _run_impl" in str(talk.error)


def test_a_decorated_function_is_a_node() -> None:
    @node
    def plain(node_input: Any) -> str:
        return "plain"

    @node(name="named", timeout=5)
    def other(node_input: Any) -> str:
        return f"{node_input} named"

    assert other.timeout == 5
    assert outputs(wf((START, plain, other))) == ["plain", "plain named"]


def test_thousands_of_nodes_in_a_row_are_a_graph() -> None:
    nodes = [node(lambda node_input: 1, name=f"n{number}") for number in range(1000)]
    graph = wf((START, *nodes))
    assert len(graph.graph.nodes) == 1000
    with pytest.raises(WorkflowConfigurationError, match="never ends"):
        wf((START, *nodes, nodes[0]))
