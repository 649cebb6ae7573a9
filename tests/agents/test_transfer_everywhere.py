"""Hand-overs under workflow agents, with approvals, callbacks and limits; and the tool that leaves a loop."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, RunConfig, SequentialAgent
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.errors import LlmCallsLimitExceededError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools import FunctionTool, TransferToAgentTool, exit_loop, transfer_to_agent
from tests.support.talk import Talk, look, requests, summaries


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def to(name: str, **kwargs: Any) -> Any:
    return call("transfer_to_agent", agent_name=name, **kwargs)


def words(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


GATED = FunctionTool(refund, require_confirmation=True)


def yes(events: list[Event]) -> types.Content:
    calls = [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
    parts = [types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True}) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=part) for part in parts])


def test_the_reason_goes_with_the_event():
    events = Talk(agent("root", to("b", transfer_reason="b knows"), sub_agents=[agent("b", "B")])).say()

    assert events[1].actions.transfer_reason == "b knows"


def test_an_agent_of_a_parallel_agent_hands_over_on_its_branch():
    sub_agent = agent("one", to("helper"), sub_agents=[agent("helper", "helped")])
    other_agent = agent("other", "done")

    events = Talk(ParallelAgent(name="par", sub_agents=[sub_agent, other_agent])).say()

    assert sorted(words(events)) == [("helper", "helped"), ("other", "done")]
    assert {event.author: event.branch for event in events} == {
        "one": "par.one", "helper": "par.one", "other": "par.other",
    }  # fmt: skip
    assert "helped" not in str(requests(other_agent))


def test_an_agent_of_a_sequence_hands_over_and_the_sequence_goes_on():
    first = agent("first", to("helper"), sub_agents=[agent("helper", "helped")])
    last = agent("last", "done")

    assert words(Talk(SequentialAgent(name="seq", sub_agents=[first, last])).say()) == [
        ("helper", "helped"),
        ("last", "done"),
    ]
    assert "[helper] said:" in str(requests(last)[0])


def test_after_a_hand_over_in_a_sequence_the_next_message_begins_the_sequence_again():
    first = agent("first", to("helper"), "first again", sub_agents=[agent("helper", "helped")])
    talk = Talk(SequentialAgent(name="seq", sub_agents=[first, agent("last", "done", "done again")]))

    talk.say()

    assert words(talk.say()) == [("first", "first again"), ("last", "done again")]


def test_who_has_taken_over_asks_a_person_and_goes_on_with_the_answer():
    b = agent("b", call("refund", order="A1"), "Refunded.", "b again", tools=[GATED])
    root = agent("root", to("b"), "root", sub_agents=[b])
    talk = Talk(root)

    asks = talk.say("refund A1")
    later_events = talk.say(yes(asks))

    assert summaries(later_events) == [("b", "answers {'result': 'refunded A1'}"), ("b", "Refunded. .")]
    assert words(talk.say()) == [("b", "b again")]
    assert len(requests(root)) == 1


def test_an_answer_goes_to_who_asked_even_where_it_hands_nothing_back():
    b = agent("b", call("refund", order="A1"), "Refunded.", tools=[GATED], disallow_transfer_to_parent=True)
    talk = Talk(agent("root", to("b"), "root", sub_agents=[b]))

    later_events = talk.say(yes(talk.say()))

    assert words(later_events) == [("b", "Refunded.")]
    assert words(talk.say()) == [("root", "root")]


def test_who_takes_over_may_be_refused_by_its_callback_and_answered_for():
    agent_names: list[str] = []

    def closed(callback_context: CallbackContext) -> types.Content:
        agent_names.append(callback_context.agent_name)
        return types.Content(role="model", parts=[types.Part(text="b is closed")])

    b = agent("b", before_agent_callback=closed)

    assert words(Talk(agent("root", to("b"), sub_agents=[b])).say()) == [("b", "b is closed")]
    assert agent_names == ["b"] and requests(b) == []


def test_callbacks_stand_around_a_hand_over():
    order: list[str] = []

    def run_before(callback_context: CallbackContext) -> None:
        order.append(f"begins {callback_context.agent_name}")

    def run_after(callback_context: CallbackContext) -> None:
        order.append(f"ends {callback_context.agent_name}")

    def before_tool(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        order.append(f"calls {tool.name} {args['agent_name']}")

    around: dict[str, Any] = {"before_agent_callback": run_before, "after_agent_callback": run_after}
    root = agent("root", to("b"), sub_agents=[agent("b", "B", **around)], before_tool_callback=before_tool, **around)

    Talk(root).say()

    assert order == ["begins root", "calls transfer_to_agent b", "begins b", "ends b", "ends root"]


def test_a_callback_may_take_the_place_of_a_hand_over():
    def stay(tool: Any, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        return {"error": "not now"}

    root = agent("root", to("b"), "I answer.", sub_agents=[agent("b")], before_tool_callback=stay)

    assert words(Talk(root).say()) == [("root", "I answer.")]


def test_hand_overs_count_towards_the_limit_of_model_calls():
    root = agent("root", *[to("b")] * 5, sub_agents=[agent("b", *[to("root")] * 5)])
    talk = Talk(root)

    talk.say(config=RunConfig(max_llm_calls=3))

    assert isinstance(talk.error, LlmCallsLimitExceededError)


def test_it_goes_down_and_up_a_deep_tree():
    leaf = agent("leaf", to("middle"), description="deep")
    middle = agent("middle", to("leaf"), to("root"), sub_agents=[leaf])
    root = agent("root", to("middle"), "root again", sub_agents=[middle])

    events = Talk(root).say()

    assert [event.author for event in events if event.get_function_calls()] == ["root", "middle", "leaf", "middle"]
    assert words(events) == [("root", "root again")]
    assert [agent.name for agent in leaf.transfer_targets] == ["middle"]


@pytest.mark.parametrize(("sticky", "next_one"), [(True, "b"), (False, "root")])
def test_who_has_the_word_keeps_it_if_the_runner_is_sticky(sticky: bool, next_one: str):
    root = agent("root", to("b"), "root", sub_agents=[agent("b", "B", "B again")])
    talk = Talk(root)
    talk.runner = InMemoryRunner(root, app_name="app", auto_create_session=True, sticky_agents=sticky)

    talk.say()

    assert [author for author, _ in words(talk.say())] == [next_one]


def test_without_stickiness_an_answer_goes_to_who_asked():
    b = agent("b", call("refund", order="A1"), "Refunded.", tools=[GATED])
    talk = Talk(agent("root", to("b"), "root", sub_agents=[b]))
    talk.runner.sticky_agents = False

    assert words(talk.say(yes(talk.say()))) == [("b", "Refunded.")]


def test_the_tool_can_be_given_by_hand_to_an_agent_that_is_offered_nobody():
    step = agent("step", to("last"), tools=[TransferToAgentTool(agent_names=["last"])])
    talk = Talk(SequentialAgent(name="seq", sub_agents=[step, agent("last", "now", "and in its turn")]))

    assert words(talk.say()) == [("last", "now"), ("last", "and in its turn")]


def test_the_function_hands_over_too():
    b = agent("b", "B")
    root = agent("root", call("over", agent_name="b"), sub_agents=[b])
    root.tools = [FunctionTool(transfer_to_agent, name="over")]

    assert words(Talk(root).say()) == [("b", "B")]


def test_leaving_a_loop_ends_the_pass_without_another_word():
    first, last = agent("first", "1", "2"), agent("last", "not yet", call("exit_loop"), tools=[exit_loop])
    talk = Talk(LoopAgent(name="loop", sub_agents=[first, last], max_iterations=5))

    events = talk.say()

    assert summaries(events)[-2:] == [("last", "calls exit_loop({})"), ("last", "answers {'result': None} .")]
    assert (events[-1].actions.escalate, events[-1].actions.skip_summarization) == (True, True)
    assert len(requests(first)) == len(requests(last)) == 2


def test_leaving_a_loop_outside_of_one_ends_the_turn():
    talk = Talk(agent("root", call("exit_loop"), "next", tools=[exit_loop]))

    assert summaries(talk.say())[-1] == ("root", "answers {'result': None} .")
    assert words(talk.say()) == [("root", "next")]


def test_beside_other_calls_it_leaves_the_loop_all_the_same():
    sub_agent = agent("one", [call("look"), call("exit_loop")], tools=[look, exit_loop])

    events = Talk(LoopAgent(name="loop", sub_agents=[sub_agent])).say()

    assert summaries(events)[-1] == ("one", "answers {'result': 'seen'}; answers {'result': None} .")
