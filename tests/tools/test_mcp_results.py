"""The value in an MCP result, which is there twice."""

from typing import Any

import pytest

from adk_nb.mcp_results import value_of


def said(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more, "isError": False}


@pytest.mark.parametrize(
    ("response", "value"),
    [
        (said("160 books", structuredContent={"result": "160 books"}), "160 books"),
        (said("5", structuredContent={"result": 5}), 5),
        (said("a", "b", structuredContent={"result": ["a", "b"]}), ["a", "b"]),
        (said(structuredContent={"result": []}), []),
        (said('{\n "x": 1\n}', structuredContent={"x": 1}), {"x": 1}),
        (said("one", "two"), "one\ntwo"),
    ],
)
def test_what_is_there_twice_is_one_value(response: dict[str, Any], value: Any):
    assert value_of(response) == value


@pytest.mark.parametrize(
    "response",
    [
        said("It is cold.", structuredContent={"temp_c": 9}),
        {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}], "isError": False},
        {"content": "of a web page"},
        {"result": 5},
        said("5", more="of another kind"),
    ],
)
def test_what_has_more_in_it_stays_whole(response: dict[str, Any]):
    assert value_of(response) is response
