"""Gemini over real HTTP: what arrives at the service, and what comes of its answers and refusals."""

import asyncio
import copy
import traceback
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from gemini_server import USAGE, GeminiServer, Reply, answer, calls, refusal
from google.oauth2.credentials import Credentials
from vendors import check_gemini

from adk_nb import types
from adk_nb.errors import (
    ConfigurationError,
    MissingKeyError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelAnswer,
)
from adk_nb.models import Gemini, LlmRequest, LlmResponse
from adk_nb.models.connections import PerLoop

FLASH = "gemini-2.5-flash"
KEY = "AIza-a-key-that-must-not-be-shown"


def gemini(server: GeminiServer, *, attempts: int = 1, **fields: Any) -> Gemini:
    patience = types.HttpRetryOptions(attempts=attempts, initial_delay=0.01, max_delay=0.02, jitter=0.01)
    return Gemini(**{"model": FLASH, "base_url": server.url, "api_key": KEY, "retry_options": patience} | fields)


def question(*contents: str | types.Content, **config: Any) -> LlmRequest:
    return LlmRequest(
        contents=[types.UserContent(content) if isinstance(content, str) else content for content in contents],
        config=types.GenerateContentConfig(**config),
    )


def ask(model: Gemini, request: LlmRequest | None = None, *, stream: bool = False) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        sent_request = request or question("How is Oslo?")
        return [response async for response in model.generate_content_async(sent_request, stream=stream)]

    return asyncio.run(collect())


# --- what is asked


def test_the_request_that_arrives_is_what_was_asked(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = types.FunctionDeclaration(name="weather", description="Weather now", parameters_json_schema=schema)
    request = question(
        "How is Oslo?",
        types.Content(role="model", parts=[types.Part(function_call=_call("adk-1"))]),
        types.Content(role="user", parts=[types.Part(function_response=_result("adk-1"))]),
        system_instruction="Be brief.",
        temperature=0.2,
        max_output_tokens=50,
        tools=[types.Tool(function_declarations=[tool])],
    )

    ask(gemini(server), request)

    (sent_request,) = server.requests
    assert sent_request.path.endswith("/models/gemini-2.5-flash:generateContent")
    assert sent_request.headers["x-goog-api-key"] == KEY
    # google-genai 3.4 spells this one as in Python; the service reads both.
    (declared,) = sent_request.body["tools"][0]["functionDeclarations"]
    declared["parametersJsonSchema"] = declared.pop("parameters_json_schema", None) or declared["parametersJsonSchema"]
    assert sent_request.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
        "contents": [
            {"role": "user", "parts": [{"text": "How is Oslo?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": "mild"}}}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Weather now", "parametersJsonSchema": schema}
                ]
            }
        ],
        "generationConfig": {"temperature": 0.2, "maxOutputTokens": 50},
    }


def test_a_stream_is_asked_for_as_server_sent_events(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"), stream=True)

    ask(gemini(server, model="gemini-2.5-pro"), stream=True)

    assert server.requests[0].path.endswith("gemini-2.5-pro:streamGenerateContent")
    assert server.requests[0].query == {"alt": ["sse"]}


def test_an_id_the_service_gave_is_sent_back(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))

    called = types.Content(role="model", parts=[types.Part(function_call=_call("f-9"))])
    ask(
        gemini(server),
        question("Go", called, types.Content(role="user", parts=[types.Part(function_response=_result("f-9"))])),
    )

    assert server.requests[0].body["contents"][1]["parts"][0]["functionCall"]["id"] == "f-9"
    assert server.requests[0].body["contents"][2]["parts"][0]["functionResponse"]["id"] == "f-9"


def test_what_claude_has_signed_is_not_sent(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))
    thought = types.Part(text="Hm.", thought=True, thought_signature=b"claude:c2ln")

    ask(gemini(server), question("Go", types.Content(role="model", parts=[thought, types.Part(text="Well.")]), "And?"))

    assert server.requests[0].body["contents"][1]["parts"] == [{"text": "Well."}]


