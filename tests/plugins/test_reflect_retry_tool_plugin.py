"""A tool call that fails, and what the model is told to mend it."""

from typing import Any

import pytest

from adk_nb.errors import ConfigurationError, PluginError
from adk_nb.events import Event
from adk_nb.models import call
from adk_nb.plugins import ReflectAndRetryToolPlugin
from adk_nb.plugins.reflect_retry_tool_plugin import TrackingScope
from tests.support.talk import Talk, boom, guide


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [one.response or {} for event in events for one in event.get_function_responses()]


def counts(events: list[Event]) -> list[int | None]:
    return [result.get("retry_count") for result in results(events)]


def test_the_model_sees_the_failure_and_its_count():
    talk = Talk(guide(call("boom"), "sorry", tools=[boom]), plugins=[ReflectAndRetryToolPlugin()])

    [told] = results(talk.say())

    assert told["error_type"] == "ValueError"
    assert told["error_details"] == "bad"
    assert told["retry_count"] == 1
    assert "boom({}) failed" in told["reflection_guidance"] and "failure 1, and after 3" in told["reflection_guidance"]


def test_one_failure_too_many_ends_the_run_with_the_tools_error():
    talk = Talk(guide(*[call("boom")] * 3, tools=[boom]), plugins=[ReflectAndRetryToolPlugin(max_retries=2)])

    events = talk.say()

    assert counts(events[:-1]) == [1, 2]
    assert isinstance(talk.error, PluginError)
    assert isinstance(talk.error.__cause__, ValueError)


def test_or_the_model_is_told_to_give_the_tool_up():
    plugin = ReflectAndRetryToolPlugin(max_retries=1, throw_exception_if_retry_exceeded=False)
    talk = Talk(guide(call("boom"), call("boom"), "sorry", tools=[boom]), plugins=[plugin])

    events = talk.say()

    assert "boom() failed 2 times" in results(events)[-1]["reflection_guidance"]
    assert events[-1].text == "sorry"


def test_a_success_begins_anew():
    def flaky(fails: bool) -> str:
        """Fails if it is to."""
        if fails:
            raise ValueError("bad")
        return "ok"

    calls = [call("flaky", fails=fails) for fails in (True, False, True)]
    talk = Talk(guide(*calls, "done", tools=[flaky]), plugins=[ReflectAndRetryToolPlugin(max_retries=1)])

    assert counts(talk.say()) == [1, None, 1]


def test_each_tool_is_counted_for_itself():
    def bang() -> str:
        """Fails too."""
        raise ValueError("worse")

    agent = guide([call("boom"), call("bang")], "done", tools=[boom, bang])

    assert counts(Talk(agent, plugins=[ReflectAndRetryToolPlugin(max_retries=1)]).say()) == [1, 1]


@pytest.mark.parametrize(("scope", "expected"), [(TrackingScope.INVOCATION, 1), (TrackingScope.GLOBAL, 2)])
def test_failures_are_counted_in_one_run_or_in_all(scope: TrackingScope, expected: int):
    talk = Talk(
        guide(call("boom"), "done", call("boom"), "done", tools=[boom]),
        plugins=[ReflectAndRetryToolPlugin(tracking_scope=scope)],
    )

    assert counts(talk.say()) == [1]
    assert counts(talk.say()) == [expected]


def test_a_tool_that_is_not_there_is_a_failure_like_another():
    talk = Talk(guide(call("bom"), "sorry", tools=[boom]), plugins=[ReflectAndRetryToolPlugin()])

    [told] = results(talk.say())

    assert told["error_type"] == "ToolNotFoundError"
    assert "did you mean 'boom'" in told["error_details"]


def test_an_error_in_a_result_can_count_too():
    class Reads(ReflectAndRetryToolPlugin):
        async def extract_error_from_result(self, *, result: Any, **said: Any) -> Any:
            return result.get("problem")

    def odd() -> dict[str, str]:
        """Answers with a problem."""
        return {"problem": "no such city"}

    talk = Talk(guide(call("odd"), call("odd"), tools=[odd]), plugins=[Reads(max_retries=1)])

    events = talk.say()

    assert [(told["error_type"], told["error_details"]) for told in results(events[:-1])] == [
        ("ToolError", "no such city")
    ]
    assert "odd() answered no such city" in str(talk.error)


def test_a_negative_number_is_refused():
    with pytest.raises(ConfigurationError, match=r"max_retries=-1 must.*negative; write 0"):
        ReflectAndRetryToolPlugin(max_retries=-1)
