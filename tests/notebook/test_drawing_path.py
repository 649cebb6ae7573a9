"""The path of a run lights up in the drawing of what runs."""

from adk_nb.agents import LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event, NodeInfo
from adk_nb.models.scripted_llm import call
from adk_nb.notebook.view.drawing import drawing_of
from adk_nb.notebook.view.drawing_path import Marks, VisitedPath
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import AgentTool
from adk_nb.workflow import DEFAULT_ROUTE, Workflow
from tests.notebook.test_drawing import agent, choose, flow, team


def path_of(root: BaseAgent, question: str = "Go.") -> list[Marks]:
    """The marks that each event of one turn changes, and the end of it."""
    path = VisitedPath(drawing_of(root))
    runner = InMemoryRunner(root)
    runner.session_service.create_session(app_name=runner.app_name, user_id="u", session_id="s")
    turn = runner.run(user_id="u", session_id="s", new_message=question)
    return [*filter(None, [path.begin(), *map(path.feed, turn)]), path.end("done")]


def lit(root: BaseAgent) -> Marks:
    """All that is lit when a turn is over."""
    return {key: mark for marks in path_of(root) for key, mark in marks.items()}


def test_the_path_of_a_team_lights_up_agent_by_agent() -> None:
    marks = path_of(team())

    assert marks[0] == {"n:pipeline": "was", "n:refine": "was", "n:draft": "was"}
    assert marks[1] == {"n:review": "was", "e:refine/0": "was"}
    assert marks[2] == {"e:refine/1": "was", "c:refine": "pass 2"}
    after = {key: mark for one in marks for key, mark in one.items()}
    assert {key[:2] for key in after} == {"n:", "e:", "t:", "c:"}
    assert {"n:editor", "t:weather/look", "e:pipeline/0", "e:pipeline/1"} <= after.keys()


def test_an_agent_works_from_its_first_word_to_its_answer_and_beside_others() -> None:
    path = VisitedPath(drawing_of(team()))

    first = path.feed(Event(author="weather", message="s", partial=True, branch="both.weather"))
    again = path.feed(Event(author="weather", message="u", partial=True, branch="both.weather"))
    other = path.feed(Event(author="news", message="n", partial=True, branch="both.news"))
    after = path.feed(Event(author="editor", message="e", partial=True))

    assert (first["n:weather"], first["n:both"]) == ("now", "now")
    assert again == {}
    assert "n:weather" not in other
    assert (after["n:weather"], after["n:news"], after["n:editor"]) == ("was", "was", "now")
    assert after["n:both"] == "was"


def test_an_agent_that_is_told_to_begin_works_before_its_first_word() -> None:
    path = VisitedPath(drawing_of(team()))

    begun = path.agent_begins("weather", "both.weather", "")
    again = path.agent_begins("news", "both.news", "")
    ended = path.agent_ends("weather", "")

    assert begun["n:weather"] == "now"
    assert again == {"n:news": "now"}
    assert ended == {"n:weather": "was"}
    assert path.agent_begins("both", None, "") == {}  # a team shows as what is inside it


def test_the_path_leads_into_the_workflow_in_a_team_and_out_again() -> None:
    marks = lit(SequentialAgent(name="outer", sub_agents=[flow(), agent("editor")]))

    assert {key for key in marks if marks[key] == "was"} >= {
        "n:outer", "n:flow", "n:START", "n:draft", "n:choose", "n:left", "n:right", "n:join", "n:last", "n:END",
        "n:editor", "e:outer/0", "e:flow/0",
    }  # fmt: skip


def test_the_path_leads_into_the_team_and_the_workflow_in_a_workflow() -> None:
    refine = LoopAgent(
        name="refine", max_iterations=2, sub_agents=[agent("draft", "a", "b"), agent("review", "c", "d")]
    )
    inner = Workflow(name="inner", edges=[("START", agent("plan"), "END")])
    marks = lit(Workflow(name="outer", edges=[("START", inner, refine, choose, {"ok": "END", "no": agent("never")})]))

    assert marks["c:refine"] == "pass 2"
    assert {"n:inner", "n:plan", "n:START'", "n:END'", "n:refine", "n:review", "n:choose", "n:END"} <= marks.keys()
    assert "n:never" not in marks
    assert set(marks.values()) <= {"was", "now", "pass 2"}


def test_only_the_route_that_was_chosen_lights_up() -> None:
    drawing, marks = drawing_of(flow()), lit(flow())

    gone = [one for number, one in enumerate(drawing.lines) if f"e:{number}" in marks]

    assert [one.start for one in gone] == ["START", "draft", "choose", "choose", "left", "right", "join", "last"]
    assert [one.end for one in gone] == ["draft", "choose", "left", "right", "join", "join", "last", "END"]


