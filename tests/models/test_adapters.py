"""What every adapter to a vendor's service keeps, over real HTTP against that vendor's protocol."""

import asyncio
import contextlib
import copy
import json
import pickle
import re
import socket
import threading
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import jumping_loop
import pytest
from gemini_server import GeminiServer
from pydantic import BaseModel
from vendors import KEY, VENDORS, Call, Thought, Vendor

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ConfigurationError, ModelError, ModelHTTPError, ModelTimeoutError, UnexpectedModelAnswer
from adk_nb.models import LlmRequest, LlmResponse
from tests.support.talk import Talk, summaries

PIXEL = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return request.param


def question(*contents: str | types.Content, **config: Any) -> LlmRequest:
    return LlmRequest(
        contents=[types.UserContent(content) if isinstance(content, str) else content for content in contents],
        config=types.GenerateContentConfig(**config),
    )


def ask(model: Any, request: LlmRequest | None = None, *, stream: bool = False) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        sent_request = request or question("How is Oslo?")
        async with aclosing(model.generate_content_async(sent_request, stream=stream)) as responses:
            return [response async for response in responses]

    return asyncio.run(collect())


def weather(city: str) -> str:
    """The weather now."""
    return f"{city}: mild"


class Forecast(BaseModel):
    city: str
    degrees: int


# --- the tools that it offers

BY_ID = {"type": "object", "properties": {"id": {"type": "string"}, "kind": {"const": "id"}}, "required": ["id", "all"]}
BY_NAME = {"properties": {"name": {"type": "string"}, "kind": {"const": "name"}}, "required": ["name", "all"]}
ALTERNATIVES: dict[str, Any] = {
    "anyOf": ({"type": "object", "anyOf": [BY_ID, BY_NAME]}, ["id", "kind", "name"], ["all"]),
    "oneOf": ({"oneOf": [BY_ID, {"oneOf": [BY_NAME]}]}, ["id", "kind", "name"], ["all"]),
    "allOf": ({"allOf": [BY_ID, {"anyOf": [BY_NAME, True]}]}, ["id", "kind", "name"], ["all", "id", "name"]),
    "$ref": ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [BY_ID, {"$ref": "#/$defs/a"}]}}}, ["id", "kind"], []),
    "then": ({"properties": {"a": {}}, "if": {"required": ["a"]}, "then": BY_ID}, ["a", "id", "kind"], []),
}
"""Keyword -> a schema with it at the top, the names of all properties, and what every valid value has."""


@pytest.mark.slow
@pytest.mark.parametrize("keyword", ALTERNATIVES)
def test_alternatives_of_arguments_go_in_a_form_that_the_service_takes(
    vendor: Vendor, server: GeminiServer, keyword: str
):
    schema, names, required = ALTERNATIVES[keyword]
    before = copy.deepcopy(schema)
    vendor.say(server, "Well.")
    declaration = types.FunctionDeclaration(name="find", description="Finds.", parameters_json_schema=schema)

    ask(vendor.model(server), question("Go", tools=[types.Tool(function_declarations=[declaration])]))

    vendor.check(server.requests[-1].body)
    [tool] = server.requests[-1].body["tools"]
    assert schema == before
    if vendor.name == "gemini":  # it takes them as they are
        assert types.Tool.model_validate(tool).function_declarations == [declaration]
        return
    sent = tool["function"]["parameters"] if "function" in tool else tool["input_schema"]
    # Both answer 400 to a tool whose schema is no object, or has one of these at the top.
    assert sent["type"] == "object" and not sent.keys() & {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"}
    assert (sorted(sent["properties"]), sorted(sent["required"])) == (names, required)
    if keyword in ("anyOf", "oneOf", "allOf"):
        assert sent["properties"]["kind"] == {"anyOf": [{"const": "id"}, {"const": "name"}]}


# --- a whole turn


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_with_a_tool_call_runs_through_the_runner(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, "Let me look.", Call("weather", {"city": "Oslo"}), stream=stream, framing="close")
    vendor.say(server, "It is mild.", stream=stream, framing="close")
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server), tools=[weather], instruction="Be brief."))
    mode = StreamingMode.SSE if stream else StreamingMode.NONE

    events = talk.say("How is Oslo?", config=RunConfig(streaming_mode=mode))

    assert talk.error is None
    oslo, result = {"city": "Oslo"}, {"result": "Oslo: mild"}
    assert summaries([event for event in events if not event.partial]) == [
        ("guide", f"Let me look.; calls weather({oslo})"),
        ("guide", f"answers {result}"),
        ("guide", "It is mild. ."),
    ]
    streamed = "".join(event.text for event in events if event.partial)
    assert streamed == ("Let me look." + "It is mild." if stream else "")
    assert len(server.requests) == 2
    for request in server.requests:
        vendor.check(request.body)


