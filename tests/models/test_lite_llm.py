"""LiteLlm beyond what all adapters keep: its path, its arguments, and which names are its own."""

import asyncio
import importlib
import sys
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer
from vendors import LITELLM, needs_litellm

from adk_nb import types
from adk_nb.errors import MissingExtraError, ModelNotFoundError
from adk_nb.models import LLMRegistry, LlmRequest
from adk_nb.models.lite_llm import LiteLlm

with_litellm = [needs_litellm, pytest.mark.filterwarnings("default")]


def ask(model: Any, **config: Any) -> str:
    asked = LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(**config))

    async def collect() -> str:
        async with aclosing(model.generate_content_async(asked)) as responses:
            return [response.text async for response in responses][-1]

    return asyncio.run(collect())


def test_without_the_package_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "litellm", None)

    with pytest.raises(MissingExtraError, match=r'%pip install "litellm<2,>=[\d.]+"$'):
        LiteLlm(model="mistral/mistral-small-latest")


class TestWithThePackage:
    pytestmark = with_litellm

    def test_its_own_arguments_go_to_litellm_and_what_an_agent_says_cannot_be_given(self, server: GeminiServer):
        LITELLM.say(server, "Fine.")
        model = LiteLlm(
            "openai/m-1", api_base=f"{server.url}/v1", api_key="k", extra_body={"top_k": 3}, messages=[], stream=True
        )

        assert ask(model, seed=7, max_output_tokens=9) == "Fine."

        body = server.requests[0].body
        assert (body["model"], body.pop("top_k"), body["seed"]) == ("m-1", 3, 7)
        LITELLM.check(body)
        assert [message["content"] for message in body["messages"]] == ["Go"]

    def test_a_name_with_a_provider_that_litellm_knows_is_its_own(self):
        name = "mistral/mistral-small-latest"
        model = LLMRegistry.new_llm(name)

        assert (type(model), model.model) == (LiteLlm, name)
        assert LLMRegistry.new_llm(f"litellm:{name}").model == name

    def test_a_provider_that_nobody_knows_is_told_the_closest(self):
        with pytest.raises(ModelNotFoundError, match="'mistrall'; did you mean 'mistral'"):
            LLMRegistry.new_llm("mistrall/mistral-small-latest")

    def test_what_litellm_s_table_denies_is_not_asked_of_a_model(self):
        litellm = importlib.import_module("litellm")

        litellm.register_model({"denied-1": {"supports_system_messages": False, "litellm_provider": "openai"}})

        assert LiteLlm("denied-1").capabilities.system_prompt is False
        assert LiteLlm("openai/unknown").capabilities.system_prompt is True
