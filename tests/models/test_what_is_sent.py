"""What goes over the wire is what the vendors' packages make of the same arguments, though none of them converts it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply, Request
from google import genai
from google.oauth2.credentials import Credentials
from vendors import KEY

from adk_nb import types
from adk_nb.errors import AdkNbError
from adk_nb.models import Claude, Gemini, LlmRequest, OpenAILlm
from tests.support.late import late

anthropic, openai = late("anthropic"), late("openai")

REFUSED = Reply(b'{"error": {"message": "no"}}', 400, headers={"Connection": "close"})
PICTURE = types.Blob(data=b"\x89PNG\xff\xfe\xfd>?", mime_type="image/png")
VERTEX = {"vertexai": True, "project": "p-1", "location": "global", "credentials": Credentials("its-token")}


def look(city: str, days_ahead: int = 1) -> dict[str, Any]:
    """Look a city's weather up."""
    return {}


def request(*more: types.Part, **config: Any) -> LlmRequest:
    call = types.FunctionCall(id="call_1", name="look", args={"city": "Oslo \u2028 “x”", "days_ahead": 2})
    result = types.FunctionResponse(id="call_1", name="look", response={"sky_now": "clear", "nested": {"a_b": [None]}})
    declaration = types.FunctionDeclaration(
        name="look",
        description="Look a city's weather up.",
        parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}},
    )
    return LlmRequest(
        model="m-1",
        contents=[
            types.Content(role="user", parts=[types.Part(text="And the weather? 🌦"), *more]),
            types.Content(
                role="model",
                parts=[types.Part(text="I look.", thought_signature=b"\xff\x00sig"), types.Part(function_call=call)],
            ),
            types.Content(role="user", parts=[types.Part(function_response=result)]),
            types.Content(role="model", parts=[types.Part(text="Clear.")]),
            types.Content(role="user", parts=[types.Part(text="Thanks."), types.Part(inline_data=PICTURE)]),
        ],
        config=types.GenerateContentConfig(
            system_instruction="Be brief.",
            temperature=0.5,
            tools=[types.Tool(function_declarations=[declaration])],
            http_options=types.HttpOptions(headers={"x-own": "1"}),
            **config,
        ),
    )


def openai_model(url: str, **fields: Any) -> OpenAILlm:
    return OpenAILlm(model="m-1", base_url=f"{url}/v1", api_key=KEY, extra_body={"top_k": 3}, **fields)


async def by_openai(url: str, payload: dict[str, Any], stream: bool) -> None:
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    if "input" in payload:
        await client.responses.create(**payload, **({"stream": True} if stream else {}))
        return
    options: Any = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    await client.chat.completions.create(**payload, **options)


async def by_anthropic(url: str, payload: dict[str, Any], stream: bool) -> None:
    client = anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
    await client.messages.create(**payload, **({"stream": True} if stream else {}))


def by_google(**place: Any) -> Callable[[str, dict[str, Any], bool], Awaitable[None]]:
    async def send(url: str, payload: dict[str, Any], stream: bool) -> None:
        key = {} if place else {"api_key": KEY}
        models: Any = genai.Client(**key, **place, http_options=types.HttpOptions(base_url=url)).aio.models
        if not stream:
            await models.generate_content(**payload)
            return
        async for _ in await models.generate_content_stream(**payload):
            pass

    return send


SENDERS = {
    "openai": (openai_model, by_openai),
    "openai-responses": (lambda url: openai_model(url, responses=True), by_openai),
    "anthropic": (lambda url: Claude(model="m-1", base_url=url, api_key=KEY), by_anthropic),
    "gemini": (lambda url: Gemini(model="m-1", base_url=url, api_key=KEY), by_google()),
    "vertex": (lambda url: Gemini(model="m-1", base_url=url, client_kwargs=VERTEX), by_google(**VERTEX)),
}
HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "content-type", "anthropic-version", "x-own")


async def both(server: GeminiServer, name: str, asked: LlmRequest, stream: bool) -> tuple[Request, Request]:
    """What adk_nb sends, and what the package sends with the same arguments; both are refused."""
    model_of, by_package = SENDERS[name]
    model: Any = model_of(server.url)
    server.replies.extend([REFUSED, REFUSED])
    with suppress(AdkNbError):
        async for _ in model.generate_content_async(asked, stream=stream):
            pass
    payload = model.payload(asked, "m-1")
    with suppress(openai.APIStatusError, anthropic.APIStatusError, genai.errors.APIError):
        await by_package(server.url, payload, stream)
    ours, theirs = server.requests
    return ours, theirs


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SENDERS)
def test_a_conversation_with_calls_and_pictures_is_sent_as_the_package_would(
    server: GeminiServer, name: str, stream: bool
):
    ours, theirs = asyncio.run(both(server, name, request(), stream))

    assert in_camel_case(ours.body) == in_camel_case(theirs.body)
    assert (ours.path, ours.query) == (theirs.path, theirs.query)
    assert {key: ours.headers.get(key) for key in HEADERS} == {key: theirs.headers.get(key) for key in HEADERS}


@pytest.mark.parametrize(
    "part",
    [
        types.Part(executable_code=types.ExecutableCode(code="1 + 1", language=types.Language.PYTHON)),
        types.Part(file_data=types.FileData(file_uri="gs://b/a.pdf", mime_type="application/pdf")),
        types.Part(inline_data=PICTURE, video_metadata=types.VideoMetadata(fps=2.0)),
        types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png", display_name="a.png")),
    ],
    ids=["code", "file", "fps", "name"],
)
@pytest.mark.parametrize("name", ["gemini", "vertex"])
def test_every_part_reaches_gemini_as_google_genai_sends_it(server: GeminiServer, name: str, part: types.Part):
    ours, theirs = asyncio.run(both(server, name, request(part), stream=False))

    assert in_camel_case(ours.body) == in_camel_case(theirs.body)


def test_fields_that_the_author_adds_stay_beside_the_conversation(server: GeminiServer):
    model = Gemini(
        model="m-1", base_url=server.url, api_key=KEY, http_options=types.HttpOptions(extra_body={"labels": {"a": "b"}})
    )
    server.replies.append(REFUSED)

    async def ask() -> None:
        async for _ in model.generate_content_async(request()):
            pass

    with suppress(AdkNbError):
        asyncio.run(ask())

    assert server.requests[0].body["labels"] == {"a": "b"}
    assert server.requests[0].body["contents"][0]["parts"] == [{"text": "And the weather? 🌦"}]


def in_camel_case(value: Any, path: tuple[str, ...] = ()) -> Any:
    """Proto JSON takes fields of files in either spelling, and google-genai sends those in snake case."""
    if isinstance(value, list):
        return [in_camel_case(item, path) for item in value]
    if isinstance(value, dict):
        return {
            (SPELLED.get(key, key) if path[-1:] and path[-1] in FILES else key): in_camel_case(item, (*path, key))
            for key, item in value.items()
        }
    return value


FILES = ("inlineData", "fileData")
SPELLED = {"mime_type": "mimeType", "file_uri": "fileUri", "display_name": "displayName"}
