"""State remembers what was written to it, refuses what no JSON holds, and notices what was changed in place."""

import re
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from support.messages import mentions

from adk_nb.errors import ConfigurationError
from adk_nb.sessions import State, StateSchemaError
from adk_nb.sessions.state import apply_delta, storable_delta
from tests.support.late import late

np = late("numpy")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def state(**value: Any) -> tuple[State, dict[str, Any], dict[str, Any]]:
    delta: dict[str, Any] = {}
    return State(value, delta, only_json=True), value, delta


def test_a_write_is_seen_at_once_and_lands_in_the_delta():
    agent, live, delta = state(a=1)

    agent["b"] = 2
    agent.update({"c": 3})
    agent.setdefault("a", 9)
    agent.setdefault("d", 4)

    assert live == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert delta == {"b": 2, "c": 3, "d": 4}


def test_reading_is_a_dicts_and_leaves_no_delta():
    agent, _, delta = state(a=1, b=[2])

    assert agent["a"] == 1 and agent.get("x", "none") == "none" and "a" in agent and "x" not in agent
    assert (
        list(agent) == ["a", "b"] and len(agent) == 2 and dict(agent.items()) == agent.to_dict() == {"a": 1, "b": [2]}
    )
    assert not agent.has_delta() and delta == {}
    with pytest.raises(KeyError):
        agent["x"]


def test_a_deletion_is_marked_and_none_is_a_value():
    agent, live, delta = state(a=1, b=2, c=3)

    del agent["a"]
    assert agent.pop("b") == 2
    assert agent.pop("x", "none") == "none"
    agent["c"] = None

    assert live == {"c": None}
    assert delta == {"a": {"__adk_deleted__": True}, "b": {"__adk_deleted__": True}, "c": None}
    stored = {"a": 1, "b": 2, "c": 3}
    apply_delta(stored, delta)
    assert stored == {"c": None}


def test_a_key_written_after_its_deletion_is_there():
    agent, live, delta = state(a=1)

    del agent["a"]
    agent["a"] = 2

    assert live == {"a": 2} and delta == {"a": 2}


def test_a_list_changed_in_place_is_noticed():
    agent, _, delta = state(items=[1], nested={"deep": [1]}, untouched=[1])

    agent["items"].append(2)
    agent.get("nested")["deep"].append(2)
    assert agent["untouched"] == [1]

    assert agent.has_delta()
    assert delta == {"items": [1, 2], "nested": {"deep": [1, 2]}}


def test_a_second_change_in_place_is_noticed_too():
    agent, _, delta = state(items=[1])
    agent["items"].append(2)
    agent.settle()
    delta.clear()

    agent["items"].append(3)
    agent.settle()

    assert delta == {"items": [1, 2, 3]}


def test_what_was_deleted_after_it_was_read_stays_deleted():
    agent, _, delta = state(items=[1])
    agent["items"].append(2)

    del agent["items"]

    assert agent.has_delta() and delta == {"items": {"__adk_deleted__": True}}


class Thing:
    pass


ENDLESS: list[Any] = []
ENDLESS.append({"again": ENDLESS})


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Thing(), "a Thing"),
        ([1, {"deep": Thing()}], "a Thing"),
        ({Thing()}, "a set"),
        ((1, Thing()), "a tuple"),
        (b"\xff", "a bytes"),
        (iter([1]), "a list_iterator"),
        (float("nan"), "the number nan"),
        ([float("inf")], "the number inf"),
        ({1: "a"}, "a dict … key 1, … not a string"),
        ("half \ud800", "half a character ('\\ud800' at 5)"),
        ({"\udc00": 1}, "half a character ('\\udc00' at 0)"),
        pytest.param(10**5000, "thousands of digits", id="huge"),
        (ENDLESS, "lists and dicts … 100 deep"),
    ],
)
def test_what_is_not_json_is_refused_where_it_is_written(value: Any, name: str):
    agent, live, delta = state()

    with pytest.raises(ConfigurationError) as refused:
        agent["k"] = value

    assert mentions(refused.value, f"state['k'] cannot hold … {name} … JSON; ")
    assert "state['temp:k']" in str(refused.value)
    assert live == {} and delta == {}


def test_what_is_not_json_is_refused_when_it_was_put_into_a_list():
    agent, _, delta = state(items=[1])
    agent["items"].append(Thing())

    with pytest.raises(ConfigurationError, match=r"state\['items'\] cannot hold a Thing"):
        agent.settle()
    assert delta == {}


