import json
import logging
from typing import Any, cast

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from adk_nb import types
from adk_nb.agents import CallbackContext, LlmAgent, RunConfig, StreamingMode
from adk_nb.code_executors import BaseCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionResult
from adk_nb.events import Event
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.models.base_llm import LlmCapabilities
from tests.support.talk import Talk, guide, look, requests, summaries

SSE = RunConfig(streaming_mode=StreamingMode.SSE)


class Out(BaseModel):
    ans: str
    note: str | None = None


class Options(BaseModel):
    one: int | None = None


class Both(ScriptedLlm):
    """Takes an output schema and tools in one request."""

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(output_schema_and_tools=True)


def capital(*answers: Any, **fields: Any) -> LlmAgent:
    return guide(*answers, **{"output_schema": Out, "output_key": "o"} | fields)


def asked(agent: LlmAgent) -> list[LlmRequest]:
    assert isinstance(agent.model, ScriptedLlm)
    return agent.model.requests


def offered(request: LlmRequest) -> list[str]:
    return list(request.tools_dict)


def text(response: str, **fields: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=response)]), **fields)


def says(answer: Any) -> Any:
    """A callback that answers."""

    def callback(**_: Any) -> Any:
        return answer

    return callback


def test_the_request_asks_for_json_of_the_schema():
    agent = capital('{"ans": "x"}')
    Talk(agent).say()

    config: Any = asked(agent)[0].config
    assert config.response_schema is Out and config.response_mime_type == "application/json"
    assert not config.tools
    assert "set_model_response" not in config.system_instruction


def test_the_value_is_on_the_event_and_in_the_state_with_the_words():
    talk = Talk(capital('{"ans": "x", "note": null}'))
    events = talk.say()

    assert summaries(events) == [("guide", "{\"ans\": \"x\", \"note\": null} => {'o': {'ans': 'x'}} .")]
    assert events[0].output == {"ans": "x"}
    assert talk.stored().state == {"o": {"ans": "x"}}
    assert talk.stored().events[-1].output == {"ans": "x"}


def test_the_value_is_read_without_an_output_key_too():
    talk = Talk(capital('```json\n{"ans": "x"}\n```', output_key=None))

    assert talk.say()[-1].output == {"ans": "x"}
    assert talk.stored().state == {}


def test_thoughts_are_no_part_of_the_answer():
    parts = [types.Part(text="I think", thought=True), types.Part(text='{"ans":'), types.Part(text='"x"}')]
    talk = Talk(capital(LlmResponse(content=types.Content(role="model", parts=parts))))

    assert talk.say()[-1].output == {"ans": "x"}


@pytest.mark.parametrize(
    ("schema", "answer", "value"),
    [
        (list[Out], '[{"ans": "x", "note": null}]', [{"ans": "x"}]),
        (list[int], "[1, 2]", [1, 2]),
        (int, "7", 7),
        (bool, "false", False),
        (dict, "{}", {}),
        ({"type": "object", "properties": {"a": {}}}, '{"a": [1]}', {"a": [1]}),
        (types.Schema(type=types.Type.STRING), "words", "words"),
    ],
)
def test_every_kind_of_schema_leaves_its_value(schema: Any, answer: str, value: Any):
    talk = Talk(capital(answer, output_schema=schema))

    assert talk.say()[-1].output == value
    assert talk.stored().state == {"o": value}


def mismatch(events: list[Event]) -> None:
    assert events[-2].content and events[-2].text == "not json"
    assert events[-2].output is None and not events[-2].actions.state_delta
    assert events[-1].error_code == "OUTPUT_SCHEMA_MISMATCH" and events[-1].content is None
    assert events[-1].author == "guide" and not events[-1].is_final_response()
    assert "agent 'guide' does not fit its output_schema: Invalid JSON" in (events[-1].error_message or "")


def test_the_stand_in_for_a_model_is_named_as_the_reason():
    events = Talk(LlmAgent(name="guide", model="offline", output_schema=Out)).say()

    wrong = events[-1].error_message or ""
    assert "'offline'" in wrong and "name a model" in wrong and "in the instruction" not in wrong
    assert "(got 'I am not a language model" in wrong and "…)" in wrong


