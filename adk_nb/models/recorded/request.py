"""What of a request makes it the same question again: its words and settings, without ids, times and keys."""

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from types import UnionType
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.recorded.cassette import Asked
from adk_nb.models.recorded.hiding import Hiding

_TRANSPORT = {"http_options", "should_return_http_response", "system_instruction", "tools"}
"""Left out of the settings: how the request travels, and what has a place of its own."""
_ID = re.compile(
    r"\b(?:adk-)?(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\b", re.IGNORECASE
)
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


def normalize(request: LlmRequest, *, model: str, hiding: Hiding) -> tuple[Asked, str]:
    """What `request` asks, as JSON in which two equal ones are the same question, and a digest of its exact words.

    Ids of function calls become their number in the conversation. Other ids and times (not plain dates) become
    `<id>` and `<time>`; bytes become their digest. Tools come by name, since their order says nothing.
    """
    declarations, other_tools = _tools(request.config)
    exact: dict[str, Any] = {
        "model": request.model or model,
        "instruction": _instruction(request.config),
        "tools": declarations,
        "config": {name: value for name, value in _json(request.config).items() if name not in _TRANSPORT},
        "contents": _contents(request.contents),
    }
    if other_tools:
        exact["config"]["tools"] = other_tools
    exact = hiding.hidden(json.loads(json.dumps(exact)))
    digest = hashlib.sha256(json.dumps(exact, sort_keys=True).encode()).hexdigest()[:16]
    return Asked.model_validate(_mask_volatile(exact)), digest


def _json(value: Any) -> Any:
    return to_jsonable_python(value, by_alias=False, exclude_none=True, fallback=_schema_or_name)


def _schema_or_name(value: Any) -> Any:
    """For what is not data: a class in `response_schema` is its JSON schema, anything else its name."""
    if inspect.isclass(value) or hasattr(value, "__origin__") or isinstance(value, UnionType):
        return TypeAdapter(cast(Any, value)).json_schema()
    return getattr(value, "__qualname__", type(value).__qualname__)


def _instruction(config: types.GenerateContentConfig) -> str:
    """The system instruction as text; as JSON when it holds more than text."""
    instruction: Any = _json(config).get("system_instruction", "")
    if isinstance(instruction, str):
        return instruction
    parts = (
        cast(dict[str, list[Any]], instruction).get("parts", [])
        if isinstance(instruction, dict)
        else cast(list[Any], instruction)
    )
    texts: list[Any] = [part if isinstance(part, str) else part.get("text") for part in parts]
    return "\n".join(texts) if texts and all(texts) else json.dumps(instruction, sort_keys=True)


def _tools(config: types.GenerateContentConfig) -> tuple[list[dict[str, Any]], list[Any]]:
    """The function declarations by name, and what else stands among the tools."""
    declarations: list[dict[str, Any]] = []
    other_tools: list[Any] = []
    for tool in _json(config).get("tools", []):
        if isinstance(tool, dict):
            declarations += cast(dict[str, Any], tool).pop("function_declarations", [])
        if tool:
            other_tools.append(tool)
    return sorted(declarations, key=lambda declaration: str(declaration.get("name"))), other_tools


def _contents(contents: list[types.Content]) -> list[dict[str, Any]]:
    numbers: dict[str, str] = {}
    messages: list[dict[str, Any]] = []
    for content in contents:
        parts = [_part(part, numbers) for part in content.parts or []]
        messages.append({"role": content.role or "user", "parts": parts})
    return messages


def _part(part: types.Part, numbers: dict[str, str]) -> dict[str, Any]:
    fields = cast(dict[str, Any], _json(part))
    fields.pop("thought_signature", None)
    for kind in ("function_call", "function_response"):
        if call_id := fields.get(kind, {}).get("id"):
            fields[kind]["id"] = numbers.setdefault(call_id, f"call-{len(numbers) + 1}")
    if part.inline_data and part.inline_data.data is not None:
        data = part.inline_data.data
        fields["inline_data"]["data"] = f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"
    return fields


def _mask_volatile(value: Any, name: str = "") -> Any:
    """`value` without the ids and times that change from run to run."""
    if isinstance(value, Mapping):
        return {key: _mask_volatile(item, key) for key, item in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list):
        return [_mask_volatile(item, name) for item in cast(list[Any], value)]
    if isinstance(value, str):
        return _TIME.sub("<time>", _ID.sub("<id>", value))
    if name == "timestamp" and isinstance(value, int | float):
        return "<time>"
    return value
