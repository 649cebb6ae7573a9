"""Events that are parsed when they are first looked at."""

import copy
import json
import operator
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.unread import unread
from adk_nb.sessions import Session

EVENT = Event(author="guide", message="hello", actions=EventActions(state_delta={"k": [1]}), output={"a": 1})


def stored() -> Event:
    return unread(EVENT.model_dump_json(by_alias=True, exclude_none=True).encode(), "a test")


@pytest.mark.parametrize(
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
    ],
)
def test_an_unread_event_is_as_good_as_the_one_that_was_written(look: Callable[[Event], Any]):
    assert look(stored())


PLAIN = {
    "id": "e",
    "invocationId": "i",
    "author": "guide",
    "timestamp": 1.5,
    "content": {"role": "model", "parts": [{"text": "a"}, {"text": ""}]},
}


@pytest.mark.parametrize(
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
    ],
    ids=json.dumps,
)
def test_it_is_read_as_pydantic_reads_it_whichever_way_is_taken(change: dict[str, Any]):
    raw = json.dumps(PLAIN | change)
    try:
        want = Event.model_validate_json(raw)
    except ValueError:
        with pytest.raises(StorageError, match="a test holds what is no event"):
            _ = unread(raw.encode(), "a test").id
        return
    read = unread(raw.encode(), "a test")
    assert read == want and read.model_fields_set == want.model_fields_set
    assert read.model_dump_json() == want.model_dump_json()
    assert read.actions.model_fields_set == want.actions.model_fields_set
    assert {name: type(value) for name, value in vars(read).items()} == {n: type(v) for n, v in vars(want).items()}
    if want.content:
        assert read.content and read.content.model_fields_set == want.content.model_fields_set
    assert read.model_copy(deep=True) == want


def test_what_is_set_before_it_is_read_stays():
    event = stored()
    event.author = "other"
    assert (event.author, event.text, type(event)) == ("other", "hello", Event)


def test_threads_that_look_at_once_see_the_same():
    events = [stored() for _ in range(200)]
    start, seen = threading.Barrier(4, timeout=30), list[bool]()

    def look() -> None:
        start.wait()
        seen.append(all(event.author == "guide" and event.text == "hello" for event in events))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == [True] * 4


def test_what_is_no_event_is_told_of_each_time_it_is_looked_at():
    event = unread(b'{"id": 5}', "an event of session 's'")
    for _ in range(2):
        with pytest.raises(StorageError, match=r"an event of session 's' holds what is no event: .* valid string"):
            _ = event.author
