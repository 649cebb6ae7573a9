"""Models of a user's own: a class that does not say what its service can do is trusted, and its own client used."""

from collections.abc import AsyncGenerator
from functools import cached_property
from typing import Any

import pytest
from gemini_server import GeminiServer, answer
from google import genai

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import BuiltInCodeExecutor
from adk_nb.models import BaseLlm, Gemini, LlmRequest, LlmResponse, ScriptedLlm
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.tools import google_search, register_search_backend
from tests.support.talk import Talk, summaries


class Gateway(BaseLlm):
    """A company's gateway to Gemini."""

    model: str = "gemini-2.5-flash"
    asked: list[LlmRequest] = []  # noqa: RUF012  # pydantic copies it

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(llm_request)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Found.")]))


class LackingGateway(Gateway):
    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities()


SETTINGS: list[dict[str, Any]] = [{"tools": [google_search]}, {"code_executor": BuiltInCodeExecutor()}]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", ["gemini-2.5-flash", "our-gateway"])
def test_a_class_that_does_not_say_what_it_can_do_is_trusted(name: str, settings: dict[str, Any]):
    model = Gateway(model=name)
    talk = Talk(LlmAgent(name="guide", model=model, **settings))

    assert (summaries(talk.say()), talk.error) == ([("guide", "Found. .")], None)
    [tool] = model.asked[0].config.tools or []
    assert isinstance(tool, types.Tool)
    assert tool.model_fields_set <= {"google_search", "code_execution"}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("model", [LackingGateway(), ScriptedLlm("Never.", model="gemini-2.5-flash")])
def test_a_class_that_is_known_to_lack_it_is_refused(model: BaseLlm, settings: dict[str, Any]):
    talk = Talk(LlmAgent(name="guide", model=model, **settings))

    assert [event.error_code for event in talk.say()] == ["ConfigurationError"]


def test_a_search_of_one_s_own_stands_in_for_a_model_that_does_not_say_that_it_searches():
    def search(query: str) -> str:
        """Searches."""
        return "found"

    model = Gateway()
    register_search_backend(search)
    try:
        Talk(LlmAgent(name="guide", model=model, tools=[google_search])).say()
    finally:
        register_search_backend(None)

    assert list(model.asked[0].tools_dict) == ["google_search"]


@pytest.mark.parametrize("kind", [property, cached_property])
def test_an_api_client_of_a_subclass_is_the_one_that_is_asked(
    server: GeminiServer, kind: Any, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    options = types.HttpOptions(base_url=server.url, headers={"x-company": "ours"})

    class Ours(Gemini):
        @kind
        def api_client(self) -> genai.Client:
            return genai.Client(api_key="the-company-s", http_options=options)

    server.say(answer("Hello.", finish="STOP"), headers={"Connection": "close"})
    talk = Talk(LlmAgent(name="guide", model=Ours()))

    assert (summaries(talk.say()), talk.error) == ([("guide", "Hello. .")], None)
    headers = server.requests[0].headers
    assert (headers["x-company"], headers["x-goog-api-key"]) == ("ours", "the-company-s")


def test_the_api_client_of_gemini_itself_is_google_s_own():
    assert isinstance(Gemini(api_key="AIza-any").api_client, genai.Client)
