"""Planners: what they ask for, and what they make of an answer."""

import logging
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.models import ScriptedLlm, call
from adk_nb.planners import BasePlanner, BuiltInPlanner, PlanReActPlanner
from tests.support.talk import Talk, content_summaries, look, summaries


def planning(*answers: Any, **fields: Any) -> LlmAgent:
    fields.setdefault("planner", PlanReActPlanner())
    return LlmAgent(name="a", model=ScriptedLlm(*answers), **fields)


def asked(agent: LlmAgent) -> list[Any]:
    assert isinstance(agent.model, ScriptedLlm)
    return agent.model.requests


def parts_of(event: Any) -> list[tuple[bool, str]]:
    return [(bool(part.thought), part.text or "") for part in event.parts]


def test_what_stands_before_the_final_answer_is_kept_as_thoughts_and_the_rest_is_the_answer():
    agent = planning("/*PLANNING*/ plan /*FINAL_ANSWER*/ final", output_key="o")
    talk = Talk(agent)

    (event,) = talk.say("calc")

    assert parts_of(event) == [(True, "plan"), (False, "final")]
    assert event.is_final_response()
    assert talk.stored().state == {"o": "final"}


def test_the_planner_asks_for_its_sections_at_the_end_of_the_system_instruction():
    agent = planning("hello", instruction="Be nice.")
    Talk(agent).say()

    said = asked(agent)[0].config.system_instruction

    assert said.startswith("Be nice.")
    for tag in ("/*PLANNING*/", "/*REPLANNING*/", "/*REASONING*/", "/*ACTION*/", "/*FINAL_ANSWER*/"):
        assert tag in said


def test_the_plan_is_told_while_the_turn_lasts_and_left_out_of_the_next():
    agent = planning(
        ["/*PLANNING*/\n1. look\n/*ACTION*/\n", call("look")],
        "/*REASONING*/ it was seen /*FINAL_ANSWER*/ seen",
        "/*FINAL_ANSWER*/ bye",
        tools=[look],
    )
    talk = Talk(agent)
    talk.say("first")
    talk.say("second")

    requests = [content_summaries(request.contents) for request in asked(agent)]
    thoughts = [part for content in asked(agent)[1].contents for part in content.parts if part.thought]
    assert requests[1] == [
        ("user", "first"),
        ("model", "1. look; calls look({})"),
        ("user", "answers {'result': 'seen'}"),
    ]
    assert not thoughts
    assert requests[2] == [
        ("user", "first"),
        ("model", "calls look({})"),
        ("user", "answers {'result': 'seen'}"),
        ("model", "seen"),
        ("user", "second"),
    ]
    assert parts_of(talk.stored().events[1])[0] == (True, "1. look")


def test_the_plan_of_this_turn_stays_where_the_instruction_is_told_among_the_contents():
    agent = planning(
        ["/*PLANNING*/\n1. look", call("look")], "/*FINAL_ANSWER*/ seen", tools=[look],
        static_instruction="Always.", instruction="Now.",
    )  # fmt: skip
    Talk(agent).say("first")

    assert ("model", "1. look; calls look({})") in content_summaries(asked(agent)[1].contents)


def test_what_a_model_makes_up_after_its_calls_is_dropped():
    parts = [
        types.Part(text="/*ACTION*/ now"),
        types.Part(function_call=types.FunctionCall(name="", args={})),
        call("look"),
        call("look"),
        types.Part(text="/*FINAL_ANSWER*/ invented"),
    ]
    agent = planning(parts, "/*FINAL_ANSWER*/ done", tools=[look])

    events = Talk(agent).say()

    assert summaries(events)[0] == ("a", "now; calls look({}); calls look({})")
    assert summaries(events)[-1] == ("a", "done .")


@pytest.mark.parametrize("words", ["just words", "a /*PLANNING*/ in the middle"])
def test_an_answer_without_sections_is_left_as_it_is(words: str):
    (event,) = Talk(planning(words)).say()

    assert parts_of(event) == [(False, words)]


def test_a_plan_without_an_answer_says_nothing_to_the_user():
    (event,) = Talk(planning("/*PLANNING*/ I will")).say()

    assert (parts_of(event), event.error_code) == ([(True, "I will")], "MODEL_RETURNED_NO_CONTENT")


def test_the_pieces_of_a_stream_stay_as_they_come():
    agent = planning(["/*PLANNING*/ plan ", "/*FINAL_ANSWER*/ ", "final"])

    *pieces, whole = Talk(agent).say(config=RunConfig(streaming_mode=StreamingMode.SSE))

    assert "".join(piece.text for piece in pieces) == "/*PLANNING*/ plan /*FINAL_ANSWER*/ final"
    assert parts_of(whole) == [(True, "plan"), (False, "final")]


def test_the_built_in_planner_asks_the_model_to_think_and_warns_where_that_replaces_a_setting(
    caplog: pytest.LogCaptureFixture,
):
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=64)
    settings = types.GenerateContentConfig(temperature=0.5)
    agent = planning("hi", "hi", planner=BuiltInPlanner(thinking_config=thinking), generate_content_config=settings)
    Talk(agent).say()

    config = asked(agent)[0].config
    assert (config.thinking_config, config.temperature) == (thinking, 0.5)
    assert "/*" not in config.system_instruction
    assert settings.thinking_config is None
    assert not caplog.records

    settings.thinking_config = types.ThinkingConfig(thinking_budget=1)
    with caplog.at_level(logging.WARNING):
        Talk(agent).say()
    assert "replaces" in caplog.text
    assert asked(agent)[1].config.thinking_config == thinking


def test_a_planner_of_ones_own_reads_the_answer_and_writes_to_its_event():
    class Counts(BasePlanner):
        def build_planning_instruction(self, readonly_context: Any, llm_request: Any) -> str:
            return f"Be brief, {readonly_context.state['who']}."

        def process_planning_response(self, callback_context: Any, response_parts: Any) -> None:
            callback_context.state["parts"] = len(response_parts)

    agent = planning("hi", planner=Counts())
    talk = Talk(agent, state={"who": "Ann"})
    (event,) = talk.say()

    assert asked(agent)[0].config.system_instruction.endswith("Be brief, Ann.")
    assert event.actions.state_delta == {"parts": 1}
    assert talk.stored().state == {"who": "Ann", "parts": 1}
