"""An LlmRequest in the words of OpenAI's chat completions, which many servers read.

Source: https://platform.openai.com/docs/api-reference/chat/create.
"""

import base64
import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from adk_nb import types
from adk_nb.models.adaptation import instruction_text, part_text
from adk_nb.models.json_schemas import (
    allowed_functions,
    calling_config,
    output_schema,
    parameters_schema,
    strict_schema,
)
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.pairing import pair_turns
from adk_nb.models.signatures import chat_fields
from adk_nb.models.vendor_facts import Family

logger = logging.getLogger(__name__)

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
"""Of a GenerateContentConfig -> of a chat completion."""
_CHOICES = {
    types.FunctionCallingConfigMode.ANY: "required",
    types.FunctionCallingConfigMode.NONE: "none",
    types.FunctionCallingConfigMode.AUTO: "auto",
}
_REASONING = "reasoning_content"
"""Where DeepSeek, and servers of open models, tell what the model thought."""
_BLOCKS = "thinking_blocks"
"""Where litellm tells it, with Claude's signatures. Source: https://docs.litellm.ai/docs/reasoning_content."""
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def chat_arguments(request: LlmRequest, model: str, *, server: str = "", parallel_calls: bool = True) -> dict[str, Any]:
    """The arguments of `chat.completions.create`.

    What the settings say and chat completions have no word for, such as `safety_settings`, is left out.

    Args:
        request: Is not changed.
        model: Its name at the service.
        server: Which one is asked: what it gave beside its thoughts and calls goes back to it alone.
        parallel_calls: The model may call several tools at once.
    """
    arguments: dict[str, Any] = {"model": model, "messages": list(messages_of(request, server))}
    arguments |= _settings(request.config)
    if tools := [_tool(function) for function in allowed_functions(request)]:
        arguments["tools"] = tools
        if choice := _choice(request):
            arguments["tool_choice"] = choice
        if not parallel_calls:
            arguments["parallel_tool_calls"] = False
    return arguments


def adapt_to_family(arguments: dict[str, Any], family: Family) -> dict[str, Any]:
    """`question` without what its model would refuse."""
    adapted = dict(arguments)
    effort: str | None = adapted.get("reasoning_effort")
    if effort == "minimal" and not family.minimal_effort:
        adapted["reasoning_effort"] = effort = "low"
    if family.tools == "unless thinking" and "tools" in adapted:
        if effort not in (None, "none"):
            model = arguments["model"]
            logger.warning("model %r takes no tools beside the effort %r and does not reason now", model, effort)
        adapted["reasoning_effort"] = effort = "none"
    is_thinking = family.thinks_by_default if effort is None else effort != "none"
    if is_thinking and family.sampling == "unless thinking":
        return {name: value for name, value in adapted.items() if name not in _SAMPLING}
    return adapted


def messages_of(request: LlmRequest, server: str = "") -> Iterator[dict[str, Any]]:
    """What was said: each message with calls is followed by one `tool` message for each of them."""
    if instruction := instruction_text(request.config):
        yield {"role": "system", "content": instruction}
    turns = pair_turns(request.contents)
    needs_reasoning = any(_REASONING in chat_fields(part, server) for turn in turns for part in turn.parts or ())
    with_calls, ends = _with_calls(turns), dict[str | None, str]()
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            message = _model_message(parts, server, ends) | _thoughts(
                parts, server, needs_reasoning and index in with_calls
            )
            if len(message) > 1:
                yield message
        else:
            yield from _user_messages([part for part in parts if not part.thought], ends)


def _with_calls(turns: Sequence[types.Content]) -> set[int]:
    """Numbers of the model's turns that answer a message of the user's with calls, each with all up to the next."""
    turn_numbers, group, calls = set[int](), set[int](), False
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            group.add(index)
            calls = calls or any(part.function_call for part in parts)
        elif not any(part.function_response for part in parts):
            group, calls = set[int](), False
        if calls:
            turn_numbers |= group
    return turn_numbers


def _thoughts(parts: Sequence[types.Part], server: str, needs_reasoning: bool) -> dict[str, Any]:
    """What `server` thought: litellm's `thinking_blocks` of Claude, and `reasoning_content`.

    DeepSeek answers 400 where `reasoning_content` is missing from an answer to a message that it called tools for, even
    if it is empty, and ignores it elsewhere. Source: https://api-docs.deepseek.com/guides/thinking_mode.
    """
    thoughts = [part for part in parts if part.thought]
    server_fields = [fields for part in thoughts if (fields := chat_fields(part, server))]
    blocks = [block for fields in server_fields for block in fields.get(_BLOCKS, ())]
    message: dict[str, Any] = {_BLOCKS: blocks} if blocks else {}
    if needs_reasoning:
        is_own = any(_REASONING in fields for fields in server_fields)
        message[_REASONING] = "".join(part.text or "" for part in thoughts) if is_own else ""
    return message


def _model_message(parts: Sequence[types.Part], server: str, ends: dict[str | None, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if content := "".join(text for part in parts if not part.thought and (text := part_text(part))):
        message["content"] = content
    if calls := [_call(call, chat_fields(part, server), ends) for part in parts if (call := part.function_call)]:
        message["tool_calls"] = calls
    return message


def _call(call: types.FunctionCall, fields: dict[str, Any], ends: dict[str | None, str]) -> dict[str, Any]:
    """A call, with what its server gave beside it; the end of its id is noted in `ends`."""
    arguments = json.dumps(call.args or {}, ensure_ascii=False)
    extra = {name: value for name, value in fields.items() if name != "id_end"}
    ends[call.id] = fields.get("id_end", "")
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"{call.id}{ends[call.id]}", "type": "function", "function": function} | extra


def _user_messages(parts: Sequence[types.Part], ends: dict[str | None, str]) -> Iterator[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if response := part.function_response:
            content = json.dumps(response.response or {}, ensure_ascii=False, default=str)
            yield {"role": "tool", "tool_call_id": f"{response.id}{ends.get(response.id, '')}", "content": content}
            blocks += [
                block for media in response.parts or () if (block := _data(media.inline_data or media.file_data))
            ]
        elif block := _data(part.inline_data or part.file_data):
            blocks.append(block)
        elif text := part_text(part):
            blocks.append({"type": "text", "text": text})
    if blocks and all(block["type"] == "text" for block in blocks):  # what every server reads
        yield {"role": "user", "content": "\n\n".join(block["text"] for block in blocks)}
    elif blocks:
        yield {"role": "user", "content": blocks}


def _data(data: Any) -> dict[str, Any] | None:
    """Bytes, or where they are."""
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
    if config.thinking_config and (level := config.thinking_config.thinking_level):
        settings["reasoning_effort"] = level.value.lower()
    if (schema := output_schema(config)) is not None:
        settings["response_format"] = _format(schema)
    elif config.response_mime_type == "application/json":
        settings["response_format"] = {"type": "json_object"}
    if config.http_options and config.http_options.headers:
        settings["extra_headers"] = config.http_options.headers
    return settings


def _choice(request: LlmRequest) -> str | None:
    """Of the allowed tools no others are offered, so none is named here: llama.cpp's server takes no name."""
    mode = calling_config(request).mode
    return _CHOICES.get(mode) if mode else None


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    """Kept to in every letter where the service can do that."""
    strict = strict_schema(schema)
    json_schema: dict[str, Any] = {"name": "answer", "schema": strict or schema, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": json_schema}