@pytest.mark.parametrize("stream", [False, True])
def test_several_calls_keep_their_order_and_their_ids(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, Call("weather", {"city": "Oslo"}, "c_1"), Call("weather", {}, "c_2"), stream=stream)

    whole = ask(vendor.model(server), stream=stream)[-1]

    assert [(call.id, call.args) for call in whole.get_function_calls()] == [("c_1", {"city": "Oslo"}), ("c_2", {})]
    assert (whole.finish_reason, whole.error_code) == (types.FinishReason.STOP, None)


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_stay_apart_from_words(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, Thought("Oslo is north."), "Mild.", stream=stream)

    *pieces, whole = ask(vendor.model(server), stream=stream)

    assert [(part.text, bool(part.thought)) for part in whole.parts] == [("Oslo is north.", True), ("Mild.", False)]
    assert whole.text == "Mild."
    parts = [part for piece in pieces for part in piece.parts]
    assert "".join(part.text or "" for part in parts if part.thought) == ("Oslo is north." if stream else "")


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_counted_alike_for_every_service(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, "Mild.", stream=stream)

    whole = ask(vendor.model(server), stream=stream)[-1]

    usage = whole.usage_metadata
    assert usage
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.total_token_count) == (20, 6, 30)
    assert (usage.cached_content_token_count, usage.thoughts_token_count) == (8, 4)


@pytest.mark.parametrize("stream", [False, True])
def test_the_request_is_not_changed(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, "Mild.", stream=stream)
    request = question(
        types.Content(role="model", parts=[types.Part(function_call=types.FunctionCall(name="f", args={}))])
    )
    earlier_request, contents = request.model_copy(deep=True), list(request.contents)

    ask(vendor.model(server, lacks={"images", "system_prompt", "parallel_calls"}), request, stream=stream)

    assert request == earlier_request
    assert all(content is other_content for content, other_content in zip(request.contents, contents, strict=True))


# --- what is asked


def test_settings_tools_images_and_a_schema_arrive_as_the_service_spells_them(vendor: Vendor, server: GeminiServer):
    vendor.say(server, '{"city": "Oslo", "degrees": 8}')
    tool = types.FunctionDeclaration(
        name="weather", parameters_json_schema={"type": "object", "properties": {"city": {"type": "string"}}}
    )
    request = question(
        types.Content(
            role="user",
            parts=[
                types.Part(text="Where is this?"),
                types.Part(inline_data=types.Blob(data=PIXEL, mime_type="image/png")),
                types.Part(inline_data=types.Blob(data=b"%PDF", mime_type="application/pdf", display_name="map.pdf")),
                types.Part(file_data=types.FileData(file_uri="https://x.test/a.jpg", mime_type="image/jpeg")),
                types.Part(inline_data=types.Blob(data="notes ü".encode(), mime_type="text/plain")),
            ],
        ),
        system_instruction="Be brief.",
        temperature=0.2,
        top_p=0.9,
        stop_sequences=["END"],
        max_output_tokens=50,
        response_schema=Forecast,
        tools=[types.Tool(function_declarations=[tool])],
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY")),
    )

    ask(vendor.model(server), request)

    body = server.requests[0].body
    vendor.check(body)
    settings = body.get("generationConfig", body)
    assert "m-1" in (body.get("model") or server.requests[0].path)
    assert (settings["temperature"], settings.get("top_p") or settings.get("topP")) == (0.2, 0.9)
    text = str(body)
    notes = "bm90ZXMgw7w=" if vendor.name == "gemini" else "notes ü"
    assert all(message in text for message in ("iVBORw0KGgo=", "JVBERg==", "https://x.test/a.jpg", notes, "Be brief."))
    assert "degrees" in text
    assert "END" in text