@pytest.mark.parametrize("key", ["o", None])
@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
def test_an_answer_that_does_not_fit_is_told_after_it(config: RunConfig | None, key: str | None):
    talk = Talk(capital("not json", output_key=key), state={"o": "as before"})
    events = talk.say(config=config)

    mismatch([event for event in events if not event.partial])
    mismatch(talk.stored().events)
    assert talk.error is None
    assert talk.stored().state == {"o": "as before"}


class Odd(BaseModel):
    ans: Any

    @field_validator("ans")
    @classmethod
    def check(cls, value: Any) -> Any:
        raise LookupError("a fault of its own")


@pytest.mark.parametrize(
    ("schema", "answer", "text"),
    [
        (Odd, '{"ans": 1}', "LookupError"),
        (float, "NaN", "the number nan"),
        (dict, '{"a":' * 150 + "1" + "}" * 150, "nested"),
        (dict, '{"a":' * 5000 + "1" + "}" * 5000, "recursion limit"),
        (int, "1" * 5000, "out of range"),
    ],
)
def test_whatever_is_wrong_with_an_answer_it_is_not_lost(schema: Any, answer: str, text: str):
    talk = Talk(capital(answer, output_schema=schema))
    events = talk.say()

    assert [event.error_code for event in events] == [None, "OUTPUT_SCHEMA_MISMATCH"] and talk.error is None
    assert text in (events[1].error_message or "") and "\n" not in (events[1].error_message or "")
    assert talk.stored().events[1].text == answer and talk.stored().state == {}


def test_an_answer_that_ends_in_code_is_no_final_one():
    class Runs(BaseCodeExecutor):
        def execute_code(self, invocation_context: Any, code_execution_input: Any) -> CodeExecutionResult:
            return CodeExecutionResult(stdout="5")

    talk = Talk(capital("Look:\n```python\nprint(5)\n```", '{"ans": "5"}', code_executor=Runs()))
    events = talk.say()

    assert [event.error_code for event in events] == [None] * 3 and events[-1].output == {"ans": "5"}
    assert [key for event in events for key in event.actions.state_delta if key == "o"] == ["o"]


def test_the_next_turn_after_a_mismatch_is_a_normal_one():
    agent = capital("not json", '{"ans": "y"}')
    talk = Talk(agent)
    talk.say("one")
    talk.say("two")

    assert requests(agent)[1] == [("user", "one"), ("model", "not json"), ("user", "two")]
    assert talk.stored().state == {"o": {"ans": "y"}}


def test_after_agent_callbacks_run_after_a_mismatch():
    events = Talk(capital("not json", after_agent_callback=says("after"))).say()

    assert [event.error_code or event.text for event in events] == ["not json", "OUTPUT_SCHEMA_MISMATCH", "after"]


def test_a_mismatch_may_be_raised_and_the_words_are_kept():
    talk = Talk(capital('{"note": "n"}', on_output_error="raise"))
    events = talk.say()

    assert [event.error_code for event in events] == [None, "ValidationError"]
    assert isinstance(talk.error, ValidationError)
    assert talk.stored().events[1].text == '{"note": "n"}'
    assert talk.stored().state == {}


def test_a_mismatch_may_be_kept_as_text(caplog: pytest.LogCaptureFixture):
    talk = Talk(capital("not json", on_output_error="raw"))

    with caplog.at_level(logging.WARNING):
        assert summaries(talk.say()) == [("guide", "not json => {'o': 'not json'} .")]
    assert talk.stored().events[-1].output is None
    assert "agent 'guide'" in caplog.text


def test_a_mismatch_may_be_asked_for_again_with_what_was_wrong():
    agent = capital('{"note": "n"}', '{"ans": "x"}', on_output_error="retry")
    talk = Talk(agent)

    assert summaries(talk.say("hi")) == [
        ("guide", '{"note": "n"} .'),
        ("guide", "{\"ans\": \"x\"} => {'o': {'ans': 'x'}} ."),
    ]
    repeated_request = requests(agent)[1]
    assert repeated_request[:2] == [("user", "hi"), ("model", '{"note": "n"}')]
    assert repeated_request[2][0] == "user" and "ans: Field required" in repeated_request[2][1]
    assert [event.author for event in talk.stored().events] == ["user", "guide", "guide"]


def test_it_is_asked_for_again_only_once():
    talk = Talk(capital("no", "not json", on_output_error="retry"))
    events = talk.say()

    mismatch(events)
    assert len(events) == 3 and talk.error is None
    assert "on_output_error" not in str(events[-1].error_message)


