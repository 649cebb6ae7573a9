"""What a Claude model is sent of thinking, sampling and a forced tool choice: no family is sent what it refuses.

Source of the families: adk_nb/models/vendor_facts.py.
"""

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from gemini_server import GeminiServer
from vendors import ANTHROPIC, check_anthropic

from adk_nb import types
from adk_nb.models import LlmRequest
from tests.support.each import each

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
BUDGET_MODELS = ["claude-sonnet-4-5", "claude-haiku-4-5-20251001", "claude-opus-4-1", "claude-3-7-sonnet-20250219"]
ADAPTIVE_MODELS = [
    *("claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5"),
    *("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5", "claude-fable-5", "claude-mythos-5-2"),
    *("claude-mythos-preview", "claude-opus-7", "anthropic.claude-opus-4-6-v1", "claude-sonnet-4.6@20260301"),
]
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "top_k": 40}


def budget(tokens: int) -> dict[str, Any]:
    return {"type": "enabled", "budget_tokens": tokens}


def sent(server: GeminiServer, model: str, thinking: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    """The body of one request."""
    if thinking is not None:
        config["thinking_config"] = types.ThinkingConfig(**thinking)
    request = LlmRequest(contents=[types.UserContent("Go")], config=types.GenerateContentConfig(**config))
    ANTHROPIC.say(server, "Fine.")

    async def ask() -> None:
        async with aclosing(ANTHROPIC.model(server, model=model).generate_content_async(request)) as responses:
            async for _ in responses:
                pass

    asyncio.run(ask())
    body = server.requests[-1].body
    check_anthropic({name: value for name, value in body.items() if name != "top_k"})
    return body


def forced(name: str) -> dict[str, Any]:
    declared = types.FunctionDeclaration(name=name, parameters_json_schema={"type": "object", "properties": {}})
    mode = types.FunctionCallingConfigMode.ANY
    calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=[name])
    return {
        "tools": [types.Tool(function_declarations=[declared])],
        "tool_config": types.ToolConfig(function_calling_config=calling),
    }


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("thinking", [{"include_thoughts": True}, {"thinking_budget": -1}])
@pytest.mark.parametrize("model", BUDGET_MODELS)
def test_a_model_without_adaptive_thinking_is_sent_a_budget(server: GeminiServer, model: str, thinking: dict[str, Any]):
    body = sent(server, model, thinking)

    assert body["thinking"]["type"] == "enabled"
    assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@each("thinking", [{"include_thoughts": True}, {"thinking_budget": 4096}, {"thinking_level": "LOW"}])
@each("model", ADAPTIVE_MODELS)
def test_an_adaptive_model_is_sent_no_budget(server: GeminiServer, model: str, thinking: dict[str, Any]):
    assert sent(server, model, thinking)["thinking"] == ADAPTIVE


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("model", "off"),
    [
        ("claude-sonnet-4-5", {"type": "disabled"}),
        ("claude-opus-4-6", {"type": "disabled"}),
        ("claude-opus-5", {"type": "disabled"}),
        ("claude-haiku-5-5", {"type": "disabled"}),
        ("claude-sonnet-5-5", {"type": "between_tools"}),
        ("claude-opus-5-5", None),
        ("claude-fable-5", None),
        ("claude-mythos-5", None),
    ],
)
def test_thinking_is_turned_off_as_the_model_allows(server: GeminiServer, model: str, off: dict[str, Any] | None):
    body = sent(server, model, {"thinking_budget": 0})

    assert body.get("thinking") == off
    assert body.get("output_config") == (None if off else {"effort": "low"})


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("asked", "most", "sent_budget", "sent_most"),
    [
        (1, None, 1024, 8192),
        (1023, 4000, 1024, 4000),
        (6000, None, 6000, 10096),
        (16_000, None, 16_000, 20_096),
        (8000, 8000, 4000, 8000),
        (9000, 1500, 1024, 1500),
    ],
)
def test_a_budget_fits_between_its_least_and_max_tokens(
    server: GeminiServer, asked: int, most: int | None, sent_budget: int, sent_most: int
):
    body = sent(server, "claude-sonnet-4-5", {"thinking_budget": asked}, max_output_tokens=most)

    assert (body["thinking"], body["max_tokens"]) == (budget(sent_budget), sent_most)


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-3-5-haiku-latest"])
def test_without_room_or_ability_to_think_thinking_is_not_asked_for(server: GeminiServer, model: str):
    most = 1024 if model == "claude-sonnet-4-5" else None

    body = sent(server, model, {"include_thoughts": True}, max_output_tokens=most)

    assert "thinking" not in body


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("model", "effort"),
    [("claude-sonnet-4-5", None), ("claude-opus-4-1", None), ("claude-opus-4-5", "high"), ("claude-sonnet-5", "high")],
)
def test_a_level_is_an_effort_where_the_model_takes_it(server: GeminiServer, model: str, effort: str | None):
    body = sent(server, model, {"thinking_level": "HIGH"})

    assert body.get("output_config") == (effort and {"effort": effort})
    assert body["thinking"]["type"] == ("adaptive" if model == "claude-sonnet-5" else "enabled")


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("model", "thinking", "kept"),
    [
        ("claude-sonnet-4-5", None, True),
        ("claude-sonnet-4-5", {"thinking_budget": 2048}, False),
        ("claude-sonnet-4-5", {"thinking_budget": 0}, True),
        ("claude-sonnet-4-6", None, True),
        ("claude-sonnet-4-6", {"include_thoughts": True}, False),
        ("claude-opus-4-7", None, False),
        ("claude-sonnet-5", {"thinking_budget": 0}, False),
        ("claude-haiku-5-5", None, False),
    ],
)
def test_sampling_is_sent_to_models_that_take_it_and_never_beside_thinking(
    server: GeminiServer, model: str, thinking: dict[str, Any] | None, kept: bool
):
    body = sent(server, model, thinking, **SAMPLING)

    assert {name: body[name] for name in SAMPLING if name in body} == (SAMPLING if kept else {})


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@each(
    "model, thinking, kept",
    [
        ("claude-sonnet-4-5", None, True),
        ("claude-sonnet-4-5", {"include_thoughts": True}, False),
        ("claude-opus-4-6", {"include_thoughts": True}, False),
        ("claude-opus-4-8", {"include_thoughts": True}, True),
        ("claude-sonnet-5", None, True),
        ("claude-haiku-5-5", None, True),
        ("claude-sonnet-5-5", None, False),
        ("claude-sonnet-5-5", {"thinking_budget": 0}, False),
        ("claude-opus-5-5", None, False),
        ("claude-fable-5-1", None, False),
    ],
)
def test_a_tool_choice_is_forced_only_where_the_model_takes_that(
    server: GeminiServer, model: str, thinking: dict[str, Any] | None, kept: bool
):
    body = sent(server, model, thinking, **forced("look"))

    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert body.get("tool_choice") == ({"type": "tool", "name": "look"} if kept else None)
