"""An output schema as it arrives at the service, and which models take one beside tools."""

import asyncio
from typing import Any, Literal

import pytest
from gemini_server import GeminiServer, answer
from pydantic import BaseModel, SecretStr

from adk_nb import types
from adk_nb.models import Gemini, LlmRequest


class City(BaseModel):
    name: str
    people: int | None = None


class Open(BaseModel):
    by_name: dict[str, int]


def sent(server: GeminiServer, schema: Any) -> dict[str, Any]:
    """The generationConfig of a question with `schema`."""
    server.say(answer("{}", finish="STOP"))
    request = LlmRequest(contents=[types.UserContent("hi")])
    request.set_output_schema(schema)

    async def ask() -> None:
        async for _ in Gemini(base_url=server.url, api_key=SecretStr("AIza-key")).generate_content_async(request):
            pass

    asyncio.run(ask())
    assert request.config.response_schema is schema
    return server.requests[-1].body["generationConfig"]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (City, "OBJECT"),
        (list[City], "ARRAY"),
        (int, "INTEGER"),
        (types.Schema(type=types.Type.STRING), "STRING"),
    ],
)
def test_what_googles_schema_can_say_is_sent_as_one(server: GeminiServer, schema: Any, kind: str):
    config = sent(server, schema)

    assert config["responseSchema"]["type"] == kind and config["responseMimeType"] == "application/json"
    assert "responseJsonSchema" not in config


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        ({"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    ],
)
def test_what_it_cannot_is_sent_as_json_schema(server: GeminiServer, schema: Any, kind: dict[str, Any]):
    config = sent(server, schema)

    assert config["responseJsonSchema"] == kind and config["responseMimeType"] == "application/json"
    assert "responseSchema" not in config


def test_a_model_with_any_keys_is_sent_as_json_schema(server: GeminiServer):
    fields = sent(server, Open)["responseJsonSchema"]["properties"]

    assert fields["by_name"]["additionalProperties"] == {"type": "integer"}


@pytest.mark.parametrize(
    ("model", "vertex", "both"),
    [
        ("gemini-2.5-flash", "", False),
        ("gemini-3.5-pro", "", False),
        ("gemini-2.5-flash", "true", True),
        ("projects/p/locations/l/publishers/google/models/gemini-3-pro", "true", True),
        ("projects/p/locations/l/endpoints/5", "true", False),
    ],
)
def test_only_vertex_ai_takes_an_output_schema_beside_tools(
    model: str, vertex: str, both: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", vertex)

    assert Gemini(model=model).capabilities.output_schema_and_tools is both
