"""What is asked again, what is not, and how soon an error comes."""

import asyncio
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply, refusal
from vendors import KEY, OPENAI

from adk_nb import types
from adk_nb.errors import ModelError, ModelHTTPError
from adk_nb.models import BaseLlm, Claude, Gemini, HttpLlm, LlmRequest, OllamaLlm, OpenAILlm


@pytest.fixture
def nobody() -> str:
    """The address of a server that is gone."""
    with GeminiServer() as server:
        return server.url


def ask(model: BaseLlm) -> None:
    async def collect() -> None:
        async for _ in model.generate_content_async(LlmRequest(contents=[types.UserContent("Go")])):
            pass

    asyncio.run(collect())


@pytest.mark.parametrize("kind", ["insufficient_quota", "billing_not_active"])
def test_an_account_with_nothing_left_is_not_asked_again(server: GeminiServer, kind: str):
    body = b'{"error": {"type": "%s", "code": "%s", "message": "You exceeded your quota."}}' % ((kind.encode(),) * 2)
    server.replies.append(Reply(body, 429, headers={"retry-after-ms": "1"}))

    with pytest.raises(ModelHTTPError, match=r"; retrying .*billing") as raised:
        ask(OPENAI.model(server, attempts=3))

    assert len(server.requests) == 1 and raised.value.attempts == ()


def test_a_day_s_requests_that_are_used_up_are_not_asked_for_again(server: GeminiServer):
    quota = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}]}
    server.say(refusal(429, "RESOURCE_EXHAUSTED", "You exceeded your quota.", quota), status=429)

    with pytest.raises(ModelHTTPError, match=r"; retrying .*quota"):
        ask(Gemini(base_url=server.url, api_key=KEY))  # pyright: ignore[reportArgumentType]

    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["openai", "ollama", "claude", "gemini", "http"])
def test_a_refused_connection_on_this_machine_is_not_tried_again(kind: str, nobody: str):
    key: dict[str, Any] = {"api_key": KEY}
    models = {
        "openai": lambda: OpenAILlm(model=f"{nobody}/v1#m"),
        "ollama": lambda: OllamaLlm(base_url=f"{nobody}/v1"),
        "claude": lambda: Claude(model="claude-sonnet-5", base_url=nobody, **key),
        "gemini": lambda: Gemini(base_url=nobody, **key),
        "http": lambda: HttpLlm(f"{nobody}/chat"),
    }
    model = models[kind]()
    with pytest.raises(ModelError):
        ask(model)  # loads the vendor's package

    with pytest.raises(ModelError) as raised:
        ask(model)

    assert raised.value.attempts == ()


def test_whoever_sets_how_often_to_ask_has_it_so_there_too(nobody: str):
    patience = types.HttpRetryOptions(attempts=3, initial_delay=0.001, jitter=0)

    with pytest.raises(ModelError) as raised:
        ask(OpenAILlm(model=f"{nobody}/v1#m", retry_options=patience))

    assert [attempt.error for attempt in raised.value.attempts] == ["no connection"] * 2