def test_a_service_is_not_told_that_a_result_is_an_interim_one(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))
    interim = _result("f-9").model_copy(update={"will_continue": True})

    called = types.Content(role="model", parts=[types.Part(function_call=_call("f-9"))])
    content = types.Content(role="user", parts=[types.Part(function_response=interim)])
    ask(gemini(server), question("Go", called, content))

    assert server.requests[0].body["contents"][2]["parts"][0]["functionResponse"] == {
        "id": "f-9",
        "name": "weather",
        "response": {"result": "mild"},
    }


@pytest.mark.parametrize("stream", [False, True])
def test_the_request_is_not_changed(server: GeminiServer, stream: bool):
    server.say(answer("Mild.", finish="STOP"), stream=stream)
    request = question(types.Content(role="model", parts=[types.Part(function_call=_call("adk-1"))]), temperature=0.1)
    earlier_request, contents = request.model_copy(deep=True), list(request.contents)

    ask(gemini(server), request, stream=stream)

    assert request == earlier_request
    assert [content is other_content for content, other_content in zip(request.contents, contents, strict=True)] == [
        True
    ]


@pytest.mark.parametrize("contents", [[], [types.ModelContent("Well?")]])
def test_the_service_always_hears_the_user_last(server: GeminiServer, contents: list[types.Content]):
    server.say(answer("Mild.", finish="STOP"))

    ask(gemini(server), LlmRequest(contents=contents))

    assert server.requests[0].body["contents"][-1]["role"] == "user"


def test_functions_are_not_called_behind_our_back(server: GeminiServer):
    called: list[str] = []

    def weather(city: str) -> str:
        """Weather now."""
        called.append(city)
        return "mild"

    server.say(answer(calls("weather", city="Oslo"), finish="STOP"))

    (response,) = ask(gemini(server), question("How is Oslo?", tools=[weather]))

    assert [call.name for call in response.get_function_calls()] == ["weather"]
    assert called == []


# --- what is answered


def test_text_thoughts_usage_and_the_model_that_answered_are_kept(server: GeminiServer):
    thought = {"text": "Oslo is in Norway.", "thought": True}
    server.say(answer(thought, "Mild.", finish="STOP", usageMetadata=USAGE))

    (response,) = ask(gemini(server))

    assert [(part.text, part.thought) for part in response.parts] == [("Oslo is in Norway.", True), ("Mild.", None)]
    assert response.text == "Mild."
    assert response.finish_reason == types.FinishReason.STOP
    assert response.error_code is None
    assert response.model_version == "gemini-2.5-flash"
    assert response.usage_metadata
    assert response.usage_metadata.total_token_count == 12


def test_parallel_calls_come_in_the_models_order(server: GeminiServer):
    signed = calls("weather", city="Oslo") | {"thoughtSignature": "c2ln"}
    server.say(answer(signed, calls("weather", city="Rome"), finish="STOP"))

    (response,) = ask(gemini(server))

    assert [call.args for call in response.get_function_calls()] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert response.parts[0].thought_signature == b"sig"


def test_a_blocked_prompt_is_an_answer_with_its_reason(server: GeminiServer):
    server.say({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE})

    (response,) = ask(gemini(server))

    assert (response.error_code, response.content) == ("PROHIBITED_CONTENT", None)


def test_a_safety_stop_is_an_answer_with_its_reason(server: GeminiServer):
    server.say(answer(finish="SAFETY"))

    (response,) = ask(gemini(server))

    assert (response.error_code, response.content) == ("SAFETY", None)


def test_an_empty_answer_is_an_answer_without_parts(server: GeminiServer):
    server.say(answer(finish="STOP"))

    (response,) = ask(gemini(server))

    assert response.parts == []
    assert response.error_code is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"candidates": []}', b'{"candidates": [{}]}'])
