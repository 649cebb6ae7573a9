"""An agent that is called as a tool hands over to those under it, and they hand back; nothing leaves the call."""

from typing import Any

from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import AgentTool, ToolContext
from tests.support.talk import Talk, requests, summaries


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def to(name: str) -> Any:
    return call("transfer_to_agent", agent_name=name)


def words(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


CALLS, DONE = call("called", request="x"), call("finish_task", result="booked")


def test_what_the_one_that_took_over_says_is_the_result():
    called = agent("called", to("under"), mode="single_turn", sub_agents=[agent("under", "deep")])

    events = Talk(agent("root", CALLS, "done", sub_agents=[called])).say()

    assert summaries(events)[-2:] == [("root", "answers {'result': 'deep'}"), ("root", "done .")]
    [*_, last, _, _] = events
    assert last.author == "under" and (last.branch or "").startswith("called@")


def test_it_hands_back_to_who_was_called():
    under = agent("under", to("called"))
    called = agent("called", to("under"), "so it is", mode="single_turn", sub_agents=[under])

    events = Talk(agent("root", CALLS, "done", sub_agents=[called])).say()

    assert words(events) == [("called", "so it is"), ("root", "done")]
    assert summaries(events)[-2] == ("root", "answers {'result': 'so it is'}")


def test_who_has_taken_over_in_a_task_keeps_the_word_until_it_hands_back():
    under = agent("under", "when?", "for how many?", to("called"))
    called = agent("called", to("under"), DONE, mode="task", sub_agents=[under])
    talk = Talk(agent("root", CALLS, "done", "next", sub_agents=[called]))

    turns = [words(talk.say(text)) for text in ("book", "today", "two", "thanks")]

    assert turns == [[("under", "when?")], [("under", "for how many?")], [("root", "done")], [("root", "next")]]
    assert [text for role, text in requests(under)[-1] if role == "user"][-2:] == ["today", "two"]


def test_in_a_task_one_that_hands_nothing_back_answers_once():
    under = agent("under", "I am under.", disallow_transfer_to_parent=True)
    called = agent("called", to("under"), DONE, mode="task", sub_agents=[under])
    talk = Talk(agent("root", CALLS, "done", sub_agents=[called]))

    assert [words(talk.say(text)) for text in ("book", "today")] == [[("under", "I am under.")], [("root", "done")]]


def test_in_a_task_a_sequence_answers_once():
    team = SequentialAgent(name="team", sub_agents=[agent("first", "one"), agent("second", "two")])
    called = agent("called", to("team"), DONE, mode="task", sub_agents=[team])
    talk = Talk(agent("root", CALLS, "done", sub_agents=[called]))

    assert [words(talk.say(text)) for text in ("book", "today")] == [
        [("first", "one"), ("second", "two")],
        [("root", "done")],
    ]


def test_nothing_is_handed_out_of_a_call():
    def out(tool_context: ToolContext) -> str:
        """Hands over."""
        tool_context.actions.transfer_to_agent = "root"
        return "out"

    called = agent("called", call("out"), "I answer.", mode="single_turn", tools=[out])
    root = agent("root", CALLS, "done", sub_agents=[called])

    events = Talk(root).say()

    assert "cannot transfer to 'root'" in summaries(events)[2][1]
    assert words(events) == [("called", "I answer."), ("root", "done")]
    assert len(requests(root)) == 2


def test_one_called_as_a_tool_hands_over_in_its_own_tree():
    called = agent("called", to("under"), "so it is", sub_agents=[agent("under", to("called"))])
    root = agent("root", CALLS, "done", tools=[AgentTool(called, stream_events=True)])

    assert words(Talk(root).say()) == [("called", "so it is"), ("root", "done")]
