"""What a run may cost: no model is asked once it has cost so much, and the session goes on with the next message."""

import logging
import sys
from contextlib import aclosing

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent, ParallelAgent, RunConfig, SequentialAgent, StreamingMode
from adk_nb.apps import App, EventsCompactionConfig, LlmEventSummarizer
from adk_nb.errors import ConfigurationError, MissingExtraError
from adk_nb.events.usage import usages_of
from adk_nb.flow.budget import MAX_COST
from adk_nb.models import BaseLlm, LlmResponse, RecordedLlm, ScriptedLlm, call
from adk_nb.notebook.view.spending import usage_of
from adk_nb.runners import InMemoryRunner
from adk_nb.tools.agent_tool import AgentTool
from tests.agents.waiting import LeftTalk
from tests.support.talk import SESSION_KEY, Talk, guide, look
from tests.support.token_counts import FLASH, counted

LIMIT = RunConfig(max_cost_usd=0.5)
"""An answer of `counted` costs $0.55, of gemini-2.5-flash: $0.30 for a million tokens in, $2.50 for one out."""


def codes(events) -> list[str | None]:
    return [event.error_code for event in events]


def test_no_model_is_asked_again_once_a_run_has_cost_what_it_may():
    agent = guide(counted(call("look")), counted("never said"), tools=[look])
    talk = Talk(agent)

    events = talk.say(config=LIMIT)

    assert talk.error is None
    assert codes(events) == [None, None, MAX_COST]
    for fact in ("$0.5500", "$0.5;", "max_cost_usd", "%chat --max-cost"):
        assert fact in str(events[-1].error_message)
    assert len(agent.model.requests) == 1


def test_the_session_goes_on_with_the_next_message_which_may_cost_as_much_again():
    agent = guide(counted(call("look")), counted("All is well."), tools=[look])
    talk = Talk(agent)
    talk.say(config=LIMIT)

    events = talk.say("go on", config=LIMIT)

    assert [event.text for event in events] == ["All is well."]
    assert [content.role for content in agent.model.requests[-1].contents][:3] == ["user", "model", "user"]


def test_an_answer_that_ends_the_run_by_itself_is_no_error_whatever_it_costs():
    assert codes(Talk(guide(counted("dear"))).say(config=LIMIT)) == [None]


def test_a_run_that_costs_less_is_not_stopped():
    agent = guide(counted(call("look"), input=1_000), counted("done"), tools=[look])

    assert codes(Talk(agent).say(config=LIMIT)) == [None, None, None]


class BreakingLlm(BaseLlm):
    """Streams some text with token counts, and breaks off."""

    async def generate_content_async(self, llm_request, stream=False):
        yield counted("All is").model_copy(update={"partial": True})
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=" w")]), partial=True)
        raise RuntimeError("broken off")


def test_a_streamed_answer_that_broke_off_is_paid_for():
    async def retried(callback_context, llm_request, error):
        return LlmResponse(content=types.Content(role="model", parts=[call("look")]))

    agent = LlmAgent(name="guide", model=BreakingLlm(model=FLASH), tools=[look], on_model_error_callback=retried)

    events = Talk(agent).say(config=RunConfig(max_cost_usd=0.5, streaming_mode=StreamingMode.SSE))

    complete = [event for event in events if not event.partial]
    assert codes(complete) == [None, None, MAX_COST]
    assert "$0.5500" in str(complete[-1].error_message)


@pytest.mark.parametrize("team", [SequentialAgent, ParallelAgent])
def test_the_whole_team_stops_with_one_event(team: type):
    members = [
        LlmAgent(name=name, model=ScriptedLlm(counted(call("look")), counted("no")), tools=[look]) for name in "abc"
    ]

    events = Talk(team(name="team", sub_agents=members)).say(config=LIMIT)

    assert codes(events).count(MAX_COST) == 1
    assert all(event.text == "" for event in events)


def test_what_an_agent_that_is_called_as_a_tool_costs_is_part_of_its_caller_s_run():
    inner = LlmAgent(name="inner", description="Knows.", model=ScriptedLlm(counted("known")))
    outer = guide(call("inner", request="say it"), "never said", tools=[AgentTool(inner)])

    assert codes(Talk(outer).say(config=LIMIT))[-1] == MAX_COST


