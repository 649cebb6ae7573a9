"""What comes after a pause does run: every way to wait, in every agent that runs others, resumable or not."""

from collections.abc import Callable, Sequence

import pytest

from adk_nb.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import AgentTool
from tests.agents.waiting import KINDS, LeftTalk, agent, words
from tests.support.each import each
from tests.support.talk import Talk


def says(name: str) -> LlmAgent:
    return agent(name, *(f"{name}{n}" for n in range(1, 5)))


def seq(name: str, *agents: BaseAgent) -> BaseAgent:
    return SequentialAgent(name=name, sub_agents=list(agents))


def par(name: str, *agents: BaseAgent) -> BaseAgent:
    return ParallelAgent(name=name, sub_agents=list(agents))


def loop(name: str, *agents: BaseAgent) -> BaseAgent:
    return LoopAgent(name=name, sub_agents=list(agents), max_iterations=2)


def calls(team: BaseAgent) -> BaseAgent:
    return agent("boss", call(team.name, request="do"), "boss1", tools=[AgentTool(team, stream_events=True)])


def hands_over(team: BaseAgent) -> BaseAgent:
    return agent("boss", call("transfer_to_agent", agent_name=team.name), sub_agents=[team])


Team = Callable[[LlmAgent], BaseAgent]
TEAMS: dict[str, tuple[Team, str, str]] = {
    "a sequence": (lambda y: seq("s", says("x"), y, says("z")), "x1", "y1 z1"),
    "a loop": (lambda y: loop("l", says("x"), y, says("z")), "x1", "y1 z1 x2 y2 z2"),
    "agents at once": (lambda y: seq("s", par("p", y, says("b")), says("z")), "b1", "y1 z1"),
    "a sequence in a sequence": (lambda y: seq("s", seq("t", says("x"), y), says("z")), "x1", "y1 z1"),
    "a sequence at once with others": (
        lambda y: seq("s", par("p", seq("t", says("x"), y, says("z")), says("b")), says("w")),
        "b1 x1",
        "y1 z1 w1",
    ),
    "a loop at once with others": (
        lambda y: seq("s", par("p", says("b"), loop("l", y, says("z"))), says("w")),
        "b1",
        "y1 z1 y2 z2 w1",
    ),
    "agents at once in a loop": (lambda y: loop("l", par("p", y), says("z")), "", "y1 z1 y2 z2"),
    "a sequence in a loop at once with others": (
        lambda y: seq("s", par("p", loop("l", seq("t", says("x"), y, says("z"))), says("b")), says("w")),
        "b1 x1",
        "y1 z1 x2 y2 z2 w1",
    ),
    "a loop in a loop": (lambda y: loop("l", loop("m", y), says("z")), "", "y1 y2 z1 y3 y4 z2"),
    "agents at once within others": (
        lambda y: seq("s", par("p", par("q", y, says("b")), says("c")), says("z")),
        "b1 c1",
        "y1 z1",
    ),
    "a called team": (lambda y: seq("s", calls(seq("t", y, says("z"))), says("w")), "", "y1 z1 boss1 w1"),
    "a team that was handed over to": (lambda y: hands_over(seq("t", says("x"), y, says("z"))), "x1", "y1 z1"),
    "agents at once in a called loop": (
        lambda y: calls(loop("l", par("p", y), says("z"))),
        "",
        "y1 z1 y2 z2 boss1",
    ),
}


def said(events: Sequence[Event]) -> list[str]:
    """The numbered answers, one after the other."""
    return [text for author, text in words(events) if text.startswith(author)]


FEW_TEAMS = ("a loop", "agents at once", "a sequence in a loop at once with others", "a called team")
FEW_KINDS = ("a yes", "an outcome after news", "words to a task")
PAIRS = [(kind, team) for kind in KINDS for team in TEAMS if kind in FEW_KINDS or team in FEW_TEAMS]


@pytest.mark.slow
@each("resumable", [False, True])
@each("kind, team", PAIRS)
def test_all_that_comes_after_runs_and_nothing_that_was_done(kind: str, team: str, resumable: bool):
    waits, (make, previous, following) = KINDS[kind], TEAMS[team]
    talk = (LeftTalk if resumable else Talk)(make(waits.make("y")))

    events = talk.say("go")
    assert (sorted(said(events)), talk.error) == (previous.split(), None)
    events = talk.say(waits.answer(talk.stored().events))
    assert ([item for item in said(events) if item[:5] != "clerk"], talk.error) == (following.split(), None)
    if resumable:
        stored = talk.stored().events
        assert len({event.invocation_id for event in stored}) == 1
        assert talk.say(None, invocation_id=stored[0].invocation_id) == []


@each("resumable", [False, True])
@each("first", ["y", "v"])
@each("kind", ["a yes", "a no", "an outcome after news", "a credential", "a yes in a called agent"])
def test_of_two_that_wait_at_once_each_goes_on_with_its_own_answer(kind: str, first: str, resumable: bool):
    waits = KINDS[kind]
    root = seq("s", par("p", seq("t", waits.make("y"), says("z")), seq("u", waits.make("v"), says("w"))), says("last"))
    talk = (LeftTalk if resumable else Talk)(root)

    events = talk.say("go")
    own = {
        name: [event for event in events if f".{lane}" in (event.branch or "")]
        for name, lane in (("y", "t"), ("v", "u"))
    }
    follow_up = {"y": ["y1", "z1"], "v": ["v1", "w1"]}
    [second] = {"y", "v"} - {first}
    for name, later_text in ((first, []), (second, ["last1"])):
        events = talk.say(waits.answer(own[name]))
        assert ([item for item in said(events) if item[:5] != "clerk"], talk.error) == (
            [*follow_up[name], *later_text],
            None,
        )


@pytest.mark.parametrize("kind", [Talk, LeftTalk])
def test_with_a_state_of_its_own_one_that_waited_sees_that_and_the_last_of_the_list_has_the_last_word(kind: type[Talk]):
    waits = KINDS["a yes"].make("y")
    waits.instruction, waits.output_key = "k is {k}, mine is {mine?}", "k"
    waits.before_agent_callback = lambda callback_context: callback_context.state.update(mine="set")
    other_agent = agent("b", "from b", instruction="k is {k}, mine is {mine?}", output_key="k")
    block = ParallelAgent(name="p", sub_agents=[waits, other_agent], isolate_state=True)
    talk = kind(SequentialAgent(name="s", sub_agents=[agent("x", "before", output_key="k"), block]))

    talk.say("go")
    assert talk.stored().state == {"k": "from b", "mine": "set"}
    talk.say(KINDS["a yes"].answer(talk.stored().events))

    def summary(agent: LlmAgent) -> list[str]:
        assert isinstance(agent.model, ScriptedLlm)
        return [str(request.config.system_instruction).partition("\n")[0] for request in agent.model.requests]

    assert summary(waits) == ["k is before, mine is set"] * 2
    assert summary(other_agent) == ["k is before, mine is "]
    assert talk.stored().state == {"k": "from b", "mine": "set"}
