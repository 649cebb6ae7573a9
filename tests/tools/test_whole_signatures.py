"""Forty-two whole signatures: what a model is told of each function, and what the function gets of a model's call."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Optional, Self, TypedDict, TypeVar

from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from adk_nb import sync, types
from adk_nb.agents import LiveRequestQueue
from adk_nb.models import Gemini, LlmRequest, LlmResponse
from adk_nb.models.scripted_llm import call
from adk_nb.tools import FunctionTool, ToolContext
from tests.models.gemini_server import GeminiServer, answer
from tests.support.each import each
from tests.support.talk import Talk, guide
from tests.tools import test_signatures as of_types

T = TypeVar("T")
N = TypeVar("N", bound=int)
Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int | None")


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Place(BaseModel):
    name: str
    near: list["Place"] = []


class Page(BaseModel, Generic[T]):
    items: list[T]
    next: int | None = None


@dataclass
class Order:
    """What somebody wants.

    Args:
        item: What is ordered.
    """

    item: str
    sizes: dict[str, list[Size]] = field(default_factory=dict)


class Options(TypedDict, total=False):
    fast: bool


class Shop:
    """Sells things."""

    def price(self, item: str, *, size: Size = Size.SMALL) -> int:
        """What a thing costs.

        Args:
            item: Its name.
        """
        return GOT.take(item=item, size=size)

    @classmethod
    def opened(cls, on: date) -> Self:
        """Since when it is open."""
        return GOT.take(cls=cls.__name__, on=on)

    @staticmethod
    def is_open(hour: Annotated[int, Field(ge=0, lt=24)]) -> bool:
        """Whether it is open."""
        return GOT.take(hour=hour)

    def __call__(self, item: str) -> str:
        """Sell a thing.

        Args:
            item: What is sold.
        """
        return GOT.take(item=item)


class Got:
    """What the last call gave the function."""

    def __init__(self) -> None:
        self.last: Any = None

    def take(self, *args: Any, **kwargs: Any) -> Any:
        self.last = (*args, kwargs) if args else kwargs
        return True


GOT = Got()


def google(city: str, days: int = 1):
    """Look a city up.

    More words.

    Args:
        city (str): Its name,
            in English.
        days: How many days: 1 to 7.

    Returns:
        What it is like.
    """
    return GOT.take(city=city, days=days)


def numpy(city: str, days: int = 1):
    """Look a city up.

    Parameters
    ----------
    city : str
        Its name, in English.
    days : int, optional
        How many days.

    Returns
    -------
    dict
        What it is like.
    """
    return GOT.take(city=city, days=days)


def sphinx(city: str, days: int = 1):
    """Look a city up.

    :param city: Its name, in English.
    :type city: str
    :param int days: How many days.
    :returns: What it is like.
    """
    return GOT.take(city=city, days=days)


def epydoc(city: str):
    """Look a city up.

    @param city: Its name.
    """
    return GOT.take(city=city)


def undocumented_half(city: str, days: int):
    """Look a city up.

    Args:
        city: Its name.
        weeks: No parameter.
    """
    return GOT.take(city=city, days=days)


def nothing():
    """Do nothing."""
    return GOT.take()


def defaults(
    a: int = 3,
    b: str = "x",
    c: bool = False,
    d: list[int] = [1],  # noqa: B006
    e: Size = Size.LARGE,
    f: float | None = None,
):
    return GOT.take(a=a, b=b, c=c, d=d, e=e, f=f)


def odd_defaults(
    when: date = date(2024, 2, 29),
    cost: Decimal = Decimal("1.50"),
    where: Path = Path("a/b"),
    place: Place = Place(name="Oslo"),  # noqa: B008
):
    return GOT.take(when=when, cost=cost, where=where, place=place)


def implicit_none(x: str = None):  # noqa: RUF013
    return GOT.take(x=x)


def old_optional(x: Optional[int], y: Optional[str] = "y"):  # noqa: UP045
    return GOT.take(x=x, y=y)


def many(x: int, *rest: int):
    return GOT.take(x=x, rest=rest)


def anything(x: int, **rest: Any):
    return GOT.take(x=x, rest=rest)


def keyword_only(*, x: int, y: int = 2):
    return GOT.take(x=x, y=y)


def positional_only(x: int, y: str = "y", /):
    return GOT.take(x=x, y=y)


def of_each_kind(a: int, /, b: int, *, c: int = 3, **d: int):
    return GOT.take(a=a, b=b, c=c, d=d)


def text_annotations(place: "Place", sizes: "list[Size] | None" = None):
    return GOT.take(place=place, sizes=sizes)


def forward(later: "Later"):
    return GOT.take(later=later)


class Later(BaseModel):
    x: int


def by_annotation(ctx: ToolContext, x: int):
    return GOT.take(x=x, ctx=type(ctx).__name__)


def by_optional_annotation(x: int, ctx: Optional[ToolContext] = None):  # noqa: UP045
    return GOT.take(x=x, ctx=type(ctx).__name__)


def by_text_annotation(x: int, *, ctx: "ToolContext"):
    return GOT.take(x=x, ctx=type(ctx).__name__)


def by_name(x: int, tool_context):
    return GOT.take(x=x, ctx=type(tool_context).__name__)


def with_stream(x: int, input_stream: LiveRequestQueue):
    return GOT.take(x=x, stream=type(input_stream).__name__)


def annotated(
    stars: Annotated[int, Field(ge=1, le=5, description="How good.")],
    name: Annotated[str, "Who says so."] = "me",
    note: str = Field("none", max_length=9, description="Why."),
    tags: list[str] = Field(default_factory=list),  # noqa: B008
):
    """Rate it.

    Args:
        stars: Not this.
    """
    return GOT.take(stars=stars, name=name, note=note, tags=tags)


def constrained(
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}$")],
    share: Annotated[float, Field(gt=0, lt=1)],
    few: Annotated[list[int], Field(min_length=1, max_length=3)],
    by: Literal["name", "size"] = "name",
):
    return GOT.take(code=code, share=share, few=few, by=by)


def nested(orders: dict[str, list[Order]], options: Options | None = None):
    return GOT.take(orders=orders, options=options)


def recursive(place: Place):
    return GOT.take(place=place)


def generic(page: Page[Order], same: N):
    return GOT.take(page=page, same=same)


def recursive_alias(value: Json):
    return GOT.take(value=value)


def clashing(model_config: str, schema: int, copy: bool, p_x: int):
    return GOT.take(model_config=model_config, schema=schema, copy=copy, p_x=p_x)


async def asynchronous(x: int) -> dict[str, int]:
    """Wait."""
    return GOT.take(x=x)


def generator(x: int) -> Iterator[int]:
    """Count."""
    yield GOT.take(x=x)


async def async_generator(x: int) -> AsyncIterator[int]:
    """Count."""
    yield GOT.take(x=x)


def logged(func: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(func)
    def inner(*args: Any, **kwargs: Any) -> T:
        return func(*args, **kwargs)

    return inner


@logged
def decorated(x: int, place: Place):
    """Decorated."""
    return GOT.take(x=x, place=place)


@functools.cache
def cached(x: int):
    """Cached."""
    return GOT.take(x=x)


def pay(account: str, amount: int, currency: str = "EUR", note: str = ""):
    """Pay.

    Args:
        amount: Cents.
        currency: As ISO 4217 says.
    """
    return GOT.take(account=account, amount=amount, currency=currency, note=note)


SIGNATURES: list[tuple[Callable[..., Any], dict[str, Any] | None, dict[str, Any], dict[str, Any] | None]] = [
    (
        google,
        {
            "properties": {
                "city": {"description": "Its name, in English.", "type": "string"},
                "days": {"default": 1, "description": "How many days: 1 to 7.", "type": "integer"},
            },
            "required": ["city"],
        },
        {"city": "Oslo"},
        {"city": "Oslo", "days": 1},
    ),
    (
        numpy,
        {
            "properties": {
                "city": {"description": "Its name, in English.", "type": "string"},
                "days": {"default": 1, "description": "How many days.", "type": "integer"},
            },
            "required": ["city"],
        },
        {"city": "Oslo", "days": 2.0},
        {"city": "Oslo", "days": 2},
    ),
    (
        sphinx,
        {
            "properties": {
                "city": {"description": "Its name, in English.", "type": "string"},
                "days": {"default": 1, "description": "How many days.", "type": "integer"},
            },
            "required": ["city"],
        },
        {"city": "Oslo", "days": "2"},
        {"city": "Oslo", "days": 2},
    ),
    (
        epydoc,
        {"properties": {"city": {"description": "Its name.", "type": "string"}}, "required": ["city"]},
        {"city": "Oslo"},
        {"city": "Oslo"},
    ),
    (
        undocumented_half,
        {
            "properties": {"city": {"description": "Its name.", "type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
        {"city": "Oslo", "days": 1},
        {"city": "Oslo", "days": 1},
    ),
    (nothing, None, {"surprise": 1}, {}),
    (
        defaults,
        {
            "$defs": {"Size": {"enum": ["s", "l"], "title": "Size", "type": "string"}},
            "properties": {
                "a": {"default": 3, "type": "integer"},
                "b": {"default": "x", "type": "string"},
                "c": {"default": False, "type": "boolean"},
                "d": {"default": [1], "items": {"type": "integer"}, "type": "array"},
                "e": {"$ref": "#/$defs/Size", "default": "l"},
                "f": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
            },
        },
        {},
        {"a": 3, "b": "x", "c": False, "d": [1], "e": Size.LARGE, "f": None},
    ),
    (
        odd_defaults,
        {
            "$defs": {
                "Place": {
                    "properties": {
                        "name": {"type": "string"},
                        "near": {"default": [], "items": {"$ref": "#/$defs/Place"}, "type": "array"},
                    },
                    "required": ["name"],
                    "title": "Place",
                    "type": "object",
                }
            },
            "properties": {
                "when": {"default": "2024-02-29", "format": "date", "type": "string"},
                "cost": {"anyOf": [{"type": "number"}, {"type": "string"}], "default": "1.50"},
                "where": {"default": "a/b", "format": "path", "type": "string"},
                "place": {"$ref": "#/$defs/Place", "default": {"name": "Oslo", "near": []}},
            },
        },
        {"when": "2025-01-01"},
        {"when": date(2025, 1, 1), "cost": Decimal("1.50"), "where": Path("a/b"), "place": Place(name="Oslo")},
    ),
    (
        implicit_none,
        {"properties": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}},
        {"x": None},
        {"x": None},
    ),
    (
        old_optional,
        {
            "properties": {
                "x": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "y": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "y"},
            },
            "required": ["x"],
        },
        {"x": None, "y": None},
        {"x": None, "y": None},
    ),
    (many, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1, "rest": [2]}, {"x": 1, "rest": ()}),
    (
        anything,
        {"properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": True},
        {"x": 1, "y": [2]},
        {"x": 1, "rest": {"y": [2]}},
    ),
    (
        keyword_only,
        {"properties": {"x": {"type": "integer"}, "y": {"default": 2, "type": "integer"}}, "required": ["x"]},
        {"x": 1},
        {"x": 1, "y": 2},
    ),
    (
        positional_only,
        {"properties": {"x": {"type": "integer"}, "y": {"default": "y", "type": "string"}}, "required": ["x"]},
        {"x": 1, "y": "z"},
        {"x": 1, "y": "z"},
    ),
    (
        of_each_kind,
        {
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"default": 3, "type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": {"type": "integer"},
        },
        {"a": 1, "b": 2, "d": 4},
        {"a": 1, "b": 2, "c": 3, "d": {"d": 4}},
    ),
    (
        text_annotations,
        {
            "$defs": {
                "Place": {
                    "properties": {
                        "name": {"type": "string"},
                        "near": {"default": [], "items": {"$ref": "#/$defs/Place"}, "type": "array"},
                    },
                    "required": ["name"],
                    "title": "Place",
                    "type": "object",
                },
                "Size": {"enum": ["s", "l"], "title": "Size", "type": "string"},
            },
            "properties": {
                "place": {"$ref": "#/$defs/Place"},
                "sizes": {
                    "anyOf": [{"items": {"$ref": "#/$defs/Size"}, "type": "array"}, {"type": "null"}],
                    "default": None,
                },
            },
            "required": ["place"],
        },
        {"place": {"name": "Oslo"}, "sizes": ["s"]},
        {"place": Place(name="Oslo"), "sizes": [Size.SMALL]},
    ),
    (
        forward,
        {
            "$defs": {
                "Later": {
                    "properties": {"x": {"type": "integer"}},
                    "required": ["x"],
                    "title": "Later",
                    "type": "object",
                }
            },
            "properties": {"later": {"$ref": "#/$defs/Later"}},
            "required": ["later"],
        },
        {"later": {"x": 1}},
        {"later": Later(x=1)},
    ),
    (
        by_annotation,
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"x": 1},
        {"x": 1, "ctx": "Context"},
    ),
    (
        by_optional_annotation,
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"x": 1},
        {"x": 1, "ctx": "Context"},
    ),
    (
        by_text_annotation,
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"x": 1, "ctx": "mine"},
        {"x": 1, "ctx": "Context"},
    ),
    (by_name, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}, {"x": 1, "ctx": "Context"}),
    (
        with_stream,
        {"properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {"x": 1},
        {"x": 1, "stream": "LiveRequestQueue"},
    ),
    (
        annotated,
        {
            "properties": {
                "stars": {"description": "How good.", "maximum": 5, "minimum": 1, "type": "integer"},
                "name": {"default": "me", "description": "Who says so.", "type": "string"},
                "note": {"default": "none", "description": "Why.", "maxLength": 9, "type": "string"},
                "tags": {"items": {"type": "string"}, "type": "array"},
            },
            "required": ["stars"],
        },
        {"stars": 5},
        {"stars": 5, "name": "me", "note": "none", "tags": []},
    ),
    (
        constrained,
        {
            "properties": {
                "code": {"pattern": "^[A-Z]{2}$", "type": "string"},
                "share": {"exclusiveMaximum": 1, "exclusiveMinimum": 0, "type": "number"},
                "few": {"items": {"type": "integer"}, "maxItems": 3, "minItems": 1, "type": "array"},
                "by": {"default": "name", "enum": ["name", "size"], "type": "string"},
            },
            "required": ["code", "share", "few"],
        },
        {"code": "NO", "share": 0.5, "few": [1]},
        {"code": "NO", "share": 0.5, "few": [1], "by": "name"},
    ),
    (
        nested,
        {
            "$defs": {
                "Options": {"properties": {"fast": {"type": "boolean"}}, "title": "Options", "type": "object"},
                "Order": {
                    "description": "What somebody wants.\n\nArgs:\n    item: What is ordered.",
                    "properties": {
                        "item": {"type": "string"},
                        "sizes": {
                            "additionalProperties": {"items": {"$ref": "#/$defs/Size"}, "type": "array"},
                            "type": "object",
                        },
                    },
                    "required": ["item"],
                    "title": "Order",
                    "type": "object",
                },
                "Size": {"enum": ["s", "l"], "title": "Size", "type": "string"},
            },
            "properties": {
                "orders": {
                    "additionalProperties": {"items": {"$ref": "#/$defs/Order"}, "type": "array"},
                    "type": "object",
                },
                "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}], "default": None},
            },
            "required": ["orders"],
        },
        {"orders": {"a": [{"item": "tea", "sizes": {"x": ["l"]}}]}, "options": {}},
        {"orders": {"a": [Order("tea", {"x": [Size.LARGE]})]}, "options": {}},
    ),
    (
        recursive,
        {
            "$defs": {
                "Place": {
                    "properties": {
                        "name": {"type": "string"},
                        "near": {"default": [], "items": {"$ref": "#/$defs/Place"}, "type": "array"},
                    },
                    "required": ["name"],
                    "title": "Place",
                    "type": "object",
                }
            },
            "properties": {"place": {"$ref": "#/$defs/Place"}},
            "required": ["place"],
        },
        {"place": {"name": "Oslo", "near": [{"name": "Ski"}]}},
        {"place": Place(name="Oslo", near=[Place(name="Ski")])},
    ),
    (
        generic,
        {
            "$defs": {
                "Order": {
                    "description": "What somebody wants.\n\nArgs:\n    item: What is ordered.",
                    "properties": {
                        "item": {"type": "string"},
                        "sizes": {
                            "additionalProperties": {"items": {"$ref": "#/$defs/Size"}, "type": "array"},
                            "type": "object",
                        },
                    },
                    "required": ["item"],
                    "title": "Order",
                    "type": "object",
                },
                "Page_Order_": {
                    "properties": {
                        "items": {"items": {"$ref": "#/$defs/Order"}, "type": "array"},
                        "next": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                    },
                    "required": ["items"],
                    "title": "Page[Order]",
                    "type": "object",
                },
                "Size": {"enum": ["s", "l"], "title": "Size", "type": "string"},
            },
            "properties": {"page": {"$ref": "#/$defs/Page_Order_"}, "same": {"type": "integer"}},
            "required": ["page", "same"],
        },
        {"page": {"items": [{"item": "tea"}]}, "same": 1},
        {"page": Page[Order](items=[Order("tea")]), "same": 1},
    ),
    (
        recursive_alias,
        {
            "$defs": {
                "Json": {
                    "anyOf": [
                        {"additionalProperties": {"$ref": "#/$defs/Json"}, "type": "object"},
                        {"items": {"$ref": "#/$defs/Json"}, "type": "array"},
                        {"type": "string"},
                        {"type": "integer"},
                        {"type": "null"},
                    ]
                }
            },
            "properties": {"value": {"$ref": "#/$defs/Json"}},
            "required": ["value"],
        },
        {"value": {"a": [None, {"b": 1}]}},
        {"value": {"a": [None, {"b": 1}]}},
    ),
    (
        clashing,
        {
            "properties": {
                "model_config": {"type": "string"},
                "schema": {"type": "integer"},
                "copy": {"type": "boolean"},
                "p_x": {"type": "integer"},
            },
            "required": ["model_config", "schema", "copy", "p_x"],
        },
        {"model_config": "a", "schema": 1, "copy": True, "p_x": 2},
        {"model_config": "a", "schema": 1, "copy": True, "p_x": 2},
    ),
    (asynchronous, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}, {"x": 1}),
    (generator, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}, {"x": 1}),
    (async_generator, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}, {"x": 1}),
    (
        decorated,
        {
            "$defs": {
                "Place": {
                    "properties": {
                        "name": {"type": "string"},
                        "near": {"default": [], "items": {"$ref": "#/$defs/Place"}, "type": "array"},
                    },
                    "required": ["name"],
                    "title": "Place",
                    "type": "object",
                }
            },
            "properties": {"x": {"type": "integer"}, "place": {"$ref": "#/$defs/Place"}},
            "required": ["x", "place"],
        },
        {"x": 1, "place": {"name": "Oslo"}},
        {"x": 1, "place": Place(name="Oslo")},
    ),
    (cached, {"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"x": 1}, {"x": 1}),
    (
        functools.partial(pay, "mine"),
        {
            "properties": {
                "amount": {"description": "Cents.", "type": "integer"},
                "currency": {"default": "EUR", "description": "As ISO 4217 says.", "type": "string"},
                "note": {"default": "", "type": "string"},
            },
            "required": ["amount"],
        },
        {"amount": 1},
        {"account": "mine", "amount": 1, "currency": "EUR", "note": ""},
    ),
    (
        functools.partial(pay, "mine", currency="NOK"),
        {
            "properties": {
                "amount": {"description": "Cents.", "type": "integer"},
                "note": {"default": "", "type": "string"},
            },
            "required": ["amount"],
        },
        {"amount": 1, "currency": "USD"},
        {"account": "mine", "amount": 1, "currency": "NOK", "note": ""},
    ),
    (
        Shop().price,
        {
            "$defs": {"Size": {"enum": ["s", "l"], "title": "Size", "type": "string"}},
            "properties": {
                "item": {"description": "Its name.", "type": "string"},
                "size": {"$ref": "#/$defs/Size", "default": "s"},
            },
            "required": ["item"],
        },
        {"item": "tea", "size": "l"},
        {"item": "tea", "size": Size.LARGE},
    ),
    (
        functools.partial(Shop().price, size=Size.LARGE),
        {"properties": {"item": {"description": "Its name.", "type": "string"}}, "required": ["item"]},
        {"item": "tea"},
        {"item": "tea", "size": Size.LARGE},
    ),
    (
        Shop.opened,
        {"properties": {"on": {"format": "date", "type": "string"}}, "required": ["on"]},
        {"on": "2024-02-29"},
        {"cls": "Shop", "on": date(2024, 2, 29)},
    ),
    (
        Shop.is_open,
        {"properties": {"hour": {"exclusiveMaximum": 24, "minimum": 0, "type": "integer"}}, "required": ["hour"]},
        {"hour": 3},
        {"hour": 3},
    ),
    (
        Shop(),
        {"properties": {"item": {"description": "What is sold.", "type": "string"}}, "required": ["item"]},
        {"item": "tea"},
        {"item": "tea"},
    ),
    (
        Order,
        {
            "$defs": {"Size": {"enum": ["s", "l"], "title": "Size", "type": "string"}},
            "properties": {
                "item": {"description": "What is ordered.", "type": "string"},
                "sizes": {
                    "additionalProperties": {"items": {"$ref": "#/$defs/Size"}, "type": "array"},
                    "type": "object",
                },
            },
            "required": ["item"],
        },
        {"item": "tea"},
        None,
    ),
]
"""A function; its schema without the title and the type; what a model sends; what the function gets."""


def declared(told: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    return None if told is None else {"title": f"{name}Params", "type": "object", **told}


@each("func, lines, payload, actual", SIGNATURES)
def test_a_signature_is_told_as_json_schema_and_a_call_that_fits_reaches_the_function(
    func: Callable[..., Any], lines: dict[str, Any] | None, payload: dict[str, Any], actual: dict[str, Any] | None
):
    tool = FunctionTool(func)
    declaration = tool.declaration

    assert declaration and declaration.parameters_json_schema == declared(lines, tool.name)
    assert types.FunctionDeclaration.model_validate_json(declaration.model_dump_json(exclude_none=True)) == declaration
    GOT.last = None
    events = Talk(guide(call(tool.name, **payload), "done", tools=[tool])).say()
    [response] = [
        function_response.response for event in events for function_response in event.get_function_responses()
    ]
    assert GOT.last == actual and response is not None and "error" not in response


def test_the_words_of_a_tool_are_its_whole_docstring():
    lines = {tool.name: tool.description for func, *_ in SIGNATURES for tool in [FunctionTool(func)]}

    assert lines["google"] == (
        "Look a city up.\n\nMore words.\n\nArgs:\n    city (str): Its name,\n        in English.\n"
        "    days: How many days: 1 to 7.\n\nReturns:\n    What it is like."
    )
    assert lines["decorated"] == "Decorated." and lines["cached"] == "Cached."
    assert lines["Shop"] == "Sells things." and lines["Order"].startswith("What somebody wants.")
    assert lines["defaults"] == ""


def named(declaration: types.FunctionDeclaration | None, name: str) -> types.FunctionDeclaration:
    assert declaration
    return declaration.model_copy(update={"name": name})


def all_declarations() -> list[types.FunctionDeclaration]:
    """Of these functions, and of one for each type of `test_signatures`."""
    whole = [FunctionTool(func).declaration for func, *_ in SIGNATURES]
    typed = [of_types.tool_taking(hint, []).declaration for hint, *_ in of_types.SIGNATURES]
    return [named(item, f"f{number}") for number, item in enumerate([*whole, *typed])]


def test_google_s_service_is_sent_each_schema_as_it_is():
    declarations = all_declarations()

    with GeminiServer() as server:
        server.say(answer("Fine."))
        model = Gemini(base_url=server.url, api_key="a-key")
        request = LlmRequest(
            contents=[types.UserContent("hi")],
            config=types.GenerateContentConfig(tools=[types.Tool(function_declarations=declarations)]),
        )
        sync.run(_answers(model, request))
        [sent_request] = server.requests

    function_declarations = sent_request.body["tools"][0]["functionDeclarations"]
    # google-genai 3.4 spells this one as in Python; the service reads both.
    lines = {
        function_declaration["name"]: function_declaration.get("parametersJsonSchema")
        or function_declaration.get("parameters_json_schema")
        for function_declaration in function_declarations
    }
    assert len(lines) > 100 and lines == {
        declaration.name: declaration.parameters_json_schema for declaration in declarations
    }


async def _answers(model: Gemini, request: LlmRequest) -> list[LlmResponse]:
    return [response async for response in model.generate_content_async(request)]


NOT_IN_GOOGLE_S_SCHEMA = {
    "const", "discriminator", "examples", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "oneOf", "prefixItems",
    "propertyNames", "writeOnly",
}  # fmt: skip
"""Words of JSON Schema that `types.Schema` has no place for: https://ai.google.dev/api/caching#Schema."""


def words_of(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {token for item in schema for token in words_of(item)}
    return (
        set(schema) | {token for value in schema.values() for token in words_of(value)}
        if isinstance(schema, dict)
        else set()
    )


def test_google_genai_reads_each_schema_into_its_own_but_for_words_that_it_lacks():
    parameters_json_schemas = [
        all_declaration.parameters_json_schema
        for all_declaration in all_declarations()
        if all_declaration.parameters_json_schema
    ]
    sayable = [
        parameters_json_schema
        for parameters_json_schema in parameters_json_schemas
        if not words_of(parameters_json_schema) & NOT_IN_GOOGLE_S_SCHEMA
    ]

    read = [types.Schema.from_json_schema(json_schema=types.JSONSchema.model_validate(item)) for item in sayable]

    assert len(sayable) > 85
    for schema, lines in zip(read, sayable, strict=True):
        declared = types.FunctionDeclaration(name="f", parameters=schema).parameters
        assert declared and declared.required == lines.get("required")
        assert list(declared.properties or {}) == list(lines["properties"])
