"""Conversion of a request to Anthropic's messages API.

Source: https://docs.anthropic.com/en/api/messages.
"""

import base64
import json
from typing import Any

from adk_nb import types
from adk_nb.models.adaptation import claude_signature_of, instruction_text, pair_turns, part_text
from adk_nb.models.json_schemas import allowed_functions, calling_config, parameters_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.vendor_facts import MIN_THINKING_BUDGET, Family, claude_family

_SAMPLING = ("temperature", "top_p", "top_k")
"""Settings of Claude's older models; the arguments of anthropic's client lack them."""
SENT_AS = {
    "max_output_tokens": ("max_tokens",),
    "stop_sequences": ("stop_sequences",),
    "thinking_config": ("thinking", "output_config.effort"),
    "response_schema": ("output_config.format",),
    "response_json_schema": ("output_config.format",),
    "response_mime_type": ("output_config.format",),
    "tool_config": ("tool_choice",),
    "http_options": ("extra_headers",),
    **{name: (f"extra_body.{name}",) for name in _SAMPLING},
}
"""Field of GenerateContentConfig -> the arguments of `messages.create` that may have it."""
_EFFORTS = {"MINIMAL": "low", "LOW": "low", "MEDIUM": "medium", "HIGH": "high"}
_BUDGETS = {"MINIMAL": 1024, "LOW": 2048, "MEDIUM": 4096, "HIGH": 8192}
"""Token budgets for thinking levels, for models without an effort."""
_DEFAULT_BUDGET = _BUDGETS["MEDIUM"]
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_UNMARKED = ("thinking", "redacted_thinking")
"""Blocks that must not have a `cache_control`.

Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching, "What cannot be cached".
"""
_HOUR = 3600
_Block = dict[str, Any]


def message_arguments(
    request: LlmRequest, model: str, *, max_tokens: int, parallel_calls: bool = True
) -> dict[str, Any]:
    """The arguments of `messages.create`, without the output schema.

    Settings that Anthropic does not have, such as `seed`, are left out; so are those that `model` would refuse.

    Args:
        request: Not changed.
        model: Name at the service.
        max_tokens: Default for the request's `max_output_tokens`; a thinking budget is added to it.
        parallel_calls: The model may call several tools in one turn.
    """
    family = claude_family(model)
    arguments: dict[str, Any] = {"model": model, "messages": chat_messages(request)}
    arguments |= _settings(request.config, family, max_tokens)
    is_thinking = arguments.get("thinking", {}).get("type") in ("enabled", "adaptive")
    system = _system(request)
    if tools := [_tool(function) for function in allowed_functions(request)]:
        arguments["tools"] = tools
        # A forced tool that the family refuses is left out: the model then decides itself.
        may_force = family.forced_tool == "always" or (family.forced_tool == "unless thinking" and not is_thinking)
        if choice := _choice(request, parallel_calls, may_force):
            arguments["tool_choice"] = choice
    # Anthropic caches prefixes of tools, system and messages, in this order, for 5 minutes or an hour; a change keeps
    # the prefixes before it. Source: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching.
    config, token_count = request.cache_config, request.cacheable_contents_token_count
    if config and (token_count is None or token_count >= config.min_tokens):
        mark: _Block = {"type": "ephemeral"} | ({"ttl": "1h"} if config.ttl_seconds >= _HOUR else {})
        blocks: list[_Block] = [
            block for message in arguments["messages"] for block in message["content"] if block["type"] not in _UNMARKED
        ]
        # Three of the four cache points that a request may have, each at the last block of its prefix.
        for last_block in (*tools[-1:], *system[:1], *blocks[-1:]):
            last_block["cache_control"] = mark
    if system:
        arguments["system"] = system
    return arguments


def why_unsent(setting: str, model: str) -> str | None:
    """Why a setting is not sent to `model`; None: Anthropic has no such setting."""
    family = claude_family(model)
    if setting in _SAMPLING:
        return f"{model} does not take it" + (" while it thinks" if family.sampling == "unless thinking" else "")
    reasons = {
        "thinking_config": f"{model} does not think, or its limit of tokens is too small",
        "tool_config": f"{model} decides itself which tools it calls",
        "response_schema": "it is part of the instruction: Anthropic refuses objects with free keys",
        "response_json_schema": "it is part of the instruction: Anthropic refuses objects with free keys",
    }
    return reasons.get(setting)


def chat_messages(request: LlmRequest) -> list[dict[str, Any]]:
    """Convert the contents to alternating turns; `tool_result` blocks come first in the user turn after their calls."""
    contents: list[types.Content] = []
    for content in request.contents:
        # Anthropic refuses thoughts that lack Claude's signature.
        parts = [part for part in content.parts or () if not part.thought or claude_signature_of(part)]
        is_whole = len(parts) == len(content.parts or ())
        contents.append(content if is_whole else content.model_copy(update={"parts": parts}))
    return [
        {
            "role": "assistant" if turn.role == "model" else "user",
            "content": [_block(part) for part in turn.parts or ()],
        }
        for turn in pair_turns(contents)
    ]


def _block(part: types.Part) -> _Block:
    if part.thought:
        # Anthropic: redacted thinking is opaque, and must come back exactly as it was sent.
        if part.text is None:
            return {"type": "redacted_thinking", "data": claude_signature_of(part)}
        return {"type": "thinking", "thinking": part.text, "signature": claude_signature_of(part)}
    if call := part.function_call:
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args or {}}
    if response := part.function_response:
        return _result(response)
    if data := part.inline_data or part.file_data:
        return _data(data)
    return _text(part_text(part) or "(a part that cannot be converted)")


