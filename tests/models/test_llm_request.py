"""A request takes instructions as words or with data in them, a schema, and tools."""

import logging

import pytest

from adk_nb import types
from adk_nb.models import LlmRequest
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.tools import FunctionTool

PICTURE = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png", display_name="logo"))
FILE = types.Part(file_data=types.FileData(file_uri="gs://b/f.pdf", mime_type="application/pdf"))


def weather(city: str) -> str:
    """How the sky is."""
    return city


def test_instructions_are_joined_by_blank_lines():
    request = LlmRequest()

    assert request.append_instructions([]) == [] and request.config.system_instruction is None
    request.append_instructions(["a", "b"])
    request.append_instructions(types.Content(parts=[types.Part(text="c"), types.Part(text="d")]))

    assert request.config.system_instruction == "a\n\nb\n\nc\n\nd"
    assert request.contents == []


def test_data_in_an_instruction_is_named_there_and_sent_as_the_users():
    request = LlmRequest(contents=[types.Content(role="user", parts=[types.Part(text="hi")])])

    added = request.append_instructions(types.Content(parts=[types.Part(text="Match this."), PICTURE, FILE]))

    # The sentences are google-adk's.
    instruction = (
        "Match this.\n\n[See inline data inline_data_0 ('logo', type: image/png)]\n\n"
        "[See file data file_data_1 (URI: gs://b/f.pdf, type: application/pdf)]"
    )
    labels = ["This is inline data inline_data_0:", "This is file data file_data_1:"]
    assert request.config.system_instruction == instruction
    assert request.contents[1:] == added
    assert [(one.role, [part.text for part in one.parts or []]) for one in added] == [
        ("user", [labels[0], None]),
        ("user", [labels[1], None]),
    ]
    assert [(one.parts or [])[1] for one in added] == [PICTURE, FILE]


@pytest.mark.parametrize("odd", ["one text", 5, None, ["a", 1], [types.Part(text="a")]])
def test_anything_else_is_no_instruction(odd: object):
    request = LlmRequest()

    with pytest.raises(TypeError, match=r"types\.Content, got "):
        request.append_instructions(odd)
    assert request.config.system_instruction is None


def test_a_system_instruction_that_is_no_text_stays_as_it_is(caplog: pytest.LogCaptureFixture):
    there = types.Content(parts=[types.Part(text="mine")])
    request = LlmRequest(config=types.GenerateContentConfig(system_instruction=there))

    with caplog.at_level(logging.WARNING):
        request.append_instructions(["yours"])
        request.append_instructions(types.Content(parts=[PICTURE]))

    assert (request.config.system_instruction, request.contents) == (there, [])
    assert "system instruction" in caplog.text


def test_an_output_schema_asks_for_json():
    request = LlmRequest()

    request.set_output_schema(dict)

    assert request.config.response_schema is dict
    assert request.config.response_mime_type == "application/json"


def test_of_two_tools_of_one_name_the_later_is_declared_and_called(caplog: pytest.LogCaptureFixture):
    def other(town: str) -> str:
        """Another sky."""
        return town

    other.__name__ = "weather"
    first, second = FunctionTool(weather), FunctionTool(other)
    request = LlmRequest()

    with caplog.at_level(logging.WARNING):
        request.append_tools([first])
        request.append_tools([second])

    assert request.tools_dict == {"weather": second}
    [offered] = request.config.tools or []
    assert isinstance(offered, types.Tool)
    assert [one.description for one in offered.function_declarations or []] == ["Another sky."]
    assert "'weather'; the later" in caplog.text


def test_a_request_travels_without_its_tools_and_its_cache():
    known = CacheMetadata(fingerprint="f", contents_count=1)
    sent = LlmRequest(model="m", cache_metadata=known, tools_dict={"t": 1})

    wire = sent.model_dump(mode="json", by_alias=True, exclude_none=True)

    assert wire == {"model": "m", "contents": [], "config": {}}
    assert LlmRequest.model_validate(wire) == LlmRequest(model="m")
