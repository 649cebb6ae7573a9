"""What a tool may return: anything. It reaches the model and the session as one form of JSON, and ends no run."""

import asyncio
import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import io
import itertools
import json
import logging
import math
import pathlib
import threading
import time
import types
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from IPython.display import HTML, Image
from pydantic import BaseModel, ConfigDict, RootModel, SecretStr

from adk_nb import types as types_door
from adk_nb.agents import LlmAgent
from adk_nb.events import Event
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runners import InMemoryRunner
from adk_nb.tools.tool_result import MAX_BYTES, MAX_DEPTH, MAX_ITEMS, as_response
from tests.support.each import each
from tests.support.late import late
from tests.support.talk import Talk, guide

np, pd = late("numpy"), late("pandas")


def told(make: Callable[[], Any], is_async: bool = False) -> dict[str, Any]:
    """What the model hears of a tool that returns what `make` makes: the same live and after a reload."""

    def get() -> Any:
        return make()

    async def aget() -> Any:
        return make()

    tool = aget if is_async else get
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call(tool.__name__), "done"), tools=[tool]))
    events = talk.say()
    assert talk.error is None
    assert events[-1].text == "done"
    [live] = events[1].get_function_responses()
    again = Event.model_validate_json(events[1].model_dump_json(by_alias=True))
    assert again.get_function_responses()[0].response == live.response
    assert json.loads(json.dumps(live.response, allow_nan=False)) == live.response
    return live.response or {}


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Place(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    seen: dt.datetime | None = None
    more: Any = None


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = None


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.slow
@each(
    "value, response",
    lambda: [
        ({"a": 1}, {"a": 1}),
        ({}, {}),
        (None, {"result": None}),
        ("", {"result": ""}),
        ([1, 2], {"result": [1, 2]}),
        (True, {"result": True}),
        ({1: "a", None: "b", (1, 2): "c", Color.RED: "d"}, {"1": "a", "None": "b", "[1, 2]": "c", "red": "d"}),
        ({1: "a", "1": "b", 1.5: "c"}, {"1": "a", "1 (str)": "b", "1.5": "c"}),
        ((1, 2), {"result": [1, 2]}),
        (Pair(1, 2), {"result": [1, 2]}),
        ({3, 1, 2}, {"result": [1, 2, 3]}),
        (frozenset("ba"), {"result": ["a", "b"]}),
        (collections.deque([1]), {"result": [1]}),
        ({"a": 1}.keys(), {"result": ["a"]}),
        ({"a": 1}.values(), {"result": [1]}),
        ({"a": 1}.items(), {"result": [["a", 1]]}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        (range(3), {"result": [0, 1, 2]}),
        (b"\xff\x00", {"result": "/wA="}),
        (bytearray(b"ab"), {"result": "YWI="}),
        (memoryview(b"ab"), {"result": "YWI="}),
        (Color.RED, {"result": "red"}),
        (Level.LOW, {"result": 1}),
        (dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), {"result": "2024-02-29T12:00:00+00:00"}),
        (dt.datetime(9999, 12, 31), {"result": "9999-12-31T00:00:00"}),
        (dt.date(2024, 2, 29), {"result": "2024-02-29"}),
        (dt.time(1, 2), {"result": "01:02:00"}),
        (dt.timedelta(minutes=1), {"result": 60.0}),
        (uuid.UUID(int=1), {"result": "00000000-0000-0000-0000-000000000001"}),
        (pathlib.PurePosixPath("a/b"), {"result": "a/b"}),
        (decimal.Decimal("1.10"), {"result": "1.10"}),
        (fractions.Fraction(1, 3), {"result": "1/3"}),
        (
            Place(name="Oslo", seen=dt.datetime(2024, 1, 1)),
            {"name": "Oslo", "seen": "2024-01-01T00:00:00", "more": None},
        ),
        ([Place(name="Oslo")], {"result": [{"name": "Oslo", "seen": None, "more": None}]}),
        ({"at": Point(1, Place(name="x"))}, {"at": {"x": 1, "y": {"name": "x", "seen": None, "more": None}}}),
        (Place.model_construct(name=3, seen="never"), {"name": 3, "seen": "never", "more": None}),
        (RootModel[list[int]]([1]), {"result": [1]}),
        (SecretStr("hunter2"), {"result": "**********"}),
        ({"key": SecretStr("hunter2")}, {"key": "**********"}),
        (Place(name="x", more=SecretStr("hunter2")), {"name": "x", "seen": None, "more": "**********"}),
        (float("nan"), {"result": "NaN"}),
        ([math.inf, -math.inf], {"result": ["Infinity", "-Infinity"]}),
        (-0.0, {"result": -0.0}),
        (1e-400, {"result": 0.0}),
        (2**53 + 1, {"result": 2**53 + 1}),
        (2**64, {"result": 2**64}),
        (10**400, {"result": 10**400}),
        ("a\x00b \ufeff\u202e\u2066 \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301 \u00e9 \uff47 \u0130", None),
        ("</script> ]]> {{x}} {state_key} %s '; DROP TABLE \x1b[2J \r", None),
        ("\ud800 and \udfff", {"result": "? and ?"}),
        ({"\ud800": ["\udfff"]}, {"?": ["?"]}),
        (np.int64(3), {"result": 3}),
        (np.float32(1.5), {"result": 1.5}),
        (np.float64("nan"), {"result": "NaN"}),
        (np.bool_(True), {"result": True}),
        (np.str_("x"), {"result": "x"}),
        (np.longdouble(1.5), {"result": 1.5}),
        (np.datetime64("2024-01-01T00:00:00.123456789"), {"result": "2024-01-01T00:00:00.123456"}),
        (np.datetime64("NaT", "s"), {"result": None}),
        (np.timedelta64(1, "s"), {"result": 1.0}),
        (np.array(3), {"result": 3}),
        (np.array([[1, 2], [3, 4]]), {"result": [[1, 2], [3, 4]]}),
        (np.array([1.0, math.nan]), {"result": [1.0, "NaN"]}),
        (np.array([]), {"result": []}),
        (np.array(["2024-01-01"], "datetime64[ns]"), {"result": ["2024-01-01T00:00:00"]}),
        (np.array([{"a": {1}}], dtype=object), {"result": [{"a": [1]}]}),
        (np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]), {"result": [[1, 2.0]]}),
        (np.ma.array([1, 2], mask=[0, 1]), {"result": [1, None]}),
        (pd.NA, {"result": None}),
        (pd.NaT, {"result": None}),
        (pd.Timestamp("2024-01-01"), {"result": "2024-01-01T00:00:00"}),
        (pd.Timedelta("1h"), {"result": 3600.0}),
        (pd.Series([1, 2]), {"result": [1, 2]}),
        (pd.Series([1], index=["Oslo"], name="n"), {"result": [{"index": "Oslo", "n": 1}]}),
        (pd.Index(["a"]), {"result": ["a"]}),
        (pd.Categorical(["a", "b"]), {"result": ["a", "b"]}),
        (pd.DataFrame(), {"result": []}),
        (pd.DataFrame(index=range(2)), {"result": [{}, {}]}),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), {"result": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}),
        (pd.DataFrame({0: [math.nan]}), {"result": [{"0": "NaN"}]}),
        (pd.DataFrame({"at": [pd.NaT, pd.Timestamp(0)]}), {"result": [{"at": None}, {"at": "1970-01-01T00:00:00"}]}),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {"row_count": 1, "columns": ["a", "a"], "rows": [[1, 2]]}),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), {"row_count": 1, "columns": [1, "1"], "rows": [[1, 2]]}),
        (pd.DataFrame({"c": ["a", "a"]}).value_counts(), {"result": [{"c": "a", "count": 2}]}),
        (
            pd.DataFrame({"k": ["a", "b"], "n": [1, 2]}).groupby("k").sum(),
            {"result": [{"k": "a", "n": 1}, {"k": "b", "n": 2}]},
        ),
        (pd.DataFrame({"n": [5]}, index=[7]), {"result": [{"n": 5}]}),
    ],
)
@each("is_async", [False, True])
def test_a_result_becomes_json(value: Any, response: dict[str, Any] | None, is_async: bool):
    assert told(lambda: value, is_async) == ({"result": value} if response is None else response)


