"""Several tasks: one step gives them one after another; and what ends one, and what does not."""

from typing import Any

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, ParallelAgent
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import FunctionTool
from tests.support.talk import SESSION_KEY, Talk, look, requests, summaries

HERE: Any = SESSION_KEY


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def task(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return agent(name, *answers, mode="task", **fields)


def finish(result: str) -> Any:
    return call("finish_task", result=result)


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


def two_tasks(first: LlmAgent, second: LlmAgent, *later_args: Any, extra: Any = ()) -> LlmAgent:
    """One that gives both in one step, with `more` calls between."""
    calls = [call(first.name, request="x"), *extra, call(second.name, request="y")]
    return agent("root", calls, *later_args, tools=[look], sub_agents=[first, second])


def test_of_two_in_one_step_the_second_begins_when_the_first_is_handed_back():
    run_task, second_task = task("one", "one?", "one still?", finish("1")), task("two", "two?", finish("2"))
    root = two_tasks(run_task, second_task, "done")
    talk = Talk(root)

    turns = [words(talk.say(text)) for text in ("go", "first", "second", "third")]

    assert turns == [[("one", "one?")], [("one", "one still?")], [("two", "two?")], [("root", "done")]]
    assert [requests(agent)[-1][-1] for agent in (run_task, second_task)] == [("user", "second"), ("user", "third")]
    assert requests(root)[1][1:] == [
        ("model", "calls one({'request': 'x'}); calls two({'request': 'y'})"),
        ("user", "answers {'result': '1'}; answers {'result': '2'}"),
    ]


def test_two_in_one_step_that_need_to_ask_nothing_are_done_in_their_order_beside_other_calls():
    root = two_tasks(task("one", finish("1")), task("two", finish("2")), "done", extra=[call("look")])

    events = Talk(root).say()

    assert [author for author, _ in summaries(events)] == ["root", "one", "one", "two", "two", "root", "root"]
    assert summaries(events)[-2] == (
        "root",
        "answers {'result': '1'}; answers {'result': 'seen'}; answers {'result': '2'}",
    )


def test_the_second_begins_too_where_the_first_fails():
    talk = Talk(two_tasks(task("one", "one?", RuntimeError("boom")), task("two", "two?", finish("2")), "done"))

    assert [words(talk.say(text)) for text in ("go", "first", "second")] == [
        [("one", "one?")],
        [("two", "two?")],
        [("root", "done")],
    ]


def test_the_second_waits_while_something_that_the_first_asked_is_answered():
    run_task = task("one", call("refund", order="A1"), "anything else?", finish("1"), tools=[GATED])
    second_task = task("two", finish("2"))
    talk = Talk(two_tasks(run_task, second_task, "done"))

    assert words(talk.say(yes(talk.say("go")))) == [("one", "anything else?")]
    assert requests(second_task) == []
    assert words(talk.say("no")) == [("root", "done")]


def test_a_reader_that_leaves_after_the_first_question_leaves_both_open():
    async def scene() -> list[Event]:
        async for event in talk.runner.run_async(**HERE, new_message="go"):
            if event.is_final_response():
                break
        await talk.asay("first")
        return await talk.asay("second")

    talk = Talk(two_tasks(task("one", "one?", finish("1")), task("two", "two?", finish("2")), "done"))

    assert words(sync.run(scene())) == [("root", "done")]


def test_of_two_that_were_given_at_once_by_two_agents_the_one_that_spoke_last_is_answered_first():
    def parent(name: str) -> LlmAgent:
        return agent(
            f"gives_{name}",
            call(name, request="x"),
            f"{name} done",
            sub_agents=[task(name, f"{name}?", finish("1"))],
        )

    talk = Talk(ParallelAgent(name="par", sub_agents=[parent("one"), parent("two")]))

    (_, request), (_, asks) = words(talk.say())
    lines = [words(talk.say())[-1], words(talk.say())[-1]]

    assert [text for _, text in lines] == [f"{asks[:-1]} done", f"{request[:-1]} done"]


def to(name: str) -> Any:
    return call("transfer_to_agent", agent_name=name)


def test_a_hand_over_in_the_same_step_comes_when_the_task_is_handed_back():
    calls = [to("next_one"), call("tk", request="x"), call("look")]
    root = agent(
        "root",
        calls,
        tools=[look],
        sub_agents=[task("tk", "when?", finish("booked")), agent("next_one", "I go on.", "still I")],
    )
    talk = Talk(root)

    first, later_events = talk.say("go"), talk.say("today")

    assert summaries(first)[1:] == [("tk", "when? ."), ("root", "answers {'result': 'seen'}")]
    assert summaries(later_events)[2:] == [
        ("user", "answers {'result': 'booked'}"),
        ("root", "answers {'result': None}"),
        ("next_one", "I go on. ."),
    ]
    assert words(talk.say("and?")) == [("next_one", "still I")]
    assert len(requests(root)) == 1


def test_a_hand_over_in_the_same_step_comes_when_what_a_called_agent_asks_is_answered():
    sub_agent = agent("one", call("refund", order="A1"), "refunded", mode="single_turn", tools=[GATED])
    root = agent(
        "root", [call("one", request="x"), to("next_one")], sub_agents=[sub_agent, agent("next_one", "I go on.")]
    )
    talk = Talk(root)

    first = talk.say("go")
    later_events = talk.say(yes(first))

    assert words(first) == []
    assert words(later_events) == [("one", "refunded"), ("next_one", "I go on.")]


def test_a_reader_that_leaves_before_leaves_the_hand_over_open():
    async def scene() -> list[Event]:
        async for event in talk.runner.run_async(**HERE, new_message="go"):
            if event.is_final_response():
                break
        return await talk.asay("today")

    calls = [call("tk", request="x"), to("next_one")]
    talk = Talk(agent("root", calls, sub_agents=[task("tk", "when?", finish("booked")), agent("next_one", "I go on.")]))

    assert words(sync.run(scene())) == [("next_one", "I go on.")]


def test_what_a_callback_says_after_it_is_done_does_not_keep_it_open():
    def greets(callback_context: CallbackContext) -> types.Content:
        return types.Content(role="model", parts=[types.Part(text="Yours, tk")])

    tk = task("tk", "when?", finish("booked"), after_agent_callback=greets)
    talk = Talk(agent("root", call("tk", request="book"), "done", "next", sub_agents=[tk]))

    assert [words(talk.say(text)) for text in ("book", "today", "thanks")] == [
        [("tk", "when?"), ("tk", "Yours, tk")],
        [("tk", "Yours, tk"), ("root", "done")],
        [("root", "next")],
    ]


def test_what_was_handed_back_before_a_rewind_is_not_handed_back_again():
    tk = task("tk", "when?", finish("booked"), "for how many?", finish("for two"))
    talk = Talk(agent("root", call("tk", request="book"), "done", "done again", sub_agents=[tk]))
    talk.say()
    [*_, last] = talk.say("today")

    sync.run(talk.runner.rewind_async(**HERE, rewind_before_invocation_id=last.invocation_id))

    assert words(talk.say("tomorrow")) == [("tk", "for how many?")]
    assert summaries(talk.say("two"))[2:] == [("user", "answers {'result': 'for two'}"), ("root", "done again .")]
