"""Tools whose outcome comes later: what the model hears first, and what it hears when the outcome is sent."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from adk_nb import Agent, types
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.context import call_state
from adk_nb.tools import FunctionTool, LongRunningFunctionTool, ToolContext, get_user_choice
from tests.support.talk import Talk, content_summaries, summaries


def ask_for_approval(purpose: str, amount: float) -> dict[str, Any]:
    """Ask a manager to approve a reimbursement."""
    return {"status": "pending", "purpose": purpose, "amount": amount, "ticket-id": "ticket-1"}


def waiting_call(events: list[Event]) -> types.FunctionCall:
    [call] = [
        call
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ())
    ]
    return call


def response(to: types.FunctionCall, **kwargs: Any) -> types.Content:
    answer = types.FunctionResponse(id=to.id, name=to.name, response=kwargs)
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


def talk(*answers: Any, tools: list[Any]) -> tuple[Talk, ScriptedLlm]:
    model = ScriptedLlm(*answers)
    return Talk(Agent(name="desk", model=model, tools=tools)), model


def test_the_model_hears_the_first_answer_and_later_the_outcome():
    text, model = talk(
        call("ask_for_approval", purpose="meals", amount=200.0),
        "Your manager is asked.",
        "It is approved.",
        tools=[LongRunningFunctionTool(func=ask_for_approval)],
    )

    first = text.say("reimburse 200 for meals")
    later_events = text.say(response(waiting_call(first), status="approved"))

    assert [part for _, part in summaries(first)] == [
        "calls ask_for_approval({'purpose': 'meals', 'amount': 200.0}) .",
        "answers {'status': 'pending', 'purpose': 'meals', 'amount': 200.0, 'ticket-id': 'ticket-1'}",
        "Your manager is asked. .",
    ]
    [interim] = first[1].get_function_responses()
    assert interim.will_continue
    assert summaries(later_events) == [("desk", "It is approved. .")]
    [last] = [part.function_response for part in model.requests[-1].contents[-1].parts or []]
    assert last and last.response == {"status": "approved"}


def test_news_may_come_more_than_once_and_the_latest_counts():
    text, model = talk(
        call("ask_for_approval", purpose="meals", amount=200.0),
        "asked",
        "still waiting",
        "refused",
        tools=[LongRunningFunctionTool(ask_for_approval)],
    )
    waits = waiting_call(text.say())

    assert summaries(text.say(response(waits, status="read"))) == [("desk", "still waiting .")]
    assert summaries(text.say(response(waits, status="refused"))) == [("desk", "refused .")]

    responses = [
        part.function_response.response
        for content in model.requests[-1].contents
        for part in content.parts or []
        if part.function_response
    ]
    assert responses == [{"status": "refused"}]


@pytest.mark.parametrize("empty", [None, "", {}, []])
def test_of_nothing_the_model_hears_nothing_but_the_state_is_kept(empty: Any):
    def begin(tool_context: ToolContext) -> Any:
        """Begin."""
        tool_context.state["begun"] = True
        return empty

    text, model = talk(call("begin"), "done", tools=[LongRunningFunctionTool(begin)])

    first = text.say()

    assert (len(model.requests), text.stored().state) == (1, {"begun": True})
    assert summaries(text.say(response(waiting_call(first), ok=True))) == [("desk", "done .")]


def test_a_pausing_tool_ends_the_run_until_its_outcome_comes():
    text, model = talk(
        call("ask_for_approval", purpose="meals", amount=200.0),
        "approved",
        tools=[LongRunningFunctionTool(ask_for_approval, pause=True)],
    )

    first = text.say()

    assert len(model.requests) == 1
    assert first[-1].is_final_response()
    assert summaries(text.say(response(waiting_call(first[:1]), status="approved"))) == [("desk", "approved .")]


def test_any_tool_can_say_while_it_runs_that_its_outcome_comes_later():
    def order(item: str, tool_context: ToolContext) -> dict[str, str]:
        """Order something."""
        call_state(tool_context).is_long_running = item == "piano"
        return {"status": "ordered", "item": item}

    text, model = talk(
        call("order", item="stool"), call("order", item="piano"), "it is here", tools=[FunctionTool(order)]
    )

    first = text.say()

    assert len(model.requests) == 2
    [function_call] = first[-2].get_function_calls()
    assert first[-1].long_running_tool_ids == {function_call.id}
    assert summaries(text.say(response(function_call, status="delivered"))) == [("desk", "it is here .")]


def test_an_error_of_such_a_tool_is_its_outcome():
    def fails() -> dict[str, str]:
        """Fails."""
        raise OSError("no line")

    text, _ = talk(call("fails"), "sorry", tools=[LongRunningFunctionTool(fails, pause=True)])

    first = text.say()

    [answer] = first[1].get_function_responses()
    assert (answer.response, answer.will_continue) == ({"error": "OSError: no line"}, None)
    assert summaries(first)[-1] == ("desk", "sorry .")


def test_the_model_gets_the_instruction_not_to_call_it_again():
    tool = LongRunningFunctionTool(ask_for_approval)

    declared = tool.declaration
    assert declared and declared.description
    assert declared.description.startswith("Ask a manager to approve a reimbursement.\n\nThis operation takes time")


def test_the_user_chooses_and_the_model_goes_on_with_the_choice():
    text, model = talk(
        call("get_user_choice", options=["tea", "coffee"], prompt="What may it be?"),
        "tea it is",
        tools=[get_user_choice],
    )

    first = text.say()

    assert len(model.requests) == 1
    assert summaries(text.say(response(waiting_call(first), result="tea"))) == [("desk", "tea it is .")]


def steps() -> Iterator[Any]:
    """Works in steps."""
    yield {"status": "begun"}
    yield "half way"
    return {"status": "done"}


async def asteps() -> AsyncIterator[Any]:
    """Works in steps."""
    yield {"status": "begun"}
    yield "half way"
    yield {"status": "done"}


@pytest.mark.parametrize("func", [steps, asteps])
def test_a_generator_tells_its_news_and_the_model_is_asked_with_the_outcome(func: Any):
    text, model = talk(call(func.__name__), "It is done.", tools=[LongRunningFunctionTool(func)])

    events = text.say()

    assert [part for _, part in summaries(events)] == [
        f"calls {func.__name__}({{}}) .",
        "answers {'status': 'begun'}",
        "answers {'result': 'half way'}",
        "answers {'status': 'done'}",
        "It is done. .",
    ]
    answers = [response for event in events for response in event.get_function_responses()]
    assert {answer.id for answer in answers} == {events[0].get_function_calls()[0].id}
    assert [answer.will_continue for answer in answers] == [True, True, None]
    assert [event.id for event in text.stored().events[1:]] == [event.id for event in events]
    assert [content_summaries(request.contents)[1:] for request in model.requests] == [
        [],
        [("model", f"calls {func.__name__}({{}})"), ("user", "answers {'status': 'done'}")],
    ]


def test_the_news_of_a_generator_stand_beside_other_calls():
    text, model = talk([call("steps"), call("seen")], "ok", tools=[LongRunningFunctionTool(steps), seen])

    text.say()

    assert content_summaries(model.requests[1].contents)[-1] == (
        "user",
        "answers {'status': 'done'}; answers {'result': 'seen'}",
    )


def seen() -> str:
    """Looks."""
    return "seen"


def test_a_generator_that_pauses_has_its_outcome_from_outside():
    text, model = talk(call("steps"), "It is done.", tools=[LongRunningFunctionTool(steps, pause=True)])

    first = text.say()

    assert [response.will_continue for event in first for response in event.get_function_responses()] == [True] * 3
    assert len(model.requests) == 1
    assert summaries(text.say(response(first[0].get_function_calls()[0], status="shipped"))) == [
        ("desk", "It is done. .")
    ]
    assert content_summaries(model.requests[1].contents)[-1] == ("user", "answers {'status': 'shipped'}")


def test_a_generator_that_fails_half_way_has_an_error_as_outcome():
    def breaks() -> Iterator[str]:
        """Breaks."""
        yield "begun"
        raise OSError("no line")

    text, _ = talk(call("breaks"), "sorry", tools=[LongRunningFunctionTool(breaks)])

    assert [part for _, part in summaries(text.say())][1:] == [
        "answers {'result': 'begun'}",
        "answers {'error': 'OSError: no line'}",
        "sorry .",
    ]


@pytest.mark.parametrize("empty", [[], [None]])
def test_a_generator_that_says_nothing_leaves_its_outcome_to_the_outside(empty: list[Any]):
    async def silent() -> AsyncIterator[Any]:
        """Says nothing."""
        for item in empty:
            yield item

    text, model = talk(call("silent"), "done", tools=[LongRunningFunctionTool(silent)])
    first = text.say()

    assert len(model.requests) == 1
    assert summaries(text.say(response(waiting_call(first), ok=True))) == [("desk", "done .")]


def test_the_same_answer_may_be_sent_again_and_in_one_message():
    text, model = talk(
        call("ask_for_approval", purpose="meals", amount=200.0),
        "asked",
        "approved",
        "as I said",
        tools=[LongRunningFunctionTool(ask_for_approval)],
    )
    waits = waiting_call(text.say())
    twice = [
        types.FunctionResponse(id=waits.id, name=waits.name, response={"status": text}) for text in ("read", "yes")
    ]
    content = types.Content(role="user", parts=[types.Part(function_response=item) for item in twice])

    assert summaries(text.say(content)) == [("desk", "approved .")]
    assert summaries(text.say(content)) == [("desk", "as I said .")]
    assert content_summaries(model.requests[-1].contents)[-1] == ("user", "answers {'status': 'yes'}")


def test_news_from_outside_say_that_more_is_to_come():
    text, model = talk(
        call("ask_for_approval", purpose="meals", amount=200.0),
        "half way",
        "done",
        tools=[LongRunningFunctionTool(ask_for_approval, pause=True)],
    )
    waits = waiting_call(text.say()[:1])
    news = response(waits, done=50)
    assert news.parts and news.parts[0].function_response
    news.parts[0].function_response.will_continue = True

    assert summaries(text.say(news)) == [("desk", "half way .")]
    assert summaries(text.say(response(waits, done=100))) == [("desk", "done .")]
    assert [answer for _, answer in content_summaries(model.requests[-1].contents) if "answers" in answer] == [
        "answers {'done': 100}"
    ]
