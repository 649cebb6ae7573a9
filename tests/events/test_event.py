"""What an event is taken for, what it takes, and how it travels."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import ValidationError

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events import Event, EventActions, EventCompaction, RequestInput, ToolConfirmation
from adk_nb.events.event import NodeInfo, as_content
from adk_nb.events.event_actions import UiWidget
from adk_nb.models import LlmResponse
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.sessions import Session
from tests.support.each import each

CALL = types.Part(function_call=types.FunctionCall(id="c", name="f", args={}))
RESULT = types.Part(function_response=types.FunctionResponse(id="c", name="f", response={"ok": 1}))

RAN = types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="1"))


def event(*parts: types.Part | str, **fields: object) -> Event:
    content_parts = [types.Part(text=part) if isinstance(part, str) else part for part in parts]
    return Event(author="a", content=types.Content(role="model", parts=content_parts) if parts else None, **fields)


@each(
    "event, final",
    [
        (event("words"), True),
        (event("words", partial=True), False),
        (event("words", CALL), False),
        (event(CALL), False),
        (event(RESULT), False),
        (event(CALL, long_running_tool_ids={"c"}), True),
        (event(RESULT, actions=EventActions(skip_summarization=True)), True),
        (event(error_code="SAFETY"), False),
        (event("no", error_code="SAFETY"), True),
        (event("half an", partial=True, error_code="SAFETY"), False),
        (event(CALL, error_code="MAX_TOKENS"), False),
        (event(RESULT, error_code="INVOCATION_ABORTED"), True),
        (event(), False),
        (event(actions=EventActions(state_delta={"k": 1})), False),
        (event(actions=EventActions(skip_summarization=True)), False),
        (event("print(1)", RAN), False),
        (event(RAN, "it is 1"), True),
        (event(RAN, error_code="SAFETY"), True),
        (event(output={"n": 1}), True),
        (event(output={"n": 1}, partial=True), False),
    ],
)
def test_final_is_what_a_reader_waits_for(event: Event, final: bool):
    assert event.is_final_response() is final


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


def test_route_and_node_path_are_short_for_an_action_and_a_node():
    short = Event(route=["yes", 1], node_path="graph/ask@2", message=types.Part(text="x"))

    assert short.actions.route == ["yes", 1]
    assert (short.node_info.path, short.node_info.name, short.node_name) == ("graph/ask@2", "ask", "ask")
    assert short.message == short.content == types.Content(role="user", parts=[types.Part(text="x")])
    assert Event(node_path="graph", actions=EventActions(end_of_agent=True)).node_name == ""


def test_a_shorthand_joins_the_actions_and_the_node_info_it_stands_beside():
    short = Event(state={"k": 1}, route="no", actions=EventActions(escalate=True))

    assert short.actions == EventActions(state_delta={"k": 1}, route="no", escalate=True)
    assert Event.model_validate({"state": {"k": 1}, "actions": {"skipSummarization": True}}).actions == EventActions(
        state_delta={"k": 1}, skip_summarization=True
    )
    assert Event(node_path="g/n", node_info=NodeInfo(message_as_output=True)).node_info == NodeInfo(
        path="g/n", message_as_output=True
    )
    assert Event(state=None, route=None, message=None, node_path=None).actions == EventActions()


def test_a_shorthand_for_what_is_given_too_is_refused():
    with pytest.raises(ValidationError, match="`message` or `content`"):
        Event(message="a", content=types.Content(parts=[]))
    with pytest.raises(ValidationError, match=r"state_delta is passed twice.*`actions`"):
        Event(state={"k": 2}, actions=EventActions(state_delta={"k": 1}))


def test_what_an_event_does_not_say_is_none_and_takes_no_room():
    quiet, event = Event(id="1", timestamp=1.0), Event(id="1", timestamp=1.0)
    for name in Event.model_fields:
        if Event.model_fields[name].default is None:
            assert getattr(quiet, name) is None and name not in quiet.__dict__
    event.branch = None

    assert event == quiet and quiet == event and copy.deepcopy(event) == pickle.loads(pickle.dumps(quiet)) == quiet
    event.branch = "a"
    assert event != quiet and event.branch == "a" and quiet.branch is None
    assert quiet != EventActions()


def test_a_dump_names_every_field_unless_told_to_leave_out_none(frozen: None):
    assert list(Event().model_dump()) == list(Event.model_fields)
    assert Event().model_dump(by_alias=True)["longRunningToolIds"] is None
    assert json.loads(Event().model_dump_json(include={"branch", "id"})) == {"branch": None, "id": "id-3"}
    assert "branch" not in Event().model_dump(exclude_none=True)


def test_events_get_ids_and_times_of_their_own(frozen: None):
    first, second = Event(), Event()

    assert (first.id, second.id) == ("id-1", "id-2")
    assert first.timestamp == 1000.0


def test_an_event_travels_in_camel_case_and_comes_back_equal(frozen: None):
    event = Event(
        author="a",
        invocation_id="e-1",
        content=types.Content(role="model", parts=[CALL]),
        long_running_tool_ids={"c", "b", "a"},
        actions=EventActions(
            state_delta={"k": [1]},
            requested_tool_confirmations={"c": ToolConfirmation(hint="really?")},
        ),
    )
    wire = event.model_dump(mode="json", by_alias=True, exclude_none=True)

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
                "requestedAuthConfigs": {},
            },
            "nodeInfo": {"path": ""},
            "longRunningToolIds": ["a", "b", "c"],
            "timestamp": 1000.0,
        }
    )
    assert Event.model_validate(wire) == event
    assert Event.model_validate_json(event.model_dump_json()) == event  # snake_case is read too


@each(
    "make, expected",
    [
        (lambda: Event(auther="guide"), "author"),
        (lambda: Event(author="guide", mesage="hello"), "message"),
        (lambda: Event(author="guide", nodePath="graph/ask"), "node_path"),
        (lambda: EventActions(state_dleta={"a": 1}), "state_delta"),
        (lambda: LlmResponse(contents=None), "content"),
        (lambda: Session(id="s", appname="shop"), "app_name"),
        (lambda: RequestInput(mesage="which?"), "message"),
        (lambda: ToolConfirmation(confirm=True), "confirmed"),
    ],
)
def test_a_constructor_refuses_an_unknown_field_and_names_the_closest(make: Callable[[], Any], expected: str):
    with pytest.raises(ValidationError, match=f"did you mean '{expected}'"):
        make()


def test_every_unknown_field_is_named():
    with pytest.raises(ValidationError) as refused:
        EventActions(no_such=1, nor_this=2)

    assert [(wrong["loc"], wrong["input"]) for wrong in refused.value.errors()] == [
        (("no_such",), 1),
        (("nor_this",), 2),
    ]


def test_json_names_and_fields_of_a_subclass_are_known_to_the_constructor():
    class Noted(Event):
        note: str = ""

    event = Noted(invocationId="i", note="mine", actions=EventActions(stateDelta={"a": 1}))

    assert (event.invocation_id, event.note, event.actions.state_delta) == ("i", "mine", {"a": 1})


def test_keys_of_a_newer_writer_are_ignored():
    read = Event.model_validate({"author": "a", "somethingNew": 1, "actions": {"alsoNew": 2}})

    assert read.author == "a"


def test_merged_actions_unite_dicts_in_depth_and_or_flags():
    own, foreign = {"a": 1, "deep": {"x": 1, "y": {"z": 1}}}, {"b": 2, "deep": {"x": 2, "y": {"w": 2}}}
    merged = EventActions(state_delta=dict(own), escalate=True, route="a")

    merged.merge(EventActions(state_delta=foreign, artifact_delta={"f": 0}, skip_summarization=True, escalate=False))
    merged.merge(EventActions(transfer_to_agent="x", transfer_reason="asked", agent_state={"step": 1}, route=False))

    assert merged == EventActions(
        state_delta={"a": 1, "b": 2, "deep": {"x": 2, "y": {"z": 1, "w": 2}}},
        artifact_delta={"f": 0},
        escalate=True,
        skip_summarization=True,
        transfer_to_agent="x",
        transfer_reason="asked",
        agent_state={"step": 1},
        route=False,
    )
    assert own["deep"] == {"x": 1, "y": {"z": 1}} and foreign["deep"] == {"x": 2, "y": {"w": 2}}


def test_a_later_deletion_or_value_takes_the_place_of_a_dict():
    removed = {"__adk_deleted__": True}
    merged = EventActions(state_delta={"a": {"x": 1}, "b": removed, "c": {"x": 1}})

    merged.merge(EventActions(state_delta={"a": removed, "b": {"x": 1}, "c": [1]}))

    assert merged.state_delta == {"a": removed, "b": {"x": 1}, "c": [1]}


def test_every_action_travels():
    content = types.Content(role="model", parts=[types.Part(text="so far")])
    actions = EventActions(
        compaction=EventCompaction(start_timestamp=1.0, end_timestamp=2.0, compacted_content=content),
        end_of_agent=True,
        agent_state={"step": 2},
        route=["a", True, 3],
        render_ui_widgets=[UiWidget(id="w", provider="mcp", payload={"uri": "ui://x"})],
        set_model_response={"n": 1},
    )
    wire = Event(id="1", timestamp=1.0, actions=actions).model_dump(mode="json", by_alias=True, exclude_none=True)

    assert wire["actions"]["compaction"]["startTimestamp"] == 1.0
    assert wire["actions"]["renderUiWidgets"] == [{"id": "w", "provider": "mcp", "payload": {"uri": "ui://x"}}]
    assert Event.model_validate(wire).actions == actions


def test_a_live_answer_travels():
    event = Event(
        id="1",
        timestamp=1.0,
        input_transcription=types.Transcription(text="hello", finished=True),
        output_transcription=types.Transcription(text="hi"),
        live_session_resumption_update=types.LiveServerSessionResumptionUpdate(new_handle="h", resumable=True),
        turn_complete_reason=types.TurnCompleteReason.NEED_MORE_INPUT,
        cache_metadata=CacheMetadata(fingerprint="f", contents_count=2),
        interaction_id="i",
    )
    wire = event.model_dump(mode="json", by_alias=True, exclude_none=True)

    assert (wire["inputTranscription"], wire["turnCompleteReason"]) == (
        {"text": "hello", "finished": True},
        "NEED_MORE_INPUT",
    )
    assert Event.model_validate(wire) == event


def test_a_cache_is_known_whole_or_only_by_its_print(frozen: None):
    print_only = CacheMetadata(fingerprint="f", contents_count=0)
    cache = {"cache_name": "cachedContents/1", "invocations_used": 0, "fingerprint": "f", "contents_count": 2}

    assert not print_only.expire_soon
    assert not CacheMetadata(**cache, expire_time=1120.0).expire_soon
    assert CacheMetadata(**cache, expire_time=1119.0).expire_soon
    with pytest.raises(ValidationError, match="all three"):
        CacheMetadata(**cache)


def test_a_message_may_be_words_parts_or_a_content():
    content = types.Content(role="user", parts=[types.Part(text="hi")])

    assert as_content("hi") == as_content([types.Part(text="hi")]) == content
    assert as_content(types.Content(parts=[types.Part(text="hi")])) == content
    assert as_content(types.Content(role="model", parts=[])).role == "model"


@pytest.mark.parametrize("odd", [5, {"text": "hi"}, ["hi"], None])
def test_anything_else_is_no_message(odd: object):
    with pytest.raises(InputError, match=r"types\.Content or a list of types\.Part, got"):
        as_content(odd)


def test_an_event_prints_in_one_short_line():
    event = Event(author="guide", message="It is sunny." * 100, state={"city": "Oslo"})

    assert repr(event).startswith("Event(author='guide', text='It is sunny.")
    assert "state_delta={'city': 'Oslo'}" in repr(event)
    assert len(repr(event)) < 200
    assert str(event) == repr(event)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.dictionaries(st.text(), JSON, max_size=3), st.text(), st.booleans() | st.integers() | st.text())
def test_any_json_in_an_event_travels(value: Any, many: dict[str, Any], text: str, route: Any):
    event = Event(
        author=text,
        message=[types.Part(text=text), types.Part(inline_data=types.Blob(data=text.encode(), mime_type="a/b"))],
        output=value,
        custom_metadata=many,
        node_path=text,
        actions=EventActions(state_delta=many, agent_state=many, set_model_response=value, route=[route, route]),
    )

    for wire in (event.model_dump_json(by_alias=True, exclude_none=True), event.model_dump_json()):
        assert Event.model_validate_json(wire) == Event.model_validate(json.loads(wire)) == event
