"""Agents that are called as tools in the session of their caller: seen as they work, and answered where they wait."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, RunConfig
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.agents.live_request_queue import LiveRequestQueue
from adk_nb.agents.run_config import StreamingMode
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.errors import InputError, LlmCallsLimitExceededError
from adk_nb.events import Event
from adk_nb.models import LlmRequest, ScriptedLlm, call
from adk_nb.plugins import BasePlugin
from adk_nb.runtime.history import History, open_interrupts
from adk_nb.runtime.interrupts import APPROVALS
from adk_nb.tools import AgentTool, BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext, request_input
from tests.support.polling import SECONDS
from tests.support.talk import Talk, guide, look, requests, summaries


class Watching(BasePlugin):
    def __init__(self) -> None:
        super().__init__("watching")
        self.asked: list[str] = []

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        self.asked.append(callback_context.agent_name)


def expert(*answers: Any, name: str = "expert", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def beside(*agents: LlmAgent) -> list[AgentTool]:
    return [AgentTool(agent, stream_events=True) for agent in agents]


def refund(order: str) -> str:
    """Refunds an order."""
    return f"refunded {order}"


GATED = FunctionTool(refund, require_confirmation=True)


def asked(events: list[Event]) -> list[types.FunctionCall]:
    return [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]


def answer(*requests: types.FunctionCall, **kwargs: Any) -> types.Content:
    kwargs = kwargs or {"confirmed": True}
    parts = [types.FunctionResponse(id=request.id, name=request.name, response=kwargs) for request in requests]
    return types.Content(role="user", parts=[types.Part(function_response=part) for part in parts])


def test_its_events_are_seen_as_they_happen_and_the_callers_model_sees_the_answer_alone():
    child = expert("Oslo.")
    root = guide(call("expert", request="Which city?"), "It is Oslo.", tools=beside(child))
    talk = Talk(root)

    events = talk.say("Where am I?")

    assert summaries(events) == [
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
    later_events = talk.say(answer(request))

    assert summaries(first)[-1][0] == "expert" and first[-1].is_final_response()
    assert summaries(later_events) == [
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


def paused(*child_answers: Any, root_answers: tuple[Any, ...] = ("All done.",), **fields: Any) -> tuple[Talk, LlmAgent]:
    child = expert(call("refund", order="A1"), *child_answers, tools=[GATED], **fields)
    return Talk(guide(call("expert", request="Refund A1"), *root_answers, tools=beside(child))), child


def test_a_no_is_told_to_its_model_and_it_goes_on_from_that():
    talk, child = paused("It was refused.")

    later_events = talk.say(answer(asked(talk.say())[0], confirmed=False, reason="too much"))

    assert [text for _, text in summaries(later_events)] == [
        "answers {'error': 'this call was rejected; it did not run; the reason given: too much'}",
        "It was refused. .",
        "answers {'result': 'It was refused.'}",
        "All done. .",
    ]
    assert len(requests(child)) == 2


def test_an_answer_counts_once():
    ran: list[str] = []

    def once(order: str) -> str:
        """Runs."""
        ran.append(order)
        return "ran"

    child = expert(call("once", order="A1"), "ok", tools=[FunctionTool(once, require_confirmation=True)])
    talk = Talk(guide(call("expert", request="x"), "done", tools=beside(child)))
    [request] = asked(talk.say())

    async def run_pair() -> list[list[Event]]:
        return list(await asyncio.gather(talk.asay(answer(request)), talk.asay(answer(request))))

    asyncio.run(run_pair())
    talk.say(answer(request))

    assert isinstance(talk.error, InputError) and "is not open" in str(talk.error)
    assert ran == ["A1"] and len(requests(child)) == 2


def test_it_may_wait_more_than_once():
    child = expert([call("refund", order="A1")], call("refund", order="A2"), "Both.", tools=[GATED])
    root = guide(call("expert", request="all"), "Done.", tools=beside(child))
    talk = Talk(root)

    second = talk.say(answer(asked(talk.say())[0]))
    assert summaries(second)[0] == ("expert", "answers {'result': 'refunded A1'}") and len(requests(root)) == 1
    third = talk.say(answer(asked(second)[0]))

    assert [text for _, text in summaries(third)] == [
        "answers {'result': 'refunded A2'}",
        "Both. .",
        "answers {'result': 'Both.'}",
        "Done. .",
    ]


def test_what_two_ask_at_once_is_answered_one_by_one_and_the_caller_waits_for_both():
    first_expert, second_expert = (
        expert(call("refund", order=n), f"{n} ok", name=n, tools=[GATED]) for n in ("one", "two")
    )
    looked: list[int] = []

    def look() -> str:
        """Looks."""
        looked.append(1)
        return "seen"

    calls = [call("one", request="a"), call("look"), call("two", request="b")]
    root = guide(calls, "Done.", tools=[*beside(first_expert, second_expert), look])
    talk = Talk(root)

    first = talk.say()
    requested = {(request.args or {})["originalFunctionCall"]["args"]["order"]: request for request in asked(first)}
    half = talk.say(answer(requested["two"]))

    assert summaries(first)[-1] == ("guide", "answers {'result': 'seen'}")
    assert summaries(half) == [
        ("two", "answers {'result': 'refunded two'}"),
        ("two", "two ok ."),
        ("guide", "answers {'result': 'two ok'}"),
    ]
    assert len(requests(root)) == 1

    last = talk.say(answer(requested["one"]))

    assert summaries(last)[-1] == ("guide", "Done. .")
    assert requests(root)[1][-1] == (
        "user",
        "answers {'result': 'one ok'}; answers {'result': 'seen'}; answers {'result': 'two ok'}",
    )
    assert looked == [1] and (len(requests(first_expert)), len(requests(second_expert))) == (2, 2)


def test_what_two_ask_at_once_is_answered_in_one_message():
    child = [expert(call("refund", order=n), f"{n} ok", name=n, tools=[GATED]) for n in ("one", "two")]
    root = guide([call("one", request="a"), call("two", request="b")], "Done.", tools=beside(*child))
    talk = Talk(root)

    last = talk.say(answer(*asked(talk.say())))

    assert summaries(last)[-2:] == [
        ("guide", "answers {'result': 'one ok'}; answers {'result': 'two ok'}"),
        ("guide", "Done. ."),
    ]
    assert len(requests(root)) == 2


def test_the_same_agent_called_twice_at_once_works_on_two_branches():
    class Order(BaseTool):
        async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
            [text] = (tool_context.user_content and tool_context.user_content.parts) or []
            return f"looked at {text.text}"

    child = expert(call("look"), call("look"), "first", "second", tools=[Order(name="look", description="Looks.")])
    talk = Talk(guide([call("expert", request="a"), call("expert", request="b")], "Done.", tools=beside(child)))

    events = talk.say()

    assert {event.branch for event in events if event.author == "expert"} == {
        f"expert@{call.id}" for call in events[0].get_function_calls()
    }
    assert sorted(request[-1][1] for request in requests(child)[2:]) == [
        "answers {'result': 'looked at a'}",
        "answers {'result': 'looked at b'}",
    ]


def test_one_deep_inside_is_answered_and_each_caller_goes_on():
    deep = expert(call("refund", order="A1"), "deep ok", name="deep", tools=[GATED])
    middle = expert(call("deep", request="go"), "middle ok", name="middle", tools=beside(deep))
    root = guide(call("middle", request="start"), "Done.", tools=beside(middle))
    talk = Talk(root)

    first = talk.say()
    later_events = talk.say(answer(asked(first)[0]))

    calls = {call.name: call.id for event in first for call in event.get_function_calls()}
    assert later_events[0].branch == f"middle@{calls['middle']}.deep@{calls['deep']}"
    assert summaries(later_events) == [
        ("deep", "answers {'result': 'refunded A1'}"),
        ("deep", "deep ok ."),
        ("middle", "answers {'result': 'deep ok'}"),
        ("middle", "middle ok ."),
        ("guide", "answers {'result': 'middle ok'}"),
        ("guide", "Done. ."),
    ]
    assert [len(requests(agent)) for agent in (root, middle, deep)] == [2, 2, 2]
    assert requests(middle)[1] == [
        ("user", "start"),
        ("model", "calls deep({'request': 'go'})"),
        ("user", "answers {'result': 'deep ok'}"),
    ]


def order() -> None:
    """Orders."""


def begun() -> str:
    """Begins."""
    return "begun"


@pytest.mark.parametrize(
    "tool", [LongRunningFunctionTool(order, name="order"), LongRunningFunctionTool(begun, name="order", pause=True)]
)
def test_an_outcome_reaches_the_agent_that_waits_for_it(tool: FunctionTool):
    child = expert(call("order"), "It came.", tools=[tool])
    root = guide(call("expert", request="order"), "Done.", tools=beside(child))
    talk = Talk(root)

    first = talk.say()
    [waits] = [call for event in first for call in event.get_function_calls() if call.name == "order"]
    later_events = talk.say(answer(waits, status="here"))

    assert summaries(later_events) == [
        ("expert", "It came. ."),
        ("guide", "answers {'result': 'It came.'}"),
        ("guide", "Done. ."),
    ]
    assert requests(child)[1][-1] == ("user", "answers {'status': 'here'}")


def test_a_late_outcome_changes_what_the_caller_was_told():
    child = expert(call("begun"), "It is under way.", "It came.", tools=[LongRunningFunctionTool(begun)])
    root = guide(call("expert", request="order"), "Wait.", "It is here.", tools=beside(child))
    talk = Talk(root)

    first = talk.say()
    [waits] = [call for event in first for call in event.get_function_calls() if call.name == "begun"]
    later_events = talk.say(answer(waits, status="here"))

    assert summaries(first)[-1] == ("guide", "Wait. .")
    assert summaries(later_events)[-2:] == [("guide", "answers {'result': 'It came.'}"), ("guide", "It is here. .")]
    assert requests(root)[2][-1] == ("user", "answers {'result': 'It came.'}")


def test_a_question_inside_is_answered_there():
    child = expert(call("adk_request_input", message="Which order?"), "A1 then.", tools=[request_input])
    talk = Talk(guide(call("expert", request="refund"), "Done.", tools=beside(child)))

    first = talk.say()
    [question] = [call for event in first for call in event.get_function_calls() if call.name == "adk_request_input"]

    assert summaries(talk.say(answer(question, result="A1")))[-1] == ("guide", "Done. .")
    assert requests(child)[1][-1] == ("user", "answers {'result': 'A1'}")


def test_who_has_the_word_inside_is_asked_again_and_not_the_one_that_was_called():
    worker = expert(call("refund", order="A1"), "ok", name="worker", tools=[GATED])

    class Hands(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            async for event in self.sub_agents[0].run_async(ctx):
                yield event

    hands = Hands(name="hands", sub_agents=[worker])
    root = guide(call("hands", request="x"), "Done.", tools=[AgentTool(hands, stream_events=True)])
    talk = Talk(root)

    later_events = talk.say(answer(asked(talk.say())[0]))

    assert summaries(later_events)[0] == ("worker", "answers {'result': 'refunded A1'}")
    assert summaries(later_events)[-1] == ("guide", "Done. .")


def test_a_caller_that_is_a_sub_agent_is_found():
    child = expert(call("refund", order="A1"), "ok", tools=[GATED])
    clerk = expert(call("expert", request="x"), "Clerk is done.", name="clerk", tools=beside(child))

    class Team(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            async for event in self.sub_agents[0].run_async(ctx):
                yield event

    talk = Talk(Team(name="team", sub_agents=[clerk]))

    assert summaries(talk.say(answer(asked(talk.say())[0])))[-1] == ("clerk", "Clerk is done. .")


def test_its_state_is_the_callers_and_is_written_once():
    child = expert("Oslo.", output_key="found", before_agent_callback=note)
    talk = Talk(guide(call("expert", request="x"), "{found}", tools=beside(child)))

    events = talk.say()

    assert talk.stored().state == {"seen": True, "found": "Oslo."}
    assert [event.actions.state_delta for event in events if event.actions.state_delta] == [
        {"seen": True},
        {"found": "Oslo."},
    ]


def note(callback_context: CallbackContext) -> None:
    callback_context.state["seen"] = True


def test_pieces_of_its_answers_stream_too():
    child = expert("Oslo it is.")
    talk = Talk(guide(call("expert", request="x"), "Done.", tools=beside(child)))

    events = talk.say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert any(event.partial for event in events if event.author == "expert")
    assert not any(event.partial for event in talk.stored().events)


def test_its_model_calls_count_with_the_callers():
    child = expert(call("look"), "seen", tools=[look])
    talk = Talk(guide(call("expert", request="x"), "never", tools=beside(child)))

    talk.say(config=RunConfig(max_llm_calls=2))

    assert isinstance(talk.error, LlmCallsLimitExceededError)


def test_its_error_is_told_where_it_was_and_goes_to_the_callers_model():
    talk = Talk(guide(call("expert", request="x"), "I could not.", tools=beside(expert(RuntimeError("boom")))))

    assert summaries(talk.say()) == [
        ("guide", "calls expert({'request': 'x'})"),
        ("expert", "failed RuntimeError"),
        ("guide", "answers {'error': 'RuntimeError: boom'}"),
        ("guide", "I could not. ."),
    ]


def test_its_error_ends_the_run_where_errors_of_tools_do():
    talk = Talk(guide(call("expert", request="x"), "never", tools=beside(expert(RuntimeError("boom")))))

    events = talk.say(config=RunConfig(tool_errors="raise"))

    assert summaries(events)[1:] == [
        ("expert", "failed RuntimeError"),
        ("guide", "answers {'error': 'RuntimeError: boom'} failed RuntimeError ."),
    ]
    assert isinstance(talk.error, RuntimeError)


def test_an_approved_call_that_ends_the_run_with_an_error_waits_no_more():
    def breaks() -> None:
        """Breaks."""
        raise OSError("no line")

    tool = FunctionTool(breaks, require_confirmation=True)
    child = expert(call("breaks"), "never", tools=[tool], tool_errors="raise")
    root = guide(call("expert", request="x"), "I could not.", "Again.", tools=beside(child))
    talk = Talk(root)

    later_events = talk.say(answer(asked(talk.say())[0]))

    assert summaries(later_events)[-1] == ("guide", "I could not. .")
    assert open_interrupts(talk.stored().events, APPROVALS) == []


@pytest.mark.parametrize(
    "now",
    [
        [],
        [AgentTool(expert("again"))],
        [FunctionTool(look, name="expert")],
    ],
    ids=["gone", "works apart now", "another tool"],
)
def test_an_answer_to_an_agent_that_is_not_there_as_it_was_runs_nothing(now: list[Any]):
    talk, child = paused("never", root_answers=("I could not.",))
    root = talk.runner.agent
    [request] = asked(talk.say())
    assert isinstance(root, LlmAgent)
    root.tools = now

    later_events = talk.say(answer(request))

    assert summaries(later_events)[-1] == ("guide", "I could not. .")
    assert len(requests(child)) == 1
    assert open_interrupts(talk.stored().events, APPROVALS) == []
    assert "was redefined" in requests(root)[-1][-1][1]


def test_a_tool_of_it_that_was_redefined_does_not_run():
    talk, child = paused("I could not refund.")
    [request] = asked(talk.say())

    def refund(order: str) -> str:
        """Refunds an order, all of it."""
        raise AssertionError

    child.tools = [FunctionTool(refund, require_confirmation=True)]
    later_events = talk.say(answer(request))

    assert "was redefined" in summaries(later_events)[0][1]
    assert summaries(later_events)[-1] == ("guide", "All done. .")


def test_a_word_in_between_is_a_turn_of_its_own_and_the_answer_still_reaches_it():
    talk, _ = paused("Refunded.", root_answers=("Hello.", "All done."))
    [request] = asked(talk.say())

    assert summaries(talk.say("hi?")) == [("guide", "Hello. .")]
    assert summaries(talk.say(answer(request)))[-1] == ("guide", "All done. .")
    root = talk.runner.agent
    assert isinstance(root, LlmAgent)
    assert requests(root)[-1][-1] == ("user", "answers {'result': 'Refunded.'}")


def test_a_reader_that_leaves_when_something_waits_leaves_it_open():
    talk, _ = paused("Refunded.")

    async def leave() -> types.FunctionCall:
        async with aclosing(talk.runner.run_async(user_id="u", session_id="s", new_message="x")) as events:
            async for event in events:
                if requests := asked([event]):
                    return requests[0]
        raise AssertionError

    request = asyncio.run(leave())

    assert summaries(talk.say(answer(request)))[-1] == ("guide", "All done. .")


def test_who_stops_the_run_closes_what_was_going_on_inside():
    started, removed = threading.Event(), threading.Event()

    async def forever() -> None:
        """Waits."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            removed.set()

    child = expert(call("refund", order="A1"), call("forever"), "never", tools=[GATED, forever])
    talk = Talk(guide(call("expert", request="x"), "never", tools=beside(child)))
    [request] = asked(talk.say())

    async def stop() -> None:
        signal = asyncio.Event()
        run = asyncio.ensure_future(talk.asay(answer(request), abort_signal=signal))
        await asyncio.wait_for(asyncio.to_thread(started.wait, SECONDS), SECONDS)
        signal.set()
        await asyncio.wait_for(run, SECONDS)

    asyncio.run(stop())

    assert removed.is_set()
    assert not list(History(talk.stored().events).calls.open())


