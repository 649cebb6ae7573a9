"""What an event is taken for, what it takes, and how it travels."""

import pytest
from inline_snapshot import snapshot
from pydantic import ValidationError

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events import Event, EventActions, ToolConfirmation
from adk_nb.events.event import as_content

CALL = types.Part(function_call=types.FunctionCall(id="c", name="f", args={}))
RESULT = types.Part(function_response=types.FunctionResponse(id="c", name="f", response={"ok": 1}))


def event(*parts: types.Part | str, **fields: object) -> Event:
    made = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return Event(author="a", content=types.Content(role="model", parts=made) if parts else None, **fields)


@pytest.mark.parametrize(
    ("what", "final"),
    [
        (event("words"), True),
        (event("words", partial=True), False),
        (event("words", CALL), False),
        (event(CALL), False),
        (event(RESULT), False),
        (event(CALL, long_running_tool_ids={"c"}), True),
        (event(RESULT, actions=EventActions(skip_summarization=True)), True),
        (event(error_code="SAFETY"), True),
        (event("half an", partial=True, error_code="SAFETY"), False),
        (event(CALL, error_code="MAX_TOKENS"), False),
        (event(RESULT, error_code="INVOCATION_ABORTED"), True),
        (event(), False),
        (event(actions=EventActions(state_delta={"k": 1})), False),
        (event(actions=EventActions(skip_summarization=True)), False),
    ],
)
def test_final_is_what_a_reader_waits_for(what: Event, final: bool):
    assert what.is_final_response() is final


def test_an_answer_has_words_of_its_own():
    thought = types.Part(text="let me think", thought=True)

    assert event(thought, "Oslo").text == "Oslo"
    assert event("Oslo").is_answer()
    assert not event(thought).is_answer()
    assert not event(" \n").is_answer()
    assert not event(error_code="SAFETY").is_answer()
    assert not event("Oslo", CALL).is_answer()


def test_message_and_state_are_short_for_a_content_and_a_delta():
    short = Event(author="a", message="Hello", state={"seen": True})

    assert short.text == "Hello"
    assert short.content is not None and short.content.role == "user"
    assert short.actions.state_delta == {"seen": True}
    assert Event(message=types.Content(role="model", parts=[types.Part(text="x")])).content == types.Content(
        role="model", parts=[types.Part(text="x")]
    )


def test_a_shorthand_beside_what_it_stands_for_is_refused():
    with pytest.raises(ValidationError, match="`message` or `content`, not both"):
        Event(message="a", content=types.Content(parts=[]))
    with pytest.raises(ValidationError, match="`state` or `actions`, not both"):
        Event(state={}, actions=EventActions())


def test_events_get_ids_and_times_of_their_own(frozen: None):
    first, second = Event(), Event()

    assert (first.id, second.id) == ("id-1", "id-2")
    assert first.timestamp == 1000.0


def test_an_event_travels_in_camel_case_and_comes_back_equal(frozen: None):
    sent = Event(
        author="a",
        invocation_id="e-1",
        content=types.Content(role="model", parts=[CALL]),
        long_running_tool_ids={"c"},
        actions=EventActions(
            state_delta={"k": [1]},
            requested_tool_confirmations={"c": ToolConfirmation(hint="really?")},
        ),
    )
    wire = sent.model_dump(mode="json", by_alias=True, exclude_none=True)

    assert wire == snapshot(
        {
            "content": {"parts": [{"functionCall": {"id": "c", "args": {}, "name": "f"}}], "role": "model"},
            "id": "id-1",
            "invocationId": "e-1",
            "author": "a",
            "actions": {
                "stateDelta": {"k": [1]},
                "artifactDelta": {},
                "requestedToolConfirmations": {"c": {"hint": "really?", "confirmed": False}},
            },
            "longRunningToolIds": ["c"],
            "timestamp": 1000.0,
        }
    )
    assert Event.model_validate(wire) == sent
    assert Event.model_validate_json(sent.model_dump_json()) == sent  # snake_case is read too


def test_keys_of_a_newer_writer_are_ignored():
    read = Event.model_validate({"author": "a", "somethingNew": 1, "actions": {"alsoNew": 2}})

    assert read.author == "a"


def test_merged_actions_unite_dicts_and_or_flags():
    merged = EventActions(state_delta={"a": 1, "b": 1}, escalate=True)

    merged.merge(EventActions(state_delta={"b": 2}, artifact_delta={"f": 0}, skip_summarization=True))
    merged.merge(EventActions(transfer_to_agent="x"))

    assert merged == EventActions(
        state_delta={"a": 1, "b": 2},
        artifact_delta={"f": 0},
        escalate=True,
        skip_summarization=True,
        transfer_to_agent="x",
    )


def test_a_message_may_be_words_parts_or_a_content():
    words = types.Content(role="user", parts=[types.Part(text="hi")])

    assert as_content("hi") == as_content([types.Part(text="hi")]) == words
    assert as_content(types.Content(parts=[types.Part(text="hi")])) == words
    assert as_content(types.Content(role="model", parts=[])).role == "model"


@pytest.mark.parametrize("odd", [5, {"text": "hi"}, ["hi"], None])
def test_anything_else_is_no_message(odd: object):
    with pytest.raises(InputError, match=r"a message is text, a types.Content or a list of types.Part, and not"):
        as_content(odd)


def test_an_event_prints_in_one_short_line():
    event = Event(author="guide", message="It is sunny." * 100, state={"city": "Oslo"})

    assert repr(event).startswith("Event(author='guide', text='It is sunny.")
    assert "state_delta={'city': 'Oslo'}" in repr(event)
    assert len(repr(event)) < 200
    assert str(event) == repr(event)
