"""Which output schemas OpenAI is asked to keep to, and how they are put: the rest it answers with HTTP 400.

Source of the rules: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas".
"""

import asyncio
from contextlib import aclosing
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from gemini_server import GeminiServer
from pydantic import BaseModel, Field, HttpUrl
from vendors import OPENAI, check_openai

from adk_nb import types
from adk_nb.models import LlmRequest
from tests.support.late import late


class Sky(Enum):
    CLEAR = "clear"
    GREY = "grey"


class Place(BaseModel):
    """Where."""

    city: str
    zone: int = Field(ge=1, le=24)


class Described(BaseModel):
    place: Place = Field(description="Where it is")
    sky: Sky = Field(description="How it looks")
    others: list[Place] = Field(description="Near it")
    when: str | None = Field(description="Perhaps a day", examples=["monday"])


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    home: Place = Field(description="Its home")


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind", description="Who")]


class Tree(BaseModel):
    name: str
    children: list["Tree"] = Field(description="Below it")
    first: "Tree | None"


class Nested(BaseModel):
    tree: Tree = Field(description="A tree")
    id: UUID


class Recursive(BaseModel):
    next: "Recursive" = Field(description="Behind it")


def sent(server: GeminiServer, schema: Any) -> dict[str, Any]:
    OPENAI.say(server, "{}")
    request = LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(response_schema=schema))

    async def ask() -> None:
        async with aclosing(OPENAI.model(server).generate_content_async(request)) as responses:
            async for _ in responses:
                pass

    asyncio.run(ask())
    check_openai(server.requests[-1].body)
    return server.requests[-1].body["response_format"]["json_schema"]


def check_strict(schema: dict[str, Any]) -> None:
    """The rules of the subset, at every place."""
    assert not schema.keys() & {"oneOf", "allOf", "discriminator", "default", "examples"}
    assert "$ref" not in schema or schema.keys() == {"$ref"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert sorted(schema["required"]) == sorted(schema["properties"])
    below = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    for one in below + ([schema["items"]] if "items" in schema else []):
        check_strict(one)


@pytest.mark.parametrize("schema", [Described, Owner, Tree, Nested, Recursive])
def test_described_models_unions_and_recursion_are_kept_to(server: GeminiServer, schema: type[BaseModel]):
    told = sent(server, schema)

    assert told["strict"] is True
    assert told["schema"]["type"] == "object"
    check_strict(told["schema"])


def test_a_described_reference_is_put_as_openai_s_own_package_puts_it(server: GeminiServer):
    ours, theirs = sent(server, Described)["schema"], late("openai.lib._pydantic").to_strict_json_schema(Described)

    assert ours["properties"]["place"] == theirs["properties"]["place"]
    assert ours["properties"]["sky"] == theirs["properties"]["sky"]
    assert ours["properties"]["place"]["description"] == "Where it is"


def test_a_union_keeps_its_members_and_its_description(server: GeminiServer):
    pet = sent(server, Owner)["schema"]["properties"]["pet"]

    assert (pet["description"], [one["$ref"] for one in pet["anyOf"]]) == ("Who", ["#/$defs/Cat", "#/$defs/Dog"])


class Bounded(BaseModel):
    name: str = Field(min_length=1)


class Linked(BaseModel):
    url: HttpUrl


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    pair: tuple[int, str]


class Optional(BaseModel):
    place: Place | None = None


def deep(levels: int) -> dict[str, Any]:
    inner = {"type": "string"}
    for _ in range(levels):
        inner = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    return inner


def holding(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": value}, "required": ["a"]}


OUTSIDE = [
    *(Bounded, Linked, Anything, Pair, Optional, dict[str, int], list[str], Cat | Dog, deep(11)),
    holding({"allOf": [{"type": "string"}, {"type": "string"}]}),
    holding({"not": {"type": "string"}}),
    holding({"$ref": "#/$defs/nowhere", "title": "A"}),
    holding({"enum": list(range(1001))}),
]


@pytest.mark.parametrize("schema", OUTSIDE)
def test_what_is_outside_the_subset_is_sent_as_it_is_and_not_strict(server: GeminiServer, schema: Any):
    told = sent(server, schema)

    assert told["strict"] is False
    if isinstance(schema, dict):
        assert told["schema"] == schema