def test_a_response_without_an_answer_is_an_error_that_names_the_model(server: GeminiServer, body: bytes):
    server.replies.append(Reply(body))

    with pytest.raises(UnexpectedModelAnswer, match=r"'gemini-2\.5-flash'"):
        ask(gemini(server))


# --- what is refused


@pytest.mark.parametrize("stream", [False, True])
def test_a_busy_service_is_retried_after_the_requested_wait(
    server: GeminiServer, stream: bool, caplog: pytest.LogCaptureFixture
):
    server.say(refusal(429, "RESOURCE_EXHAUSTED", "Slow down."), status=429, headers={"Retry-After": "0.05"})
    server.say(answer("Mild.", finish="STOP"), stream=stream)

    responses = ask(gemini(server, attempts=3, retry_options=None), stream=stream)

    assert responses[-1].text == "Mild."
    assert len(server.requests) == 2
    assert server.requests[0] == server.requests[1]
    [message] = [record.getMessage() for record in caplog.records if record.name.startswith("adk_nb")]
    assert message.startswith("model 'gemini-2.5-flash': HTTP 429; ")
    assert message.endswith("in 0.1 s (try 2)")


def test_the_wait_may_stand_in_the_body(server: GeminiServer):
    retry_info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"}
    server.say(refusal(429, "RESOURCE_EXHAUSTED", "Slow down.", retry_info), status=429)
    server.say(answer("Mild.", finish="STOP"))

    (response,) = ask(gemini(server, retry_options=None, retry_seconds=0.9))

    assert response.text == "Mild."


