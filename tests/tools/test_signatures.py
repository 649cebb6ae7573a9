"""Seventy types of a parameter: what a model is told of each, and what the function gets for what a model sends."""

import typing
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypeVar, Union
from uuid import UUID

import pydantic
import typing_extensions
from pydantic import BaseModel, Field, SecretStr

from adk_nb import types
from adk_nb.models.scripted_llm import call
from adk_nb.tools import FunctionTool
from tests.support.each import each
from tests.support.talk import Talk, guide

T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    KM = "km"


class Place(BaseModel):
    """A place on the map."""

    name: str
    height: int = Field(0, description="metres", ge=0)


class Trip(BaseModel):
    start: Place
    stops: list[Place] = []
    by: Color | None = None


class Tree(BaseModel):
    kids: list["Tree"] = []


class Renamed(BaseModel):
    from_: str = Field(alias="from")


class Box(BaseModel, Generic[T]):
    inside: T


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


@dataclass
class Size:
    width: int
    unit: Unit = Unit.KM


@dataclass
class Room:
    size: Size


@pydantic.dataclasses.dataclass
class Strict:
    count: Annotated[int, Field(gt=0)]


class Row(typing.TypedDict):
    key: str
    note: NotRequired[str]


class Loose(typing.TypedDict, total=False):
    row: Row


class NewRow(typing_extensions.TypedDict):
    key: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


def tool_taking(hint: Any, got: list[Any]) -> FunctionTool:
    def take(x):
        got.append(x)

    take.__annotations__["x"] = hint
    return FunctionTool(take)


