"""Any JSON value, wherever it comes in, is stored as it is and read back equal, or refused before anything happens."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adk_nb import types
from adk_nb.errors import ConfigurationError, InputError, StateKeyError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.context import Context
from adk_nb.sessions import Session
from adk_nb.tools import LongRunningFunctionTool
from tests.support.talk import Talk, guide

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)  # halves of characters too: JSON has them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
HALF, HUGE, DEEP = "half \ud83d", 10**5000, json.loads("[" * 300 + "]" * 300)


def assert_travels(session: Session) -> None:
    """Each event, and the session, is equal after a journey as JSON, however it is written."""
    for event in session.events:
        assert Event.model_validate_json(event.model_dump_json(by_alias=True, exclude_none=True)) == event
        assert Event.model_validate(json.loads(json.dumps(event.model_dump(mode="json")))) == event
    again = Session.model_validate_json(session.model_dump_json())
    assert (again.state, again.events) == (session.state, session.events)


def whole(value: Any) -> bool:
    """Whether every text in `value` is whole characters."""
    return "\\ud" not in json.dumps(value)


@given(st.lists(TEXT, min_size=1, max_size=3))
@example([HALF])
@example(["\x00\u2028"])
def test_any_text_of_a_user_is_stored_or_refused_whole(texts: list[str]):
    talk = Talk(guide("Hello."))

    talk.say(types.Content(role="user", parts=[types.Part(text=text) for text in texts]))

    stored = talk.stored()
    if talk.error:
        assert isinstance(talk.error, InputError) and "half a character" in str(talk.error)
        assert not whole(texts) and stored.events == []
    else:
        assert [part.text for part in stored.events[0].parts] == texts and stored.events[1].text == "Hello."
    assert_travels(stored)


def test_a_response_that_cannot_be_kept_is_refused_and_the_call_stays_open():
    def ask() -> None:
        """Asks someone else."""

    talk = Talk(guide(call("ask"), "Done.", tools=[LongRunningFunctionTool(ask)]))
    [asked] = talk.say()[0].get_function_calls()
    before = talk.stored().events

    for odd, said in (
        (HALF, "half a character"),
        (DEEP, "nested more than 100 deep"),
        (float("nan"), "the number nan"),
    ):
        answer = types.FunctionResponse(id=asked.id, name="ask", response={"result": odd})
        talk.say(types.Content(role="user", parts=[types.Part(function_response=answer)]))
        assert isinstance(talk.error, InputError) and said in str(talk.error)
    assert talk.stored().events == before


def test_half_a_character_in_an_answer_is_mended():
    talk = Talk(guide(HALF))

    assert [event.text for event in talk.say()] == ["half ?"]
    assert_travels(talk.stored())


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
@example({"a": HALF})
@example({"a": {HALF: [HALF]}})
@example({"a": HUGE})
@example({"a": DEEP})
def test_any_arguments_reach_the_tool_as_they_are_stored(args: dict[str, Any]):
    given: list[Any] = []

    def take(a: Any = None, b: Any = None, c: Any = None) -> str:
        """Takes."""
        given.append({"a": a, "b": b, "c": c})
        return "ok"

    talk = Talk(guide(call("take", **args), "Done.", tools=[take]))
    talk.say()

    assert talk.error is None
    stored = talk.stored()
    [asked] = stored.events[1].get_function_calls()
    told = stored.events[2].get_function_responses()[0].response or {}
    if given:
        assert given == [{"a": None, "b": None, "c": None} | (asked.args or {})]
        assert told == {"result": "ok"}
        assert asked.args == args
    else:
        assert "was not called" in told["error"]
        reasons = ("nested more than 100 deep", "thousands of digits", "half a character")
        assert any(reason in told["error"] for reason in reasons)
    assert_travels(stored)


@pytest.mark.slow
@given(TEXT.filter(lambda key: not key.startswith("temp:")), JSON)
@example("k", HALF)
@example("user:k", {HALF: 1})
@example("k", [HUGE])
@example("app:k", DEEP)
@example(HALF, 1)
def test_any_value_is_kept_in_the_state_or_refused_where_it_is_written(key: str, value: Any):
    refused: list[Exception] = []

    def write(tool_context: Context) -> str:
        """Writes."""
        try:
            tool_context.state[key] = value
        except ConfigurationError as error:
            refused.append(error)
            assert key not in tool_context.state
        return "ok"

    talk = Talk(guide(call("write"), "Done.", tools=[write]))
    talk.say()
    say_again = Talk(guide("Done."))
    say_again.say(state_delta={key: value, "other": 1})

    assert talk.error is None and bool(say_again.error) == bool(refused)
    if refused:
        assert "cannot hold" in str(refused[0]) or "a state key must be a str" in str(refused[0])
        assert say_again.stored().events == []
    for stored in (talk.stored(), say_again.stored()):
        assert stored.state.get(key) == (None if refused else value)
        assert_travels(stored)


@given(st.text(st.sampled_from("{}?:.x \\$\n") | st.characters(exclude_categories=["Cs"]), max_size=20))
@example("{")
@example("{}{{}} {not a name} {a-b} { } {:x}")
def test_any_instruction_reaches_the_model_as_it_is_unless_it_names_a_key(text: str):
    names_a_key = re.search(r"\{\s*((app|user|temp):)?\w*\??\s*\}|\{\s*artifact\.|\\\{", text)
    agent = guide("Hello.", instruction=text)

    talk = Talk(agent)
    talk.say()

    if names_a_key:
        assert talk.error is None or isinstance(talk.error, StateKeyError | ConfigurationError)
    else:
        assert talk.error is None and isinstance(agent.model, ScriptedLlm)
        assert (agent.model.requests[0].config.system_instruction or "").startswith(text)