@pytest.mark.parametrize("wait", ["3600", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_wait_that_is_too_long_is_not_waited(server: GeminiServer, wait: str):
    server.say(refusal(429, "RESOURCE_EXHAUSTED", "Slow down."), status=429, headers={"Retry-After": wait})

    with pytest.raises(ModelHTTPError, match=r"HTTP 429: RESOURCE_EXHAUSTED: .*; wait") as caught:
        ask(gemini(server, attempts=5))

    assert (caught.value.status, caught.value.model) == (429, "gemini-2.5-flash")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("stream", [False, True])
def test_attempts_have_an_end(server: GeminiServer, status: int, stream: bool):
    for _ in range(3):
        server.say(refusal(status, "UNAVAILABLE", "Busy."), status=status)

    with pytest.raises(ModelHTTPError, match=f"answered HTTP {status}: UNAVAILABLE: Busy"):
        ask(gemini(server, attempts=3), stream=stream)

    assert len(server.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_wrong_request_is_not_repeated(server: GeminiServer, status: int, stream: bool):
    server.say(refusal(status, "INVALID_ARGUMENT", "No such field."), status=status)

    with pytest.raises(ModelHTTPError, match=f"HTTP {status}: .*No such field"):
        ask(gemini(server, attempts=3), stream=stream)

    assert len(server.requests) == 1


def test_a_refusal_without_json_is_summarized(server: GeminiServer):
    server.replies.append(Reply(b"<html>" + b"Bad gateway " * 500, status=502, headers={"Content-Type": "text/html"}))

    with pytest.raises(ModelHTTPError, match="502: Bad Gateway: <html>") as caught:
        ask(gemini(server))

    assert len(str(caught.value)) < 700


def test_the_key_is_not_in_what_is_said_of_a_refusal(server: GeminiServer):
    message = f"API key not valid: {KEY} at https://example.test/v1?key={KEY}&x=1."
    server.say(refusal(400, "INVALID_ARGUMENT", message, {"reason": "API_KEY_INVALID"}), status=400)

    with pytest.raises(ModelHTTPError, match="; check api_key") as caught:
        ask(gemini(server))

    assert KEY not in "".join(traceback.format_exception(caught.value)) + caught.value.body
    assert "x=1" not in str(caught.value)


def test_the_key_is_not_in_the_models_repr(server: GeminiServer):
    assert KEY not in repr(gemini(server)) + str(gemini(server).model_dump())


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_is_no_json_is_one_clear_error(server: GeminiServer, stream: bool):
    server.replies.append(Reply(b"<html>" + b"log in " * 1000))

    with pytest.raises(UnexpectedModelAnswer, match=r"'gemini-2\.5-flash'.*<html>log in") as caught:
        ask(gemini(server), stream=stream)

    assert len(str(caught.value)) < 700
    assert "log in " * 100 not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", [{"candidates": 5}, {"candidates": [{"content": {"parts": [{"text": 5}]}}]}])
def test_an_answer_of_another_shape_is_one_clear_error(server: GeminiServer, body: dict[str, Any], stream: bool):
    server.say(body, stream=stream)

    with pytest.raises(UnexpectedModelAnswer, match=r"'gemini-2\.5-flash' .*: (Validation|Type)Error"):
        ask(gemini(server), stream=stream)


def test_what_the_api_cannot_take_is_the_authors_mistake(server: GeminiServer):
    with pytest.raises(ConfigurationError, match="audio_timestamp"):
        ask(gemini(server), question("Hi", audio_timestamp=True))

    assert server.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_that_cannot_be_reached_is_tried_again_and_named(stream: bool, caplog: pytest.LogCaptureFixture):
    with GeminiServer() as server:
        nobody_there = gemini(server, attempts=3)

    with pytest.raises(ModelError, match=r"'gemini-2.5-flash' at http.*\(ConnectError.*base_url"):
        ask(nobody_there, stream=stream)

    assert len([record for record in caplog.records if record.name.startswith("adk_nb")]) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_that_says_nothing_is_left(server: GeminiServer, stream: bool):
    server.say(answer("Mild.", finish="STOP"), stream=stream)
    ask(gemini(server), stream=stream)  # a first question imports much, which takes longer than the next one may
    server.replies.append(Reply(b"", framing="chunked", then_wait=True))

    with pytest.raises(ModelTimeoutError, match=r"raise Gemini\(timeout=0\.2"):
        ask(gemini(server, timeout=0.2), stream=stream)

    assert server.client_left.wait(30)
    assert len(server.requests) == 2


def test_a_connection_that_is_not_made_in_time_is_tried_again(server: GeminiServer, caplog: pytest.LogCaptureFixture):
    with pytest.raises(ModelTimeoutError, match=r"no connection .*'gemini-2\.5-flash' at "):
        ask(gemini(server, attempts=2, connect_timeout=1e-9))

    [record] = caplog.records
    assert "'gemini-2.5-flash': no connection" in record.getMessage()
    assert server.requests == []


# --- the key


@pytest.mark.parametrize("stream", [False, True])
def test_a_missing_key_is_told_before_anything_is_sent(server: GeminiServer, stream: bool):
    with pytest.raises(MissingKeyError) as caught:
        ask(gemini(server, api_key=None), stream=stream)

    for text in ("'gemini-2.5-flash'", "GOOGLE_API_KEY", "GEMINI_API_KEY", 'model="offline"', "-m offline"):
        assert text in str(caught.value)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("environment", "payload"),
    [
        ({"GOOGLE_API_KEY": "one"}, "one"),
        ({"GEMINI_API_KEY": "two"}, "two"),
        ({"GOOGLE_API_KEY": "one", "GEMINI_API_KEY": "two"}, "one"),
        ({"GOOGLE_API_KEY": "", "GEMINI_API_KEY": "two"}, "two"),
    ],
)
def test_the_key_comes_from_the_environment(
    server: GeminiServer, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], payload: str
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    server.say(answer("Mild.", finish="STOP"))

    ask(gemini(server, api_key=None))

    assert server.requests[0].headers["x-goog-api-key"] == payload


def test_a_key_that_was_mended_is_used_at_the_next_question(server: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    model = gemini(server, api_key=None)
    for _ in range(2):
        server.say(answer("Mild.", finish="STOP"))

    async def run_pair() -> None:
        for key in ("wrong", "right"):
            monkeypatch.setenv("GOOGLE_API_KEY", key)
            async for _ in model.generate_content_async(question("Hi")):
                pass

    asyncio.run(run_pair())

    assert [request.headers["x-goog-api-key"] for request in server.requests] == ["wrong", "right"]


def test_vertex_needs_no_key_of_the_gemini_api(server: GeminiServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    server.say(answer("Mild.", finish="STOP"))
    # A gateway that holds the Google Cloud credentials itself.
    options = types.HttpOptions(base_url_resource_scope=types.ResourceScope.COLLECTION)

    ask(gemini(server, api_key=None, http_options=options))

    assert server.requests[0].path.endswith("/publishers/google/models/gemini-2.5-flash:generateContent")
    assert "x-goog-api-key" not in server.requests[0].headers


def test_a_model_of_a_project_is_asked_of_vertex_with_its_own_credentials(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))
    vertex = {"vertexai": True, "project": "p-1", "location": "europe-west4", "credentials": Credentials("its-token")}

    ask(gemini(server, api_key=None, client_kwargs=vertex))

    (request,) = server.requests
    place = "projects/p-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    assert request.path.endswith(place)
    assert request.headers["authorization"] == "Bearer its-token"
    assert gemini(server, client_kwargs=vertex).capabilities.output_schema_and_tools
    assert "its-token" not in repr(gemini(server, client_kwargs=vertex))


@pytest.mark.parametrize("vertex", [False, True])
def test_thinking_and_safety_are_asked_for_in_the_service_s_words(server: GeminiServer, vertex: bool):
    server.say(answer("Mild.", finish="STOP"))
    place = {"vertexai": True, "project": "p-1", "location": "global", "credentials": Credentials("its-token")}
    request = question(
        "Go",
        thinking_config=types.ThinkingConfig(thinking_budget=512, include_thoughts=True),
        safety_settings=[
            types.SafetySetting(
                category=types.HarmCategory.HARM_CATEGORY_HARASSMENT,
                threshold=types.HarmBlockThreshold.BLOCK_ONLY_HIGH,
            )
        ],
    )

    ask(gemini(server, client_kwargs=place, api_key=None) if vertex else gemini(server), request)

    body = server.requests[0].body
    check_gemini(body)
    # google-genai 3.4 spells this one as in Python; the service reads both.
    thinking = types.ThinkingConfig.model_validate(body["generationConfig"]["thinkingConfig"])
    assert (thinking.thinking_budget, thinking.include_thoughts) == (512, True)
    assert body["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"}]


# --- connections


@pytest.mark.parametrize("stream", [False, True])
def test_one_model_serves_several_event_loops_and_leaves_nothing_open(server: GeminiServer, stream: bool):
    model = gemini(server)
    for _ in range(3):
        server.say(answer("Mild.", finish="STOP"), stream=stream)

        assert ask(model, stream=stream)[-1].text == "Mild."

    assert server.connections == 3  # and the server ends only when all were closed


def test_questions_on_one_loop_share_a_connection(server: GeminiServer):
    model = gemini(server)
    for _ in range(4):
        server.say(answer("Mild.", finish="STOP"))

    async def four_times() -> None:
        for _ in range(4):
            async for _ in model.generate_content_async(question("Hi")):
                pass

    asyncio.run(four_times())

    assert server.connections == 1


@pytest.mark.parametrize("remaining", ["closed", "dropped", "kept"])
def test_a_stream_that_is_left_early_is_closed_without_a_word(
    server: GeminiServer, remaining: str, caplog: pytest.LogCaptureFixture
):
    server.say(answer("It is "), answer("mild."), then_wait=True)
    model = gemini(server)
    stored_responses: list[AsyncGenerator[LlmResponse, None]] = []

    async def leave_early() -> str:
        responses = model.generate_content_async(question("Hi"), stream=True)
        text = (await anext(responses)).text
        if remaining == "closed":
            await responses.aclose()
        elif remaining == "kept":
            stored_responses.append(responses)
        return text

    assert asyncio.run(leave_early()) == "It is "
    assert server.client_left.wait(30)
    assert caplog.records == []


def test_a_cancelled_question_is_closed(server: GeminiServer):
    server.say(answer("It is "), answer("mild."), then_wait=True)
    model = gemini(server)

    async def cancel() -> None:
        received = asyncio.Event()

        async def listen() -> None:
            async for _ in model.generate_content_async(question("Hi"), stream=True):
                received.set()

        task = asyncio.create_task(listen())
        await asyncio.wait_for(received.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.client_left.wait, 5)

    asyncio.run(cancel())


def test_models_with_the_same_settings_share_connections(server: GeminiServer):
    for _ in range(3):
        server.say(answer("Mild.", finish="STOP"))

    async def three_agents() -> None:
        for _ in range(3):
            async for _ in gemini(server).generate_content_async(question("Hi")):
                pass

    asyncio.run(three_agents())

    assert server.connections == 1


def test_a_copied_model_opens_its_own_connections(server: GeminiServer):
    model = gemini(server, http_options=types.HttpOptions(headers={"x-team": "a"}))
    for _ in range(2):
        server.say(answer("Mild.", finish="STOP"))

    async def ask_both() -> None:
        async for _ in model.generate_content_async(question("Hi")):
            pass
        async for _ in copy.deepcopy(model).generate_content_async(question("Hi")):
            pass

    asyncio.run(ask_both())

    assert server.connections == 2
    assert [request.headers["x-team"] for request in server.requests] == ["a", "a"]


def test_what_belongs_to_a_loop_is_closed_with_it():
    texts: list[str] = []

    class Pool:
        def __init__(self) -> None:
            texts.append("open")

        async def aclose(self) -> None:
            texts.append("close")

    stored_loop: PerLoop[Pool] = PerLoop()

    async def twice() -> bool:
        return await stored_loop.get("a", Pool) is await stored_loop.get("a", Pool)

    assert asyncio.run(twice())
    assert asyncio.run(twice())
    assert texts == ["open", "close", "open", "close"]


def _call(call_id: str) -> types.FunctionCall:
    return types.FunctionCall(id=call_id, name="weather", args={"city": "Oslo"})


def _result(call_id: str) -> types.FunctionResponse:
    return types.FunctionResponse(id=call_id, name="weather", response={"result": "mild"})


@pytest.mark.parametrize("options", [{"headers": {"x-team": "tea"}}, types.HttpOptions(headers={"x-team": "tea"})])
def test_http_options_within_the_client_s_arguments_are_merged_with_our_own(server: GeminiServer, options: Any):
    server.say(answer("Mild.", finish="STOP"))
    server.say(answer("Mild.", finish="STOP"))
    own = types.HttpOptions(headers={"x-day": "today"})

    ask(gemini(server, client_kwargs={"http_options": options}))
    ask(gemini(server, client_kwargs={"http_options": options}, http_options=own))

    first, second = ({name.lower(): value for name, value in sent.headers.items()} for sent in server.requests)
    assert first["x-team"] == second["x-team"] == "tea"
    assert second["x-day"] == "today"


def test_an_address_within_the_client_s_arguments_is_the_address(server: GeminiServer):
    server.say(answer("Mild.", finish="STOP"))

    whole = ask(gemini(server, base_url=None, client_kwargs={"http_options": {"baseUrl": server.url}}))[-1]

    assert whole.text == "Mild."


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"http_options": {"headrs": {"x-team": "sk-secret-1234567"}}}, "headrs"),
        ({"http_options": 3}, "http_options"),
        ({"flavour": "mint"}, "flavour"),
        ({"http_options": {"async_client_args": {"flavour": "mint"}}}, "flavour"),
    ],
)
def test_a_wrong_argument_of_the_client_is_called_ours(server: GeminiServer, arguments: dict[str, Any], named: str):
    with pytest.raises(ConfigurationError, match=named) as raised:
        ask(gemini(server, client_kwargs=arguments))

    assert "service" not in str(raised.value) and "sk-secret" not in str(raised.value)
