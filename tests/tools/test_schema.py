"""What a model is told of a function: its parameters, their types, and what the docstring says of them."""

import functools
import logging
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.tools import FunctionTool, ToolContext, tool
from tests.support.each import each

LOCK = threading.Lock()


def schema(func: Callable[..., Any]) -> dict[str, Any]:
    declaration = FunctionTool(func).declaration
    assert declaration is not None
    return declaration.parameters_json_schema or {}


def properties(func: Callable[..., Any]) -> dict[str, Any]:
    return schema(func)["properties"]


class Color(Enum):
    RED = "red"
    GREEN = "green"


COLOR = {"enum": ["red", "green"], "title": "Color", "type": "string"}


class Place(BaseModel):
    name: str
    height: int | None = Field(default=None, description="metres")


@dataclass
class Size:
    width: int
    height: int = 1


class Row(TypedDict):
    key: str
    value: float


def test_a_signature_becomes_an_object_with_its_required_parameters():
    def big(a: str, b: int, c: float, d: bool, e: list[str], f: dict[str, int], g: Any, h: str = "x") -> dict:
        """Short."""

    assert schema(big) == {
        "type": "object",
        "title": "bigParams",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer"},
            "c": {"type": "number"},
            "d": {"type": "boolean"},
            "e": {"type": "array", "items": {"type": "string"}},
            "f": {"type": "object", "additionalProperties": {"type": "integer"}},
            "g": {},
            "h": {"type": "string", "default": "x"},
        },
        "required": ["a", "b", "c", "d", "e", "f", "g"],
    }


def test_no_parameters_no_schema():
    def nothing() -> None:
        """Does nothing."""

    declaration = FunctionTool(nothing).declaration

    assert (declaration.name, declaration.description) == ("nothing", "Does nothing.")
    assert declaration.parameters_json_schema is None


@each(
    "hint, told",
    [
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["x", "y"], {"enum": ["x", "y"], "type": "string"}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (
            Annotated[int, Field(description="how many", ge=1)],
            {"type": "integer", "description": "how many", "minimum": 1},
        ),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Annotated[int, Field(alias="other")], {"type": "integer"}),
    ],
)
def test_types_in_json_schema(hint: Any, told: dict[str, Any]):
    def f(x): ...

    f.__annotations__["x"] = hint

    assert properties(f) == {"x": told}


@pytest.mark.parametrize("kind", [Color, Place, Size, Row])
def test_enums_models_dataclasses_and_typed_dicts_are_told_by_reference(kind: Any):
    def f(x, many): ...

    f.__annotations__.update(x=kind, many=list[kind])
    told = schema(f)

    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    assert told["properties"] == {"x": reference, "many": {"type": "array", "items": reference}}
    assert told["$defs"][kind.__name__]["type"] in ("object", "string")


def test_an_enum_is_told_by_its_values_and_a_model_with_its_descriptions():
    def f(color: Color, place: Place): ...

    told = schema(f)["$defs"]

    assert told["Color"]["enum"] == ["red", "green"]
    assert told["Place"]["properties"]["height"]["description"] == "metres"
    assert told["Place"]["required"] == ["name"]


GOOGLE = """Look a city up.

    Args:
        city: Its name,
            in English.
        days (int): How many days.
    """
NUMPY = """Look a city up.

    Parameters
    ----------
    city : str
        Its name,
        in English.
    days : int
        How many days.
    """
