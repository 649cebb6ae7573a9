"""Gemini's explicit cache over real HTTP: when one is made, what is sent then, and when it is given up."""

import asyncio
import re
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply, answer, refusal

from adk_nb import App, InMemoryRunner, clock, types
from adk_nb.agents import LlmAgent
from adk_nb.agents.context_cache_config import ContextCacheConfig
from adk_nb.errors import ConfigurationError, ModelHTTPError
from adk_nb.events import Event
from adk_nb.models import Gemini, LlmRequest, LlmResponse, ScriptedLlm

KEY = "AIza-a-key-that-must-not-be-shown"
USED = {"usageMetadata": {"promptTokenCount": 9000, "totalTokenCount": 9001}}
FLASH = "gemini-2.5-flash"
KEPT = {"name": "cachedContents/c1", "model": "models/gemini-2.5-flash"}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until seconds are added to the list."""
    passed: list[float] = []
    start = clock.now()
    monkeypatch.setattr(clock, "now", lambda: start + sum(passed))
    return passed


class Talk:
    """A Gemini agent of an app that caches, and one session with it."""

    def __init__(self, server: GeminiServer, *, tools: Any = (), **config: Any) -> None:
        self.server = server
        patience = types.HttpRetryOptions(attempts=1)
        model = Gemini(model=FLASH, base_url=server.url, api_key=KEY, retry_options=patience)  # pyright: ignore[reportArgumentType]
        self.agent = LlmAgent(name="guide", model=model, instruction="Be brief. " * 900, tools=list(tools))
        app = App(name="app", root_agent=self.agent, context_cache_config=ContextCacheConfig(**config))
        self.runner = InMemoryRunner(app=app, auto_create_session=True)

    def say(self, text: str, *, built: Any = None, given_up: bool = False, reply: str = "Mild.") -> Event:
        """One turn. `made`: what the service answers when it is asked to make a cache."""
        if given_up:
            self.server.say({})
        if isinstance(built, Reply):
            self.server.replies.append(built)
        elif built:
            self.server.say(built)
        self.server.say(answer(reply, finish="STOP", **USED))

        async def turn() -> list[Event]:
            return [event async for event in self.runner.run_async(user_id="u", session_id="s", new_message=text)]

        return asyncio.run(turn())[-1]

    def asked(self) -> list[str]:
        """What the service was asked to do since the last look, in short."""
        subs = [re.sub(r"/v1(beta)?/(models/gemini-2.5-flash:)?", "", request.path) for request in self.server.requests]
        self.server.requests.clear()
        return subs


def body(server: GeminiServer) -> dict[str, Any]:
    return server.requests[-1].body


def words(contents: list[dict[str, Any]]) -> list[str]:
    return [part["text"] for content in contents for part in content["parts"]]


def test_what_is_asked_for_the_second_time_is_cached_and_from_then_on_named(server: GeminiServer):
    def weather(city: str) -> str:
        """Weather now."""
        return city

    talk = Talk(server, tools=[weather], ttl_seconds=600)

    first = talk.say("Oslo?")
    assert talk.asked() == ["generateContent"]
    assert first.cache_metadata
    assert (first.cache_metadata.cache_name, first.cache_metadata.contents_count) == (None, 0)

    second = talk.say("And Bergen?", built=KEPT)
    made_request, asked_request = server.requests
    assert made_request.path.endswith("/cachedContents")
    assert made_request.body["model"] == "models/gemini-2.5-flash"
    assert made_request.body["ttl"] == "600s"
    assert words(made_request.body["contents"]) == ["Oslo?", "Mild."]
    assert words([made_request.body["systemInstruction"]])[0].startswith("Be brief.")
    assert made_request.body["tools"][0]["functionDeclarations"][0]["name"] == "weather"
    assert asked_request.body["cachedContent"] == "cachedContents/c1"
    assert words(asked_request.body["contents"]) == ["And Bergen?"]
    assert not {"systemInstruction", "tools", "toolConfig"} & asked_request.body.keys()
    cache_metadata = second.cache_metadata
    assert cache_metadata
    assert (cache_metadata.cache_name, cache_metadata.contents_count, cache_metadata.invocations_used) == (
        "cachedContents/c1",
        2,
        1,
    )
    assert cache_metadata.created_at
    assert cache_metadata.expire_time == pytest.approx(cache_metadata.created_at + 600)

    third = talk.say("And Tromso?")
    assert words(body(server)["contents"]) == ["And Bergen?", "Mild.", "And Tromso?"]
    assert third.cache_metadata == cache_metadata.model_copy(update={"invocations_used": 2})


def test_without_a_config_nothing_is_cached_or_noted(server: GeminiServer):
    talk = Talk(server)
    talk.runner = InMemoryRunner(talk.agent, auto_create_session=True)

    events = [talk.say("one"), talk.say("two"), talk.say("three")]

    assert talk.asked() == ["generateContent"] * 3
    assert [event.cache_metadata for event in events] == [None] * 3


def test_after_so_many_invocations_a_cache_is_made_anew_with_what_was_said_since(server: GeminiServer):
    talk = Talk(server, cache_intervals=2)
    talk.say("one")
    talk.say("two", built=KEPT)
    talk.say("three")
    talk.asked()

    events = talk.say("four", given_up=True, built=KEPT | {"name": "cachedContents/c2"})

    assert words(server.requests[1].body["contents"]) == ["one", "Mild.", "two", "Mild.", "three", "Mild."]
    assert talk.asked() == ["DELETE cachedContents/c1", "cachedContents", "generateContent"]
    assert events.cache_metadata
    assert (events.cache_metadata.cache_name, events.cache_metadata.invocations_used) == ("cachedContents/c2", 1)


def test_when_its_time_is_over_a_cache_is_made_anew(server: GeminiServer, later: list[float]):
    talk = Talk(server, ttl_seconds=60)
    talk.say("one")
    talk.say("two", built=KEPT)
    later.append(59)
    talk.say("three")
    assert talk.asked()[-1:] == ["generateContent"]
    later.append(1)

    talk.say("four", built=KEPT)

    assert talk.asked() == ["cachedContents", "generateContent"]  # what is over need not be deleted


def test_the_time_the_service_gives_counts(server: GeminiServer):
    talk = Talk(server)
    talk.say("one")

    events = talk.say("two", built=KEPT | {"expireTime": "2100-01-01T00:00:00Z"})

    assert events.cache_metadata
    assert events.cache_metadata.expire_time == 4102444800


def test_when_the_instruction_changes_the_cache_is_given_up(server: GeminiServer):
    talk = Talk(server)
    talk.say("one")
    talk.say("two", built=KEPT)
    talk.asked()
    talk.agent.instruction = "Be long. " * 900

    talk.say("three", given_up=True)

    assert words(body(server)["contents"]) == ["one", "Mild.", "two", "Mild.", "three"]
    assert talk.asked() == ["DELETE cachedContents/c1", "generateContent"]

    talk.say("four", built=KEPT)

    assert talk.asked() == ["cachedContents", "generateContent"]


def test_the_request_that_makes_a_cache_has_options_of_its_own(server: GeminiServer):
    talk = Talk(server, create_http_options=types.HttpOptions(headers={"x-for": "caches"}))
    talk.say("one")
    talk.say("two", built=KEPT)

    assert [request.headers.get("x-for") for request in server.requests] == [None, "caches", None]


def test_a_cache_that_cannot_be_deleted_is_a_warning(server: GeminiServer, caplog: pytest.LogCaptureFixture):
    talk = Talk(server)
    talk.say("one")
    talk.say("two", built=KEPT)
    talk.agent.instruction = "Be long."
    server.say(refusal(500, "INTERNAL", "no"), status=500)

    assert talk.say("three").text == "Mild."
    assert "'cachedContents/c1'" in caplog.text
    assert "ServerError: 500" in caplog.text


def test_an_undone_conversation_leaves_its_cache(server: GeminiServer):
    talk = Talk(server)
    first = talk.say("one").invocation_id
    talk.say("two", built=KEPT)
    session_key: dict[str, Any] = {"user_id": "u", "session_id": "s"}
    asyncio.run(talk.runner.rewind_async(**session_key, rewind_before_invocation_id=first))
    talk.asked()

    talk.say("three", given_up=True)

    assert words(body(server)["contents"]) == ["three"]
    assert talk.asked() == ["DELETE cachedContents/c1", "generateContent"]


def test_a_prompt_below_the_least_number_of_tokens_is_not_cached(server: GeminiServer):
    talk = Talk(server, min_tokens=9001)

    talk.say("one")
    talk.say("two")

    assert talk.asked() == ["generateContent"] * 2


def test_what_the_service_would_refuse_to_keep_is_not_offered(server: GeminiServer):
    talk = Talk(server)
    talk.agent.instruction = "Be brief."

    talk.say("one " * 5000)
    talk.say("two " * 50000)

    assert talk.asked() == ["generateContent"] * 2


def test_a_cache_that_cannot_be_made_is_a_warning(server: GeminiServer, caplog: pytest.LogCaptureFixture):
    talk = Talk(server)
    talk.say("one")
    no = Reply(b'{"error": {"code": 400, "message": "too small", "status": "INVALID_ARGUMENT"}}', status=400)

    events = talk.say("two", built=no)

    assert events.text == "Mild."
    assert words(body(server)["contents"]) == ["one", "Mild.", "two"]
    assert "'gemini-2.5-flash'" in caplog.text
    assert "ClientError: 400" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_cache_that_is_gone_is_a_warning_and_everything_is_sent(
    server: GeminiServer, caplog: pytest.LogCaptureFixture, stream: bool
):
    model = Gemini(model=FLASH, base_url=server.url, api_key=KEY)  # pyright: ignore[reportArgumentType]
    registered = noted(server, model)
    removed_refusal = refusal(403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)")
    server.say(removed_refusal, status=403)
    server.say(answer("Mild.", finish="STOP"), stream=stream)

    lines = ask(model, registered, stream=stream)[-1]

    assert lines.text == "Mild."
    assert [("cachedContent" in request.body, len(request.body["contents"])) for request in server.requests[-2:]] == [
        (True, 1),
        (False, 3),
    ]
    assert lines.cache_metadata
    assert lines.cache_metadata.cache_name is None
    assert "'cachedContents/c1'" in caplog.text
    assert "ModelHTTPError" in caplog.text


def test_a_busy_service_is_not_taken_for_a_cache_that_is_gone(server: GeminiServer):
    model = Gemini(model=FLASH, base_url=server.url, api_key=KEY, retry_options=types.HttpRetryOptions(attempts=1))  # pyright: ignore[reportArgumentType]
    registered = noted(server, model)
    server.say(refusal(503, "UNAVAILABLE", "busy"), status=503)

    with pytest.raises(ModelHTTPError, match="503"):
        ask(model, registered)


def test_of_a_stream_the_whole_answer_tells_of_the_cache(server: GeminiServer):
    model = Gemini(model=FLASH, base_url=server.url, api_key=KEY)  # pyright: ignore[reportArgumentType]
    registered = noted(server, model)
    server.say(answer("Mi"), answer("ld.", finish="STOP"))

    *pieces, whole = ask(model, registered, stream=True)

    assert [piece.cache_metadata for piece in pieces] == [None] * len(pieces)
    assert whole.cache_metadata == registered.cache_metadata
    assert "cachedContent" in body(server)


def test_the_request_is_not_changed(server: GeminiServer):
    model = Gemini(model=FLASH, base_url=server.url, api_key=KEY)  # pyright: ignore[reportArgumentType]
    request = noted(server, model)
    earlier_request = request.model_copy(deep=True)
    server.say(answer("Mild.", finish="STOP"))

    ask(model, request)

    assert request == earlier_request


def test_a_call_is_not_parted_from_its_response(server: GeminiServer):
    model = Gemini(model=FLASH, base_url=server.url, api_key=KEY)  # pyright: ignore[reportArgumentType]
    call = types.Part(function_call=types.FunctionCall(name="look", args={}))
    part = types.Part(function_response=types.FunctionResponse(name="look", response={}))
    request = conversation("one")
    request.contents += [types.Content(role="model", parts=[call]), types.Content(role="user", parts=[part])]
    server.say(answer("Mild.", finish="STOP"))

    lines = ask(model, request)[-1]

    assert lines.cache_metadata
    assert lines.cache_metadata.contents_count == 1


def test_a_model_whose_service_keeps_nothing_does_not_heed_it():
    model = ScriptedLlm("one", "two")
    agent = LlmAgent(name="guide", model=model)
    app = App(name="app", root_agent=agent, context_cache_config=ContextCacheConfig())
    runner = InMemoryRunner(app=app, auto_create_session=True)

    events = [event for token in "ab" for event in runner.run(user_id="u", session_id="s", new_message=token)]

    assert [(event.text, event.cache_metadata) for event in events] == [("one", None), ("two", None)]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cache_intervals": 0}, "'cache_intervals'"),
        ({"cache_intervals": 101}, "'cache_intervals'"),
        ({"ttl_seconds": 0}, "'ttl_seconds'"),
        ({"min_tokens": -1}, "'min_tokens'"),
        ({"ttl_second": 5}, r"there is no field 'ttl_second'; did you mean 'ttl_seconds'\?"),
    ],
)
def test_a_wrong_setting_is_named(fields: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError, match=f"ContextCacheConfig: {text}"):
        ContextCacheConfig(**fields)


def conversation(*args: str) -> LlmRequest:
    contents: list[types.Content] = [
        types.ModelContent(arg) if index % 2 else types.UserContent(arg) for index, arg in enumerate(args)
    ]
    config = types.GenerateContentConfig(system_instruction="Be brief. " * 900)
    return LlmRequest(contents=contents, config=config, cache_config=ContextCacheConfig())


def noted(server: GeminiServer, model: Gemini) -> LlmRequest:
    """A request whose beginning is in cache `c1`."""
    server.say(answer("Mild.", finish="STOP"))
    request = conversation("one", "Mild.", "two")
    request.cache_metadata = ask(model, conversation("one"))[-1].cache_metadata
    request.cacheable_contents_token_count = 9000
    server.say(KEPT)
    server.say(answer("Mild.", finish="STOP"))
    request.cache_metadata = ask(model, request)[-1].cache_metadata
    return request


def ask(model: Gemini, request: LlmRequest, *, stream: bool = False) -> list[LlmResponse]:
    async def collect() -> list[LlmResponse]:
        return [response async for response in model.generate_content_async(request, stream=stream)]

    return asyncio.run(collect())