def test_a_run_that_is_to_end_is_not_asked_again_and_the_mismatch_is_told():
    def stop(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        callback_context.get_invocation_context().end_invocation = True

    mismatch(Talk(capital("not json", on_output_error="retry", after_model_callback=stop)).say())


def test_asking_again_counts_against_the_limits():
    assert [event.error_code for event in Talk(capital("no", on_output_error="retry", max_iterations=1)).say()] == [
        None,
        "MAX_ITERATIONS",
    ]
    limited = Talk(capital("no", on_output_error="retry"))
    limited.say(config=RunConfig(max_llm_calls=1))
    assert type(limited.error).__name__ == "LlmCallsLimitExceededError"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (LlmResponse(error_code="SAFETY", error_message="blocked"), "SAFETY"),
        (LlmResponse(content=types.Content(role="model", parts=[])), "MODEL_RETURNED_NO_CONTENT"),
    ],
)
def test_a_refusal_is_no_mismatch(answer: LlmResponse, code: str):
    talk = Talk(capital(answer))

    assert [event.error_code for event in talk.say()] == [code]
    assert talk.stored().state == {}


def test_a_stream_leaves_its_value_on_the_whole_answer_only():
    talk = Talk(capital(['{"ans":', ' "x"}']))
    events = talk.say(config=SSE)

    assert [event.output for event in events] == [None, None, {"ans": "x"}]
    assert [bool(event.actions.state_delta) for event in events] == [False, False, True]
    assert talk.stored().state == {"o": {"ans": "x"}}


def test_callbacks_that_answer_are_read_with_the_schema_too():
    before_agent = Talk(capital(before_agent_callback=says('{"ans": "b"}')))
    before_model = Talk(capital(before_model_callback=says(text('{"ans": "m"}'))))
    after_model = Talk(capital("x", after_model_callback=says(text('{"ans": "a"}'))))

    assert [talk.say()[-1].output for talk in (before_agent, before_model, after_model)] == [
        {"ans": "b"},
        {"ans": "m"},
        {"ans": "a"},
    ]
    assert before_agent.stored().state == {"o": {"ans": "b"}}


@pytest.mark.parametrize("mode", ["event", "retry"])
def test_a_guardrails_words_that_do_not_fit_are_told_after_them(mode: Any):
    fields: dict[str, Any] = {"before_agent_callback": says("not json")}
    talk = Talk(capital(on_output_error=mode, **fields))

    mismatch(talk.say())
    assert talk.stored().state == {}


def test_a_guardrails_words_that_do_not_fit_may_be_raised():
    fields: dict[str, Any] = {"before_agent_callback": says("no")}
    talk = Talk(capital(on_output_error="raise", **fields))

    assert [event.error_code for event in talk.say()] == [None, "ValidationError"]
    assert isinstance(talk.error, ValidationError)


# ---- with tools


def test_a_model_that_takes_both_is_sent_both():
    model: Any = cast(Any, Both)(call("look"), '{"ans": "x"}')
    agent = LlmAgent(name="guide", model=model, tools=[look], output_schema=Out, output_key="o")
    talk = Talk(agent)

    assert summaries(talk.say())[-1] == ("guide", "{\"ans\": \"x\"} => {'o': {'ans': 'x'}} .")
    for request in asked(agent):
        assert request.config.response_schema is Out and offered(request) == ["look"]


def test_another_is_given_a_tool_to_answer_with():
    agent = capital(call("look"), call("set_model_response", ans="42", note=None), tools=[look])
    talk = Talk(agent)
    events = talk.say()

    assert summaries(events) == [
        ("guide", "calls look({})"),
        ("guide", "answers {'result': 'seen'}"),
        ("guide", "calls set_model_response({'ans': '42', 'note': None})"),
        ("guide", "answers {'ans': '42'}"),
        ("guide", "{\"ans\": \"42\"} => {'o': {'ans': '42'}} ."),
    ]
    assert events[3].actions.set_model_response == {"ans": "42"} and events[3].output is None
    assert events[4].output == {"ans": "42"}
    assert events[4].content and events[4].content.role == "model"
    assert talk.stored().state == {"o": {"ans": "42"}}

    first = asked(agent)[0]
    config: Any = first.config
    assert offered(first) == ["set_model_response", "look"]
    assert config.response_schema is None and config.response_mime_type is None
    assert "set_model_response" in config.system_instruction
    declared = first.tools_dict["set_model_response"].declaration
    assert declared.parameters_json_schema["required"] == ["ans"]


