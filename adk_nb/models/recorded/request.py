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


def asked(request: LlmRequest, *, model: str, hiding: Hiding) -> tuple[Asked, str]:
    """What `request` asks, as JSON in which two equal ones are the same question, and a digest of its exact words.

    Ids of function calls become their number in the conversation. Other ids and times (not plain dates) become
    `<id>` and `<time>`; bytes become their digest. Tools come by name, since their order says nothing.
    """
    declarations, others = _tools(request.config)
    exact: dict[str, Any] = {
        "model": request.model or model,
        "instruction": _instruction(request.config),
        "tools": declarations,
        "config": {name: one for name, one in _json(request.config).items() if name not in _TRANSPORT},
        "contents": _contents(request.contents),
    }
    if others:
        exact["config"]["tools"] = others
    exact = hiding.hidden(json.loads(json.dumps(exact)))
    digest = hashlib.sha256(json.dumps(exact, sort_keys=True).encode()).hexdigest()[:16]
    return Asked.model_validate(_steady(exact)), digest


def _json(value: Any) -> Any:
    return to_jsonable_python(value, by_alias=False, exclude_none=True, fallback=_schema_or_name)


def _schema_or_name(value: Any) -> Any:
    """For what is not data: a class in `response_schema` is its JSON schema, anything else its name."""
    if inspect.isclass(value) or hasattr(value, "__origin__") or isinstance(value, UnionType):
        return TypeAdapter(cast(Any, value)).json_schema()
    return getattr(value, "__qualname__", type(value).__qualname__)


def _instruction(config: types.GenerateContentConfig) -> str:
    """The system instruction as text; as JSON when it holds more than text."""
    said: Any = _json(config).get("system_instruction", "")
    if isinstance(said, str):
        return said
    parts = cast(dict[str, list[Any]], said).get("parts", []) if isinstance(said, dict) else cast(list[Any], said)
    texts: list[Any] = [one if isinstance(one, str) else one.get("text") for one in parts]
    return "\n".join(texts) if texts and all(texts) else json.dumps(said, sort_keys=True)


def _tools(config: types.GenerateContentConfig) -> tuple[list[dict[str, Any]], list[Any]]:
    """The function declarations by name, and what else stands among the tools."""
    declarations: list[dict[str, Any]] = []
    others: list[Any] = []
    for found in _json(config).get("tools", []):
        if isinstance(found, dict):
            declarations += cast(dict[str, Any], found).pop("function_declarations", [])
        if found:
            others.append(found)
    return sorted(declarations, key=lambda one: str(one.get("name"))), others


def _contents(contents: list[types.Content]) -> list[dict[str, Any]]:
    numbers: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for content in contents:
        parts = [_part(part, numbers) for part in content.parts or []]
        found.append({"role": content.role or "user", "parts": parts})
    return found


def _part(part: types.Part, numbers: dict[str, str]) -> dict[str, Any]:
    found = cast(dict[str, Any], _json(part))
    found.pop("thought_signature", None)
    for kind in ("function_call", "function_response"):
        if given := found.get(kind, {}).get("id"):
            found[kind]["id"] = numbers.setdefault(given, f"call-{len(numbers) + 1}")
    if part.inline_data and part.inline_data.data is not None:
        data = part.inline_data.data
        found["inline_data"]["data"] = f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"
    return found


def _steady(value: Any, name: str = "") -> Any:
    """`value` without the ids and times that change from run to run."""
    if isinstance(value, Mapping):
        return {key: _steady(one, key) for key, one in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list):
        return [_steady(one, name) for one in cast(list[Any], value)]
    if isinstance(value, str):
        return _TIME.sub("<time>", _ID.sub("<id>", value))
    if name == "timestamp" and isinstance(value, int | float):
        return "<time>"
    return value