def test_an_agent_that_forbids_calls_or_allows_some_says_so(vendor: Vendor, server: GeminiServer):
    declared = [types.FunctionDeclaration(name=name) for name in ("one", "two", "three")]
    for mode, names in (("NONE", None), ("AUTO", None), ("ANY", ["two"]), ("ANY", ["two", "three"])):
        vendor.say(server, "Well.")
        calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
        request = question(
            "Go",
            tools=[types.Tool(function_declarations=declared)],
            tool_config=types.ToolConfig(function_calling_config=calling),
        )
        ask(vendor.model(server), request)
        vendor.check(server.requests[-1].body)

    if vendor.name == "gemini":  # it is told which of those that it is offered are allowed
        told_so = [sent_request.body["toolConfig"]["functionCallingConfig"] for sent_request in server.requests]
        assert [item["mode"] for item in told_so] == ["NONE", "AUTO", "ANY", "ANY"]
        assert [item.get("allowedFunctionNames") for item in told_so] == [None, None, ["two"], ["two", "three"]]
        return
    assert [len(sent_request.body["tools"]) for sent_request in server.requests] == [3, 3, 1, 2]
    choices = [sent_request.body.get("tool_choice") for sent_request in server.requests]
    assert "none" in str(choices[0])
    assert ("two" if vendor.name == "anthropic" else "required") in str(choices[2])
    (offered,) = server.requests[2].body["tools"]
    assert offered.get("function", offered)["name"] == "two"
    assert ("any" if vendor.name == "anthropic" else "required") in str(choices[3])


def test_a_model_without_parallel_calls_is_asked_for_one_and_told_of_one_at_a_time(
    vendor: Vendor, server: GeminiServer
):
    vendor.say(server, "Mild.")
    calls = [types.Part(function_call=types.FunctionCall(id=text, name="weather", args={})) for text in ("a", "b")]
    results = [
        types.Part(function_response=types.FunctionResponse(id=text, name="weather", response={"result": text}))
        for text in ("b", "a")
    ]
    request = question(
        "Go",
        types.Content(role="model", parts=[types.Part(text="Both."), *calls]),
        types.Content(role="user", parts=results),
        tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="weather")])],
    )

    ask(vendor.model(server, lacks={"parallel_calls"}), request)

    body = server.requests[0].body
    vendor.check(body)
    assert sum(turn["role"] in ("assistant", "model") for turn in vendor.turns(body)) == 2
    if vendor.name != "gemini":  # its API has no word for that
        flags = body if "parallel_tool_calls" in body else body["tool_choice"]
        assert flags.get("parallel_tool_calls", not flags.get("disable_parallel_tool_use")) is False


def test_a_model_without_images_system_prompts_and_schemas_is_told_in_words(vendor: Vendor, server: GeminiServer):
    vendor.say(server, "{}")
    image = types.Part(inline_data=types.Blob(data=PIXEL, mime_type="image/png", display_name="cat.png"))
    request = question(
        types.Content(role="user", parts=[types.Part(text="What is it?"), image]),
        system_instruction="Be brief.",
        response_schema=Forecast,
    )

    ask(vendor.model(server, lacks={"images", "system_prompt", "output_schema"}), request)

    body = server.requests[0].body
    vendor.check(body)
    assert not {"system", "systemInstruction", "response_format", "output_config"} & body.keys()
    assert "responseSchema" not in str(body)
    assert {turn["role"] for turn in vendor.turns(body)} == {"user"}
    text = str(vendor.turns(body))
    assert text.index("Be brief.") < text.index("degrees") < text.index("What is it?") < text.index("cat.png")
    assert "iVBOR" not in text