SPHINX = """Look a city up.

    :param city: Its name,
        in English.
    :param days: How many days.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_docstring_describes_the_parameters(docstring: str):
    def look_up(city: str, days: int = 1): ...

    look_up.__doc__ = docstring

    told = properties(look_up)
    assert told["city"]["description"] == "Its name, in English."
    assert told["days"]["description"] == "How many days."
    assert FunctionTool(look_up).description.startswith("Look a city up.")


@pytest.mark.parametrize(
    "docstring", ["", "Args:", "Args:\n    :", ":param", "Parameters\n---", "\x00", "%s {x} Args: x"]
)
def test_an_odd_docstring_is_no_reason_to_fail(docstring: str):
    def f(x: int): ...

    f.__doc__ = docstring

    assert properties(f)["x"]["type"] == "integer"


def test_a_description_on_the_parameter_stands_above_the_docstring():
    def f(x: Annotated[int, Field(description="here")], y: int = Field(2, description="there", le=9)):
        """F.

        Args:
            x: elsewhere
            y: elsewhere
        """

    assert properties(f) == {
        "x": {"type": "integer", "description": "here"},
        "y": {"type": "integer", "description": "there", "default": 2, "maximum": 9},
    }


def test_defaults_are_declared_where_json_can_hold_them():
    def f(a: int = 3, b: list = [], c: Any = LOCK, d: float = math.nan, e: Color = Color.RED, g: float = math.inf):  # noqa: B006
        ...

    told = properties(f)

    assert told["a"]["default"] == 3 and told["b"]["default"] == []
    assert told["e"]["default"] == "red"
    assert [name for name in told if "default" not in told[name]] == ["c", "d", "g"]
    assert "required" not in schema(f)


def test_a_default_of_none_may_be_sent_too():
    def f(x: str = None): ...  # noqa: RUF013

    assert properties(f) == {"x": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}
    assert FunctionTool(f).check({"x": None}) is None


def test_args_and_kwargs_are_not_offered():
    def f(x: int, *args: int, flag: bool = False, **kwargs: int): ...

    assert list(properties(f)) == ["x", "flag"]


def test_a_function_that_takes_any_argument_is_declared_as_an_open_object():
    def f(x: int, **kwargs: Any): ...

    def g(**kwargs: int): ...

    def h(x: int): ...

    assert schema(f)["additionalProperties"] is True
    assert schema(g)["additionalProperties"] == {"type": "integer"}
    assert (schema(g)["type"], schema(g)["properties"]) == ("object", {})
    assert "additionalProperties" not in schema(h)


@each("name", ["model_config", "model_fields", "schema", "copy", "json", "dict", "self", "cls", "p_x", "_x"])
def test_any_parameter_name_works(name: str):
    made: dict[str, Any] = {}
    exec(f"def f({name}: int) -> int: return {name}", made)

    assert list(properties(made["f"])) == [name]
    assert FunctionTool(made["f"]).check({name: 1}) is None
    assert FunctionTool(made["f"]).check({}) is not None


def test_a_partial_offers_what_it_left_open():
    def pay(account: str, amount: int, currency: str = "EUR", conn: threading.Lock = LOCK):
        """Pay.

        Args:
            amount: cents
        """

    told = FunctionTool(functools.partial(pay, "mine", currency="NOK", conn=LOCK))

    assert told.name == "pay" and told.description.startswith("Pay.")
    assert told.declaration.parameters_json_schema["properties"] == {
        "amount": {"type": "integer", "description": "cents"}
    }


def test_bound_methods_and_callables_are_tools():
    class Shop:
        """Sells."""

        def price(self, item: str) -> int:
            """Price of an item."""
            return 1

        def __call__(self, item: str) -> int:
            """Sell.

            Args:
                item: what
            """
            return 2

    method, callable_ = FunctionTool(Shop().price), FunctionTool(Shop())

    assert (method.name, method.description) == ("price", "Price of an item.")
    assert method.declaration.parameters_json_schema["properties"] == {"item": {"type": "string"}}
    assert (callable_.name, callable_.description) == ("Shop", "Sells.")
    assert callable_.declaration.parameters_json_schema["properties"] == {
        "item": {"type": "string", "description": "what"}
    }


@each(
    "hint, told",
    [
        (int, {"type": "integer"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (list[Color], {"type": "array", "items": {"$ref": "#/$defs/Color"}, "$defs": {"Color": COLOR}}),
        (None, None),
        (Any, None),
        ("Nowhere", None),
        (threading.Lock, None),
        (types.Part, None),
    ],
)
def test_what_a_function_returns_is_told_where_it_is_json(hint: Any, told: dict[str, Any] | None):
    def f(x: int): ...

    f.__annotations__["return"] = hint

    assert FunctionTool(f).declaration.response_json_schema == told


def test_a_tool_that_yields_nothing_is_reported():
    def f(x: int) -> Iterator[int]:
        yield x

    assert FunctionTool(f).declaration.response_json_schema is None


def test_a_class_is_a_tool_by_what_its_instances_are_made_of():
    class Order:
        """An order."""

        def __init__(self, item: str, count: int = 1) -> None: ...

    assert properties(Order) == {"item": {"type": "string"}, "count": {"type": "integer", "default": 1}}
    assert FunctionTool(Order).name == "Order"


def test_unknown_keys_are_no_part_of_dataclasses_and_typed_dicts():
    def f(size: Size, row: Row): ...

    assert "additionalProperties" not in str(schema(f))


def test_annotations_may_be_text():
    def f(x: "int", place: "Place", ctx: "ToolContext"): ...

    assert schema(f)["properties"] == {"x": {"type": "integer"}, "place": {"$ref": "#/$defs/Place"}}


def test_a_type_that_cannot_be_resolved_leaves_the_others_told(caplog: pytest.LogCaptureFixture):
    def f(x: "Nowhere", y: "int", ctx: "Optional[ToolContext]" = None): ...  # noqa: F821, UP045

    assert properties(f) == {"x": {}, "y": {"type": "integer"}}
    assert [record.getMessage() for record in caplog.records] == [
        "tool 'f': the type of x cannot be resolved, so the model gets no schema for it"
    ]


@pytest.mark.parametrize(
    "hint", [ToolContext, int | ToolContext, ToolContext | None, "ToolContext", "adk.ToolContext | None"], ids=str
)
def test_the_context_parameter_is_found_by_its_annotation(hint: Any):
    def f(x: int, ctx=None): ...

    f.__annotations__["ctx"] = hint

    assert list(properties(f)) == ["x"]


def test_the_context_parameter_is_found_by_its_name():
    def f(tool_context, x: int): ...

    assert list(properties(f)) == ["x"]


def test_a_tool_made_on_purpose_says_its_types():
    with pytest.raises(ConfigurationError, match=r"tool 'add': parameter 'x' has no type.*write `x: str`"):

        @tool
        def add(x, y: int): ...


def test_elsewhere_a_missing_type_is_one_warning(caplog: pytest.LogCaptureFixture):
    def add(x, y): ...

    with caplog.at_level(logging.WARNING):
        assert properties(add) == {"x": {}, "y": {}}
    assert len(caplog.records) == 1 and "x, y" in caplog.text


@pytest.mark.parametrize("hint", [threading.Lock, Callable[[int], int], type(LOCK), object()])
def test_a_type_that_json_cannot_fill_is_refused_when_the_tool_is_made(hint: Any):
    def f(first: int, x: Any, last: str): ...

    f.__annotations__["x"] = hint

    with pytest.raises(ConfigurationError, match=r"tool 'f': parameter 'x' .*JSON") as refused:
        FunctionTool(f)
    assert "arbitrary_types_allowed" not in str(refused.value), "an option that a tool does not have"


def test_what_has_no_name_or_no_signature_is_refused():
    with pytest.raises(ConfigurationError, match="no name"):
        FunctionTool(lambda x: x)
    with pytest.raises(ConfigurationError, match=r"'max'.*no signature; .* function"):
        FunctionTool(max)


def test_names_that_start_with_adk_are_reserved():
    def adk_request_confirmation(x: int): ...

    with pytest.raises(ConfigurationError, match="reserved; rename it"):
        FunctionTool(adk_request_confirmation)
    with pytest.raises(ConfigurationError, match="reserved; rename it"):
        tool(name="adk_x")(test_no_parameters_no_schema)
