"""OpenAILlm beyond what all adapters keep: addresses, keys, and the ways in which servers spell their answers."""

import asyncio
import json
import os
from contextlib import aclosing
from typing import Any, Literal

import pytest
from gemini_server import GeminiServer, Reply
from pydantic import BaseModel, SecretStr
from vendors import KEY, OPENAI, Call, check_openai

from adk_nb import types
from adk_nb.errors import ConfigurationError, MissingKeyError, ModelError, UnexpectedModelAnswer
from adk_nb.models import (
    Claude,
    FallbackModel,
    Gemini,
    LLMRegistry,
    LlmRequest,
    LlmResponse,
    OllamaLlm,
    OpenAILlm,
)


class Forecast(BaseModel):
    city: str
    sky: Literal["clear", "grey"]


class Loose(BaseModel):
    city: str = "Oslo"


def test_a_null_in_a_stream_does_not_end_it(server: GeminiServer):
    OPENAI.say(server, "Mild ", "and dry.", stream=True)
    reply = server.replies[-1]
    reply.body = reply.body.replace(b"data: ", b"data: null\n\ndata: ")

    *pieces, whole = ask(OPENAI.model(server), stream=True)

    assert "".join(piece.text for piece in pieces) == whole.text == "Mild and dry."
    assert whole.usage_metadata and whole.usage_metadata.total_token_count == 30