def test_tokens_behind_a_tool_s_agents_are_on_the_event_with_its_result():
    innermost = LlmAgent(name="innermost", model=ScriptedLlm(counted("deep", input=30, output=3, model="other")))
    inner = LlmAgent(
        name="inner",
        model=ScriptedLlm(counted(call("innermost", request="x"), input=20, output=2), counted("known", input=10)),
        tools=[AgentTool(innermost)],
    )
    events = Talk(guide(call("inner", request="say it"), "done", tools=[AgentTool(inner)])).say()

    usage = usage_of(events)
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens) == (3, 60, 100_005)
    assert [usage_of([event]).model_calls for event in events] == [0, 3, 0]
    assert [usage.model for usage in usages_of(events[1])] == [FLASH, "other", FLASH]


@pytest.mark.parametrize(
    ("config", "is_asked"),
    [
        (RunConfig(max_llm_calls=1), False),
        (RunConfig(max_llm_calls=2), True),
        (LIMIT, False),
        (RunConfig(max_cost_usd=0.6), True),
    ],
)
def test_a_summariser_s_call_counts_for_the_limits_of_its_run(config: RunConfig, is_asked: bool):
    summarizer = ScriptedLlm(counted("short"))
    compaction = EventsCompactionConfig(
        summarizer=LlmEventSummarizer(llm=summarizer), compaction_interval=1, overlap_size=0
    )
    agent = guide(counted("All is well. " * 20))
    app = App(name="app", root_agent=agent, events_compaction_config=compaction)
    runner = InMemoryRunner(app=app, auto_create_session=True)

    events = list(runner.run(**SESSION_KEY, new_message="hi", run_config=config))

    assert codes(events) == [None]
    assert len(summarizer.requests) == is_asked
    session = runner.session_service.get_session(app_name="app", **SESSION_KEY)
    assert usage_of(session.events).model_calls == 1 + is_asked


def test_a_run_that_was_left_and_goes_on_has_cost_what_it_had_cost():
    talk = LeftTalk(guide(counted(call("look")), counted("never said"), tools=[look]))

    async def leave() -> None:
        async with aclosing(talk.runner.run_async(**SESSION_KEY, new_message="hi", run_config=LIMIT)) as events:
            async for _ in events:
                return

    sync.run(leave())
    events = talk.go_on(config=LIMIT)

    assert codes(events)[0] == MAX_COST
    assert len(talk.runner.agent.model.requests) == 1


def test_what_is_replayed_costs_nothing(tmp_path):
    path = tmp_path / "tape.jsonl"
    scripted = ScriptedLlm(counted(call("look")), counted("done"))
    recorded = LlmAgent(name="guide", model=RecordedLlm(path, record=scripted), tools=[look])
    Talk(recorded).say()
    replayed = LlmAgent(name="guide", model=RecordedLlm(path), tools=[look])

    events = Talk(replayed).say(config=LIMIT)

    assert [event.text for event in events][-1] == "done"
    assert [event.custom_metadata for event in events if event.usage_metadata] == [{"replayed": True}] * 2


@pytest.mark.parametrize("model", ["my-own", "deepseek-r1:8b", None])
def test_a_model_without_a_known_price_is_not_limited_and_the_log_says_so(
    model: str | None, caplog: pytest.LogCaptureFixture
):
    agent = guide(counted(call("look"), model=model), counted("done", model=model), tools=[look])

    with caplog.at_level(logging.WARNING):
        events = Talk(agent).say(config=LIMIT)

    assert events[-1].text == "done"
    assert repr(model or "scripted") in caplog.text and "max_cost_usd=0.5" in caplog.text


def test_a_limit_without_the_table_of_prices_is_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    agent = guide(counted("never said"))
    talk = Talk(agent)

    talk.say(config=LIMIT)

    assert isinstance(talk.error, MissingExtraError)
    assert "%pip install" in str(talk.error) and "genai-prices" in str(talk.error)
    assert agent.model.requests == []


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(limit: float):
    with pytest.raises(ConfigurationError, match="max_cost_usd"):
        RunConfig(max_cost_usd=limit)
