"""Events that are parsed when they are first looked at."""

import copy
import gc
import json
import operator
import pickle
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.lazy_event import lazy_copy, lazy_event
from adk_nb.sessions import Session
from tests.support.each import each
from tests.support.own_process import script

EVENT = Event(author="guide", message="hello", actions=EventActions(state_delta={"k": [1]}), output={"a": 1})


def stored() -> Event:
    return lazy_event(EVENT.model_dump_json(by_alias=True, exclude_none=True).encode(), "a test")


@each(
    "look",
    [
        lambda event: event == EVENT and event != EVENT.model_copy(update={"author": "other"}),
        lambda event: operator.eq(EVENT, event) and event == stored(),
        lambda event: isinstance(event, Event) and event.text == "hello",
        lambda event: event.model_dump_json() == EVENT.model_dump_json(),
        lambda event: event.model_copy() == EVENT and type(event.model_copy()) is Event,
        lambda event: copy.copy(event) == EVENT and type(copy.copy(event)) is Event,
        lambda event: copy.deepcopy(event) == EVENT and type(copy.deepcopy(event)) is Event,
        lambda event: pickle.loads(pickle.dumps(event)) == EVENT,
        lambda event: repr(event) == repr(EVENT),
        lambda event: vars(event) == vars(EVENT),
        lambda event: event in [EVENT] and [EVENT].index(event) == 0,
        lambda event: event.output is event.output and event.branch is None,
        lambda event: Session(id="s", events=[event]) == Session(id="s", events=[EVENT]),
        lambda event: Session(id="s", events=[event]).model_dump() == Session(id="s", events=[EVENT]).model_dump(),
        lambda event: TypeAdapter(Event).validate_python(event) == EVENT,
        lambda event: TypeAdapter(list[Event]).dump_json([event]) == TypeAdapter(list[Event]).dump_json([EVENT]),
    ],
)
def test_an_unread_event_is_as_good_as_the_one_that_was_written(look: Callable[[Event], Any]):
    assert look(stored())
    assert look(lazy_copy(EVENT))


def test_a_lent_event_whose_scalars_were_read_first_is_a_copy_all_the_same():
    event = lazy_copy(EVENT)

    assert (event.id, event.author, event.partial, event.branch) == (EVENT.id, "guide", None, None)
    event.author, event.parts[0].text = "edited", "edited"
    event.actions.state_delta["k"].append(2)
    event.actions.artifact_delta["f"] = 1
    assert (EVENT.author, EVENT.text, EVENT.actions) == ("guide", "hello", EventActions(state_delta={"k": [1]}))
    assert (event.author, event.text, event.actions.state_delta) == ("edited", "edited", {"k": [1, 2]})


def test_the_content_of_a_lent_event_is_the_same_copy_before_and_after_the_rest_is_read():
    event = lazy_copy(EVENT)
    content = event.content
    assert content and content.parts and content is event.content
    content.parts[0].text = "edited"

    assert event.output == {"a": 1} and type(event) is Event
    assert event.content is content and event == EVENT.model_copy(update={"content": content})
    assert EVENT.text == "hello" and copy.deepcopy(event) == event
    assert lazy_copy(Event(author="guide")).content is None


def test_an_event_of_a_subclass_is_lent_as_a_whole_copy():
    class Noted(Event):
        note: str = ""

    event = Noted(author="guide", note="mind the gap", actions=EventActions(state_delta={"k": [1]}))
    copied = lazy_copy(event)
    copied.actions.state_delta["k"].append(2)

    assert type(copied) is Noted and copied.note == "mind the gap"
    assert event.actions.state_delta == {"k": [1]}


def test_what_a_lent_event_does_is_copied_also_where_it_was_not_given_but_put_in():
    event = Event(author="guide")
    event.actions.state_delta["k"] = [1]

    lazy_copy(event).actions.state_delta["k"].append(2)

    assert event.actions.state_delta == lazy_copy(event).actions.state_delta == {"k": [1]}


PLAIN = {
    "id": "e",
    "invocationId": "i",
    "author": "guide",
    "timestamp": 1.5,
    "content": {"role": "model", "parts": [{"text": "a"}, {"text": ""}]},
}


