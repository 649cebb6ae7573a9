"""Tasks: a sub-agent talks with the user until it hands back what came of it."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.agents.live_request_queue import LiveRequestQueue
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import AgentTool, FunctionTool
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, look, requests, summaries

HERE: Any = SESSION_KEY


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def task(*answers: Any, name: str = "tk", **fields: Any) -> LlmAgent:
    return agent(name, *answers, mode="task", **fields)


def finish(**args: Any) -> Any:
    return call("finish_task", **args)


BOOK, BOOKED = call("tk", request="book"), finish(result="booked")


def words(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


def declared(agent: LlmAgent, turn: int = 0) -> dict[str, Any]:
    """The properties of the arguments of its `finish_task`."""
    assert isinstance(agent.model, ScriptedLlm)
    declaration = agent.model.requests[turn].tools_dict["finish_task"].declaration
    assert declaration is not None
    return declaration.parameters_json_schema["properties"]


def test_one_that_needs_to_ask_nothing_hands_back_at_once():
    root = agent("root", BOOK, "done", sub_agents=[task(BOOKED)])

    events = Talk(root).say()

    assert [author for author, _ in summaries(events)] == ["root", "tk", "tk", "user", "root"]
    assert summaries(events)[3:] == [("user", "answers {'result': 'booked'}"), ("root", "done .")]


class Trip(BaseModel):
    city: str
    nights: int


def test_what_it_hands_back_has_the_form_of_its_output_schema():
    tk = task("which city?", finish(city="Oslo", nights="many"), finish(city="Oslo", nights=2), output_schema=Trip)
    tk.output_key = "trip"
    root = agent("root", BOOK, "done", sub_agents=[tk])
    talk = Talk(root)

    talk.say("book")
    events = talk.say("Oslo")

    assert declared(tk).keys() == {"city", "nights"}
    assert "handed back: nights" in summaries(events)[1][1]
    assert summaries(events)[3:] == [
        ("tk", "answers {'result': 'Task completed.'} => {'trip': {'city': 'Oslo', 'nights': 2}}"),
        ("user", "answers {'city': 'Oslo', 'nights': 2}"),
        ("root", "done ."),
    ]
    assert events[3].output == {"city": "Oslo", "nights": 2}
    assert talk.stored().state == {"trip": {"city": "Oslo", "nights": 2}}


def test_what_is_no_object_is_handed_back_as_it_is():
    tk = task(finish(response=["a", "b"]), output_schema=list[str])

    events = Talk(agent("root", BOOK, "done", sub_agents=[tk])).say()

    assert summaries(events)[3] == ("user", "answers {'result': ['a', 'b']}")


@pytest.mark.parametrize("args", [{}, {"result": 3}, {"other": "x"}])
def test_a_wrong_end_goes_back_to_its_model(args: dict[str, Any]):
    events = Talk(agent("root", BOOK, "done", sub_agents=[task(finish(**args), BOOKED)])).say()

    assert "handed back" in summaries(events)[2][1]
    assert summaries(events)[-1] == ("root", "done .")


def test_it_is_ended_by_a_call_that_stands_alone():
    tk = task([call("look"), BOOKED], BOOKED, tools=[look])

    events = Talk(agent("root", BOOK, "done", sub_agents=[tk])).say()

    assert "'seen'" in summaries(events)[2][1] and "is called alone" in summaries(events)[2][1]
    assert summaries(events)[-2:] == [("user", "answers {'result': 'booked'}"), ("root", "done .")]


def test_it_may_ask_more_than_once_and_only_it_sees_what_is_said():
    tk = task("when?", "for how many?", BOOKED)
    root = agent("root", BOOK, "done", sub_agents=[tk])
    talk = Talk(root)

    assert [words(talk.say(text)) for text in ("book", "today", "two")] == [
        [("tk", "when?")],
        [("tk", "for how many?")],
        [("root", "done")],
    ]
    assert requests(tk)[2] == [
        ("user", '{"request": "book"}'),
        ("model", "when?"),
        ("user", "today"),
        ("model", "for how many?"),
        ("user", "two"),
    ]
    assert [text for _, text in requests(root)[1]] == [
        "book",
        "calls tk({'request': 'book'})",
        "answers {'result': 'booked'}",
    ]


def test_one_task_after_another_begins_anew():
    tk = task("when?", BOOKED, "when now?", finish(result="booked again"))
    talk = Talk(agent("root", BOOK, "done", BOOK, "done again", sub_agents=[tk]))

    for text in ("book", "today", "once more"):
        talk.say(text)
    events = talk.say("tomorrow")

    assert words(events) == [("root", "done again")]
    assert requests(tk)[2:] == [
        [("user", '{"request": "book"}')],
        [("user", '{"request": "book"}'), ("model", "when now?"), ("user", "tomorrow")],
    ]


def test_the_parent_may_give_the_next_task_in_the_turn_in_which_the_last_was_handed_back():
    tk = task("when?", BOOKED, "and then?", BOOKED)
    talk = Talk(agent("root", BOOK, BOOK, "done", sub_agents=[tk]))

    assert [words(talk.say(text)) for text in ("book", "today", "later")] == [
        [("tk", "when?")],
        [("tk", "and then?")],
        [("root", "done")],
    ]


def test_other_calls_of_the_step_are_done_and_the_parent_waits_for_the_task():
    root = agent("root", [BOOK, call("look")], "done", tools=[look], sub_agents=[task("when?", BOOKED)])
    talk = Talk(root)

    first, later_events = talk.say(), talk.say("today")

    assert summaries(first)[1:] == [("tk", "when? ."), ("root", "answers {'result': 'seen'}")]
    assert summaries(later_events)[-2:] == [("user", "answers {'result': 'booked'}"), ("root", "done .")]
    assert requests(root)[1][1:] == [
        ("model", "calls tk({'request': 'book'}); calls look({})"),
        ("user", "answers {'result': 'booked'}; answers {'result': 'seen'}"),
    ]


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


GATED = FunctionTool(refund, require_confirmation=True)


def yes(events: list[Event]) -> types.Content:
    calls = [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
    parts = [types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True}) for call in calls]
    return types.Content(role="user", parts=[types.Part(function_response=part) for part in parts])


def test_what_needs_approval_is_asked_for_and_the_task_goes_on():
    tk = task("which order?", call("refund", order="A1"), "anything else?", BOOKED, tools=[GATED])
    talk = Talk(agent("root", BOOK, "done", sub_agents=[tk]))

    talk.say()
    asks = talk.say("A1")
    goes_on = talk.say(yes(asks))
    last = talk.say("no")

    assert summaries(goes_on) == [("tk", "answers {'result': 'refunded A1'}"), ("tk", "anything else? .")]
    assert words(last) == [("root", "done")]
    assert [text for _, text in requests(tk)[-1]] == [
        '{"request": "book"}', "which order?", "A1", "calls refund({'order': 'A1'})",
        "answers {'result': 'refunded A1'}", "anything else?", "no",
    ]  # fmt: skip


def test_an_error_ends_the_task_and_the_parent_goes_on():
    talk = Talk(agent("root", BOOK, "it failed", "next", sub_agents=[task("when?", RuntimeError("boom"))]))
    talk.say()

    events = talk.say("today")

    assert summaries(events) == [
        ("tk", "failed RuntimeError"),
        ("user", "answers {'error': 'RuntimeError: boom'}"),
        ("root", "it failed ."),
    ]
    assert words(talk.say()) == [("root", "next")]


def test_one_that_asks_its_model_too_often_ends_the_task():
    tk = task(call("look"), call("look"), tools=[look], max_iterations=2)

    events = Talk(agent("root", BOOK, "it failed", sub_agents=[tk])).say()

    assert "its model 2 times" in summaries(events)[-2][1] and words(events) == [("root", "it failed")]


def test_a_run_that_is_stopped_while_it_talks_leaves_the_task_open():
    async def stopped() -> None:
        stop.set()
        await asyncio.sleep(SECONDS)

    async def scene() -> list[Event]:
        await talk.asay()
        await talk.asay("today", abort_signal=stop)
        return await talk.asay("again")

    stop = asyncio.Event()
    tk = task("when?", call("stopped"), BOOKED, tools=[stopped])
    talk = Talk(agent("root", BOOK, "done", sub_agents=[tk]))

    assert words(sync.run(scene())) == [("root", "done")]
    assert [text for _, text in requests(tk)[-1]][:3] == ['{"request": "book"}', "when?", "today"]


def test_a_run_that_is_stopped_before_it_has_talked_ends_the_task():
    async def stopped() -> None:
        stop.set()
        await asyncio.sleep(SECONDS)

    async def scene() -> list[Event]:
        await talk.asay(abort_signal=stop)
        return await talk.asay("again")

    stop = asyncio.Event()
    talk = Talk(agent("root", BOOK, "what?", sub_agents=[task(call("stopped"), tools=[stopped])]))

    assert words(sync.run(scene())) == [("root", "what?")]


def test_a_reader_that_leaves_after_a_question_leaves_the_task_open():
    async def scene() -> list[Event]:
        async for event in talk.runner.run_async(**HERE, new_message="book"):
            if event.is_final_response():
                break
        return await talk.asay("today")

    talk = Talk(agent("root", BOOK, "done", sub_agents=[task("when?", BOOKED)]))

    assert words(sync.run(scene())) == [("root", "done")]


def test_a_rewind_takes_the_task_back():
    talk = Talk(agent("root", BOOK, "hello", sub_agents=[task("when?")]))
    [*_, last] = talk.say()

    sync.run(talk.runner.rewind_async(**HERE, rewind_before_invocation_id=last.invocation_id))

    assert words(talk.say("hi")) == [("root", "hello")]


def test_other_agents_of_the_same_names_go_on_with_it():
    service = InMemorySessionService()

    async def say(root: LlmAgent, text: str) -> list[Event]:
        runner = Runner(app_name="app", agent=root, session_service=service, auto_create_session=True)
        return [event async for event in runner.run_async(**HERE, new_message=text)]

    first = sync.run(say(agent("root", BOOK, sub_agents=[task("when?")]), "book"))
    tk = task(BOOKED)
    later_events = sync.run(say(agent("root", "done", sub_agents=[tk]), "today"))

    assert words([*first, *later_events]) == [("tk", "when?"), ("root", "done")]
    assert [text for _, text in requests(tk)[0]] == ['{"request": "book"}', "when?", "today"]


def test_a_task_within_a_task():
    inner = task("how many?", finish(result="two"), name="inner")
    outer = task(call("inner", request="count"), "when?", BOOKED, sub_agents=[inner])
    talk = Talk(agent("root", BOOK, "done", sub_agents=[outer]))

    assert [words(talk.say(text)) for text in ("book", "2", "today")] == [
        [("inner", "how many?")],
        [("tk", "when?")],
        [("root", "done")],
    ]
    assert requests(inner)[1][-1] == ("user", "2")
    assert requests(outer)[-1][-2:] == [("model", "when?"), ("user", "today")]


def test_a_task_within_an_agent_of_a_single_turn():
    middle = agent("middle", BOOK, "middle done", mode="single_turn", sub_agents=[task("when?", BOOKED)])
    talk = Talk(agent("root", call("middle", request="x"), "done", sub_agents=[middle]))

    talk.say()

    assert summaries(talk.say("today"))[2:] == [
        ("user", "answers {'result': 'booked'}"),
        ("middle", "middle done ."),
        ("root", "answers {'result': 'middle done'}"),
        ("root", "done ."),
    ]


def test_a_task_within_an_agent_that_is_called_as_a_tool():
    middle = agent("middle", BOOK, "middle done", sub_agents=[task("when?", BOOKED)])
    talk = Talk(agent("root", call("middle", request="x"), "done", tools=[AgentTool(middle, stream_events=True)]))

    assert words(talk.say()) == [("tk", "when?")]
    assert words(talk.say("today")) == [("middle", "middle done"), ("root", "done")]


def test_a_parent_that_has_taken_over_has_its_tasks():
    b = agent("b", BOOK, "b done", "b again", sub_agents=[task("when?", BOOKED)])
    talk = Talk(agent("root", call("transfer_to_agent", agent_name="b"), sub_agents=[b]))

    assert [words(talk.say(text)) for text in ("hi", "today", "more")] == [
        [("tk", "when?")],
        [("b", "b done")],
        [("b", "b again")],
    ]


def test_a_sequence_goes_on_when_the_task_is_done():
    first = agent("first", BOOK, "first done", sub_agents=[task("when?", BOOKED)])
    talk = Talk(SequentialAgent(name="seq", sub_agents=[first, agent("second", "second done")]))

    assert words(talk.say()) == [("tk", "when?")]
    assert words(talk.say("today")) == [("first", "first done"), ("second", "second done")]


def test_a_loop_goes_on_when_the_task_is_done():
    first = agent("first", BOOK, "pass 1", "pass 2", sub_agents=[task("when?", BOOKED)])
    talk = Talk(LoopAgent(name="loop", sub_agents=[first, agent("second", "a", "b")], max_iterations=2))

    assert words(talk.say()) == [("tk", "when?")]
    assert [text for _, text in words(talk.say("today"))] == ["pass 1", "a", "pass 2", "b"]


def test_in_a_parallel_agent_the_others_come_to_their_end_and_the_task_is_answered():
    first = agent("first", BOOK, "first done", sub_agents=[task("when?", BOOKED)])
    talk = Talk(ParallelAgent(name="par", sub_agents=[first, agent("second", "second done")]))

    assert sorted(words(talk.say())) == [("second", "second done"), ("tk", "when?")]
    assert words(talk.say("today")) == [("first", "first done")]


def test_without_stickiness_the_task_is_answered_all_the_same():
    talk = Talk(agent("root", BOOK, "done", sub_agents=[task("when?", BOOKED)]))
    talk.runner.sticky_agents = False

    talk.say()

    assert words(talk.say("today")) == [("root", "done")]


def test_its_parents_state_is_its_own():
    tk = task("when?", BOOKED, instruction="For {who}.", output_key="came")
    talk = Talk(agent("root", BOOK, "done", sub_agents=[tk]), state={"who": "Ada"})

    talk.say()
    talk.say("today")

    assert isinstance(tk.model, ScriptedLlm)
    assert str(tk.model.requests[0].config.system_instruction).startswith("For Ada.")
    assert talk.stored().state == {"who": "Ada", "came": "booked"}


def test_in_a_live_conversation_it_works_alone_or_not_at_all():
    async def converse(talk: Talk) -> list[Event]:
        queue = LiveRequestQueue()
        queue.send_content(types.Content(role="user", parts=[types.Part(text="hi")]))
        events: list[Event] = []
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_live(**HERE, live_request_queue=queue):
                events.append(event)
                if event.turn_complete:
                    queue.close()
        return [run_event for run_event in events if run_event.get_function_responses()]

    alone, asks = (Talk(agent("root", BOOK, "So be it.", sub_agents=[task(item)])) for item in (BOOKED, "when?"))

    assert summaries(sync.run(converse(alone))) == [("user", "answers {'result': 'booked'}")]
    [result] = summaries(sync.run(converse(asks)))
    assert "live conversation" in result[1]