SIGNATURES: list[tuple[Any, Any, Any, Any, Any]] = [
    (str, {"type": "string"}, {}, "a", "a"),
    (int, {"type": "integer"}, {}, 3.0, 3),
    (float, {"type": "number"}, {}, 3, 3.0),
    (bool, {"type": "boolean"}, {}, True, True),
    (None, {"type": "null"}, {}, None, None),
    (Any, {}, {}, {"a": [1]}, {"a": [1]}),
    (object, {}, {}, [1], [1]),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {}, None, None),  # noqa: UP045
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, {}, 3, 3),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {}, "a", "a"),  # noqa: UP007
    (int | list[int], {"anyOf": [{"type": "integer"}, {"items": {"type": "integer"}, "type": "array"}]}, {}, [1], [1]),
    (bool | str | None, {"anyOf": [{"type": "boolean"}, {"type": "string"}, {"type": "null"}]}, {}, False, False),
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, {}, "b", "b"),
    (Literal[1, "x", None], {"enum": [1, "x", None]}, {}, None, None),
    (Literal[Color.RED], {"const": "red", "type": "string"}, {}, "red", Color.RED),
    (
        Color,
        {"$ref": "#/$defs/Color"},
        {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"}},
        "blue",
        Color.BLUE,
    ),
    (Level, {"$ref": "#/$defs/Level"}, {"Level": {"enum": [1, 2], "title": "Level", "type": "integer"}}, 2, Level.HIGH),
    (Unit, {"$ref": "#/$defs/Unit"}, {"Unit": {"enum": ["km"], "title": "Unit", "type": "string"}}, "km", Unit.KM),
    (
        Color | None,
        {"anyOf": [{"$ref": "#/$defs/Color"}, {"type": "null"}]},
        {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"}},
        "red",
        Color.RED,
    ),
    (
        list[Color],
        {"items": {"$ref": "#/$defs/Color"}, "type": "array"},
        {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"}},
        ["red"],
        [Color.RED],
    ),
    (
        dict[Color, int],
        {"additionalProperties": {"type": "integer"}, "propertyNames": {"$ref": "#/$defs/Color"}, "type": "object"},
        {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"}},
        {"red": 1},
        {Color.RED: 1},
    ),
    (list, {"items": {}, "type": "array"}, {}, [1, "a"], [1, "a"]),
    (list[int], {"items": {"type": "integer"}, "type": "array"}, {}, [1.0, 2], [1, 2]),
    (
        list[list[int]],
        {"items": {"items": {"type": "integer"}, "type": "array"}, "type": "array"},
        {},
        [[1], []],
        [[1], []],
    ),
    (typing.List[str], {"items": {"type": "string"}, "type": "array"}, {}, ["a"], ["a"]),  # noqa: UP006
    (Sequence[int], {"items": {"type": "integer"}, "type": "array"}, {}, "[1]", [1]),
    (deque[int], {"items": {"type": "integer"}, "type": "array"}, {}, [1], deque([1])),
    (tuple, {"items": {}, "type": "array"}, {}, [1, "a"], (1, "a")),
    (
        tuple[int, str],
        {"maxItems": 2, "minItems": 2, "prefixItems": [{"type": "integer"}, {"type": "string"}], "type": "array"},
        {},
        [1, "a"],
        (1, "a"),
    ),
    (tuple[int, ...], {"items": {"type": "integer"}, "type": "array"}, {}, [1, 2], (1, 2)),
    (set[int], {"items": {"type": "integer"}, "type": "array", "uniqueItems": True}, {}, [1, 1], {1}),
    (frozenset[str], {"items": {"type": "string"}, "type": "array", "uniqueItems": True}, {}, ["a"], frozenset({"a"})),
    (dict, {"additionalProperties": True, "type": "object"}, {}, {"a": 1}, {"a": 1}),
    (dict[str, int], {"additionalProperties": {"type": "integer"}, "type": "object"}, {}, '{"a": 1}', {"a": 1}),
    (dict[int, str], {"additionalProperties": {"type": "string"}, "type": "object"}, {}, {"1": "a"}, {1: "a"}),
    (
        Mapping[str, list[int]],
        {"additionalProperties": {"items": {"type": "integer"}, "type": "array"}, "type": "object"},
        {},
        {"a": [1]},
        {"a": [1]},
    ),
    (
        Annotated[int, Field(ge=1, le=5, description="stars")],
        {"description": "stars", "maximum": 5, "minimum": 1, "type": "integer"},
        {},
        5,
        5,
    ),
    (
        Annotated[str, Field(pattern="^a+$", max_length=3)],
        {"maxLength": 3, "pattern": "^a+$", "type": "string"},
        {},
        "aa",
        "aa",
    ),
    (
        Annotated[list[int], Field(min_length=1)],
        {"items": {"type": "integer"}, "minItems": 1, "type": "array"},
        {},
        [1],
        [1],
    ),
    (Annotated[float, "in degrees"], {"description": "in degrees", "type": "number"}, {}, 1, 1.0),
    (
        list[Annotated[int, Field(multiple_of=2)]],
        {"items": {"multipleOf": 2, "type": "integer"}, "type": "array"},
        {},
        [2],
        [2],
    ),
    (
        Annotated[int | None, Field(examples=[1])],
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "examples": [1]},
        {},
        None,
        None,
    ),
    (datetime, {"format": "date-time", "type": "string"}, {}, "2024-02-29T12:00:00", datetime(2024, 2, 29, 12)),
    (date, {"format": "date", "type": "string"}, {}, "2024-02-29", date(2024, 2, 29)),
    (time, {"format": "time", "type": "string"}, {}, "12:30", time(12, 30)),
    (timedelta, {"format": "duration", "type": "string"}, {}, "PT1H", timedelta(hours=1)),
    (
        UUID,
        {"format": "uuid", "type": "string"},
        {},
        "12345678123456781234567812345678",
        UUID(int=0x12345678123456781234567812345678),
    ),
    (Decimal, {"anyOf": [{"type": "number"}, {"type": "string"}]}, {}, "1.10", Decimal("1.10")),
    (PurePosixPath, {"format": "path", "type": "string"}, {}, "a/b", PurePosixPath("a/b")),
    (bytes, {"format": "binary", "type": "string"}, {}, "ab", b"ab"),
    (SecretStr, {"format": "password", "type": "string", "writeOnly": True}, {}, "key", SecretStr("key")),
    (UserId, {"type": "integer"}, {}, 7, 7),
    (T, {}, {}, [1], [1]),
    (
        Place,
        {"$ref": "#/$defs/Place"},
        {
            "Place": {
                "description": "A place on the map.",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"default": 0, "description": "metres", "minimum": 0, "type": "integer"},
                },
                "required": ["name"],
                "title": "Place",
                "type": "object",
            }
        },
        {"name": "Oslo"},
        Place(name="Oslo"),
    ),
    (
        Place | None,
        {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        {
            "Place": {
                "description": "A place on the map.",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"default": 0, "description": "metres", "minimum": 0, "type": "integer"},
                },
                "required": ["name"],
                "title": "Place",
                "type": "object",
            }
        },
        '{"name": "Oslo"}',
        Place(name="Oslo"),
    ),
    (
        list[Place],
        {"items": {"$ref": "#/$defs/Place"}, "type": "array"},
        {
            "Place": {
                "description": "A place on the map.",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"default": 0, "description": "metres", "minimum": 0, "type": "integer"},
                },
                "required": ["name"],
                "title": "Place",
                "type": "object",
            }
        },
        [{"name": "Oslo", "height": 23.0}],
        [Place(name="Oslo", height=23)],
    ),
    (
        dict[str, Place],
        {"additionalProperties": {"$ref": "#/$defs/Place"}, "type": "object"},
        {
            "Place": {
                "description": "A place on the map.",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"default": 0, "description": "metres", "minimum": 0, "type": "integer"},
                },
                "required": ["name"],
                "title": "Place",
                "type": "object",
            }
        },
        {"a": {"name": "Oslo"}},
        {"a": Place(name="Oslo")},
    ),
    (
        Trip,
        {"$ref": "#/$defs/Trip"},
        {
            "Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"},
            "Place": {
                "description": "A place on the map.",
                "properties": {
                    "name": {"type": "string"},
                    "height": {"default": 0, "description": "metres", "minimum": 0, "type": "integer"},
                },
                "required": ["name"],
                "title": "Place",
                "type": "object",
            },
            "Trip": {
                "properties": {
                    "start": {"$ref": "#/$defs/Place"},
                    "stops": {"default": [], "items": {"$ref": "#/$defs/Place"}, "type": "array"},
                    "by": {"anyOf": [{"$ref": "#/$defs/Color"}, {"type": "null"}], "default": None},
                },
                "required": ["start"],
                "title": "Trip",
                "type": "object",
            },
        },
        {"start": {"name": "Oslo"}, "by": "red"},
        Trip(start=Place(name="Oslo"), by=Color.RED),
    ),
    (
        Tree,
        {"$ref": "#/$defs/Tree"},
        {
            "Tree": {
                "properties": {"kids": {"default": [], "items": {"$ref": "#/$defs/Tree"}, "type": "array"}},
                "title": "Tree",
                "type": "object",
            }
        },
        {"kids": [{}]},
        Tree(kids=[Tree()]),
    ),
    (
        Renamed,
        {"$ref": "#/$defs/Renamed"},
        {
            "Renamed": {
                "properties": {"from": {"type": "string"}},
                "required": ["from"],
                "title": "Renamed",
                "type": "object",
            }
        },
        {"from": "a"},
        Renamed(**{"from": "a"}),
    ),
    (
        Box[int],
        {"$ref": "#/$defs/Box_int_"},
        {
            "Box_int_": {
                "properties": {"inside": {"type": "integer"}},
                "required": ["inside"],
                "title": "Box[int]",
                "type": "object",
            }
        },
        {"inside": 1},
        Box[int](inside=1),
    ),
    (
        Cat | Dog,
        {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        {
            "Cat": {
                "properties": {"kind": {"const": "cat", "type": "string"}, "lives": {"default": 9, "type": "integer"}},
                "required": ["kind"],
                "title": "Cat",
                "type": "object",
            },
            "Dog": {
                "properties": {"kind": {"const": "dog", "type": "string"}},
                "required": ["kind"],
                "title": "Dog",
                "type": "object",
            },
        },
        {"kind": "dog"},
        Dog(kind="dog"),
    ),
    (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        {
            "discriminator": {"mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}, "propertyName": "kind"},
            "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
        },
        {
            "Cat": {
                "properties": {"kind": {"const": "cat", "type": "string"}, "lives": {"default": 9, "type": "integer"}},
                "required": ["kind"],
                "title": "Cat",
                "type": "object",
            },
            "Dog": {
                "properties": {"kind": {"const": "dog", "type": "string"}},
                "required": ["kind"],
                "title": "Dog",
                "type": "object",
            },
        },
        {"kind": "cat"},
        Cat(kind="cat"),
    ),
    (
        Size,
        {"$ref": "#/$defs/Size"},
        {
            "Size": {
                "properties": {"width": {"type": "integer"}, "unit": {"$ref": "#/$defs/Unit", "default": "km"}},
                "required": ["width"],
                "title": "Size",
                "type": "object",
            },
            "Unit": {"enum": ["km"], "title": "Unit", "type": "string"},
        },
        {"width": 1, "unit": "km"},
        Size(1),
    ),
    (
        Room,
        {"$ref": "#/$defs/Room"},
        {
            "Room": {
                "properties": {"size": {"$ref": "#/$defs/Size"}},
                "required": ["size"],
                "title": "Room",
                "type": "object",
            },
            "Size": {
                "properties": {"width": {"type": "integer"}, "unit": {"$ref": "#/$defs/Unit", "default": "km"}},
                "required": ["width"],
                "title": "Size",
                "type": "object",
            },
            "Unit": {"enum": ["km"], "title": "Unit", "type": "string"},
        },
        {"size": {"width": 1}},
        Room(Size(1)),
    ),
    (
        Strict,
        {"$ref": "#/$defs/Strict"},
        {
            "Strict": {
                "properties": {"count": {"exclusiveMinimum": 0, "type": "integer"}},
                "required": ["count"],
                "title": "Strict",
                "type": "object",
            }
        },
        {"count": 1},
        Strict(1),
    ),
    (
        Row,
        {"$ref": "#/$defs/Row"},
        {
            "Row": {
                "properties": {"key": {"type": "string"}, "note": {"type": "string"}},
                "required": ["key"],
                "title": "Row",
                "type": "object",
            }
        },
        {"key": "a"},
        {"key": "a"},
    ),
    (
        Loose,
        {"$ref": "#/$defs/Loose"},
        {
            "Loose": {"properties": {"row": {"$ref": "#/$defs/Row"}}, "title": "Loose", "type": "object"},
            "Row": {
                "properties": {"key": {"type": "string"}, "note": {"type": "string"}},
                "required": ["key"],
                "title": "Row",
                "type": "object",
            },
        },
        {"row": {"key": "a", "note": "b"}},
        {"row": {"key": "a", "note": "b"}},
    ),
    (
        list[Row] | None,
        {"anyOf": [{"items": {"$ref": "#/$defs/Row"}, "type": "array"}, {"type": "null"}]},
        {
            "Row": {
                "properties": {"key": {"type": "string"}, "note": {"type": "string"}},
                "required": ["key"],
                "title": "Row",
                "type": "object",
            }
        },
        [{"key": "a"}],
        [{"key": "a"}],
    ),
    (
        NewRow,
        {"$ref": "#/$defs/NewRow"},
        {
            "NewRow": {
                "properties": {"key": {"type": "string"}},
                "required": ["key"],
                "title": "NewRow",
                "type": "object",
            }
        },
        {"key": "a", "other": 1},
        {"key": "a"},
    ),
    (
        Annotated[Row, "one row"],
        {"$ref": "#/$defs/Row", "description": "one row"},
        {
            "Row": {
                "properties": {"key": {"type": "string"}, "note": {"type": "string"}},
                "required": ["key"],
                "title": "Row",
                "type": "object",
            }
        },
        {"key": "a"},
        {"key": "a"},
    ),
    (
        Pair,
        {"$ref": "#/$defs/Pair"},
        {
            "Pair": {
                "maxItems": 2,
                "minItems": 1,
                "prefixItems": [{"type": "integer"}, {"default": "r", "type": "string"}],
                "type": "array",
            }
        },
        [1],
        Pair(1),
    ),
]


@each("hint, told, named, sent, given", SIGNATURES)
def test_a_type_is_told_as_json_schema_and_a_value_of_it_arrives(
    hint: Any, told: dict[str, Any], named: dict[str, Any], sent: Any, given: Any
):
    got: list[Any] = []
    tool = tool_taking(hint, got)

    declaration = tool.declaration
    assert isinstance(declaration, types.FunctionDeclaration)
    whole = {"type": "object", "title": "takeParams", "properties": {"x": told}, "required": ["x"]}
    assert declaration.parameters_json_schema == whole | ({"$defs": named} if named else {})
    again = types.FunctionDeclaration.model_validate_json(declaration.model_dump_json(exclude_none=True))
    assert again == declaration

    assert tool.check({"x": sent}) is None
    events = Talk(guide(call("take", x=sent), "done", tools=[tool])).say()
    assert [one.response for event in events for one in event.get_function_responses()] == [{"result": None}]
    assert got == [given] and type(got[0]) is type(given)