@pytest.mark.parametrize("key", [1, None, "half \ud800"])
def test_a_key_is_text(key: Any):
    agent, live, delta = state()

    with pytest.raises(ConfigurationError, match=r"\bstr\b"):
        agent[key] = 1
    assert live == {} and delta == {}


def test_a_key_may_be_a_member_of_an_enum_of_texts():
    Key = StrEnum("Key", ["CITY"])
    agent, live, delta = state()

    agent[Key.CITY] = "Oslo"

    assert live == delta == {"city": "Oslo"} and agent["city"] == "Oslo"


def test_temp_holds_anything_and_is_not_kept():
    agent, live, delta = state()
    item = Thing()

    agent["temp:thing"] = [item]
    assert agent["temp:thing"][0] is item
    agent["k"] = 1

    assert live == {"temp:thing": [item], "k": 1}
    assert storable_delta(delta) == {"k": 1}


def test_what_is_committed_is_a_copy():
    own_numbers = [1]
    stored_storable_delta = storable_delta({"items": own_numbers})

    own_numbers.append(2)

    assert stored_storable_delta == {"items": [1]}


def test_what_is_committed_is_json():
    with pytest.raises(ConfigurationError, match=r"state\['user:who'\] cannot hold a Thing"):
        storable_delta({"user:who": Thing()})


def test_a_delta_may_carry_objects_whose_comparison_is_no_truth():
    class Frame:
        def __eq__(self, second: object) -> Any:
            raise ValueError("the truth value of a frame is ambiguous")

    live: dict[str, Any] = {}
    apply_delta(live, {"temp:frame": Frame()})

    assert list(live) == ["temp:frame"]


class Trip(BaseModel):
    days: Annotated[int, Field(ge=1)] = 1
    city: str | None = None
    stops: list[str] = []


def planned(**value: Any) -> tuple[State, dict[str, Any], dict[str, Any]]:
    delta: dict[str, Any] = {}
    return State(value, delta, Trip), value, delta


def test_a_schema_lets_its_fields_be_written_and_what_has_a_prefix():
    agent, live, delta = planned(left_over=1)

    agent.update({"days": 2, "city": None, "stops": ["Oslo"], "app:k": 1, "user:k": 1, "temp:k": Thing()})
    agent["stops"].append("Bergen")
    del agent["left_over"]
    del agent["city"]
    agent.settle()

    assert live["stops"] == delta["stops"] == ["Oslo", "Bergen"]
    assert "left_over" not in live and delta["city"] == {"__adk_deleted__": True}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("day", 1, r"state\['day'\] .* state_schema Trip; did you mean 'days'\?"),
        ("colour", 1, r"state_schema Trip; .*fields are: days, city, stops"),
        ("days", "many", r"state\['days'\] cannot hold the str 'many': state_schema Trip has int \(state\['days'\]: "),
        ("days", 0, r"cannot hold the int 0: .* \(state\['days'\]: Input should be greater than or equal to 1\)"),
        ("city", 5, r"cannot hold the int 5: state_schema Trip has str \| None \("),
        ("stops", ["a", 2], r"has list\[str\] \(state\['stops'\]\[1\]: Input should be a valid string\)"),
    ],
)
def test_a_schema_refuses_other_keys_and_other_types(key: str, value: Any, message: str):
    agent, live, delta = planned()

    with pytest.raises(StateSchemaError, match=message) as refused:
        agent[key] = value

    assert isinstance(refused.value, TypeError)
    assert live == {} and delta == {}


def test_a_schema_refuses_what_was_put_into_a_list():
    agent, _, delta = planned(stops=["Oslo"])
    agent["stops"].append(5)

    with pytest.raises(StateSchemaError, match=r"state\['stops'\]\[1\]: Input should be a valid string"):
        agent.settle()
    assert delta == {}


@given(st.dictionaries(st.text(), JSON, max_size=4), st.dictionaries(st.text(), JSON, max_size=4))
def test_the_delta_turns_the_state_before_into_the_state_after(before: dict[str, Any], writes: dict[str, Any]):
    live, delta = dict(before), {}
    state = State(live, delta)

    for key in list(before)[::2]:
        del state[key]
    state.update(writes)

    replayed = dict(before)
    apply_delta(replayed, delta)
    assert replayed == live


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda: np.int64(3), "as tolist() gives it"),
        (lambda: np.arange(3), "as tolist() gives it"),
    ],
)
def test_arrays_are_refused_with_the_way_to_store_them(value: Any, kind: str):
    with pytest.raises(ConfigurationError, match=f"list or dict, {re.escape(kind)}, or keep"):
        storable_delta({"k": value()})
