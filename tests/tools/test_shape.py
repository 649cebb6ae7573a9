import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError
from support.messages import mentions
from typing_extensions import TypedDict

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.tools.shape import Shape, error_text
from tests.support.each import each


class City(BaseModel):
    name: str
    people: int | None = None


class Route(BaseModel):
    stops: list[City]
    when: Annotated[str, Field(description="a day")] = "today"


class Typed(TypedDict):
    name: str


@dataclass
class Pair:
    left: int
    right: int | None = None


class Colour(enum.Enum):
    red = "red"
    blue = "blue"


class Tree(BaseModel):
    children: list["Tree"] = []


RAW: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
GOOGLE = types.Schema(type=types.Type.OBJECT, properties={"a": types.Schema(type=types.Type.INTEGER)})


READ: list[tuple[Any, str, Any]] = [
    (City, '{"name": "Oslo", "people": "5"}', {"name": "Oslo", "people": 5}),
    (City, '{"name": "Oslo", "people": null}', {"name": "Oslo"}),
    (Route, '{"stops": [{"name": "A"}]}', {"stops": [{"name": "A"}], "when": "today"}),
    (Tree, '{"children": [{"children": []}]}', {"children": [{"children": []}]}),
    (list[City], '[{"name": "A"}, {"name": "B", "people": 1}]', [{"name": "A"}, {"name": "B", "people": 1}]),
    (City | None, "null", None),
    (dict, '{"a": null}', {"a": None}),
    (dict[str, int], '{"a": "1"}', {"a": 1}),
    (list[str], '["a"]', ["a"]),
    (list, "[1, null]", [1, None]),
    (int, "42", 42),
    (float, "4", 4.0),
    (bool, "true", True),
    (str, '"words"', "words"),
    (str, "words as they are", "words as they are"),
    (Literal["a", "b"], '"b"', "b"),
    (Colour, '"red"', "red"),
    (Typed, '{"name": "x"}', {"name": "x"}),
    (Pair, '{"left": 1}', {"left": 1}),
    (RAW, '{"a": "anything"}', {"a": "anything"}),
    (GOOGLE, '{"a": 1, "b": null}', {"a": 1, "b": None}),
    ({"type": "OBJECT"}, '{"a": 1}', {"a": 1}),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "3", 3),
    (types.Schema(type=types.Type.ARRAY), "[1]", [1]),
]


@each("schema, text, value", READ)
def test_text_is_read_as_json_values(schema: Any, text: str, value: Any):
    assert Shape(schema).read(text) == value


@each(
    "schema, text, said",
    [
        (City, "not json", "Invalid JSON"),
        (City, '{"people": 1}', "name: Field required"),
        (City, '{"name": "A", "people": "many"}', "people: Input should be a valid integer"),
        (list[City], '[{"name": "A"}, {}]', "1.name: Field required"),
        (list[int], '{"a": 1}', "valid array"),
        (int, '"x"', "valid integer"),
        (Typed, "{}", "name: Field required"),
        (Pair, "{}", "left: Field required"),
        (Colour, '"green"', "'red' or 'blue'"),
        (RAW, "[1]", "Input should be an object"),
        (GOOGLE, "words", "Invalid JSON"),
        ({"type": "array"}, "{}", "valid array"),
    ],
)
def test_text_of_another_shape_is_told_field_by_field(schema: Any, text: str, said: str):
    with pytest.raises(ValidationError) as caught:
        Shape(schema).read(text)

    assert said in error_text(caught.value)


def test_many_errors_are_summarized():
    with pytest.raises(ValidationError) as caught:
        Shape(list[int]).read('["a", "b", "c", "d", "e", "f", "g"]')

    assert error_text(caught.value).endswith("and 2 more") and "4: " in error_text(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "Oslo"}\n```',
        '  ```\n{"name": "Oslo"}\n```  \n',
        '```json {"name": "Oslo"}```',
        '```{"name": "Oslo"}```',
        ' {"name": "Oslo"} ',
    ],
)
def test_a_fence_around_it_is_taken_off(text: str):
    assert Shape(City).read(text) == {"name": "Oslo"}


@pytest.mark.parametrize("text", ["```", "``````", "```json", "```" + " " * 50_000, "`" * 50_000, "```\n```"])
def test_a_fence_around_nothing_is_no_answer(text: str):
    with pytest.raises(ValidationError):
        Shape(City).read(text)


def test_a_fenced_number_is_not_taken_for_the_name_of_a_language():
    assert Shape(int).read("```42```") == 42
    assert Shape(bool).read("```true```") is True


def parameters(schema: Any) -> dict[str, Any]:
    return Shape(schema).parameters


def test_an_objects_fields_are_a_tools_parameters():
    assert list(parameters(Route)["properties"]) == ["stops", "when"]
    assert parameters(Route)["properties"]["when"]["description"] == "a day"
    assert parameters(Route)["required"] == ["stops"]
    assert parameters(RAW) == RAW
    assert parameters(GOOGLE) == {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "name"),
    [(list[City], "items"), (list[int], "response"), (int, "response"), (dict, "response"), (Tree, "response")],
)
def test_what_is_no_object_with_fields_is_one_parameter(schema: Any, name: str):
    told = parameters(schema)

    assert list(told["properties"]) == [name] and told["required"] == [name]
    assert "$defs" not in told["properties"][name]


def test_arguments_are_read_like_text():
    assert Shape(City).read_arguments({"name": "A", "people": "3"}) == {"name": "A", "people": 3}
    assert Shape(list[City]).read_arguments({"items": [{"name": "A"}]}) == [{"name": "A"}]
    with pytest.raises(ValidationError):
        Shape(list[City]).read_arguments({})


class Undefined(BaseModel):
    other: "NotThere"  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


@each(
    "schema, said",
    [
        ("City", "'City' … not a schema"),
        (5, "5 … not a schema"),
        (City(name="A"), "not a schema; … type"),
        ([City], "not a schema"),
        (print, "not a schema"),
        (lambda: 1, "not a schema"),
        (object(), "not a schema"),
        ({"name": "string"}, "not a JSON Schema"),
        ({}, "not a JSON Schema"),
        ({"type": City}, "not a JSON Schema"),
        ({"type": "OBJEKT"}, "not a JSON Schema"),
        (Undefined, "Undefined … not a schema … JSON"),
        (type(lambda: 1), "not a schema"),
    ],
)
@each("field", ["output_schema", "input_schema"])
def test_what_is_no_schema_is_refused_when_the_agent_is_made(field: str, schema: Any, said: str):
    with pytest.raises(ConfigurationError) as caught:
        LlmAgent(name="a", **{field: schema})

    assert f"agent 'a': {field}: " in str(caught.value) and mentions(caught.value, said)
    assert "\n" not in str(caught.value)
