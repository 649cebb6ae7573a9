"""Services in a resumable app: a person is asked, the answer goes on in the same invocation, and nothing runs twice."""

from typing import Any

import pytest

from adk_nb.graph_compose import create_loop_agent, create_parallel_agent, create_sequential_agent
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import INPUTS
from tests.agents.waiting import LeftTalk
from tests.graph_compose.test_a_person_is_asked import ASK
from tests.graph_compose.test_flow_signals import asked, graph_of, say
from tests.support.http_service import Service

TEAMS: dict[str, tuple[list[Any], list[str]]] = {
    "sequence": ([create_sequential_agent(id="top", sub_agents=["b", "a", "c"])], ["b", "a", "a", "c"]),
    "loop": (
        [create_loop_agent(id="top", sub_agents=["b", "a"], max_agent_loop_iterations=2)],
        ["b", "a", "a", "b", "a"],
    ),
    "at once": (
        [
            create_sequential_agent(id="top", sub_agents=["block", "c"]),
            create_parallel_agent(id="block", sub_agents=["a", "b"]),
        ],
        ["a", "a", "b", "c"],
    ),
}


@pytest.mark.parametrize("team", TEAMS)
def test_what_comes_after_a_request_runs_under_the_same_id(service: Service, team: str):
    containers, order = TEAMS[team]
    said = {name: [{"content": f"{name}{n}"} for n in range(4)] for name in "abc"}
    say(service, a=[ASK, *said["a"]], b=said["b"], c=said["c"])
    talk = LeftTalk(graph_of(service, *containers, "a", "b", "c").to_app().root_agent)

    talk.say("go")
    [waits] = open_interrupts(talk.stored().events, INPUTS)
    assert talk.go_on() == []
    talk.say([interrupts.answer(waits, {"confirmed": True})])

    assert talk.error is None
    assert (sorted(asked(service)) if team == "at once" else asked(service)) == order
    assert len({event.invocation_id for event in talk.stored().events}) == 1
    assert talk.go_on() == []
