"""Messages, arguments and results as JSON text in the form of the conventions, without secrets and without media.

Source: gen-ai-input-messages.json and gen-ai-output-messages.json beside the conventions.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.redaction import hidden, redacted
from adk_nb.wire import replace_surrogates

_ROLES = {"model": "assistant", "user": "user", "system": "system", None: "user"}


def as_json(value: Any) -> str:
    """The result of one of the functions below as JSON text."""
    return replace_surrogates(json.dumps(value, ensure_ascii=False, default=str))


def error_text(error: BaseException) -> str | None:
    """An error's message without secrets. None: it has none that can be read."""
    try:
        return replace_surrogates(hidden(str(error)))
    except Exception:  # an exception's own __str__ may raise
        return None


def safe(value: Any) -> Any:
    """Any value as JSON without secrets; what JSON cannot hold, as text."""
    if isinstance(value, str):
        return redacted(value)
    try:
        plain = to_jsonable_python(value, fallback=str, serialize_unknown=True)
    except Exception as error:  # an object's own methods may raise, and telemetry must not
        return f"unreadable ({type(error).__name__})"
    return redacted(plain)


def messages(contents: Iterable[types.Content]) -> list[dict[str, Any]]:
    """Contents as messages; results of tools have the role `tool`."""
    return [_message(content) for content in contents]


def _message(content: types.Content) -> dict[str, Any]:
    parts = content.parts or []
    is_result = any(part.function_response is not None for part in parts)
    # Gemini sends results with the role `user`.
    role = "tool" if is_result else _ROLES.get(content.role, content.role)
    return {"role": role, "parts": [_part(part) for part in parts]}


def _part(part: types.Part) -> dict[str, Any]:
    if part.function_call:
        call = part.function_call
        # The conventions name parts otherwise than Gemini: tool_call, tool_call_response, blob, uri.
        return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": safe(call.args)}
    if part.function_response:
        result = part.function_response
        return {"type": "tool_call_response", "id": result.id, "response": safe(result.response)}
    if part.inline_data:
        blob = part.inline_data
        return _media("blob", blob.mime_type) | {"content": f"[{len(blob.data or b'')} bytes]"}
    if part.file_data:
        return _media("uri", part.file_data.mime_type) | {"uri": safe(part.file_data.file_uri)}
    if part.text is not None:
        return {"type": "reasoning" if part.thought else "text", "content": redacted(part.text)}
    kind = next(iter(part.model_fields_set), "unknown")
    return {"type": kind}


def _media(kind: str, mime_type: str | None) -> dict[str, Any]:
    modality = (mime_type or "").partition("/")[0]
    return {
        "type": kind,
        "mime_type": mime_type,
        "modality": modality if modality in ("image", "audio", "video") else "document",
    }


def instruction(request: LlmRequest) -> list[dict[str, Any]]:
    """The system instruction as parts; empty if there is none."""
    text: Any = request.config.system_instruction
    if not text:
        return []
    if isinstance(text, str):
        return [{"type": "text", "content": redacted(text)}]
    return [_part(part) for part in getattr(text, "parts", None) or ()]


def output(content: types.Content | None, finish_reason: str | None) -> list[dict[str, Any]]:
    """A model's answer as the only choice; empty if there is none."""
    if content is None:
        return []
    return [_message(content) | {"role": "assistant", "finish_reason": finish_reason or "stop"}]


def tool_definitions(tools: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Names of the tools that were offered; their schemas are large, and left out."""
    return [{"type": "function", "name": name} for name in tools]


def span_events(request: LlmRequest) -> Iterable[tuple[str, dict[str, str]]]:
    """Messages as 1.36 has them: names of events, and their attributes."""
    if parts := instruction(request):
        yield "gen_ai.system.message", {"content": as_json(parts)}
    for message in messages(request.contents):
        yield f"gen_ai.{message['role']}.message", {"content": as_json(message["parts"])}