def ask(model: Any, *, stream: bool = False, **config: Any) -> list[LlmResponse]:
    asked = LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(**config))

    async def collect() -> list[LlmResponse]:
        async with aclosing(model.generate_content_async(asked, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


def stream(server: GeminiServer, *deltas: dict[str, Any], finish: str | None = "tool_calls") -> LlmResponse:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    body = b"".join(b"data: " + json.dumps({**about, "choices": [one]}).encode() + b"\n\n" for one in choices)
    headers = {"Content-Type": "text/event-stream"}
    server.replies.append(Reply(body + b"data: [DONE]\n\n", headers=headers, framing="chunked"))
    return ask(OPENAI.model(server), stream=True)[-1]


def fragment(index: int | None, arguments: str, name: str | None = None, id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    told = {"function": function} | ({"index": index} if index is not None else {}) | ({"id": id} if id else {})
    return {"tool_calls": [told]}


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_a_server_numbers_alike_are_told_apart_by_their_ids(server: GeminiServer, index: int | None):
    whole = stream(
        server,
        fragment(index, '{"city": "Oslo"}', "weather", "a"),
        fragment(index, '{"city": ', "weather", "b"),
        fragment(index, '"Rome"}'),
    )

    assert [(call.id, call.args) for call in whole.get_function_calls()] == [
        ("a", {"city": "Oslo"}),
        ("b", {"city": "Rome"}),
    ]


def test_an_id_that_is_repeated_with_every_fragment_is_one_call(server: GeminiServer):
    whole = stream(
        server, fragment(0, '{"city": ', "weather", "a"), fragment(0, '"Oslo"', "", "a"), fragment(0, "}", None, "a")
    )

    assert [(call.id, call.args) for call in whole.get_function_calls()] == [("a", {"city": "Oslo"})]


def test_a_call_without_an_id_and_a_plain_stop_is_still_one(server: GeminiServer):
    whole = stream(server, fragment(0, "{}", "look"), finish="stop")

    assert [(call.id, call.name) for call in whole.get_function_calls()] == [(None, "look")]


def test_a_refusal_is_words(server: GeminiServer):
    whole = stream(server, {"refusal": "I would "}, {"refusal": "rather not."}, finish="stop")

    assert (whole.text, whole.error_code) == ("I would rather not.", None)


def test_a_reason_that_nobody_knows_is_told_as_other(server: GeminiServer):
    assert stream(server, {"content": "Hm."}, finish="tired").error_code == "OTHER"


@pytest.mark.parametrize("schema", [Forecast, Loose, list[str], {"type": "object", "additionalProperties": True}])
def test_a_schema_is_strict_where_it_can_be(server: GeminiServer, schema: Any):
    OPENAI.say(server, "{}")

    ask(OPENAI.model(server), response_schema=schema)

    body = server.requests[0].body
    check_openai(body)
    told = body["response_format"]["json_schema"]
    assert told["strict"] is (schema is Forecast)
    assert (told["schema"].get("additionalProperties") is False) is (schema is Forecast)


def test_what_a_server_knows_beyond_the_protocol_can_be_told_to_it(server: GeminiServer):
    OPENAI.say(server, "Well.")

    ask(OPENAI.model(server, extra_body={"top_k": 5}), max_output_tokens=9)

    assert server.requests[0].body.items() >= {"top_k": 5, "max_tokens": 9}.items()


def test_openai_itself_is_told_of_the_limit_in_its_newer_word():
    model = OpenAILlm(model="gpt-5")

    question = model.payload(LlmRequest(config=types.GenerateContentConfig(max_output_tokens=9)), "gpt-5")

    assert question.items() >= {"max_completion_tokens": 9}.items()
    assert model.capabilities.output_schema_and_tools


def test_thinking_is_asked_for_as_effort(server: GeminiServer):
    OPENAI.say(server, "Well.")

    ask(OPENAI.model(server), thinking_config=types.ThinkingConfig(thinking_level="LOW"))

    check_openai(server.requests[0].body)
    assert server.requests[0].body["reasoning_effort"] == "low"


def test_a_gateway_s_refusal_that_comes_as_a_success_is_told(server: GeminiServer):
    server.replies.append(Reply(json.dumps({"error": {"message": "no credits left", "code": 402}}).encode()))

    with pytest.raises(UnexpectedModelAnswer, match=r"no credits left"):
        ask(OPENAI.model(server))


@pytest.mark.parametrize("said", [("Mild.",), ("Let me see.", Call("look", {"city": "Oslo"}))])
def test_a_server_that_does_not_stream_is_heard_all_the_same(server: GeminiServer, said: tuple[str | Call, ...]):
    for one_by_one in (True, False):
        OPENAI.say(server, *said)

        answer = ask(OPENAI.model(server), stream=one_by_one)[-1]

        assert answer.text == said[0]
        assert [(one.name, one.args) for one in answer.get_function_calls()] == (
            [("look", {"city": "Oslo"})] if said[1:] else []
        )
        assert answer.usage_metadata and answer.usage_metadata.total_token_count == 30


def test_a_stream_by_another_name_is_one(server: GeminiServer):
    OPENAI.say(server, "Mild.", stream=True)
    server.replies[-1].headers["Content-Type"] = "application/json"

    assert ask(OPENAI.model(server), stream=True)[-1].text == "Mild."


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize(
    ("kind", "body"),
    [("text/html", f"<p>Hello {KEY}"), ("application/json", '{"foo": 1}'), ("application/json", '{"choices": null}')],
)
def test_a_missing_answer_is_reported_with_what_came(server: GeminiServer, kind: str, body: str, one_by_one: bool):
    server.replies.append(Reply(body.encode(), headers={"Content-Type": kind}))

    with pytest.raises(UnexpectedModelAnswer, match=r"; check its address") as told:
        ask(OPENAI.model(server), stream=one_by_one)

    assert body[1:5] in str(told.value)
    assert KEY not in str(told.value)


@pytest.mark.parametrize("kind", [OpenAILlm, OllamaLlm, Claude, Gemini, FallbackModel])
def test_a_field_that_there_is_not_is_refused_by_name(kind: Any):
    known = {"models": ["offline"]} if kind is FallbackModel else {"api_key": KEY}

    with pytest.raises(ConfigurationError, match=rf"^{kind.__name__}: .*'modle'; did you mean 'model'"):
        kind(**known, modle="x")


def test_a_wrong_value_is_refused_and_no_key_is_shown():
    with pytest.raises(ConfigurationError, match=r"^OpenAILlm: .*'timeot'; .*'timeout'\?$"):
        OpenAILlm(model="x", timeot=3)
    with pytest.raises(ConfigurationError, match=r"^OpenAILlm: 'api_key': ") as told:
        OpenAILlm(model="x", api_key=[KEY])

    assert KEY not in str(told.value)


@pytest.mark.parametrize("address", ["127.0.0.1:8000/v1", "http://127.0.0.1:port/v1", "http://[x/v1", "nonsense"])
def test_an_address_that_is_none_is_told_without_asking(address: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigurationError, match=r"'m': its url ") as told:
        ask(OpenAILlm(model="m", base_url=address))
    assert ("; write http://127.0.0.1:8000/v1" in str(told.value)) is address.startswith("127")

    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ConfigurationError, match=r"'m': its url "):
        ask(OpenAILlm(model="m"))


def test_a_result_s_image_is_told_in_words_to_a_model_that_sees_none(server: GeminiServer):
    OPENAI.say(server, "Fine.")
    blobs = [types.FunctionResponseBlob(data=b"x", mime_type=kind) for kind in ("image/png", "application/pdf")]
    parts = [types.FunctionResponsePart(inline_data=blob) for blob in blobs]
    result = types.FunctionResponse(id="a", name="look", response={"result": "a cat"}, parts=parts)
    asked = LlmRequest(
        contents=[
            types.UserContent("Go"),
            types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(id="a", name="look"))]),
            types.Content(role="user", parts=[types.Part(function_response=result)]),
        ]
    )

    async def say() -> None:
        model = OPENAI.model(server, lacks={"images"})
        async with aclosing(model.generate_content_async(asked)) as responses:
            assert [response.text async for response in responses] == ["Fine."]

    asyncio.run(say())

    body = server.requests[0].body
    check_openai(body)
    told, shown = body["messages"][2:]
    assert "(image/png)" in told["content"]
    assert [one["type"] for one in shown["content"]] == ["file"]