def test_services_that_number_calls_anew_are_no_trouble():
    def numbered(name: str, **args: Any) -> types.Part:
        return types.Part(function_call=types.FunctionCall(id="call.0@x", name=name, args=args))

    child = expert(numbered("look"), "one", numbered("look"), "two", tools=[look])
    first, second = (numbered("expert", request=item) for item in "ab")
    talk = Talk(guide(first, "first", second, "second", tools=beside(child)))

    talk.say()
    assert summaries(talk.say())[-2:] == [("guide", "answers {'result': 'two'}"), ("guide", "second .")]
    assert requests(child)[3] == [
        ("user", "b"),
        ("model", "calls look({})"),
        ("user", "answers {'result': 'seen'}"),
    ]


def test_plugins_see_its_events_and_what_is_around_its_models_only_if_they_are_included():
    child = expert("Oslo.")
    talk = Talk(guide(call("expert", request="x"), "Done.", tools=beside(child)), plugins=[plugin := Watching()])

    talk.say()

    assert plugin.asked == ["guide", "expert", "guide"]


def test_a_credential_that_it_needs_is_given_in_the_callers_conversation():
    let_in: list[Any] = []

    def mail(tool_context: ToolContext) -> str:
        """Reads mail."""
        let_in.append(tool_context.auth_credential and tool_context.auth_credential.api_key)
        return "one mail"

    key = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))
    child = expert(call("mail"), "One.", tools=[FunctionTool(mail, auth_config=key)])
    root = guide(call("expert", request="mail?"), "One mail.", tools=beside(child))
    talk = Talk(root)

    first = talk.say()
    [request] = [
        call for event in first for call in event.get_function_calls() if call.name == "adk_request_credential"
    ]
    later_events = talk.say(answer(request, apiKey="a-persons-key"))

    assert summaries(later_events) == [
        ("expert", "answers {'result': 'one mail'}"),
        ("expert", "One. ."),
        ("guide", "answers {'result': 'One.'}"),
        ("guide", "One mail. ."),
    ]
    assert let_in == ["a-persons-key"] and len(requests(root)) == 2


