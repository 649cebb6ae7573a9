"""Agents that are called as tools in the session of their caller: seen as they work, and answered where they wait."""

from typing import Any

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import AgentTool, FunctionTool
from tests.talk import Talk, guide, requests, told


def expert(*answers: Any, name: str = "expert", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def beside(*agents: LlmAgent) -> list[AgentTool]:
    return [AgentTool(agent, stream_events=True) for agent in agents]


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


GATED = FunctionTool(refund, require_confirmation=True)


def asked(events: list[Event]) -> list[types.FunctionCall]:
    return [one for event in events for one in event.get_function_calls() if one.name == "adk_request_confirmation"]


def answer(*requests: types.FunctionCall, **said: Any) -> types.Content:
    said = said or {"confirmed": True}
    parts = [types.FunctionResponse(id=one.id, name=one.name, response=said) for one in requests]
    return types.Content(role="user", parts=[types.Part(function_response=one) for one in parts])


def test_its_events_are_seen_as_they_happen_and_the_callers_model_sees_the_answer_alone():
    child = expert("Oslo.")
    root = guide(call("expert", request="Which city?"), "It is Oslo.", tools=beside(child))
    talk = Talk(root)

    events = talk.say("Where am I?")

    assert told(events) == [
        ("guide", "calls expert({'request': 'Which city?'})"),
        ("expert", "Oslo. ."),
        ("guide", "answers {'result': 'Oslo.'}"),
        ("guide", "It is Oslo. ."),
    ]
    key = events[0].get_function_calls()[0].id
    assert [event.branch for event in events] == [None, f"expert@{key}", None, None]
    assert [event.id for event in talk.stored().events[1:]] == [event.id for event in events]
    assert requests(child) == [[("user", "Which city?")]]
    assert requests(root)[1] == [
        ("user", "Where am I?"),
        ("model", "calls expert({'request': 'Which city?'})"),
        ("user", "answers {'result': 'Oslo.'}"),
    ]


def test_what_it_asks_is_answered_where_it_waits_and_with_its_answer_the_caller_goes_on():
    child = expert(call("refund", order="A1"), "Refunded.", tools=[GATED])
    root = guide(call("expert", request="Refund A1"), "All done.", tools=beside(child))
    talk = Talk(root)

    first = talk.say("refund A1")
    [request] = asked(first)
    then = talk.say(answer(request))

    assert told(first)[-1][0] == "expert" and first[-1].is_final_response()
    assert told(then) == [
        ("expert", "answers {'result': 'refunded A1'}"),
        ("expert", "Refunded. ."),
        ("guide", "answers {'result': 'Refunded.'}"),
        ("guide", "All done. ."),
    ]
    assert len(requests(root)) == 2 and len(requests(child)) == 2
    assert requests(child)[1] == [
        ("user", "Refund A1"),
        ("model", "calls refund({'order': 'A1'})"),
        ("user", "answers {'result': 'refunded A1'}"),
    ]
    assert requests(root)[1][-2:] == [
        ("model", "calls expert({'request': 'Refund A1'})"),
        ("user", "answers {'result': 'Refunded.'}"),
    ]