def test_a_way_for_a_route_and_for_all_others_is_gone_for_each_of_them() -> None:
    def routed(*routes: str) -> list[str]:
        def choose() -> Event:
            return Event(output="x", route=list(routes))

        mend, ask = agent("mend"), agent("ask")
        edges = [("START", choose, {"crack": mend, DEFAULT_ROUTE: mend, "lamp": ask})]
        root = Workflow(name="roads", edges=edges, allow_multiple_outputs=True)
        drawing, marks = drawing_of(root), lit(root)
        return [one.label for number, one in enumerate(drawing.lines) if one.label and f"e:{number}" in marks]

    assert routed("crack") == routed("rust") == ["crack, otherwise"]
    assert routed("lamp") == ["lamp"]
    assert routed("crack", "lamp") == ["crack, otherwise", "lamp"]


def test_a_function_that_follows_works_from_when_the_node_before_it_has_ended() -> None:
    path = VisitedPath(drawing_of(flow()))
    at = NodeInfo(path="flow@1/draft@1")

    begun = path.feed(Event(author="draft", message="A draft.", node_info=at))

    assert (begun["n:draft"], begun["n:choose"]) == ("was", "now")


def test_a_node_that_runs_again_says_how_often() -> None:
    path = VisitedPath(drawing_of(flow()))

    for number in (1, 2, 3):
        marks = path.feed(Event(author="draft", message="d", node_info=NodeInfo(path=f"flow@1/draft@{number}")))

    assert marks["c:draft"] == "3x"


def test_a_pass_is_counted_for_each_loop_and_not_for_what_a_member_calls() -> None:
    helper = agent("helper", "h", "h", "h", "h")
    asks = [call("helper", request="x"), "one", call("helper", request="y"), "two"]
    writer = agent("writer", *asks, tools=[AgentTool(helper, stream_events=True)])
    marks = lit(LoopAgent(name="alone", max_iterations=2, sub_agents=[writer]))

    assert marks["c:alone"] == "pass 2"
    assert marks["n:helper"] == "was"


def test_namesakes_light_up_in_their_order() -> None:
    first = SequentialAgent(name="first", sub_agents=[agent("draft"), agent("critic")])
    second = ParallelAgent(name="second", sub_agents=[agent("news"), agent("other")])
    outer = Workflow(name="outer", edges=[("START", first, second, agent("draft"), "END")])
    path = VisitedPath(drawing_of(outer))

    marks = path.feed(Event(author="draft", message="d", node_info=NodeInfo(path="outer@1/first@1")))
    later = path.feed(Event(author="draft", message="d", node_info=NodeInfo(path="outer@1/draft@1")))

    assert "n:draft'" in marks
    assert later["n:draft"] == "was"


def test_a_failure_is_marked_and_stays_and_what_it_cut_short_was_stopped() -> None:
    path = VisitedPath(drawing_of(team()))
    path.feed(Event(author="weather", message="s", partial=True, branch="both.weather"))

    failed = path.feed(Event(author="news", error_code="OOPS", error_message="no", branch="both.news"))
    ended = path.end("error")

    assert failed["n:news"] == "failed"
    assert ended == {"n:weather": "stopped", "n:both": "failed", "n:pipeline": "failed"}
    assert path.feed(Event(author="news", message="again", branch="both.news"))["n:news"] == "was"


def test_who_waits_for_a_person_is_marked_so_while_others_work_on_and_when_the_run_pauses() -> None:
    path = VisitedPath(drawing_of(team()))
    asks = Event(author="weather", content=None, long_running_tool_ids={"1"}, branch="both.weather")

    waits = path.feed(asks)
    other = path.feed(Event(author="news", message="n", partial=True, branch="both.news"))
    ended = path.feed(Event(author="news", message="n", branch="both.news"))

    assert (waits["n:weather"], waits["n:both"]) == ("waits", "waits")
    assert other == {"n:news": "now", "n:both": "now", "n:pipeline": "now"}
    assert ended == {"n:news": "was", "n:both": "waits", "n:pipeline": "waits"}
    assert path.agent_ends("weather", "") == {}
    assert path.feed(Event(author="weather", message="of another call", branch="both.weather")) == {}
    assert path.end("pending") == {}
    assert path.begin() == {}
    assert path.feed(Event(author="weather", message="sun", branch="both.weather"))["n:weather"] == "was"