def test_without_a_key_openai_is_not_called(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(MissingKeyError, match=r"'gpt-5' .* OPENAI_API_KEY .*%key"):
        ask(LLMRegistry.new_llm("openai:gpt-5"))


def test_a_key_from_the_environment_is_sent_and_hidden(monkeypatch: pytest.MonkeyPatch, server: GeminiServer):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment-12345")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    OPENAI.refuse(server, 400, "sk-from-the-environment-12345 is no way to talk")

    with pytest.raises(Exception, match=r"HTTP 400: (?!.*sk-from)"):
        ask(LLMRegistry.new_llm("gpt-5"))

    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == f"Bearer {os.environ['OPENAI_API_KEY']}"


@pytest.mark.parametrize("host", ["{host}", "http://{host}", "http://{host}/"])
def test_ollama_is_asked_where_its_variable_says_and_needs_no_key(
    monkeypatch: pytest.MonkeyPatch, server: GeminiServer, host: str
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", host.format(host=server.url.removeprefix("http://")))
    OPENAI.say(server, "Well.")

    answer = ask(LLMRegistry.new_llm("ollama:llama3.2:1b"))[-1]

    assert answer.text == "Well."
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["model"] == "llama3.2:1b"
    assert isinstance(LLMRegistry.new_llm("ollama:llama3.2:1b"), OllamaLlm)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("192.168.1.5", "http://192.168.1.5:11434/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("box:8080/ollama/", "http://box:8080/ollama/v1"),
        ("https://box", "https://box/v1"),
    ],
)
def test_a_host_of_ollama_without_scheme_and_port_has_ollamas_port(
    monkeypatch: pytest.MonkeyPatch, host: str, url: str
):
    monkeypatch.setenv("OLLAMA_HOST", host)

    assert OllamaLlm().address() == url


def test_where_nobody_answers_is_told_and_what_to_do(monkeypatch: pytest.MonkeyPatch):
    with GeminiServer() as server:
        place = server.url.removeprefix("http://")
    monkeypatch.setenv("OLLAMA_HOST", place)
    once: dict[str, Any] = {"retry_options": {"attempts": 1}}

    with pytest.raises(ModelError, match=rf"'llama3' at http://{place}/v1 .*: ollama serve"):
        ask(OllamaLlm(model="llama3", **once))
    with pytest.raises(ModelError, match=rf"'http://{place}/v1' .*; start the server"):
        ask(OpenAILlm(model=f"http://{place}/v1", **once))


def test_a_refused_key_is_called_by_what_was_sent(monkeypatch: pytest.MonkeyPatch, server: GeminiServer):
    def hint(model: OpenAILlm) -> str:
        OPENAI.refuse(server, 401, "no")
        with pytest.raises(ModelError) as told:
            ask(model)
        return str(told.value).partition("no; ")[2]

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    there = f"{server.url}/v1"

    assert hint(OpenAILlm(model="m", base_url=there)) == "check OPENAI_API_KEY"
    assert hint(OpenAILlm(model="m", base_url=there, api_key=SecretStr("other"))) == "check api_key"
    none = "check api_key, since none was sent: OpenAILlm(api_key=..., base_url=...)"
    assert hint(OpenAILlm(model=f"{there}#m")) == none
    monkeypatch.delenv("OPENAI_API_KEY")
    assert hint(OpenAILlm(model="m", base_url=there)) == none


@pytest.mark.parametrize(("behind", "asked"), [("#qwen3", "qwen3"), ("", "tiny.gguf"), ("/", "tiny.gguf")])
def test_an_address_in_place_of_a_name_is_a_server_s_own_model_and_is_sent_no_key_of_openai_s(
    monkeypatch: pytest.MonkeyPatch, server: GeminiServer, behind: str, asked: str
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    if asked == "tiny.gguf":
        server.say({"object": "list", "data": [{"id": "tiny.gguf", "object": "model"}, {"id": "b", "object": "model"}]})
    OPENAI.say(server, "Mild.")

    assert ask(LLMRegistry.new_llm(f"{server.url}/v1{behind}"))[-1].text == "Mild."

    assert server.requests[-1].body["model"] == asked
    assert [one.path for one in server.requests[:-1]] == (["GET /v1/models"] if asked == "tiny.gguf" else [])
    assert "sk-of-openai" not in str([one.headers for one in server.requests])


def test_a_server_that_lists_no_models_is_to_be_asked_for_one_by_name(server: GeminiServer):
    server.say({"object": "list", "data": []})

    with pytest.raises(ModelError, match=r"name one: http://127.0.0.1:\d+/v1#NAME"):
        ask(LLMRegistry.new_llm(f"{server.url}/v1"))


def test_an_address_whose_v1_was_forgotten_is_told_so(server: GeminiServer):
    server.replies.append(Reply(b"no such page", 404))

    with pytest.raises(ModelError, match=rf"HTTP 404: .*; did you mean {server.url}/v1, "):
        ask(LLMRegistry.new_llm(server.url))


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ],
)
def test_a_conversation_that_is_too_long_is_told_with_the_ways_out(server: GeminiServer, message: str):
    OPENAI.refuse(server, 400, message)

    with pytest.raises(ModelError) as raised:
        ask(OPENAI.model(server))

    for way in ("%session new", "%session fork", "ContextFilterPlugin", "EventsCompactionConfig"):
        assert way in str(raised.value)


def test_an_address_of_a_method_is_refused_with_that_of_the_api(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigurationError, match=r"'http://127\.0\.0\.1:8080/v1'"):
        OpenAILlm(model="qwen3", base_url="http://127.0.0.1:8080/v1/chat/completions")

    monkeypatch.setenv("OPENAI_BASE_URL", "https://example.test/api/chat/completions")
    with pytest.raises(ConfigurationError, match=r"'https://example\.test/api'"):
        OpenAILlm(model="qwen3")