def test_the_turn_after_it_sees_a_well_paired_history():
    agent = capital(call("set_model_response", ans="1"), call("set_model_response", ans="2"), tools=[look])
    talk = Talk(agent)
    talk.say("one")
    talk.say("two")

    assert requests(agent)[1] == [
        ("user", "one"),
        ("model", "calls set_model_response({'ans': '1'})"),
        ("user", "answers {'ans': '1'}"),
        ("model", '{"ans": "1"}'),
        ("user", "two"),
    ]
    assert talk.stored().state == {"o": {"ans": "2"}}


def test_a_wrong_answer_goes_back_to_the_model():
    talk = Talk(capital(call("set_model_response", bad="42"), call("set_model_response", ans="42"), tools=[look]))
    events = talk.say()

    error = events[1].get_function_responses()[0].response or {}
    assert "ans: Field required" in error["error"] and "set_model_response again" in error["error"]
    assert talk.stored().state == {"o": {"ans": "42"}}


def test_a_value_that_no_state_can_hold_goes_back_to_the_model_too():
    answers = [call("set_model_response", response=float("nan")), call("set_model_response", response=1.5)]
    talk = Talk(capital(*answers, tools=[look], output_schema=float))
    events = talk.say()

    assert "the number nan" in (events[1].get_function_responses()[0].response or {})["error"]
    assert talk.stored().state == {"o": 1.5}


def test_words_instead_are_read_as_without_tools():
    assert Talk(capital(call("look"), '{"ans": "x"}', tools=[look])).say()[-1].output == {"ans": "x"}
    mismatch(Talk(capital(call("look"), "not json", tools=[look])).say())

    repeated_talk = Talk(capital("oh", call("set_model_response", ans="x"), tools=[look], on_output_error="retry"))
    assert repeated_talk.say()[-1].output == {"ans": "x"} and repeated_talk.stored().state == {"o": {"ans": "x"}}


def test_words_beside_a_call_are_no_answer():
    talk = Talk(capital(["Let me look.", call("look")], '{"ans": "x"}', tools=[look]))

    assert [event.error_code for event in talk.say()] == [None, None, None]
    assert talk.stored().state == {"o": {"ans": "x"}}


def test_an_answer_beside_other_calls_ends_the_turn():
    agent = capital([call("look"), call("set_model_response", ans="1")], tools=[look])

    assert summaries(Talk(agent).say()) == [
        ("guide", "calls look({}); calls set_model_response({'ans': '1'})"),
        ("guide", "answers {'result': 'seen'}; answers {'ans': '1'}"),
        ("guide", "{\"ans\": \"1\"} => {'o': {'ans': '1'}} ."),
    ]


def test_of_two_answers_in_one_step_the_later_is_taken_whole():
    answers = [call("set_model_response", ans="1", note="first"), call("set_model_response", ans="2")]
    talk = Talk(capital(answers, tools=[look]))

    assert talk.say()[-1].output == {"ans": "2"}


@pytest.mark.parametrize(
    ("schema", "args", "value"),
    [
        (list[Out], {"items": [{"ans": "a"}]}, [{"ans": "a"}]),
        (list[str], {"response": []}, []),
        (int, {"response": 0}, 0),
        (Options, {}, {}),
        (int | None, {"response": None}, None),
        ({"type": "object", "properties": {"a": {}}}, {"a": "é"}, {"a": "é"}),
    ],
)
def test_any_value_may_be_given_by_the_tool_even_an_empty_one(schema: Any, args: dict[str, Any], value: Any):
    talk = Talk(capital(call("set_model_response", **args), tools=[look], output_schema=schema))
    events = talk.say()

    assert events[-1].text == json.dumps(value, ensure_ascii=False)
    assert talk.stored().state == {"o": value}


def test_the_answer_streams_like_any_call():
    talk = Talk(capital(["I ", "see. ", call("set_model_response", ans="x")], tools=[look]))
    events = [event for event in talk.say(config=SSE) if not event.partial]

    assert [event.output for event in events] == [None, None, {"ans": "x"}]
    assert talk.stored().state == {"o": {"ans": "x"}}


def test_an_agent_without_a_schema_is_offered_no_such_tool():
    agent = guide("done", tools=[look])
    Talk(agent).say()

    assert offered(asked(agent)[0]) == ["look"]
