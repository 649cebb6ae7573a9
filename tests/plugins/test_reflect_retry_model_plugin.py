"""A model's answer that cannot be used, and what the model is told to mend it."""

from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError, PluginError
from adk_nb.events import Event
from adk_nb.models import LlmResponse, ScriptedLlm, call
from adk_nb.plugins import ReflectAndRetryModelPlugin
from adk_nb.plugins.reflect_retry_tool_plugin import TrackingScope
from tests.support.talk import Talk

MALFORMED = types.FinishReason.MALFORMED_FUNCTION_CALL
NAME = "handle_model_error"


def bad(reason: types.FinishReason = MALFORMED) -> LlmResponse:
    return LlmResponse(error_code=reason.value, error_message="print(look(", finish_reason=reason)


def talking(*answers: Any, **options: Any) -> tuple[ScriptedLlm, Talk]:
    model = ScriptedLlm(*answers)
    return model, Talk(LlmAgent(name="a", model=model), plugins=[ReflectAndRetryModelPlugin(**options)])


def counts(events: list[Event]) -> list[int]:
    return [(one.args or {})["retry_count"] for event in events for one in event.get_function_calls()]


def test_a_malformed_call_is_told_to_the_model_which_answers_again():
    model, talk = talking(bad(), "better")

    asked, told, answer = talk.say()

    [made], [advice] = asked.get_function_calls(), told.get_function_responses()
    assert made.name == NAME and (made.args or {})["error_details"] == "print(look("
    assert "failure 1, and after 3" in (advice.response or {})["reflection_guidance"]
    assert answer.text == "better" and asked.error_code is None
    assert all(not request.config.tools for request in model.requests)  # the call is not offered


def test_one_failure_too_many_ends_the_run():
    _, talk = talking(*[bad()] * 3, max_retries=2)

    events = talk.say()

    assert counts(events) == [1, 2]
    assert isinstance(talk.error, PluginError) and "3 times" in str(talk.error)


def test_or_it_ends_with_the_answer_that_failed():
    _, talk = talking(*[bad()] * 2, max_retries=1, throw_exception_if_retry_exceeded=False)

    events = talk.say()

    assert talk.error is None
    assert (events[-1].error_code, counts(events)) == ("MALFORMED_FUNCTION_CALL", [1])


def test_an_answer_resets_the_count_of_all_runs():
    _, talk = talking(bad(), "one", bad(), "two", tracking_scope=TrackingScope.GLOBAL, max_retries=1)

    assert [counts(talk.say()), counts(talk.say())] == [[1], [1]]


def test_only_the_reasons_that_are_named_count():
    _, talk = talking(bad(types.FinishReason.SAFETY))
    _, other = talking(bad(types.FinishReason.SAFETY), "ok", on_model_errors=[types.FinishReason.SAFETY])

    assert [event.error_code for event in talk.say()] == ["SAFETY"]
    assert other.say()[-1].text == "ok"


def test_a_model_that_makes_the_plugin_s_own_call_is_told_not_to():
    _, talk = talking(call(NAME, response_type="x", retry_count=-5), "sorry")

    asked, _, answer = talk.say()

    [made] = asked.get_function_calls()
    assert (made.args or {})["error_type"] == "RESERVED_TOOL_CALL" and counts([asked]) == [1]
    assert answer.text == "sorry"


@pytest.mark.parametrize(
    ("options", "reason"), [({"max_retries": -1}, "max_retries=-1"), ({"on_model_errors": ["STOP"]}, "FinishReason")]
)
def test_settings_that_it_cannot_have_are_refused(options: dict[str, Any], reason: str):
    with pytest.raises(ConfigurationError, match=reason):
        ReflectAndRetryModelPlugin(**options)