def _result(response: types.FunctionResponse) -> _Block:
    result = response.response or {}
    content = [_text(json.dumps(result, ensure_ascii=False, default=str))]
    content += [_data(data) for part in response.parts or () if (data := part.inline_data or part.file_data)]
    block: _Block = {"type": "tool_result", "tool_use_id": response.id, "content": content}
    # Only ADK's form of an error: a result may have a field `error` beside others.
    return block | ({"is_error": True} if result.keys() == {"error"} else {})


def _text(text: str) -> _Block:
    return {"type": "text", "text": text}


def _data(data: Any) -> _Block:
    """An image or document block, from bytes or an https URL; text for types that Anthropic does not take."""
    kind, name = data.mime_type or "application/octet-stream", data.display_name or "a file"
    uri: str | None = getattr(data, "file_uri", None)
    content: bytes = getattr(data, "data", None) or b""
    # A text block, not a document: every model takes it, and it needs no title.
    if kind.startswith("text/") and not uri:
        return _text(content.decode("utf-8", "replace"))
    block = "image" if kind in _IMAGE_TYPES else "document" if kind == "application/pdf" else ""
    # Anthropic fetches https URLs alone; gs:// and Gemini's files are out of its reach.
    if not block or (uri and not uri.startswith("https://")):
        return _text(f"[{name!r} ({kind}){f' at {uri}' if uri else ''}, that you cannot be shown]")
    if uri:
        return {"type": block, "source": {"type": "url", "url": uri}}
    coded = base64.b64encode(content).decode()
    return {"type": block, "source": {"type": "base64", "media_type": kind, "data": coded}}


def _tool(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": declaration.name, "input_schema": parameters_schema(declaration)}
    return tool | ({"description": declaration.description} if declaration.description else {})


def _choice(request: LlmRequest, parallel_calls: bool, may_force: bool) -> dict[str, Any] | None:
    calling = calling_config(request)
    if calling.mode == types.FunctionCallingConfigMode.NONE:
        # The tools stay in the request: Anthropic's prompt cache begins with them.
        return {"type": "none"}
    no_parallel = {} if parallel_calls else {"disable_parallel_tool_use": True}
    if calling.mode == types.FunctionCallingConfigMode.ANY and may_force:
        names = calling.allowed_function_names or []
        return ({"type": "tool", "name": names[0]} if len(names) == 1 else {"type": "any"}) | no_parallel
    return {"type": "auto"} | no_parallel if no_parallel else None


def _settings(config: types.GenerateContentConfig, family: Family, max_tokens: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"max_tokens": config.max_output_tokens or max_tokens}
    if config.stop_sequences:
        settings["stop_sequences"] = config.stop_sequences
    if config.thinking_config:
        settings |= _thinking(config, family, max_tokens)
    is_thinking = settings.get("thinking", {}).get("type") in ("enabled", "adaptive")
    sampling = {name: value for name in _SAMPLING if (value := getattr(config, name)) is not None}
    if sampling and family.sampling == "unless thinking" and not is_thinking:
        # The client's signature lacks them; the service of older models takes them.
        settings["extra_body"] = sampling
    if config.http_options and config.http_options.headers:
        settings["extra_headers"] = config.http_options.headers
    return settings


def _thinking(config: types.GenerateContentConfig, family: Family, max_tokens: int) -> dict[str, Any]:
    """Convert `thinking_config`: a budget of 0 turns thinking off, a negative one is the model's choice, as in Gemini.

    Returns:
        `thinking`, `output_config` (a level is Anthropic's effort), and `max_tokens` if the budget changes it.
    """
    thinking = config.thinking_config or types.ThinkingConfig()
    budget, level = thinking.thinking_budget, thinking.thinking_level.value if thinking.thinking_level else ""
    effort = _EFFORTS.get(level)
    if budget == 0 and family.thinking_off is None:
        effort = effort or "low"  # the lowest effort, for a model that always thinks
    settings: dict[str, Any] = {"output_config": {"effort": effort}} if effort and family.effort else {}
    if family.thinking == "none" or (budget == 0 and family.thinking_off is None):
        return settings
    if budget == 0:
        return settings | {"thinking": {"type": family.thinking_off}}
    positive_budget = budget if budget is not None and budget > 0 else None
    if family.thinking == "adaptive" or (family.thinking == "both" and positive_budget is None):
        # `display`: newer models omit the text of their thoughts by default.
        return settings | {"thinking": {"type": "adaptive", "display": "summarized"}}
    # The budget must be less than `max_tokens`: without room for it the model does not think.
    # Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
    budget = max(positive_budget or _BUDGETS.get(level, _DEFAULT_BUDGET), MIN_THINKING_BUDGET)
    limit = config.max_output_tokens or max(max_tokens, budget + max_tokens // 2)
    if budget >= limit:
        budget = max(limit // 2, MIN_THINKING_BUDGET)
    if budget >= limit:
        return settings
    return settings | {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": limit}


def _system(request: LlmRequest) -> list[_Block]:
    """The instruction; its static prefix is a block of its own, to be cached."""
    instruction, static = instruction_text(request.config), request.static_instruction
    if static and instruction.startswith(static) and (rest := instruction[len(static) :].strip()):
        return [_text(static), _text(rest)]
    return [_text(instruction)] if instruction.strip() else []
