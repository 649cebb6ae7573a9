"""An LlmRequest in the words of OpenAI's chat completions, which many servers read.

Source: https://platform.openai.com/docs/api-reference/chat/create.
"""

import base64
import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from adk_nb import types
from adk_nb.models.fitting import text_of, words_of
from adk_nb.models.json_schemas import calling_of, functions_of, output_schema_of, parameters_of, strict_schema
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.pairing import paired
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
_THOUGHTS = "reasoning_content"
"""Where DeepSeek, and servers of open models, tell what the model thought."""
_BLOCKS = "thinking_blocks"
"""Where litellm tells it, with Claude's signatures. Source: https://docs.litellm.ai/docs/reasoning_content."""
_SAMPLING = ("temperature", "top_p", "logprobs", "top_logprobs")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def chat_question(request: LlmRequest, model: str, *, server: str = "", parallel_calls: bool = True) -> dict[str, Any]:
    """The arguments of `chat.completions.create`.

    What the settings say and chat completions have no word for, such as `safety_settings`, is left out.

    Args:
        request: Is not changed.
        model: Its name at the service.
        server: Which one is asked: what it gave beside its thoughts and calls goes back to it alone.
        parallel_calls: The model may call several tools at once.
    """
    question: dict[str, Any] = {"model": model, "messages": list(messages_of(request, server))}
    question |= _settings(request.config)
    if tools := [_tool(one) for one in functions_of(request)]:
        question["tools"] = tools
        if choice := _choice(request):
            question["tool_choice"] = choice
        if not parallel_calls:
            question["parallel_tool_calls"] = False
    return question


def fitted_to_family(question: dict[str, Any], family: Family) -> dict[str, Any]:
    """`question` without what its model would refuse."""
    taken = dict(question)
    effort: str | None = taken.get("reasoning_effort")
    if effort == "minimal" and not family.minimal_effort:
        taken["reasoning_effort"] = effort = "low"
    if family.tools == "unless thinking" and "tools" in taken:
        if effort not in (None, "none"):
            model = question["model"]
            logger.warning("model %r takes no tools beside the effort %r and does not reason now", model, effort)
        taken["reasoning_effort"] = effort = "none"
    thinks = family.thinks_by_default if effort is None else effort != "none"
    if thinks and family.sampling == "unless thinking":
        return {name: value for name, value in taken.items() if name not in _SAMPLING}
    return taken


def messages_of(request: LlmRequest, server: str = "") -> Iterator[dict[str, Any]]:
    """What was said: each message with calls is followed by one `tool` message for each of them."""
    if instruction := words_of(request.config):
        yield {"role": "system", "content": instruction}
    turns = paired(request.contents)
    reasons = any(_THOUGHTS in chat_fields(part, server) for turn in turns for part in turn.parts or ())
    with_calls, ends = _with_calls(turns), dict[str | None, str]()
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            message = _of_model(parts, server, ends) | _thoughts(parts, server, reasons and index in with_calls)
            if len(message) > 1:
                yield message
        else:
            yield from _of_user([part for part in parts if not part.thought], ends)


def _with_calls(turns: Sequence[types.Content]) -> set[int]:
    """Numbers of the model's turns that answer a message of the user's with calls, each with all up to the next."""
    found, group, calls = set[int](), set[int](), False
    for index, turn in enumerate(turns):
        parts = turn.parts or []
        if turn.role == "model":
            group.add(index)
            calls = calls or any(part.function_call for part in parts)
        elif not any(part.function_response for part in parts):
            group, calls = set[int](), False
        if calls:
            found |= group
    return found


def _thoughts(parts: Sequence[types.Part], server: str, reasons: bool) -> dict[str, Any]:
    """What `server` thought: litellm's `thinking_blocks` of Claude, and `reasoning_content`.

    DeepSeek answers 400 where `reasoning_content` is missing from an answer to a message that it called tools for, even
    if it is empty, and ignores it elsewhere. Source: https://api-docs.deepseek.com/guides/thinking_mode.
    """
    thoughts = [part for part in parts if part.thought]
    given = [fields for part in thoughts if (fields := chat_fields(part, server))]
    blocks = [block for fields in given for block in fields.get(_BLOCKS, ())]
    told: dict[str, Any] = {_BLOCKS: blocks} if blocks else {}
    if reasons:
        is_own = any(_THOUGHTS in fields for fields in given)
        told[_THOUGHTS] = "".join(part.text or "" for part in thoughts) if is_own else ""
    return told


def _of_model(parts: Sequence[types.Part], server: str, ends: dict[str | None, str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if words := "".join(text for part in parts if not part.thought and (text := text_of(part))):
        message["content"] = words
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


def _of_user(parts: Sequence[types.Part], ends: dict[str | None, str]) -> Iterator[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for part in parts:
        if response := part.function_response:
            content = json.dumps(response.response or {}, ensure_ascii=False, default=str)
            yield {"role": "tool", "tool_call_id": f"{response.id}{ends.get(response.id, '')}", "content": content}
            said += [told for one in response.parts or () if (told := _data(one.inline_data or one.file_data))]
        elif told := _data(part.inline_data or part.file_data):
            said.append(told)
        elif words := text_of(part):
            said.append({"type": "text", "text": words})
    if said and all(one["type"] == "text" for one in said):  # what every server reads
        yield {"role": "user", "content": "\n\n".join(one["text"] for one in said)}
    elif said:
        yield {"role": "user", "content": said}


def _data(data: Any) -> dict[str, Any] | None:
    """Bytes, or where they are."""
    if data is None:
        return None
    kind, name = data.mime_type or "application/octet-stream", data.display_name
    uri = getattr(data, "file_uri", None)
    held: bytes | None = getattr(data, "data", None)
    if uri:
        if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": uri}}
        return {"type": "text", "text": f"[{name or 'a file'} ({kind}) at {uri}]"}
    if kind.startswith("text/"):
        return {"type": "text", "text": (held or b"").decode("utf-8", "replace")}
    coded = base64.b64encode(held or b"").decode()
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{coded}"}}
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": coded, "format": _AUDIO[kind]}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": f"data:{kind};base64,{coded}"}}


def _tool(declared: types.FunctionDeclaration) -> dict[str, Any]:
    function: dict[str, Any] = {"name": declared.name, "parameters": parameters_of(declared)}
    if declared.description:
        function["description"] = declared.description
    return {"type": "function", "function": function}


def _settings(config: types.GenerateContentConfig) -> dict[str, Any]:
    told = {theirs: value for ours, theirs in _SETTINGS.items() if (value := getattr(config, ours)) is not None}
    if config.thinking_config and (level := config.thinking_config.thinking_level):
        told["reasoning_effort"] = level.value.lower()
    if (schema := output_schema_of(config)) is not None:
        told["response_format"] = _format(schema)
    elif config.response_mime_type == "application/json":
        told["response_format"] = {"type": "json_object"}
    if config.http_options and config.http_options.headers:
        told["extra_headers"] = config.http_options.headers
    return told


def _choice(request: LlmRequest) -> str | None:
    """Of the allowed tools no others are offered, so none is named here: llama.cpp's server takes no name."""
    mode = calling_of(request).mode
    return _CHOICES.get(mode) if mode else None


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    """Kept to in every letter where the service can do that."""
    strict = strict_schema(schema)
    told: dict[str, Any] = {"name": "answer", "schema": strict or schema, "strict": strict is not None}
    return {"type": "json_schema", "json_schema": told}