@each(
    "change",
    [
        {},
        {"actions": {}},
        {"actions": {"stateDelta": {"k": [1]}}},
        {"actions": {"stateDelta": {}, "escalate": True}},
        {"actions": {"stateDelta": {"k": 1}, "no such thing": 1}},
        {"branch": "a.b", "modelVersion": "m-1"},
        {"branch": None},
        {"branch": 5},
        {"author": None},
        {"timestamp": 5},
        {"timestamp": "5"},
        {"timestamp": True},
        {"actions": None},
        {"actions": {"stateDelta": None}},
        {"actions": {"stateDelta": [1]}},
        {"usageMetadata": {"totalTokenCount": 3}},
        {"partial": False, "turnComplete": True},
        {"no such field": 1},
        {"message": "b", "content": None},
        {"state": {"k": 1}},
        {"content": {"role": "model", "parts": []}},
        {"content": {"role": None, "parts": [{"text": "a"}]}},
        {"content": {"parts": [{"text": "a"}]}},
        {"content": {"role": "model", "parts": [{"text": None}]}},
        {"content": {"role": "model", "parts": [{"text": "a", "thought": True}]}},
        {"content": {"role": "model", "parts": [{"text": 5}]}},
        {"content": {"role": "model", "parts": None}},
        {"content": [1]},
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "c", "name": "f", "args": {"a": [1.5, None]}}}],
            }
        },
        {
            "content": {
                "role": "model",
                "parts": [{"text": "a"}, {"functionCall": {"id": "c", "name": "f", "args": {}}}],
            }
        },
        {"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": None}}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {"id": 5, "name": "f", "args": {}}}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "partialArgs": []}}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {}, "thoughtSignature": "YQ=="}]}},
        {"content": {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"a": 1}}}]}},
        {"content": {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": [1]}}]}},
        {"content": {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "willContinue": True}}]}},
        {"content": {"role": "user", "parts": [{"noSuchPart": {"id": "c", "name": "f", "response": {}}}]}},
        {"usageMetadata": {}},
        {"usageMetadata": None},
        {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}},
        {"usageMetadata": {"promptTokenCount": 3.0, "totalTokenCount": True}},
        {"usageMetadata": {"promptTokenCount": "3", "noSuchCount": 1}},
        {"usageMetadata": {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]}},
    ],
)
def test_it_is_read_as_pydantic_reads_it_whichever_way_is_taken(change: dict[str, Any]):
    raw = json.dumps(PLAIN | change)
    try:
        want = Event.model_validate_json(raw)
    except ValueError:
        with pytest.raises(StorageError, match=r"a test .* valid event"):
            _ = lazy_event(raw.encode(), "a test").id
        return
    read = lazy_event(raw.encode(), "a test")
    assert read == want and read.model_fields_set == want.model_fields_set
    assert read.model_dump_json() == want.model_dump_json()
    assert read.actions.model_fields_set == want.actions.model_fields_set
    assert {name: type(value) for name, value in vars(read).items()} == {n: type(v) for n, v in vars(want).items()}
    if want.content:
        assert read.content and read.content.model_fields_set == want.content.model_fields_set
        assert [vars(part) for part in read.parts] == [vars(part) for part in want.parts]
        assert [part.model_fields_set for part in read.parts] == [part.model_fields_set for part in want.parts]
    if want.usage_metadata:
        assert read.usage_metadata and read.usage_metadata.model_fields_set == want.usage_metadata.model_fields_set
    assert read.model_copy(deep=True) == want


def test_what_is_set_before_it_is_read_stays():
    event = stored()
    event.author = "other"
    assert (event.author, event.text, type(event)) == ("other", "hello", Event)


def test_threads_that_look_at_once_see_the_same():
    events = [stored() for _ in range(200)]
    start, log = threading.Barrier(4, timeout=30), list[bool]()

    def look() -> None:
        start.wait()
        log.append(all(event.author == "guide" and event.text == "hello" for event in events))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert log == [True] * 4


def test_what_is_no_event_is_told_of_each_time_it_is_looked_at():
    event = lazy_event(b'{"id": 5}', "an event of session 's'")
    for _ in range(2):
        with pytest.raises(StorageError, match=r"session 's' .* valid event: .* valid string"):
            _ = event.author


def test_what_is_set_on_an_event_is_set_on_no_other():
    raw = json.dumps(PLAIN).encode()
    changed, other_event = lazy_event(raw, "a test"), lazy_event(raw, "a test")
    changed.partial = True
    changed.actions.escalate = True
    changed.actions.state_delta["k"] = 1
    assert changed.model_fields_set - other_event.model_fields_set == {"partial"}
    assert changed.actions.model_fields_set == {"escalate"} and other_event.actions.model_fields_set == set()
    assert (other_event.partial, other_event.actions) == (
        None,
        EventActions(),
    ) and other_event == Event.model_validate_json(raw)


def memory_beside_pydantic() -> float:
    """Bytes of a plain event that is read here, for each byte of one that pydantic reads."""
    calls: list[dict[str, Any]] = [
        {"content": {"role": "user", "parts": [{"text": "a"}]}},
        {"content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}]}},
        {"content": {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"a": 1}}}]}},
        {"content": {"role": "model", "parts": [{"text": "b"}]}, "usageMetadata": {"totalTokenCount": 3}},
    ]
    raws = [json.dumps(PLAIN | call).encode() for call in calls]

    def bytes_each(read: Callable[[bytes], Event]) -> float:
        assert all(read(raw).author for raw in raws)  # what is made once for all of them is there
        gc.collect()
        tracemalloc.start()
        try:
            events = [read(raw) for _ in range(250) for raw in raws]
            assert all(event.author for event in events)
            return tracemalloc.get_traced_memory()[0] / len(events)
        finally:
            tracemalloc.stop()

    return bytes_each(lambda raw: lazy_event(raw, "a test")) / bytes_each(Event.model_validate_json)


@pytest.mark.slow
def test_a_plain_event_takes_less_memory_than_what_pydantic_makes_of_it():
    # In a process of its own: how a class lays out its records depends on those that were made before.
    out, errors, _ = script(
        "from tests.events.test_lazy_event import memory_beside_pydantic as m; print(m())", dev=False
    )
    assert out, errors
    assert float(out) < 0.8