class Raises:
    """Raises from every method that a reader might use."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def _no(self, *_: Any) -> Any:
        raise RuntimeError("no")

    __repr__ = __str__ = __eq__ = __bool__ = __iter__ = __len__ = __hash__ = __getitem__ = _no  # type: ignore[assignment]


def lying(kind: type, **methods: Any) -> Any:
    """An object that says its class is `kind`."""
    return type("Liar", (), {"__class__": property(lambda _: kind), **methods})()


class RaisingClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")


class EndlessList(list[int]):
    def __iter__(self) -> Iterator[int]:
        return itertools.count()

    def __len__(self) -> int:
        raise RuntimeError("no length")


class EndlessMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return (str(number) for number in itertools.count())

    def __len__(self) -> int:
        return 2


class SelfEnum(enum.Enum):
    X = object()


class HugeRepr:
    def __repr__(self) -> str:
        return "x" * 10_000_000


class OddRepr:
    def __repr__(self) -> str:
        return "\ud800"


class StrLiar(str):
    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    isascii = __len__ = __str__ = encode


def cyclic_list() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def cyclic_dict() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["me"] = {"again": made}
    return made


def cyclic_model() -> Place:
    made = Place(name="x")
    made.more = [made]
    return made


def deep(depth: int, wrap: Callable[[Any], Any] = lambda inner: [inner], made: Any = "bottom") -> Any:
    for _ in range(depth):
        made = wrap(made)
    return made


async def coroutine() -> None: ...


async def agen():
    yield 1


def raising_items() -> Iterator[int]:
    yield 1
    raise ValueError("half way")


def array_of(items: list[Any]) -> Any:
    made = np.empty(len(items), dtype=object)
    for at, item in enumerate(items):
        made[at] = item
    return made


HOSTILE: dict[str, Callable[[], Any]] = {
    "object": object,
    "class": lambda: Place,
    "function": lambda: deep,
    "builtin": lambda: print,
    "module": lambda: math,
    "exception": lambda: ValueError("x"),
    "exception class": lambda: KeyError,
    "lock": threading.Lock,
    "open file": lambda: io.TextIOWrapper(io.BytesIO(b"x")),
    "display object": lambda: HTML("<b>x</b>"),
    "picture that is nowhere": lambda: Image(url="http://127.0.0.1/x.png"),
    "weak reference": lambda: weakref.ref(Place),
    "complex": lambda: 1j,
    "numpy complex": lambda: np.complex128(1j),
    "ellipsis": lambda: ...,
    "dtype": lambda: np.dtype(int),
    "long number": lambda: 10**5_000,
    "raises": Raises,
    "raises in a list": lambda: [Raises(), 1],
    "raises as a key": lambda: {type("Key", (), {"__repr__": Raises._no})(): 1},
    "raising class": RaisingClass,
    "claims to be str": lambda: lying(str),
    "claims to be int": lambda: lying(int),
    "claims to be bool": lambda: lying(bool),
    "claims to be float": lambda: lying(float),
    "claims to be dict": lambda: lying(dict),
    "claims to be list": lambda: lying(list),
    "claims to be a model": lambda: lying(BaseModel, model_dump=Raises._no),
    "claims to be bytes": lambda: lying(bytes),
    "claims to be Enum": lambda: lying(enum.Enum),
    "claims to be a dataclass": lambda: type("D", (), {"__dataclass_fields__": 3})(),
    "claims to be awaitable": lambda: lying(types.CoroutineType),
    "claims to be a frame": lambda: type("DataFrame", (), {"__module__": "pandas"})(),
    "claims to be an array": lambda: type("ndarray", (), {"__module__": "numpy"})(),
    "odd module": lambda: type("Odd", (), {"__module__": 3})(),
    "a long name of its class": lambda: type("x" * 100_000, (), {})(),
    "enum of an object": lambda: SelfEnum.X,
    "huge repr": HugeRepr,
    "odd repr": OddRepr,
    "lying text": lambda: {"x": StrLiar("a")},
    "endless list": EndlessList,
    "endless mapping": EndlessMapping,
    "cyclic list": cyclic_list,
    "cyclic dict": cyclic_dict,
    "cyclic model": cyclic_model,
    "deep": lambda: deep(2_000),
    "deep dict": lambda: deep(2_000, lambda inner: {"x": inner}),
    "deep tuple": lambda: deep(20_000, lambda inner: (inner,)),
    "deep dataclass": lambda: deep(2_000, Point),
    "doubled a hundred times": lambda: deep(100, lambda inner: [inner, inner]),
    "doubled dataclass": lambda: deep(40, lambda inner: Point(inner, inner), "bottom" * 100),
    "model with an object": lambda: Place(name="x", more=object()),
    "model with surrogates": lambda: Place.model_construct(name="\ud800"),
    "model with a wrong value": lambda: Place.model_construct(name=object(), seen="never"),
    "coroutine in a list": lambda: [coroutine()],
    "async generator in a list": lambda: [agen()],
    "generator in a list": lambda: [0, (item for item in range(3))],
    "period": lambda: pd.Period("2024-01"),
    "frame of frames": lambda: pd.DataFrame({"a": [pd.DataFrame({"b": [1]})]}),
    "frame of objects": lambda: pd.DataFrame({"a": [object(), Raises()]}),
    "frame with levels": lambda: pd.DataFrame({("a", 1): [1], ("b", 2): [2]}),
    "frame with 5,000 columns": lambda: pd.DataFrame(np.zeros((2, 5_000))),
    "array of objects": lambda: array_of([Raises(), object()]),
}


@pytest.mark.slow
@each("make", HOSTILE.values())
def test_no_result_ends_the_run(make: Callable[[], Any]):
    response = told(make)

    assert len(json.dumps(response)) <= MAX_BYTES * 2  # json.dumps writes blanks and \u escapes
    assert "error" not in response  # it is the result, in words; the tool did not fail


@pytest.mark.parametrize(
    ("name", "response"),
    [
        ("object", {"unserializable": "object", "repr": "<object object>"}),
        ("exception", {"unserializable": "ValueError", "repr": "ValueError('x')"}),
        ("raises", {"unserializable": "Raises", "repr": "<Raises, whose repr raises RuntimeError>"}),
        ("long number", {"unserializable": "int", "repr": "an integer of 16610 bits"}),
        ("cyclic list", {"result": [{"unserializable": "list", "repr": "<list, nested in itself>"}]}),
        ("huge repr", {"unserializable": "HugeRepr", "repr": "x" * 500}),
        ("lying text", {"x": "a"}),
    ],
)
def test_what_has_no_json_form_is_named_and_its_repr_bounded(name: str, response: dict[str, Any]):
    assert told(HOSTILE[name]) == response


def test_what_lies_too_deep_is_named():
    response = told(HOSTILE["deep"])["result"]
    for _ in range(MAX_DEPTH - 1):
        [response] = response

    assert response == [{"unserializable": "list", "repr": "<list, nested too deeply>"}]


def test_each_result_logs_one_warning(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        told(lambda: [object()] * 100)

    assert [record.getMessage() for record in caplog.records] == [
        "tool 'get' returned a value without JSON form: object (no JSON form); the model gets its repr"
    ]


def test_an_open_file_stays_open(tmp_path: pathlib.Path):
    with (tmp_path / "x").open("w") as file:
        response = told(lambda: file)
        assert response["unserializable"] == "TextIOWrapper" and not file.closed


def test_a_secret_is_not_revealed_by_what_carries_it():
    assert "hunter2" not in str(told(lambda: [SecretStr("hunter2"), Point(SecretStr("hunter2"))]))


@pytest.mark.parametrize("kind", ["generator", "async generator", "map", "zip"])
def test_what_is_made_item_by_item_becomes_a_list(kind: str):
    async def items():
        for item in range(3):
            yield item

    makers: dict[str, Callable[[], Any]] = {
        "generator": lambda: (item for item in range(3)),
        "async generator": items,
        "map": lambda: map(int, "012"),
        "zip": lambda: (item for item, _ in zip(range(3), range(3), strict=True)),
    }

    assert told(makers[kind]) == {"result": [0, 1, 2]}


@pytest.mark.parametrize("kind", ["generator", "async generator", "of None"])
def test_an_endless_generator_is_stopped_and_closed(kind: str):
    closed: list[str] = []

    def endless():
        try:
            yield from itertools.repeat(None) if kind == "of None" else itertools.count()
        finally:
            closed.append(kind)

    async def aendless():
        try:
            for item in itertools.count():
                yield item
        finally:
            closed.append(kind)

    items = told(aendless if kind == "async generator" else endless)["result"]

    assert len(items) == MAX_ITEMS + 1 and items[-1] == f"... cut after {MAX_ITEMS} items"
    assert closed == [kind]


def test_a_generator_of_long_texts_is_cut_before_they_are_all_made():
    made: list[int] = []

    def texts():
        for number in range(1_000):
            made.append(number)
            yield "x" * 1_000_000

    assert "excerpt" in told(texts)
    assert len(made) < 10


def test_a_generator_that_raises_is_a_tool_that_raises():
    assert told(raising_items) == {"error": "ValueError: half way"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda: "x" * 10_000_000, "more than 10000002"),
        (lambda: {"text": "x" * MAX_BYTES}, str(MAX_BYTES + 11)),
        (lambda: b"x" * 10_000_000, "more than 13333338 bytes"),
        (lambda: ["x" * 1_000_000] * 1_000, "more than "),
        (lambda: list(range(1_000_000)), "more than "),
        (lambda: {str(number): number for number in range(1_000_000)}, "more than "),
        (lambda: "\u00e9" * 200_000, "400013"),
    ],
)
def test_a_result_that_is_too_large_is_cut_with_one_line(make: Any, size: str, caplog: pytest.LogCaptureFixture):
    value = make()
    with caplog.at_level(logging.WARNING):
        response = told(lambda: value)

    assert response["note"].startswith(f"the result was {size}")
    assert 1_900 < len(response["excerpt"].encode()) <= 2_000
    assert [record.getMessage().startswith("tool 'get' returned") for record in caplog.records] == [True]


def test_a_result_just_under_the_limit_is_whole():
    text = "x" * (MAX_BYTES - len('{"result":""}'))

    assert told(lambda: text) == {"result": text}
    assert "excerpt" in told(lambda: text + "x")


def test_ten_times_as_much_takes_no_more_than_in_proportion():
    def seconds(count: int) -> float:
        text, items = "x" * (count * 100), list(range(count))
        start = time.process_time()
        as_response(text, "t")
        as_response(items, "t")
        as_response([text] * 100, "t")
        return time.process_time() - start

    seconds(10)
    assert seconds(1_000_000) <= 30 * max(seconds(100_000), 0.01)


def test_a_large_frame_is_told_by_its_beginning_and_its_count():
    frame = pd.DataFrame({"x": range(1_000_000), "y": 1.5})

    response = told(lambda: frame)

    assert response["row_count"] == 1_000_000 and response["note"] == "the first 5000 of 1000000 rows"
    assert len(response["rows"]) == 5_000 and response["rows"][1] == {"x": 1, "y": 1.5}


def test_a_large_array_is_told_by_its_beginning_and_its_shape():
    assert told(lambda: np.zeros((1_000, 1_000))) == {"shape": [1_000, 1_000], "size": 1_000_000, "first": [0.0] * 100}
    assert told(lambda: pd.Series(range(1_000_000))) == {"size": 1_000_000, "first": list(range(100))}


def test_an_unawaited_coroutine_is_closed_without_a_warning(recwarn: pytest.WarningsRecorder):
    async def twice() -> Any:
        return coroutine()

    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(call("twice"), "done"), tools=[twice]))
    response = talk.say()[1].get_function_responses()[0].response

    assert response == {"unserializable": "coroutine", "repr": "<coroutine object coroutine>"}
    assert not recwarn.list


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**4000, max_value=10**4001)
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=20)  # lone surrogates too
    | st.binary(max_size=10)
    | st.complex_numbers()
    | st.decimals()
    | st.fractions()
    | st.datetimes()
    | st.timedeltas()
    | st.uuids()
    | st.deferred(lambda: st.sampled_from([object(), Color.RED, pd.NA, pd.NaT, np.float32("nan"), print, math, ...]))
    | st.integers(0, 1).map(lambda number: Raises() if number else cyclic_list()),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none() | st.booleans(), inner, max_size=4)
        | st.builds(Point, inner, inner)
        | st.builds(lambda more: Place(name="x", more=more), inner)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: (item for item in items))
        | st.lists(inner, max_size=3).map(array_of)
    ),
    max_leaves=20,
)


@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(VALUES)
def test_any_value_becomes_json_that_reads_back_equal(value: Any):
    response = as_response(value, "t")

    assert json.loads(json.dumps(response, allow_nan=False)) == response
    event = Event(message=_part_of(response))
    again = Event.model_validate_json(event.model_dump_json(by_alias=True))
    assert again.get_function_responses()[0].response == response


@pytest.mark.slow
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.too_slow])
@hypothesis.given(st.lists(VALUES, min_size=1, max_size=3))
def test_any_value_a_tool_returns_is_the_same_live_as_after_a_reload_and_the_run_goes_on(values: list[Any]):
    def give() -> Any:
        """Gives."""
        return values.pop(0)

    talk = Talk(guide([call("give")] * len(values), "Done.", tools=[give]))
    *_, answered, done = talk.say()

    assert talk.error is None and done.text == "Done."
    stored = talk.stored().events[2]
    assert stored == answered == Event.model_validate_json(stored.model_dump_json(by_alias=True, exclude_none=True))
    assert all(one.response is not None for one in answered.get_function_responses())


def _part_of(response: dict[str, Any]) -> Any:
    part = types_door.Part.from_function_response(name="t", response=response)
    return types_door.Content(role="user", parts=[part])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_ctrl_c_is_not_held_up(count: int, is_async: bool):
    def stop() -> None:
        raise KeyboardInterrupt

    async def astop() -> None:
        raise KeyboardInterrupt

    tool = astop if is_async else stop
    model = ScriptedLlm([call(tool.__name__)] * count)
    runner = InMemoryRunner(LlmAgent(name="guide", model=model, tools=[tool]), auto_create_session=True)

    async def run() -> None:
        async for _ in runner.run_async(user_id="u", session_id="s", new_message="hi"):
            pass

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run())
