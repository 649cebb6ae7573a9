"""Conversion of a request to OpenAI's chat completions, which many servers take.

Source: https://platform.openai.com/docs/api-reference/chat/create.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from adk_nb import types
from adk_nb.models.adaptation import chat_fields, instruction_text, pair_turns, part_text
from adk_nb.models.json_schemas import (
    allowed_functions,
    calling_config,
    output_schema,
    parameters_schema,
    strict_schema,
)
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import UNREADABLE
from adk_nb.models.vendor_facts import Family
from adk_nb.wire import join_surrogates

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "stop_sequences": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "seed": "seed",
    "response_logprobs": "logprobs",
    "logprobs": "top_logprobs",
}
"""Field of GenerateContentConfig -> argument of a chat completion."""
CHOICES = {
    types.FunctionCallingConfigMode.ANY: "required",
    types.FunctionCallingConfigMode.NONE: "none",
    types.FunctionCallingConfigMode.AUTO: "auto",
}
SENT_AS = {name: (target,) for name, target in _SETTINGS.items()} | {
    "max_output_tokens": ("max_tokens", "max_completion_tokens", "max_output_tokens"),
    "thinking_config": ("reasoning_effort", "reasoning.effort"),
    "response_schema": ("response_format", "text.format"),
    "response_json_schema": ("response_format", "text.format"),
    "response_mime_type": ("response_format", "text.format"),
    "tool_config": ("tool_choice", "tools"),
    "http_options": ("extra_headers",),
}
"""Field of GenerateContentConfig -> the arguments of a chat completion, or of a response, that may have it."""
SAMPLING_SETTINGS = ("temperature", "top_p", "response_logprobs", "logprobs")
"""Fields of GenerateContentConfig that some models do not take while they reason."""
_REASONING = "reasoning_content"
"""Field for thoughts of DeepSeek and of servers of open models."""
_BLOCKS = "thinking_blocks"
"""Field for thoughts of litellm, with Claude's signatures.