# --- refusals, retries and time


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_says_what_the_service_said_and_shows_no_key(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.refuse(server, 401, f"the key {KEY} is not one")

    with pytest.raises(ModelHTTPError, match=r"HTTP 401: .*is not one; check ") as failed:
        ask(vendor.model(server), stream=stream)

    assert failed.value.status == 401
    assert KEY not in str(failed.value)
    assert failed.value.__suppress_context__
    assert KEY not in repr(vendor.model(server))


@pytest.mark.parametrize("stream", [False, True])
def test_a_busy_service_is_asked_again_and_history_has_one_event(
    vendor: Vendor, server: GeminiServer, stream: bool, caplog: pytest.LogCaptureFixture
):
    vendor.refuse(server, 503, "busy")
    vendor.refuse(server, 429, "slower", headers={"Retry-After": "0.01"})
    vendor.say(server, "Mild.", stream=stream, framing="close")
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server, attempts=3)))
    mode = StreamingMode.SSE if stream else StreamingMode.NONE

    talk.say("How is Oslo?", config=RunConfig(streaming_mode=mode))

    assert talk.error is None
    assert summaries(talk.stored().events) == [("user", "How is Oslo? ."), ("guide", "Mild. .")]
    tries = [record.getMessage() for record in caplog.records if record.name == "adk_nb.models.retrying"]
    assert ["asking again in" in attempt for attempt in tries] == [True, True]
    assert "in 0.0 s (try 3)" in tries[1]
    attempts = talk.stored().events[-1].attempts
    assert attempts and [(attempt.model, attempt.error) for attempt in attempts] == [
        (vendor.prefix + "m-1", "HTTP 503"),
        (vendor.prefix + "m-1", "HTTP 429"),
    ]
    assert attempts[1].waited == 0.01


@pytest.mark.parametrize("stream", [False, True])
def test_a_service_that_stays_busy_is_one_error_event_that_tells_every_attempt(
    vendor: Vendor, server: GeminiServer, stream: bool
):
    for status in (503, 429, 500):
        vendor.refuse(server, status, "busy")
    talk = Talk(LlmAgent(name="guide", model=vendor.model(server, attempts=3)))
    mode = StreamingMode.SSE if stream else StreamingMode.NONE

    talk.say("How is Oslo?", config=RunConfig(streaming_mode=mode))

    assert isinstance(talk.error, ModelHTTPError)
    assert talk.error.status == 500
    _, failed = talk.stored().events
    assert [attempt.error for attempt in failed.attempts or ()] == ["HTTP 503", "HTTP 429"]
    assert "(3 attempts, with 0." in (failed.error_message or "")


def test_a_refusal_that_does_not_pass_is_not_asked_again(vendor: Vendor, server: GeminiServer):
    vendor.refuse(server, 400, "no such setting")

    with pytest.raises(ModelHTTPError, match="HTTP 400"):
        ask(vendor.model(server, attempts=3))

    assert len(server.requests) == 1


@pytest.mark.parametrize(("question", "hint"), [("3600", "wait 3600 s, as it asks"), ("1e999", "wait")])
def test_the_requested_wait_of_a_service_is_reported(vendor: Vendor, server: GeminiServer, question: str, hint: str):
    vendor.refuse(server, 429, "slower", headers={"Retry-After": question})

    with pytest.raises(ModelHTTPError, match=rf"; {hint}, or .*quota$"):
        ask(vendor.model(server, attempts=3))

    assert len(server.requests) == 1


