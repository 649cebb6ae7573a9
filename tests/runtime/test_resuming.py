"""An invocation goes on: under its own id, from where each of its agents stood, wherever it was left."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.apps import App
from adk_nb.errors import ConfigurationError, InputError, InvocationNotFoundError
from adk_nb.events import Event
from adk_nb.models import BaseLlm, LlmRequest, LlmResponse, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext, exit_loop
from tests.agents.waiting import RESUMABLE, LeftTalk, agent, ask, marks, open_calls, outcome, pays, words
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk

YES = {"confirmed": True}


def asks(name: str, *answers: Any) -> LlmAgent:
    return agent(name, *answers, tools=[LongRunningFunctionTool(ask)])


def seq(*agents: BaseAgent, name: str = "seq") -> SequentialAgent:
    return SequentialAgent(name=name, sub_agents=list(agents))


# -- the marks: the traces of google-adk 2.13 on the same scripts


def test_r3_a_sequence_marks_where_it_is_and_what_is_done():
    talk = LeftTalk(seq(agent("x", "x out"), asks("y", call("ask"), "y done"), agent("z", "z out")))

    events = talk.say("go")
    assert marks(events) == [
        ("seq", "is at x"),
        ("x", "x out"),
        ("x", "ends"),
        ("seq", "is at y"),
        ("y", "calls ask({})"),
    ]
    assert marks(talk.say(outcome(open_calls(events)[0], {"status": "approved"}))) == [
        ("y", "y done"),
        ("y", "ends"),
        ("seq", "is at z"),
        ("z", "z out"),
        ("z", "ends"),
        ("seq", "ends"),
    ]
    assert len({event.invocation_id for event in talk.stored().events}) == 1
    assert [event.actions.agent_state for event in events if event.author == "seq"] == [
        {"current_sub_agent": "x"},
        {"current_sub_agent": "y"},
    ]
    assert all(event.content is None for event in events if event.actions.agent_state or event.actions.end_of_agent)


def test_a_loop_also_marks_its_passes():
    y = agent("y", "y1", call("exit_loop"), tools=[exit_loop])
    talk = LeftTalk(LoopAgent(name="loop", sub_agents=[agent("x", "x1", "x2"), y, agent("z", "z1")]))

    lines = [mark for mark in marks(talk.say("go")) if mark[0] == "loop" or mark[1] == "ends"]

    assert lines == [
        ("loop", "is at x 0"),
        ("x", "ends"),
        ("loop", "is at y 0"),
        ("y", "ends"),
        ("loop", "is at z 0"),
        ("z", "ends"),
        ("loop", "is at x 1"),
        ("x", "ends"),
        ("loop", "is at y 1"),
        ("y", "ends"),
        ("loop", "ends"),
    ]
    assert talk.stored().events[1].actions.agent_state == {"current_sub_agent": "x", "times_looped": 0}


def test_agents_at_once_are_done_when_the_last_of_them_is():
    parallel = ParallelAgent(name="par", sub_agents=[asks("a", call("ask"), "a1"), agent("b", "b1"), pays("c")])
    talk = LeftTalk(parallel)

    events = talk.say("go")
    first, *rest = marks(events)
    assert first == ("par", "is at") and ("b", "ends") in rest
    assert not {("a", "ends"), ("c", "ends"), ("par", "ends")} & set(rest)
    request = {call.name: call for call in open_calls(events)}
    assert marks(talk.say(outcome(request["ask"], {"r": 1}))) == [("a", "a1"), ("a", "ends")]
    assert marks(talk.say(outcome(request["adk_request_confirmation"], YES)))[1:] == [
        ("c", "c1"),
        ("c", "ends"),
        ("par", "ends"),
    ]


def test_one_that_hands_over_has_done_its_part():
    root = agent("root", call("transfer_to_agent", agent_name="sub"), sub_agents=[pays("sub")])
    talk = LeftTalk(root)

    events = talk.say("go")
    assert marks(events)[2] == ("root", "ends")
    assert marks(talk.say(outcome(open_calls(events)[0], YES)))[1:] == [("sub", "sub1"), ("sub", "ends")]


def test_an_app_that_is_not_resumable_has_no_marks_and_a_new_id_for_each_answer():
    talk = Talk(seq(agent("x", "x out"), pays("y")))

    talk.say(outcome(open_calls(talk.say("go"))[0], YES))

    stored = talk.stored().events
    assert not any(item.actions.agent_state is not None or item.actions.end_of_agent for item in stored)
    assert len({event.invocation_id for event in stored}) == 2


def test_models_are_sent_the_same_with_marks_and_without():
    def sent(kind: type[Talk]) -> list[Any]:
        last = agent("z", "z out")
        talk = kind(seq(agent("x", "x out"), pays("y"), last))
        talk.say(outcome(open_calls(talk.say("go"))[0], YES))
        return [request.contents for request in last.model.requests]  # type: ignore[union-attr]

    assert sent(LeftTalk) == sent(Talk)


# -- by its id


def test_an_unknown_id_is_refused():
    talk = LeftTalk(agent("a", "one"))
    talk.say("go")

    talk.say("again", invocation_id="e-nope")

    assert isinstance(talk.error, InvocationNotFoundError)
    assert len(talk.stored().events) == 3


def test_an_app_that_is_not_resumable_says_what_to_write():
    talk = Talk(agent("a", "one"))
    [event] = talk.say("go")

    talk.say(None, invocation_id=event.invocation_id)

    assert isinstance(talk.error, ConfigurationError) and "ResumabilityConfig(is_resumable=True)" in str(talk.error)


@pytest.mark.parametrize("message", [None, "more?"])
def test_a_finished_run_yields_nothing(message: str | None, caplog: pytest.LogCaptureFixture):
    talk = LeftTalk(seq(agent("x", "x out"), agent("y", "y out")))
    talk.say("go")
    earlier_events = talk.stored().events

    with caplog.at_level(logging.WARNING, logger="adk_nb"):
        assert (talk.go_on(message), talk.error) == ([], None)

    assert talk.stored().events == earlier_events
    assert "it is finished" in caplog.text


@pytest.mark.parametrize("make", [lambda item: item, seq, lambda item: agent("root", sub_agents=[item])])
def test_nothing_comes_of_one_that_waits_but_it_says_for_what(make: Any, caplog: pytest.LogCaptureFixture):
    talk = LeftTalk(make(asks("y", call("ask"), "y done")))
    if talk.runner.agent.name == "root":
        talk.runner.agent.model = agent("m", call("transfer_to_agent", agent_name="y")).model  # type: ignore[attr-defined]
    [function_call] = open_calls(talk.say("go"))
    earlier_events = talk.stored().events

    with caplog.at_level(logging.WARNING, logger="adk_nb"):
        assert talk.go_on() == []

    assert talk.stored().events == earlier_events
    assert f"answer to '{function_call.id}'" in caplog.text
    assert words(talk.say(outcome(function_call, {"r": 1}))) == [("y", "y done")]


def test_with_words_in_the_place_of_an_answer_the_agent_that_waits_goes_on():
    talk = LeftTalk(seq(agent("x", "x out"), asks("y", call("ask"), "never mind"), agent("z", "z out")))
    talk.say("go")

    assert words(talk.go_on("forget it")) == [("y", "never mind"), ("z", "z out")]
    assert len({event.invocation_id for event in talk.stored().events}) == 1


def test_words_without_the_id_begin_anew():
    talk = LeftTalk(seq(agent("x", "x1", "x2"), asks("y", call("ask"), "never mind")))
    talk.say("go")

    assert words(talk.say("forget it")) == [("x", "x2"), ("y", "never mind")]
    assert len({event.invocation_id for event in talk.stored().events}) == 2


def test_an_answer_knows_its_invocation_whatever_id_is_said_with_it(caplog: pytest.LogCaptureFixture):
    talk = LeftTalk(asks("y", "hello", call("ask"), "y done"))
    talk.say("hi")
    [function_call] = open_calls(events := talk.say("go"))

    with caplog.at_level(logging.WARNING, logger="adk_nb"):
        [steps, _] = talk.go_on(outcome(function_call, {"r": 1}))

    assert steps.invocation_id == events[0].invocation_id
    assert "is resumed" in caplog.text


def test_an_answer_that_comes_twice_runs_nothing_twice():
    talk = LeftTalk(seq(pays("y"), agent("z", "z out")))
    [function_call] = open_calls(talk.say("go"))
    late = asks("w", call("ask"), "w done")
    other_talk = LeftTalk(seq(late, agent("z", "z out")))
    [called] = open_calls(other_talk.say("go"))

    talk.say(outcome(function_call, YES))
    talk.say(outcome(function_call, YES))
    assert isinstance(talk.error, InputError)
    other_talk.say(outcome(called, {"r": 1}))
    assert (other_talk.say(outcome(called, {"r": 2})), other_talk.error) == ([], None)


@pytest.mark.parametrize("is_in_a_team", [False, True])
def test_after_words_each_of_two_open_approvals_can_still_be_answered(is_in_a_team: bool):
    paid: list[int] = []

    def pay(n: int) -> str:
        """Pays."""
        paid.append(n)
        return "paid"

    tool = FunctionTool(pay, require_confirmation=True)
    payer = agent("payer", [call("pay", n=1), call("pay", n=2)], "Later.", "Paid 1.", "Paid 2.", tools=[tool])
    talk = LeftTalk(seq(payer, agent("end", "1", "2", "3")) if is_in_a_team else payer)
    first, second = open_calls(talk.say("go"))
    talk.say("not now")

    talk.say(outcome(first, YES))
    events = talk.say(outcome(second, YES))

    assert paid == [1, 2]
    assert ("payer", "Paid 2.") in marks(events)


def test_the_next_answer_comes_when_all_of_several_long_running_calls_have_their_results():
    asker = asks("asker", [call("ask", q=1), call("ask", q=2), call("ask", q=3)], "All known.")
    talk = LeftTalk(seq(asker, agent("end", "Well.")))
    first, second, third = open_calls(talk.say("go"))

    for known in (first, third):
        assert not [event for event in talk.say(outcome(known, {"result": 1})) if event.text]
    events = talk.say(outcome(second, {"result": 2}))

    assert [event.text for event in events if event.text] == ["All known.", "Well."]


def test_results_that_follow_first_results_are_each_told_to_the_model():
    def order(n: int) -> dict[str, Any]:
        """Orders."""
        return {"status": "pending"}

    tool = LongRunningFunctionTool(order)
    talk = LeftTalk(agent("buyer", [call("order", n=1), call("order", n=2)], "Ordered.", "1.", "2.", tools=[tool]))
    calls = [made for event in talk.say("go") for made in event.get_function_calls()]

    texts = [[event.text for event in talk.say(outcome(made, {"n": 1})) if event.text] for made in calls]

    assert texts == [["1."], ["2."]]


def test_state_goes_with_it_without_a_message():
    talk = LeftTalk(seq(agent("x", "x out"), agent("y", ValueError("net"), "y {k}")))
    talk.say("go")
    talk.go_on(state_delta={"k": 1})

    assert talk.stored().state == {"k": 1}


def test_after_an_error_it_goes_on_where_that_came():
    talk = LeftTalk(
        seq(agent("x", "x out"), agent("y", ConnectionError("net"), "y out"), agent("z", "z out"), name="seq")
    )
    talk.say("go")
    assert isinstance(talk.error, ConnectionError)

    assert marks(talk.go_on()) == [
        ("y", "y out"),
        ("y", "ends"),
        ("seq", "is at z"),
        ("z", "z out"),
        ("z", "ends"),
        ("seq", "ends"),
    ]


def test_sync_code_goes_on_with_it_too():
    talk = LeftTalk(seq(agent("x", "x out"), agent("y", ConnectionError("net"), "y out")))
    talk.say("go")

    remaining_invocation_id = talk.stored().events[0].invocation_id
    assert words([*talk.runner.run(user_id="u", session_id="s", invocation_id=remaining_invocation_id)]) == [
        ("y", "y out")
    ]


def test_after_an_error_only_those_of_many_at_once_work_again_that_had_not_come_to_their_end():
    others_are_done = asyncio.Event()
    quick = agent("quick", "quick out", after_agent_callback=lambda **_: others_are_done.set())
    slow = agent("slow", "slow out")

    class Breaks(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            if not any(event.error_code for event in ctx.session.events):
                await others_are_done.wait()
                raise ConnectionError("net")
            yield Event(author=self.name, message="mended")

    talk = LeftTalk(seq(ParallelAgent(name="par", sub_agents=[quick, Breaks(name="breaks")]), slow))
    talk.say("go")
    assert isinstance(talk.error, ConnectionError)

    assert words(talk.go_on()) == [("breaks", "mended"), ("slow", "slow out")]


def test_one_that_failed_beside_others_that_went_on_is_not_tried_again():
    failing = agent("a", ConnectionError("net"), "a again")
    parallel = ParallelAgent(name="par", sub_agents=[failing, pays("b")], on_error="continue")
    talk = LeftTalk(seq(parallel, agent("z", "z out")))

    events = talk.say("go")
    assert [event.error_code for event in events if event.author == "a"] == ["ConnectionError", None]
    assert words(talk.say(outcome(open_calls(events)[0], YES))) == [("b", "b1"), ("z", "z out")]


def test_after_a_stop_who_had_come_to_its_end_beside_others_does_not_work_again():
    class Stuck(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            if not any(event.error_code for event in ctx.session.events):
                await asyncio.Event().wait()
            yield Event(author=self.name, message="mended")

    quick = agent("quick", "quick out", "quick again")
    talk = LeftTalk(ParallelAgent(name="par", sub_agents=[quick, Stuck(name="stuck")]))

    async def stopped() -> None:
        handle = talk.runner.start(**SESSION_KEY, new_message="go")
        async for event in handle.events():
            if event.actions.end_of_agent:
                await handle.cancel()

    asyncio.run(stopped())
    assert talk.stored().events[-1].error_code == "INVOCATION_ABORTED"

    assert words(talk.go_on()) == [("stuck", "mended")]


def test_an_answer_lets_those_beside_go_on_that_were_cut_short():
    class Cut(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            if not any(event.error_code for event in ctx.session.events):
                await other_waits.wait()
                raise ConnectionError("net")
            yield Event(author=self.name, branch=ctx.branch, message="mended")

    waits, other_waits = pays("a"), asyncio.Event()
    waits.after_agent_callback = lambda **_: other_waits.set()
    talk = LeftTalk(seq(ParallelAgent(name="par", sub_agents=[waits, Cut(name="b")]), agent("z", "z out")))
    [call] = open_calls(talk.say("go"))

    lines = words(talk.say(outcome(call, YES)))
    assert sorted(lines[:2]) == [("a", "a1"), ("b", "mended")]
    assert lines[2:] == [("z", "z out")]


def test_a_loop_that_was_to_be_left_when_it_waited_is_left_after_the_answer():
    def leave(tool_context: ToolContext) -> str:
        """Leaves."""
        tool_context.actions.escalate = True
        return "left"

    for kind in (Talk, LeftTalk):
        y = agent(
            "y",
            [call("leave"), call("ask")],
            "I wait",
            "y done",
            "y again",
            tools=[leave, LongRunningFunctionTool(ask)],
        )
        talk = kind(LoopAgent(name="loop", sub_agents=[y, agent("z", "z out", "z again")], max_iterations=3))
        [function_call] = open_calls(talk.say("go"))
        assert words(talk.say(outcome(function_call, {"r": 1}))) == [("y", "y done")]


def test_a_member_that_is_gone_lets_its_team_begin_anew(caplog: pytest.LogCaptureFixture):
    talk = LeftTalk(seq(agent("x", "x1", "x2"), agent("y", ConnectionError("net"))))
    talk.say("go")
    talk.runner.agent = seq(agent("x", "x2"), agent("z", "z1"))

    with caplog.at_level(logging.WARNING, logger="adk_nb"):
        assert words(talk.go_on()) == [("x", "x2"), ("z", "z1")]
    assert "no longer has the sub-agent 'y'" in caplog.text


def test_one_that_is_under_way_is_not_begun_a_second_time():
    async def run_pair() -> None:
        talk = LeftTalk(seq(agent("x", "x1"), agent("y", ConnectionError("net"), "y1")))
        await talk.asay("go")
        invocation = talk.stored().events[0].invocation_id
        run = talk.runner.run_async(**SESSION_KEY, invocation_id=invocation)
        async with aclosing(run):
            async for _ in run:
                assert talk.runner.is_active(invocation)
                await talk.asay(None, invocation_id=invocation)
                assert isinstance(talk.error, InputError) and "is running; wait" in str(talk.error)
                break
        assert not talk.runner.is_active(invocation)

    asyncio.run(run_pair())


def test_in_the_background_it_can_be_followed_and_stopped_by_its_own_id():
    async def follow() -> None:
        talk = LeftTalk(seq(agent("x", "x1"), agent("y", ConnectionError("net"), "y1")))
        await talk.asay("go")
        invocation = talk.stored().events[0].invocation_id
        handle = talk.runner.start(**SESSION_KEY, invocation_id=invocation)
        async with asyncio.timeout(SECONDS):
            assert words([event async for event in handle.events()]) == [("y", "y1")]
        assert handle.invocation_id == invocation

    asyncio.run(follow())


# -- killed anywhere


class Says(BaseLlm):
    """Calls its tools one after the other, as far as the conversation has no result of them, and says its name then."""

    calls: list[str] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        since = max((index for index, part in enumerate(parts) if part.text == f"{self.model} said"), default=-1)
        names = {part.function_response.name for part in parts[since + 1 :] if part.function_response}
        remaining_names = [name for name in self.calls if name not in names]
        function_call = (
            call(remaining_names[0], **({"request": "do"} if remaining_names[0] == "team" else {}))
            if remaining_names
            else f"{self.model} said"
        )
        part = function_call if isinstance(function_call, types.Part) else types.Part(text=function_call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def work() -> str:
    """Works."""
    return "worked"


def says(name: str, *calls: str, **fields: Any) -> LlmAgent:
    tools = [FunctionTool(work)] if "work" in calls else []
    return LlmAgent(
        name=name, model=Says(model=name, calls=list(calls)), tools=[*tools, *fields.pop("tools", ())], **fields
    )


def sequence() -> BaseAgent:
    return seq(says("x"), says("y", "work"), says("z"))


def nested() -> BaseAgent:
    inner = ParallelAgent(name="par", sub_agents=[seq(says("a", "work"), says("b"), name="s"), says("c")])
    return seq(LoopAgent(name="loop", sub_agents=[says("x"), inner], max_iterations=2), says("z"))


def handing_over() -> BaseAgent:
    team = seq(says("a", "work"), says("b"), name="desk")
    return LlmAgent(
        name="root", model=agent("m", *[call("transfer_to_agent", agent_name="desk")] * 9).model, sub_agents=[team]
    )


def calling() -> BaseAgent:
    team = seq(says("a", "work"), says("b"), name="team")
    return seq(says("boss", "team", tools=[AgentTool(team, stream_events=True)]), says("z"))


def alone() -> BaseAgent:
    return says("a", "work")


@pytest.mark.parametrize("make", [alone, sequence, nested, handing_over, calling])
def test_killed_after_any_event_it_comes_to_the_same_end(make: Any):
    async def run() -> None:
        service = InMemorySessionService()
        app = App(name="app", root_agent=make(), resumability_config=RESUMABLE)
        runner = Runner(app=app, session_service=service)
        session_key: dict[str, Any] = {"app_name": "app", "user_id": "u"}
        await service.create_session(**session_key, session_id="whole")
        whole = [
            event
            async for event in runner.run_async(
                user_id="u", session_id="whole", new_message="go", yield_user_message=True
            )
        ]
        lines = sorted(words(whole))
        for index in range(1, len(whole)):
            session = await service.create_session(**session_key, session_id=f"killed{index}")
            for event in whole[:index]:
                await service.append_event(session, event.model_copy(deep=True))
            rest = runner.run_async(user_id="u", session_id=session.id, invocation_id=whole[0].invocation_id)
            events = [*whole[:index], *[event async for event in rest]]
            assert sorted(words(events)) == lines, f"killed after {index}: {marks(whole[:index])[-1]}"
            repeated_events = runner.run_async(user_id="u", session_id=session.id, invocation_id=whole[0].invocation_id)
            assert [event async for event in repeated_events] == []

    asyncio.run(run())


def test_a_call_without_a_result_is_made_again_by_the_next_runner():
    texts: list[str] = []

    def send() -> str:
        """Sends."""
        texts.append("sent")
        return "sent"

    async def run() -> None:
        service = InMemorySessionService()
        app = App(
            name="app",
            root_agent=seq(
                says("x"), LlmAgent(name="y", model=Says(model="y", calls=["send"]), tools=[send]), says("z")
            ),
            resumability_config=RESUMABLE,
        )
        await service.create_session(app_name="app", user_id="u", session_id="s")
        invocation = ""
        turn = Runner(app=app, session_service=service).run_async(**SESSION_KEY, new_message="go")
        async for event in turn:
            invocation = event.invocation_id
            if event.get_function_calls():
                break  # and nobody closes it, as when its process is gone

        rest = Runner(app=app, session_service=service).run_async(**SESSION_KEY, invocation_id=invocation)
        events = [event async for event in rest]
        assert words(events) == [("y", "y said"), ("z", "z said")]
        await turn.aclose()

    asyncio.run(run())
    assert texts == ["sent"]
