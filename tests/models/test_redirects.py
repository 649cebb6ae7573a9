"""A redirect to another host is refused: the key would go there."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer, Reply
from live_server import LiveServer, client_tls
from vendors import ANTHROPIC, GEMINI, KEY, OPENAI, Vendor

from adk_nb import types
from adk_nb.errors import ModelError, ModelHTTPError
from adk_nb.models import Gemini, LlmRequest


@pytest.fixture
def stranger() -> Iterator[GeminiServer]:
    with GeminiServer() as server:
        yield server


def ask(model: Any, *, stream: bool) -> None:
    async def collect() -> None:
        request = LlmRequest(contents=[types.UserContent("Hi")])
        async with aclosing(model.generate_content_async(request, stream=stream)) as responses:
            async for _ in responses:
                pass

    asyncio.run(collect())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC, GEMINI], ids=lambda one: one.name)
def test_no_key_goes_where_a_service_redirects_to(
    server: GeminiServer, stranger: GeminiServer, vendor: Vendor, status: int, stream: bool
):
    location = f"{stranger.url}/elsewhere?token=abc"
    server.replies.append(Reply(b"", status, {"Location": location}))
    vendor.say(stranger, "mine now", stream=stream)

    with pytest.raises(ModelHTTPError) as refused:
        ask(vendor.model(server, attempts=3), stream=stream)

    assert (stranger.requests, len(server.requests)) == ([], 1)
    assert refused.value.status == status
    assert f"{stranger.url}/elsewhere" in str(refused.value)
    assert KEY not in str(refused.value)


def test_no_key_goes_where_a_live_service_redirects_to():
    asyncio.run(_redirected_live())


async def _redirected_live() -> None:
    async with LiveServer() as stranger, LiveServer(redirects_to=stranger) as server:
        model = Gemini(
            model="gemini-live",
            base_url=server.url,
            api_key=KEY,
            http_options=types.HttpOptions(async_client_args={"verify": client_tls()}),
        )
        with pytest.raises(ModelError) as refused:
            async with asyncio.timeout(5), model.connect(LlmRequest()):
                pass
        assert stranger.url.partition("://")[2] in str(refused.value)
    assert (stranger.paths, len(server.paths)) == ([], 1)
    assert KEY not in str(refused.value)
