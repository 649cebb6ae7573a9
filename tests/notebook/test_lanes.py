"""Those that work at once have a line each, which says how they stand."""

from adk_nb.agents import ParallelAgent, SequentialAgent
from adk_nb.events.event import Event, NodeInfo
from adk_nb.notebook.view.lanes import Lanes
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.runners import InMemoryRunner
from adk_nb.workflow import Workflow
from tests.notebook.test_drawing import agent


def told(ops: list[dict]) -> list[tuple[str, str]]:
    return [(op["lane"]["label"], op["lane"]["state"]) for op in ops]


def after_a_turn(root: object) -> list[tuple[str, str]]:
    """How each stands when all events of a turn are in, and before it is said that the turn is over."""
    lanes, view = Lanes(), ViewState()
    runner = InMemoryRunner(root)  # type: ignore[arg-type]
    runner.session_service.create_session(app_name=runner.app_name, user_id="u", session_id="s")
    for event in runner.run(user_id="u", session_id="s", new_message="Go."):
        for op in lanes.feed(event):
            view.apply(op)
    return [(lane["label"], lane["state"]) for lane in view.snapshot(1)["lanes"]]


def test_each_of_a_parallel_team_has_a_line_and_those_inside_it_too() -> None:
    inner = ParallelAgent(name="inner", sub_agents=[agent("x"), agent("y")])
    row = SequentialAgent(name="row", sub_agents=[agent("a"), agent("b")])

    lines = after_a_turn(ParallelAgent(name="all", sub_agents=[agent("c"), row, inner]))

    assert sorted(label for label, _ in lines) == ["c", "inner", "inner / x", "inner / y", "row"]


def test_who_works_alone_has_none() -> None:
    assert after_a_turn(SequentialAgent(name="row", sub_agents=[agent("a"), agent("b")])) == []
    assert after_a_turn(Workflow(name="flow", edges=[("START", agent("a"), agent("b"))])) == []


def test_the_branches_of_a_graph_have_a_line_each_and_what_follows_on_one_is_on_it() -> None:
    lanes = Lanes()

    first = lanes.feed(Event(author="a", message="a", branch="a@1", node_info=NodeInfo(path="flow@1/a@1")))
    other = lanes.feed(Event(author="flow", output=3, branch="f@2", node_info=NodeInfo(path="flow@1/f@2")))
    later = Event(author="a2", message="x", branch="a@1", node_info=NodeInfo(path="flow@1/a2@1"))

    assert told(first) == [("a", "now")]
    assert told(other) == [("f 2", "now"), ("f 2", "was")]  # a function has ended when its output is there
    assert lanes.feed(later) == []
    assert lanes.lane_of(later) == "a@1"


def test_the_call_of_a_tool_is_no_line_and_is_on_that_of_its_caller() -> None:
    lanes = Lanes()
    called = Event(author="helper", message="h", branch="all.a.helper@call_1")

    assert told(lanes.feed(called)) == [("a", "now")]
    assert lanes.lane_of(called) == "all.a"
    assert lanes.feed(Event(author="helper", message="h", branch="helper@call_2")) == []


def test_a_line_says_who_works_is_done_waits_failed_and_was_stopped() -> None:
    lanes = Lanes()

    assert told(lanes.agent_begins("a", "all.a", "")) == [("a", "now")]
    assert lanes.agent_ends("member", "all.a", "") == []
    assert told(lanes.agent_ends("a", "all.a", "")) == [("a", "was")]
    lanes.agent_begins("b", "all.b", "")
    assert told(lanes.feed(Event(author="b", long_running_tool_ids={"1"}, branch="all.b"))) == [("b", "waits")]
    assert lanes.feed(Event(author="b", message="a result", branch="all.b")) == []
    assert lanes.agent_ends("b", "all.b", "") == []
    lanes.agent_begins("c", "all.c", "")
    assert told(lanes.feed(Event(author="c", error_code="OOPS", branch="all.c"))) == [("c", "failed")]
    lanes.agent_begins("d", "all.d", "")
    assert told(lanes.end("error")) == [("d", "stopped")]
    lanes.begin()
    assert told(lanes.feed(Event(author="b", message="It may.", branch="all.b"))) == [("b", "now")]


def test_an_agent_of_a_graphs_branch_ends_its_line_and_one_within_it_does_not() -> None:
    lanes = Lanes()
    lanes.agent_begins("team", "team@1", "flow@1/team@1")

    assert lanes.agent_ends("member", "team@1", "flow@1/team@1") == []
    assert told(lanes.agent_ends("team", "team@1", "flow@1/team@1")) == [("team", "was")]


def test_functions_at_once_have_lines_that_end_with_their_output() -> None:
    def one(node_input: object) -> str:
        return "one"

    def other(node_input: object) -> str:
        return "other"

    flow = Workflow(name="flow", edges=[("START", (one, other))], allow_multiple_outputs=True)

    assert after_a_turn(flow) == [("one", "was"), ("other", "was")]
