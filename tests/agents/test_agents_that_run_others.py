"""Agents that let others work: one after the other, again and again, at the same time; and what a pause does there."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event, EventActions
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.history import open_interrupts
from adk_nb.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext
from tests.support.talk import Talk, look, requests, summaries

YES = {"confirmed": True}


def agent(name: str, *answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedLlm(*answers), **fields)


def leave(tool_context: ToolContext) -> None:
    """Leaves the loop."""
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True


def ask() -> None:
    """Asks someone."""


def pay(n: int) -> str:
    """Pays."""
    return f"paid {n}"


def asks(name: str, *answers: Any) -> LlmAgent:
    return agent(name, *answers, tools=[LongRunningFunctionTool(ask)])


def pays(name: str, *answers: Any) -> LlmAgent:
    return agent(name, *answers, tools=[FunctionTool(pay, require_confirmation=True)])


def open_calls(events: list[Event]) -> list[types.FunctionCall]:
    return [
        call
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ())
    ]


def outcome(call: types.FunctionCall, said: dict[str, Any]) -> types.Content:
    response = types.FunctionResponse(id=call.id, name=call.name, response=said)
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def words(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.author, event.text) for event in events if event.text]


# -- one after the other


def test_each_works_in_its_turn_and_reads_what_was_said_before():
    last = agent("y", "B", instruction="use {xo}")
    talk = Talk(SequentialAgent(name="seq", sub_agents=[agent("x", "A", output_key="xo"), last]))

    assert words(talk.say("go")) == [("x", "A"), ("y", "B")]
    [[(_, first), (_, second)]] = requests(last)
    assert first == "go"
    assert "[x] said" in second
    assert isinstance(last.model, ScriptedLlm)
    assert str(last.model.requests[0].config.system_instruction).startswith("use A")


def test_without_agents_nothing_is_printed():
    for kind in (SequentialAgent, LoopAgent, ParallelAgent):
        assert Talk(kind(name="empty")).say("go") == []


@pytest.mark.parametrize(("stops", "texts"), [(False, ["x", "y"]), (True, ["x"])])
def test_an_escalation_ends_a_sequence_only_if_it_says_so(stops: bool, texts: list[str]):
    first, last = agent("x", call("leave"), tools=[leave]), agent("y", "B")
    events = Talk(SequentialAgent(name="seq", sub_agents=[first, last], stop_on_escalate=stops)).say("go")

    assert list(dict.fromkeys(event.author for event in events)) == texts


def give_up(tool_context: ToolContext) -> str:
    """Gives up."""
    tool_context.actions.escalate = True
    return "no way"


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_tool_that_only_escalates_ends_its_agent_and_what_follows_in_a_sequence(is_nested: bool):
    first: BaseAgent = agent("x", call("give_up"), "not said", tools=[give_up])
    first = SequentialAgent(name="inner", sub_agents=[first, agent("w", "nor this")]) if is_nested else first
    events = Talk(SequentialAgent(name="seq", sub_agents=[first, agent("y", "nor that")])).say("go")

    *_, result, marker = events
    assert [event.author for event in events] == ["x"] * 3
    assert result.actions.escalate and result.get_function_responses()[0].response == {"result": "no way"}
    assert marker.actions.escalate and not marker.content


def test_a_tool_that_only_escalates_after_a_yes_ends_its_agent_too():
    alone = agent("x", call("give_up"), "not said", tools=[FunctionTool(give_up, require_confirmation=True)])
    talk = Talk(SequentialAgent(name="seq", sub_agents=[alone, agent("y", "nor that")]))
    [open_call] = open_calls(talk.say("go"))
    events = talk.say(outcome(open_call, YES))

    assert words(events) == [] and [event.actions.escalate for event in events] == [True, True]


def test_the_caller_of_an_agent_whose_tool_escalated_goes_on():
    helper = agent("helper", call("give_up"), "not said", tools=[give_up])
    events = Talk(agent("boss", call("helper", request="try"), "so be it", tools=[AgentTool(helper)])).say("go")

    assert events[1].get_function_responses()[0].response == {"result": "no way"}
    assert words(events) == [("boss", "so be it")]


@pytest.mark.parametrize("others", [[], ["a yes"]])
def test_a_call_that_waits_for_a_yes_is_answered_as_one_that_continues(others: list[str]):
    calls = [call("pay", n=1), *(call("look") for _ in others)]
    talk = Talk(agent("x", calls, "done", tools=[FunctionTool(pay, require_confirmation=True), look]))
    events = talk.say("go")
    continues = {
        response.name: response.will_continue for event in events for response in event.get_function_responses()
    }
    assert continues == {"pay": True} | ({"look": None} if others else {})

    [open_call] = open_calls(events)
    [result] = [part for event in talk.say(outcome(open_call, YES)) for part in event.get_function_responses()]
    assert (result.response, result.will_continue) == ({"result": "paid 1"}, None)


def test_long_work_that_waits_for_a_yes_is_open_once():
    work = LongRunningFunctionTool(ask, require_confirmation=True)
    talk = Talk(agent("x", call("ask"), "done", tools=[work]))
    talk.say("go")
    assert [interrupt.kind for interrupt in open_interrupts(talk.stored().events)] == ["approval"]


def test_an_agent_that_ends_the_invocation_is_the_last():
    def enough(callback_context: Any) -> None:
        callback_context.get_invocation_context().end_invocation = True

    first = agent("x", "A", after_agent_callback=enough)
    assert words(Talk(SequentialAgent(name="seq", sub_agents=[first, agent("y", "B")])).say("go")) == [("x", "A")]


# -- again and again


def test_a_loop_goes_on_until_one_of_them_leaves_it():
    writer, critic = agent("x", "w1", "w2"), agent("y", "r1", call("leave"), tools=[leave])
    events = Talk(LoopAgent(name="loop", sub_agents=[writer, critic, agent("z", "z1")])).say("go")

    assert [event.author for event in events] == ["x", "y", "z", "x", "y", "y"]
    assert requests(writer)[1][1] == ("model", "w1")


def test_a_loop_makes_as_many_passes_as_it_may():
    loop = LoopAgent(name="loop", sub_agents=[agent("x", "1", "2", "3")], max_iterations=2)

    assert words(Talk(loop).say("go")) == [("x", "1"), ("x", "2")]
    with pytest.raises(ConfigurationError, match="max_iterations"):
        LoopAgent(name="loop", max_iterations=0)


def test_an_agent_that_escalates_comes_to_its_own_end_first():
    def escalate(tool_context: ToolContext) -> str:
        """Escalates."""
        tool_context.actions.escalate = True
        return "noted"

    loop = LoopAgent(name="loop", sub_agents=[agent("x", call("escalate"), "done", "again", tools=[escalate])])

    assert words(Talk(loop).say("go")) == [("x", "done")]


@pytest.mark.parametrize(("propagates", "text"), [(True, []), (False, [("w", "1"), ("w", "2")])])
def test_a_loop_in_a_loop_ends_both_unless_it_keeps_that_to_itself(propagates: bool, text: list[tuple[str, str]]):
    inner = LoopAgent(
        name="inner",
        sub_agents=[agent("x", call("leave"), call("leave"), tools=[leave])],
        propagate_escalate=propagates,
    )
    outer = LoopAgent(name="outer", sub_agents=[inner, agent("w", "1", "2")], max_iterations=2)

    assert words(Talk(outer).say("go")) == text


def test_a_sequence_goes_on_after_a_loop_that_was_left():
    loop = LoopAgent(name="loop", sub_agents=[agent("x", call("leave"), tools=[leave])])
    events = Talk(SequentialAgent(name="seq", sub_agents=[loop, agent("y", "after")])).say("go")

    assert words(events) == [("y", "after")]


# -- at the same time


def test_agents_beside_each_other_do_not_see_each_other_and_the_next_sees_all():
    x, y, z = agent("x", "PA", output_key="xo"), agent("y", "PB", output_key="yo"), agent("z", "Z")
    talk = Talk(SequentialAgent(name="seq", sub_agents=[ParallelAgent(name="par", sub_agents=[x, y]), z]))

    talk.say("go")

    assert requests(x) == requests(y) == [[("user", "go")]]
    assert [event.branch for event in talk.stored().events] == [None, "par.x", "par.y", None]
    assert len(requests(z)[0]) == 3
    assert talk.stored().state == {"xo": "PA", "yo": "PB"}


def test_clones_of_one_name_run_beside_each_other_without_seeing_each_other():
    first = agent("w", "one", "two", "three")
    with pytest.warns(UserWarning, match="'w'"):
        talk = Talk(ParallelAgent(name="par", sub_agents=[first, first.clone(), first.clone()]))

    assert sorted(text for _, text in words(talk.say("go"))) == ["one", "three", "two"]
    assert requests(first) == [[("user", "go")]] * 3
    assert sorted(event.branch or "" for event in talk.stored().events[1:]) == ["par.w", "par.w#2", "par.w#3"]


def test_each_clone_of_one_name_gets_the_answer_to_its_own_question():
    first = pays("w", call("pay", n=1), call("pay", n=2), "first done", "second done")
    with pytest.warns(UserWarning, match="'w'"):
        talk = Talk(ParallelAgent(name="par", sub_agents=[first, first.clone()]))

    calls = open_calls(talk.say("go"))
    events = talk.say(outcome(calls[1], YES))

    paid = [response.response for event in events for response in event.get_function_responses()]
    assert paid == [{"result": f"paid {(calls[1].args or {})['originalFunctionCall']['args']['n']}"}]
    assert {event.branch for event in events} == {"par.w#2"}


class Steps(BaseAgent):
    """Says its steps, and notes of each what was history when the next began."""

    meet: Callable[[], Any]
    note: Callable[[tuple[str, int]], None]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for number in range(2):
            await self.meet()
            yield Event(author=self.name, branch=ctx.branch, message=f"{number}")  # pyright: ignore[reportCallIssue]
            own_events = [event for event in ctx.session.events if event.author == self.name]
            self.note((self.name, len(own_events)))


def test_they_run_at_once_and_each_goes_on_only_when_its_event_is_history():
    meeting: dict[str, asyncio.Barrier] = {}

    async def meet() -> None:
        barrier = meeting.setdefault("here", asyncio.Barrier(2))
        async with asyncio.timeout(5):
            await barrier.wait()  # which only agents reach that run at the same time

    log: list[tuple[str, int]] = []
    pair: list[BaseAgent] = [Steps(name=name, meet=meet, note=log.append) for name in ("a", "b")]
    talk = Talk(ParallelAgent(name="par", sub_agents=pair))

    assert len(talk.say("go")) == 4
    assert talk.error is None
    assert sorted(log) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_no_more_run_at_a_time_than_may():
    now: list[str] = []
    most = 0

    class Counted(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            nonlocal most
            now.append(self.name)
            most = max(most, len(now))
            await asyncio.sleep(0)
            yield Event(author=self.name, message="x")  # pyright: ignore[reportCallIssue]
            now.remove(self.name)

    many: list[BaseAgent] = [Counted(name=f"c{number}") for number in range(6)]
    assert len(Talk(ParallelAgent(name="par", sub_agents=many, max_concurrency=2)).say("go")) == 6
    assert most == 2


def fails(callback_context: Any) -> None:
    raise RuntimeError("x fails")


def test_the_first_that_fails_ends_the_run_with_its_own_error():
    async def never(callback_context: Any) -> None:
        await asyncio.Event().wait()

    x, y = agent("x", before_agent_callback=fails), agent("y", "PB", before_agent_callback=never)
    talk = Talk(ParallelAgent(name="par", sub_agents=[x, y]))

    assert summaries(talk.say("go")) == [("x", "failed RuntimeError")]
    assert isinstance(talk.error, RuntimeError)


def test_the_others_may_go_on_when_one_fails():
    x, y = agent("x", before_agent_callback=fails), agent("y", "PB")
    talk = Talk(ParallelAgent(name="par", sub_agents=[x, y], on_error="continue"))

    assert sorted(summaries(talk.say("go"))) == [("x", "failed RuntimeError"), ("y", "PB .")]
    assert talk.error is None


def test_the_others_stop_when_one_escalates():
    async def never(callback_context: Any) -> None:
        await asyncio.Event().wait()

    x, y = agent("x", call("leave"), tools=[leave]), agent("y", "PB", before_agent_callback=never)
    talk = Talk(ParallelAgent(name="par", sub_agents=[x, y]))

    assert {author for author, _ in summaries(talk.say("go"))} == {"x"}
    assert talk.error is None


def test_agents_may_start_from_the_same_state_and_the_last_of_the_list_has_the_last_word(
    caplog: pytest.LogCaptureFixture,
):
    class Writes(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            for _ in range(2 if self.name == "slow" else 1):
                yield Event(author=self.name, actions=EventActions(state_delta={"k": self.name}))
            saw.append(ctx.session.state["k"])

    saw: list[Any] = []
    pair: list[BaseAgent] = [Writes(name="slow"), Writes(name="quick")]
    talk = Talk(ParallelAgent(name="par", sub_agents=pair, isolate_state=True), state={"k": "before"})

    with caplog.at_level(logging.WARNING, logger="adk_nb"):
        talk.say("go")

    assert sorted(saw) == ["quick", "slow"]
    assert talk.stored().state["k"] == "quick"
    assert "slow, quick all wrote 'k'" in caplog.text


# -- a pause, and what comes after it


@pytest.mark.parametrize(
    ("waits", "response", "following"),
    [
        (asks("y", call("ask"), "y done"), {"status": "ok"}, [("y", "y done"), ("z", "z out")]),
        (pays("y", call("pay", n=1), "y done"), YES, [("y", "y done"), ("z", "z out")]),
        (pays("y", call("pay", n=1), "y knows"), {"confirmed": False}, [("y", "y knows"), ("z", "z out")]),
    ],
    ids=["outcome", "yes", "no"],
)
def test_a_sequence_goes_on_where_it_waited(
    waits: LlmAgent, response: dict[str, Any], following: list[tuple[str, str]]
):
    last = agent("z", "z out")
    talk = Talk(SequentialAgent(name="seq", sub_agents=[agent("x", "x out"), waits.clone(), last]))

    events = talk.say("go")
    assert words(events) == [("x", "x out")]
    [call] = open_calls(events)
    assert words(talk.say(outcome(call, response))) == following
    assert talk.error is None


def test_a_loop_goes_on_in_the_pass_in_which_it_waited():
    asker = asks("x", call("ask"), "x1", call("ask"), "x2", "x3", "x4")
    talk = Talk(LoopAgent(name="loop", sub_agents=[asker, agent("y", "y1", "y2", "y3", "y4")], max_iterations=3))

    events = talk.say("go")
    events = talk.say(outcome(open_calls(events)[0], {"r": 1}))
    assert words(events) == [("x", "x1"), ("y", "y1")]
    events = talk.say(outcome(open_calls(events)[0], {"r": 2}))
    assert words(events) == [("x", "x2"), ("y", "y2"), ("x", "x3"), ("y", "y3")]


def test_loops_in_loops_know_their_passes():
    inner = LoopAgent(
        name="inner", max_iterations=2, sub_agents=[asks("x", call("ask"), "x1", "x2", "x3", call("ask"), "x4", "x5")]
    )
    talk = Talk(LoopAgent(name="outer", max_iterations=2, sub_agents=[inner, agent("w", "w1", "w2", "w3")]))

    events = talk.say("go")
    events = talk.say(outcome(open_calls(events)[0], {"r": 1}))
    assert words(events) == [("x", "x1"), ("x", "x2"), ("w", "w1"), ("x", "x3")]
    events = talk.say(outcome(open_calls(events)[0], {"r": 1}))
    assert words(events) == [("x", "x4"), ("w", "w2")]


def test_what_follows_agents_beside_each_other_waits_for_all_of_them():
    parallel = ParallelAgent(
        name="par",
        sub_agents=[asks("a", call("ask"), "a done"), agent("b", "b done"), pays("c", call("pay", n=2), "c done")],
    )
    talk = Talk(SequentialAgent(name="seq", sub_agents=[parallel, agent("z", "z out")]))

    events = talk.say("go")
    assert words(events) == [("b", "b done")]
    request = {call.name: call for call in open_calls(events)}
    assert words(talk.say(outcome(request["ask"], {"r": 1}))) == [("a", "a done")]
    assert words(talk.say(outcome(request["adk_request_confirmation"], YES))) == [("c", "c done"), ("z", "z out")]


def test_several_answers_in_one_message_reach_each_their_agent():
    parallel = ParallelAgent(
        name="par", sub_agents=[pays("a", call("pay", n=1), "a done"), pays("c", call("pay", n=2), "c done")]
    )
    talk = Talk(SequentialAgent(name="seq", sub_agents=[parallel, agent("z", "z out")]))

    parts = [part for call in open_calls(talk.say("go")) for part in outcome(call, YES).parts or ()]
    lines = words(talk.say(types.Content(role="user", parts=parts)))

    assert sorted(lines[:2]) == [("a", "a done"), ("c", "c done")]
    assert lines[2:] == [("z", "z out")]


def test_of_two_things_that_one_agent_asked_both_are_answered_before_the_next_agent_works():
    pair = pays("y", [call("pay", n=1), call("pay", n=2)], "one paid", "both paid")
    talk = Talk(SequentialAgent(name="seq", sub_agents=[pair, agent("z", "z out")]))

    first, second = open_calls(talk.say("go"))
    assert words(talk.say(outcome(first, YES))) == [("y", "one paid")]
    assert words(talk.say(outcome(second, YES))) == [("y", "both paid"), ("z", "z out")]


def test_words_instead_of_an_answer_begin_anew():
    talk = Talk(SequentialAgent(name="seq", sub_agents=[asks("y", call("ask"), "never mind"), agent("z", "z out")]))

    talk.say("go")

    assert words(talk.say("forget it")) == [("y", "never mind"), ("z", "z out")]


def test_an_agent_that_was_called_as_a_tool_goes_on_to_its_end():
    team = SequentialAgent(name="team", sub_agents=[asks("y", call("ask"), "y done"), agent("z", "z out")])
    root = agent("root", call("team", request="do"), "all done", tools=[AgentTool(team, stream_events=True)])
    talk = Talk(root)

    [function_call] = open_calls(talk.say("go"))

    assert words(talk.say(outcome(function_call, {"r": 1}))) == [("y", "y done"), ("z", "z out"), ("root", "all done")]


def test_what_a_called_agent_waits_for_is_waited_for_before_the_next_one_works():
    clerk = pays("clerk", call("pay", n=3), "paid")
    caller = agent("y", call("clerk", request="pay"), "y done", tools=[AgentTool(clerk, stream_events=True)])
    talk = Talk(SequentialAgent(name="seq", sub_agents=[caller, agent("z", "z out")]))

    events = talk.say("go")
    assert words(events) == []
    assert words(talk.say(outcome(open_calls(events)[0], YES))) == [("clerk", "paid"), ("y", "y done"), ("z", "z out")]
