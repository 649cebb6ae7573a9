"""What a model of OpenAI's is sent of effort, sampling and tools: no generation is sent what it refuses.

Source of the generations: adk_nb/models/vendor_facts.py.
"""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer
from vendors import OPENAI, check_openai

from adk_nb import types
from adk_nb.models import LlmRequest
from adk_nb.models.default_model import vendor_model

DECLARED = types.FunctionDeclaration(name="look", parameters_json_schema={"type": "object", "properties": {}})
TOOLS: dict[str, Any] = {"tools": [types.Tool(function_declarations=[DECLARED])]}
SAMPLING: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "response_logprobs": True, "logprobs": 2}
SENT = {"temperature": 0.5, "top_p": 0.9, "logprobs": True, "top_logprobs": 2}
WITHOUT_TOOLS_AND_EFFORT = [
    *("gpt-5.4", "gpt-5.4-mini-2026-03-17", "gpt-5.5", "gpt-5.6-terra", "gpt-6-luna", "gpt-6-sol", "gpt-6.1-terra"),
    *("openai/gpt-6-luna", "openai.gpt-6-luna", "gpt-7-luna"),
]
OTHERS = ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "gpt-oss-120b", "qwen3", "claude-sonnet-5", "m"]


def sent(server: GeminiServer, model: str, level: str = "", **config: Any) -> dict[str, Any]:
    """The body of one request."""
    if level:
        config["thinking_config"] = types.ThinkingConfig(thinking_level=types.ThinkingLevel(level))
    request = LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(**config))
    OPENAI.say(server, "Fine.")

    async def ask() -> None:
        async with aclosing(OPENAI.model(server, model=model).generate_content_async(request)) as responses:
            async for _ in responses:
                pass

    asyncio.run(ask())
    check_openai(server.requests[-1].body)
    return server.requests[-1].body


def test_the_default_model_is_sent_tools_as_it_takes_them(server: GeminiServer):
    body = sent(server, vendor_model("OPENAI_API_KEY"), **TOOLS)

    assert body["tools"][0]["function"]["name"] == "look"
    assert body["reasoning_effort"] == "none"


@pytest.mark.parametrize("model", WITHOUT_TOOLS_AND_EFFORT)
def test_tools_come_without_reasoning_where_the_two_exclude_each_other(
    server: GeminiServer, model: str, caplog: pytest.LogCaptureFixture
):
    assert sent(server, model, **TOOLS)["reasoning_effort"] == "none"
    assert not caplog.records
    assert sent(server, model, "HIGH", **TOOLS)["reasoning_effort"] == "none"
    assert [(one.levelname, model in one.getMessage()) for one in caplog.records] == [("WARNING", True)]

    assert sent(server, model, "HIGH")["reasoning_effort"] == "high"
    assert "reasoning_effort" not in sent(server, model)


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.2", "o3", "gpt-6-astra", "gpt-6.1-sol"])
def test_an_effort_that_was_asked_for_goes_with_tools_where_none_is_not_taken_or_not_needed(
    server: GeminiServer, model: str
):
    assert sent(server, model, "HIGH", **TOOLS)["reasoning_effort"] == "high"
    assert "reasoning_effort" not in sent(server, model, **TOOLS)


@pytest.mark.parametrize(("model", "effort"), [("gpt-5", "minimal"), ("gpt-5.1", "low"), ("gpt-6-luna", "low")])
def test_the_least_effort_is_one_that_the_model_knows(server: GeminiServer, model: str, effort: str):
    assert sent(server, model, "MINIMAL")["reasoning_effort"] == effort


@pytest.mark.parametrize(
    ("model", "config", "is_sent"),
    [
        *((model, {}, False) for model in ("gpt-5", "gpt-5-mini", "o4-mini", "gpt-5.6-luna", "gpt-6-luna")),
        *((model, {}, True) for model in ("gpt-5.1", "gpt-5.4-mini")),
        *((model, {"level": "LOW"}, False) for model in ("gpt-5.1", "gpt-5.4-mini", "gpt-6-luna")),
        *((model, TOOLS, True) for model in ("gpt-5.1", "gpt-5.4-mini", "gpt-6-luna")),
        *((model, TOOLS, False) for model in ("gpt-5", "gpt-6-astra")),
    ],
)
def test_sampling_is_sent_where_the_model_does_not_reason(
    server: GeminiServer, model: str, config: dict[str, Any], is_sent: bool
):
    body = sent(server, model, **config, **SAMPLING)

    assert {name: body.get(name) for name in SENT} == (SENT if is_sent else dict.fromkeys(SENT))


@pytest.mark.parametrize("model", OTHERS)
def test_another_model_is_sent_what_was_asked_for(server: GeminiServer, model: str):
    body = sent(server, model, "MINIMAL", **TOOLS, **SAMPLING)

    assert body.items() >= (SENT | {"reasoning_effort": "minimal"}).items()
