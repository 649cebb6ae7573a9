"""Annotations that are text, as `from __future__ import annotations` makes them, wherever the function was written."""

from __future__ import annotations

import functools
import logging
import typing
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb.models.scripted_llm import call
from adk_nb.tools import FunctionTool, ToolContext
from tests.support.talk import Talk, guide

PLACE = {"properties": {"name": {"type": "string"}}, "required": ["name"], "title": "Place", "type": "object"}


class Row(typing.TypedDict):
    key: str
    note: typing.NotRequired[str]


def schema(tool: FunctionTool) -> dict[str, Any]:
    assert tool.declaration
    return tool.declaration.parameters_json_schema or {}


def test_types_of_the_function_around_are_found_while_it_runs():
    class Place(BaseModel):
        name: str

    def visit(place: Place, others: list[Place] | None = None, ctx: ToolContext | None = None) -> Place:
        return (others or [place])[0]

    tool = FunctionTool(visit)

    assert schema(tool)["$defs"] == {"Place": PLACE}
    assert list(schema(tool)["properties"]) == ["place", "others"]
    assert tool.declaration and tool.declaration.response_json_schema == PLACE
    events = Talk(guide(call("visit", place={"name": "Oslo"}), "done", tools=[tool])).say()
    assert events[1].get_function_responses()[0].response == {"name": "Oslo"}


def test_types_that_a_function_uses_are_found_after_the_one_around_has_ended():
    def make():
        class Place(BaseModel):
            name: str

        class Guide:
            def visit(self, place: Place) -> str:
                return Place.model_validate(place).name

        return Guide().visit

    assert schema(FunctionTool(make()))["$defs"] == {"Place": PLACE}


def test_a_decorated_function_is_read_where_it_was_written():
    class Place(BaseModel):
        name: str

    def logged(func):
        @functools.wraps(func)
        def inner(*args, **kwargs):
            return func(*args, **kwargs)

        return inner

    @logged
    def visit(place: Place, row: Row) -> str:
        return place.name + row["key"]

    told = schema(FunctionTool(functools.partial(visit, row={"key": "!"})))

    assert told["properties"] == {"place": {"$ref": "#/$defs/Place"}} and told["$defs"] == {"Place": PLACE}


def test_typed_dicts_keep_what_may_be_left_out():
    def take(row: Row) -> Row:
        return row

    assert schema(FunctionTool(take))["$defs"]["Row"]["required"] == ["key"]


def test_what_can_be_found_nowhere_is_one_warning(caplog: pytest.LogCaptureFixture):
    def make():
        class Lost: ...

        def take(x: Lost, y: int, z: list[Lost]): ...

        return take

    with caplog.at_level(logging.WARNING):
        told = schema(FunctionTool(make()))

    assert told["properties"] == {"x": {}, "y": {"type": "integer"}, "z": {}}
    assert len(caplog.records) == 1 and "x, z" in caplog.text
