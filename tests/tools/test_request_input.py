"""What a model asks the user: the run pauses, and goes on with an answer that fits."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.tools import request_input
from tests.support.talk import Talk, guide, requests, summaries


def asking(*answers: Any, **args: Any) -> Talk:
    return Talk(guide(call("adk_request_input", **args), *answers, tools=[request_input]))


def answer(events: list[Event], **response: Any) -> types.Content:
    [asked] = events[0].get_function_calls()
    said = types.FunctionResponse(id=asked.id, name=asked.name, response=response)
    return types.Content(role="user", parts=[types.Part(function_response=said)])


def test_a_question_ends_the_run_and_the_model_goes_on_with_the_answer():
    talk = asking("Hello Bo.", message="Who are you?")

    first = talk.say()
    then = talk.say(answer(first, result="Bo"))

    assert summaries(first) == [("guide", "calls adk_request_input({'message': 'Who are you?'}) .")]
    assert first[0].long_running_tool_ids == {first[0].get_function_calls()[0].id}
    assert summaries(then) == [("guide", "Hello Bo. .")]
    root = talk.runner.agent
    assert isinstance(root, LlmAgent)
    assert requests(root)[1] == [
        ("user", "hi"),
        ("model", "calls adk_request_input({'message': 'Who are you?'})"),
        ("user", "answers {'result': 'Bo'}"),
    ]


def test_it_is_declared_as_google_adk_declares_it():
    declared = request_input.declaration

    assert declared and declared.name == "adk_request_input"
    schema: dict[str, Any] = declared.parameters_json_schema or {}
    assert (list(schema["properties"]), schema["required"]) == (["message", "response_schema"], ["message"])


COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schema", "wrong", "right"),
    [
        ({"type": "string"}, {"result": 3}, {"result": "three"}),
        ({"type": "boolean"}, {"result": "maybe"}, {"result": True}),
        ({"enum": ["red", "blue"]}, {"result": "green"}, {"result": "red"}),
        (COUNT, {"n": "many"}, {"n": 3}),
        (COUNT, {"result": {}}, {"result": {"n": 3}}),
    ],
)
def test_an_answer_that_does_not_fit_its_schema_leaves_the_question_open(
    schema: Any, wrong: dict[str, Any], right: dict[str, Any]
):
    talk = asking("Thanks.", message="What?", response_schema=schema)
    first = talk.say()
    before = talk.stored().events

    talk.say(answer(first, **wrong))

    assert isinstance(talk.error, InputError) and "answer 'What?'" in str(talk.error)
    assert talk.stored().events == before
    assert summaries(talk.say(answer(first, **right))) == [("guide", "Thanks. .")]


def test_a_schema_that_is_none_asks_for_nothing():
    talk = asking("Thanks.", message="What?", response_schema={"type": "colour"})

    assert summaries(talk.say(answer(talk.say(), result=1))) == [("guide", "Thanks. .")]


def test_a_model_that_was_not_given_it_cannot_ask():
    events = Talk(guide(call("adk_request_input", message="Who?"), "ok")).say()

    assert summaries(events)[1][1].startswith("answers {'error': \"adk_request_input() was not called")
