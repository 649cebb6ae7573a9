"""Live conversations with agents that run others: each in its turn, until it says that its part is done."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent, LoopAgent, ParallelAgent, RunConfig, SequentialAgent
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import ToolContext
from tests.agents.waiting import agent
from tests.flow.test_live import LiveTalk, live_summaries

DONE = call("task_completed")


def model(agent: LlmAgent) -> ScriptedLlm:
    assert isinstance(agent.model, ScriptedLlm)
    return agent.model


def whole(events: list[Event]) -> list[tuple[str, str]]:
    return [line for line in live_summaries(events) if "..." not in line[1]]


def in_turn(*agents: BaseAgent, name: str = "seq") -> SequentialAgent:
    return SequentialAgent(name=name, sub_agents=list(agents))


def offered(agent: LlmAgent) -> list[str]:
    return list(model(agent).requests[0].tools_dict)


def test_each_has_its_turn_until_it_says_that_it_is_done():
    a, b = agent("a", "Which city?", DONE), agent("b", "Oslo it is.", DONE)
    talk = LiveTalk(in_turn(a, b))

    events = talk.live("A trip, please.", "Oslo.", "Thanks.")

    assert talk.error is None
    assert whole(events) == [
        ("a", "Which city?"),
        ("a", "done"),
        ("a", "calls task_completed({})"),
        ("a", "answers {'result': 'Task completion signaled.'}"),
        ("b", "Oslo it is."),
        ("b", "done"),
        ("b", "calls task_completed({})"),
        ("b", "answers {'result': 'Task completion signaled.'}"),
    ]
    [to_b] = model(b).connections
    texts = [part.text or "" for text in to_b.sent if isinstance(text, types.Content) for part in text.parts or ()]
    assert texts[0] == "A trip, please." and "Oslo." in texts and any("Which city?" in text for text in texts)
    assert all(connection.closed for item in (a, b) for connection in model(item).connections)


def test_they_are_told_how_to_say_so_and_keep_their_own_tools():
    def look() -> str:
        """Looks."""
        return "seen"

    a, b = agent("a", DONE, tools=[look]), agent("b", DONE)
    LiveTalk(in_turn(a, b)).live("hi", "hi")

    assert offered(a) == ["look", "task_completed"]
    assert "call task_completed" in str(model(a).requests[0].config.system_instruction)
    assert a.tools == [look] and b.tools == []


def test_a_single_agent_gets_no_transfer_instruction():
    a = agent("a", "hello")
    LiveTalk(a).live("hi")

    assert "task_completed" not in offered(a)


def test_an_own_tool_of_that_name_is_the_one_that_is_called():
    def task_completed(note: str) -> str:
        """Notes and ends."""
        noted.append(note)
        return note

    noted: list[str] = []
    a = agent("a", call("task_completed", note="n"), tools=[task_completed])
    b = agent("b", "B here.")
    talk = LiveTalk(in_turn(a, b))

    assert whole(talk.live("hi"))[-2:] == [("b", "B here."), ("b", "done")]
    assert (noted, offered(a)) == (["n"], ["task_completed"])


def test_a_sequence_in_a_sequence_comes_to_its_end_and_the_outer_one_goes_on():
    a, b, c = agent("a", DONE), agent("b", DONE), agent("c", "C here.")
    talk = LiveTalk(in_turn(in_turn(a, b, name="inner"), c))

    assert [author for author, text in whole(talk.live("hi")) if "calls" in text or "here" in text] == ["a", "b", "c"]


def test_one_that_was_handed_over_to_has_the_turn_of_who_handed_over():
    sub = agent("sub", "Sub here.", DONE)
    a = agent("a", call("transfer_to_agent", agent_name="sub"), sub_agents=[sub])
    talk = LiveTalk(in_turn(a, agent("b", "B here.")))

    lines = whole(talk.live("hi", "and?"))

    assert [line for line in lines if "here" in line[1]] == [("sub", "Sub here."), ("b", "B here.")]


def test_when_the_user_leaves_nobody_else_begins():
    a, b = agent("a", "Which city?"), agent("b", "B here.")
    talk = LiveTalk(in_turn(a, b))

    talk.live("A trip, please.")

    assert (talk.error, model(b).connections) == (None, [])


def test_one_that_ends_the_invocation_is_the_last():
    def stop(tool_context: ToolContext) -> str:
        """Stops."""
        tool_context.get_invocation_context().end_invocation = True
        return "stopped"

    b = agent("b", "B here.")
    talk = LiveTalk(in_turn(agent("a", call("stop"), tools=[stop]), b))

    talk.live("hi")

    assert (talk.error, model(b).connections) == (None, [])


def test_an_agent_of_your_own_has_its_turn_by_its_own_rules():
    class Own(BaseAgent):
        async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            yield Event(author=self.name, message="my turn")

    talk = LiveTalk(in_turn(Own(name="own"), agent("b", "B here.", "Hi.")))  # who answers what it is told, and "hi"

    assert whole(talk.live("hi"))[:3] == [("own", "my turn"), ("b", "B here."), ("b", "done")]


def test_the_handle_of_a_connection_is_for_the_first_of_them_alone():
    a, b = agent("a", DONE), agent("b", "B here.")
    run = RunConfig(session_resumption=types.SessionResumptionConfig(handle="h"))
    LiveTalk(in_turn(a, b)).live("hi", config=run)

    handles = [model(item).requests[0].live_connect_config.session_resumption for item in (a, b)]
    assert [handle and handle.handle for handle in handles] == ["h", None]


@pytest.mark.parametrize("kind", [LoopAgent, ParallelAgent])
@pytest.mark.parametrize("inside", [False, True])
def test_loops_and_agents_at_once_hold_no_live_conversations(kind: Callable[..., Any], inside: bool):
    team = kind(name="team", sub_agents=[agent("a", "hello")])
    talk = LiveTalk(in_turn(team) if inside else team)

    talk.live("hi")

    assert isinstance(talk.error, NotImplementedError)
    assert mentions(talk.error, f"{kind.__name__} … run_async")