def test_in_a_live_conversation_it_works_apart_and_says_so_when_it_waits():
    live = ScriptedLlm(call("expert", request="x"), "I could not.")
    child = expert(call("refund", order="A1"), tools=[GATED])
    talk = Talk(LlmAgent(name="guide", model=live, tools=beside(child)))

    async def converse() -> list[Event]:
        queue = LiveRequestQueue()
        queue.send_content(types.Content(role="user", parts=[types.Part(text="hi")]))
        turn_events: list[Event] = []
        async with asyncio.timeout(SECONDS):
            async for event in talk.runner.run_live(user_id="u", session_id="s", live_request_queue=queue):
                turn_events.append(event)
                if event.turn_complete:
                    queue.close()
        return turn_events

    events = asyncio.run(converse())

    [result] = [response.response for event in events for response in event.get_function_responses()]
    assert result and "live conversation" in result["error"]


def test_an_agent_that_calls_itself_gets_an_error_to_answer():
    asks = (call("guide", request="x"),) * 51
    root = guide(*asks, *("answered",) * 51)
    root.tools = [AgentTool(root, stream_events=True)]

    events = Talk(root).say()

    [deepest, *_] = [response.response or {} for event in events for response in event.get_function_responses()]
    assert "guide() was not called: 50 agents wait" in deepest["error"]
    assert summaries(events)[-1] == ("guide", "answered .") and events[-1].branch is None