def test_the_meaning_of_each_error_is_looked_up_once(vendor: Vendor, server: GeminiServer):
    class Counting(vendor.kind):
        def failure(self, error: Exception, *rest: Any) -> Any:
            errors.append(error)
            return super().failure(error, *rest)

    errors: list[Exception] = []
    for _ in range(3):
        vendor.refuse(server, 503, "busy")
    patience = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.02, jitter=0.01)
    fields = {"base_url": server.url + vendor.path, "api_key": KEY, "retry_options": patience}

    with pytest.raises(ModelHTTPError, match="503"):
        ask(Counting(model=f"{vendor.prefix}m-1", **fields))

    assert len(errors) == len(server.requests) == 3


def test_an_unreachable_service_is_reported(vendor: Vendor):
    with GeminiServer() as server:
        removed_model = vendor.model(server)

    with pytest.raises(ModelError, match="m-1"):
        ask(removed_model)


def too_late(model: Any, silent: threading.Event, *, stream: bool = False) -> tuple[str, float]:
    """What is said of an answer that does not come in time, and after how many seconds; none of them are waited."""

    async def collect() -> str:
        with pytest.raises(ModelTimeoutError) as late:
            async with aclosing(model.generate_content_async(question("Go"), stream=stream)) as responses:
                async for _ in responses:
                    pass
        return str(late.value)

    return jumping_loop.run(collect(), silent)


@pytest.mark.parametrize("stream", [False, True])
def test_a_first_word_is_waited_for_as_long_as_was_said(vendor: Vendor, server: GeminiServer, stream: bool):
    vendor.say(server, "Mild.", stream=stream, cut=0, then_wait=True)

    text, seconds = too_late(vendor.model(server), server.silent, stream=stream)

    assert re.search(r"; raise \w+\(timeout=300\)", text)
    assert 300 <= seconds < 360
    assert server.client_left.wait(30)


@pytest.mark.parametrize("stream", [False, True])
def test_a_total_limit_that_ends_the_wait_for_the_first_word_is_named(
    vendor: Vendor, server: GeminiServer, stream: bool
):
    vendor.say(server, "Mild.", stream=stream, cut=0, then_wait=True)

    text, seconds = too_late(vendor.model(server, total_timeout=60), server.silent, stream=stream)

    assert re.search(r"raise \w+\(total_timeout=60\)", text)
    assert 60 <= seconds < 120


@pytest.mark.parametrize(("limits", "later_number"), [({}, 120), ({"stall_timeout": 500, "total_timeout": 60}, 60)])
def test_a_stream_that_stalls_is_ended_by_the_nearer_of_its_two_limits(
    vendor: Vendor, server: GeminiServer, limits: dict[str, int], later_number: int
):
    vendor.begin(server, "It is mild.")

    text, seconds = too_late(vendor.model(server, **limits), server.silent, stream=True)

    assert re.search(r"\(stall_timeout=\d+ or total_timeout=\d+\)", text)
    assert later_number <= seconds < later_number + 60
    assert server.client_left.wait(30)


def test_a_connection_is_waited_for_as_long_as_was_said(vendor: Vendor):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as pending_stack:
        for _ in range(2):  # nobody lets them in, so nobody else is let in
            caller = pending_stack.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        model = vendor.model(SimpleNamespace(url=f"http://127.0.0.1:{full.getsockname()[1]}"))
        silent = threading.Event()
        silent.set()

        text, seconds = too_late(model, silent)

    assert "no connection to " in text
    assert "within 10 s; " in text
    assert 10 <= seconds < 70


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"choices": 3}', b'{"content": 3, "choices": [{}]}', b"\xff"]
)
def test_an_invalid_answer_is_one_clear_error(vendor: Vendor, server: GeminiServer, body: bytes):
    if vendor.name == "gemini" and b"choices" in body:  # which it does not know
        body = b'{"candidates": [{"content": 3}]}'
    vendor.say(server, "x")
    server.replies[-1].body = body

    with pytest.raises(ModelError, match="m-1"):
        ask(vendor.model(server))