Source: https://docs.litellm.ai/docs/reasoning_content.
"""
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def chat_arguments(request: LlmRequest, model: str, *, server: str = "", parallel_calls: bool = True) -> dict[str, Any]:
    """The arguments of `chat.completions.create`.

    Settings that chat completions do not have, such as `safety_settings`, are left out.

    Args:
        request: Not changed.
        model: Name at the service.
        server: Name of the server; fields that it sent with thoughts and calls are sent back to it only.
        parallel_calls: The model may call several tools in one turn.
    """
    arguments: dict[str, Any] = {"model": model, "messages": list(chat_messages(request, server))}
    arguments |= _settings(request.config)
    if tools := [_tool(function) for function in allowed_functions(request)]:
        arguments["tools"] = tools
        if choice := _choice(request):
            arguments["tool_choice"] = choice
        # Sent only without parallel calls: some servers refuse the field, and true is the default.
        if not parallel_calls:
            arguments["parallel_tool_calls"] = False
    return arguments


def adapt_to_family(arguments: dict[str, Any], family: Family) -> dict[str, Any]:
    """Remove the settings that the model would refuse with HTTP 400; see `vendor_facts`."""
    adapted = dict(arguments)
    effort: str | None = adapted.get("reasoning_effort")
    if effort == "minimal" and not family.minimal_effort:
        adapted["reasoning_effort"] = effort = "low"
    if family.tools == "unless thinking" and "tools" in adapted:
        # The tools stay: without them the agent could not work at all.
        adapted["reasoning_effort"] = effort = "none"
    is_thinking = family.thinks_by_default if effort is None else effort != "none"
    if is_thinking and family.sampling == "unless thinking":
        return {name: value for name, value in adapted.items() if name not in _SAMPLING}
    return adapted


def chat_messages(request: LlmRequest, server: str = "") -> Iterator[dict[str, Any]]:
    """Convert the contents; a message with calls is followed by one `tool` message for each call."""
    if instruction := instruction_text(request.config):
        # Not `developer`: servers of open models know `system` alone, and OpenAI takes both.
        yield {"role": "system", "content": instruction}
    turns = pair_turns(request.contents)
    needs_reasoning = any(_REASONING in chat_fields(part, server) for turn in turns for part in turn.parts or ())
    with_calls, id_suffixes = _turns_with_calls(turns), dict[str | None, str]()
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            message = _model_message(parts, server, id_suffixes) | _thoughts(
                parts, server, needs_reasoning and index in with_calls
            )
            # Chat completions refuse an assistant message without content and calls.
            if len(message) > 1:
                yield message
        else:
            # A user message has no thoughts, except in another agent's content that is quoted as the user's.
            yield from _user_messages([part for part in parts if not part.thought], id_suffixes)


def _turns_with_calls(turns: Sequence[types.Content]) -> set[int]:
    """Indexes of the model's turns in exchanges with calls; an exchange lasts until the user's next message."""
    indexes, exchange, has_calls = set[int](), set[int](), False
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            exchange.add(index)
            has_calls = has_calls or any(part.function_call for part in parts)
        # Results do not end an exchange; the user's own text does.
        elif not any(part.function_response for part in parts):
            exchange, has_calls = set[int](), False
        if has_calls:
            indexes |= exchange
    return indexes


def _thoughts(parts: Sequence[types.Part], server: str, needs_reasoning: bool) -> dict[str, Any]:
    """Fields with the thoughts of `server`: litellm's `thinking_blocks` of Claude, and `reasoning_content`.

    DeepSeek answers 400 if `reasoning_content`, even an empty one, is missing in a turn with calls, and ignores it
    elsewhere. Source: https://api-docs.deepseek.com/guides/thinking_mode.
    """
    thoughts = [part for part in parts if part.thought]
    server_fields = [fields for part in thoughts if (fields := chat_fields(part, server))]
    blocks = [block for fields in server_fields for block in fields.get(_BLOCKS, ())]
    message: dict[str, Any] = {_BLOCKS: blocks} if blocks else {}
    if needs_reasoning:
        is_own = any(_REASONING in fields for fields in server_fields)
        message[_REASONING] = "".join(part.text or "" for part in thoughts) if is_own else ""
    return message


def _model_message(parts: Sequence[types.Part], server: str, id_suffixes: dict[str | None, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if content := "".join(text for part in parts if not part.thought and (text := part_text(part))):
        message["content"] = content
    if calls := [_call(call, chat_fields(part, server), id_suffixes) for part in parts if (call := part.function_call)]:
        message["tool_calls"] = calls
    return message


def _call(call: types.FunctionCall, fields: dict[str, Any], id_suffixes: dict[str | None, str]) -> dict[str, Any]:
    """Convert a call, with the fields that its server sent; the suffix of its id is stored in `id_suffixes`."""
    arguments = json.dumps(call.args or {}, ensure_ascii=False)
    # `extra_content` goes back as it came: Gemini checks the signature in it.
    extra = {name: value for name, value in fields.items() if name != "id_end"}
    id_suffixes[call.id] = fields.get("id_end", "")
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"{call.id}{id_suffixes[call.id]}", "type": "function", "function": function} | extra


def _user_messages(parts: Sequence[types.Part], id_suffixes: dict[str | None, str]) -> Iterator[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if response := part.function_response:
            content = json.dumps(response.response or {}, ensure_ascii=False, default=str)
            yield {
                "role": "tool",
                "tool_call_id": f"{response.id}{id_suffixes.get(response.id, '')}",
                "content": content,
            }
            # A tool message takes text only: its media follow in a message of the user.
            blocks += [
                block for media in response.parts or () if (block := _data(media.inline_data or media.file_data))
            ]
        elif block := _data(part.inline_data or part.file_data):
            blocks.append(block)
        elif text := part_text(part):
            blocks.append({"type": "text", "text": text})
    if blocks and all(block["type"] == "text" for block in blocks):  # plain text, which every server takes
        yield {"role": "user", "content": "\n\n".join(block["text"] for block in blocks)}
    elif blocks:
        # After all tool messages: OpenAI refuses anything between a call and its results.
        yield {"role": "user", "content": blocks}


def _data(data: Any) -> dict[str, Any] | None:
    """A content block for bytes or a URI; text for URIs other than images."""
    if data is None:
        return None
    kind, name = data.mime_type or "application/octet-stream", data.display_name
    uri = getattr(data, "file_uri", None)
    content: bytes | None = getattr(data, "data", None)
    if uri:
        if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": uri}}
        return {"type": "text", "text": f"[{name or 'a file'} ({kind}) at {uri}]"}
    if kind.startswith("text/"):
        return {"type": "text", "text": (content or b"").decode("utf-8", "replace")}
    coded = base64.b64encode(content or b"").decode()
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{coded}"}}
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": coded, "format": _AUDIO[kind]}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": f"data:{kind};base64,{coded}"}}


def _tool(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    function: dict[str, Any] = {"name": declaration.name, "parameters": parameters_schema(declaration)}
    if declaration.description:
        function["description"] = declaration.description
    return {"type": "function", "function": function}


def _settings(config: types.GenerateContentConfig) -> dict[str, Any]:
    settings = {target: value for source, target in _SETTINGS.items() if (value := getattr(config, source)) is not None}
    if effort := effort_of(config):
        settings["reasoning_effort"] = effort
    if (schema := output_schema(config)) is not None:
        settings["response_format"] = _format(schema)
    elif config.response_mime_type == "application/json":
        settings["response_format"] = {"type": "json_object"}
    if config.http_options and config.http_options.headers:
        settings["extra_headers"] = config.http_options.headers
    return settings


def effort_of(config: types.GenerateContentConfig) -> str | None:
    """The effort that is asked for. None: the model's own."""
    level = config.thinking_config and config.thinking_config.thinking_level
    # Gemini's levels and OpenAI's efforts have the same names in lower case.
    return level.value.lower() if level else None


def call_part(call_id: str | None, name: str, arguments: str) -> types.Part:
    """Convert a call with its arguments as JSON; what is no JSON object is refused, and the model told why."""
    try:
        # Calls without arguments come as an empty text from some servers.
        args: Any = json.loads(join_surrogates(arguments)) if arguments.strip() else {}
    except (ValueError, RecursionError):
        args = None
    if not name:
        args = {UNREADABLE: f"it names no tool, and has the arguments {arguments[:200]!r}"}
    elif not isinstance(args, dict):
        args = {UNREADABLE: f"its arguments are not a JSON object, but {arguments[:200]!r}"}
    return types.Part(
        function_call=types.FunctionCall(id=call_id or None, name=name or None, args=cast(dict[str, Any], args))
    )


def _choice(request: LlmRequest) -> str | None:
    """The mode; never a tool's name, which llama.cpp's server refuses: only the allowed tools are sent."""
    mode = calling_config(request).mode
    return CHOICES.get(mode) if mode else None


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    """The `response_format` of a schema, strict if the schema is within OpenAI's subset."""
    strict = strict_schema(schema)
    json_schema: dict[str, Any] = {"name": "answer", "schema": strict or schema, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": json_schema}