# --- answers that are none


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_cut_by_the_limit_keeps_its_words_and_makes_no_call(
    vendor: Vendor, server: GeminiServer, stream: bool
):
    calls = [Call("weather", raw="")] if vendor.calls_are_text else []
    vendor.say(server, "It is", *calls, finish=vendor.cut_off, stream=stream)

    whole = ask(vendor.model(server), stream=stream)[-1]

    assert (whole.text, whole.error_code, whole.get_function_calls()) == ("It is", "MAX_TOKENS", [])


def test_a_call_with_arguments_that_are_no_object_is_not_made(vendor: Vendor, server: GeminiServer):
    if not vendor.calls_are_text:
        vendor.say(server, finish="MALFORMED_FUNCTION_CALL", stream=True)

        whole = ask(vendor.model(server), stream=True)[-1]

        assert (whole.get_function_calls(), whole.error_code) == ([], "MALFORMED_FUNCTION_CALL")
        return
    run: list[str] = []

    def weather(city: str = "Oslo") -> str:
        """The weather."""
        run.append(city)
        return "mild"

    for raw in ('{"city": ', "[1]", "Oslo", "{'city': 1}"):
        vendor.say(server, Call("weather", raw=raw), stream=True)
        vendor.say(server, "I cannot say.", stream=True)
        talk = Talk(LlmAgent(name="guide", model=vendor.model(server), tools=[weather]))

        events = talk.say(config=RunConfig(streaming_mode=StreamingMode.SSE))

        assert (run, events[-1].text) == ([], "I cannot say.")
        [result] = [response for event in events for response in event.get_function_responses()]
        assert result.response and repr(raw) in result.response["error"]


def test_an_error_within_a_stream_says_what_the_service_said(vendor: Vendor, server: GeminiServer):
    vendor.say(server, "It is mild.", stream=True)
    events = vendor.events(["It is mild."], "")[: vendor.begun]
    data = b"event: error\n" if vendor.name == "anthropic" else b""
    told_so = b"data: " + json.dumps(vendor.refusal("odd_error", "the rack burns")).encode() + b"\n\n"
    server.replies[-1].body = b"".join(events) + data + told_so

    with pytest.raises(ModelError, match=r"m-1.*rack burns"):
        ask(vendor.model(server), stream=True)


# --- being a model


def test_a_model_with_a_key_can_be_copied_and_is_not_pickled(vendor: Vendor, server: GeminiServer):
    vendor.say(server, "Mild.")
    model = vendor.model(server)

    with pytest.raises(ConfigurationError, match=r"secrets .*pickled"):
        pickle.dumps(model)

    assert ask(copy.copy(model))[-1].text == "Mild."


def test_connections_are_used_again_and_closed_with_the_loop(vendor: Vendor, server: GeminiServer):
    if vendor.name == "litellm":
        pytest.skip("litellm keeps its connections in its own way")
    for _ in range(3):
        vendor.say(server, "Mild.")
    model = vendor.model(server)

    async def thrice() -> None:
        for _ in range(3):
            async with aclosing(model.generate_content_async(question("Go"))) as responses:
                assert [response.text async for response in responses] == ["Mild."]

    asyncio.run(thrice())

    assert server.connections == 1


def test_an_answer_that_is_not_heard_to_its_end_lets_its_connection_go(vendor: Vendor, server: GeminiServer):
    vendor.begin(server, "It is mild.")

    async def leave() -> None:
        async with aclosing(vendor.model(server).generate_content_async(question("Go"), stream=True)) as responses:
            async for response in responses:
                assert response.partial
                return

    asyncio.run(leave())

    assert server.client_left.wait(30)


def test_a_stream_without_an_end_is_no_answer(vendor: Vendor, server: GeminiServer):
    events = vendor.events(["It is mild."], "")
    for count in range(len(events) - 3):
        vendor.say(server, "x", stream=True)
        server.replies[-1].body = b"".join(events[:count])

        with pytest.raises((UnexpectedModelAnswer, ModelError), match="m-1"):
            ask(vendor.model(server), stream=True)
