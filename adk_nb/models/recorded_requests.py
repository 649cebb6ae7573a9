"""Comparison of requests with recorded ones: without ids, times and keys, and the difference as text."""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from types import UnionType
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.models.cassette import NormalizedRequest, Recording, Redactor
from adk_nb.models.llm_request import LlmRequest

_NOT_COMPARED = {"http_options", "should_return_http_response", "system_instruction", "tools"}
"""Settings about the transport, and those that are fields of their own in a NormalizedRequest."""
_ID = re.compile(
    r"\b(?:adk-)?(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})\b", re.IGNORECASE
)
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


def normalize(request: LlmRequest, *, model: str, redactor: Redactor) -> tuple[NormalizedRequest, str]:
    """Normalize `request` for comparison; returns it with the digest of its exact text.

    Ids of function calls become their number in the conversation. Other ids and times (not plain dates) become
    `<id>` and `<time>`; bytes become their digest. Tools are sorted by name, since their order has no meaning.
    """
    declarations, other_tools = _tools(request.config)
    contents, calls = list[dict[str, Any]](), 0
    ids, numbers = dict[str, str](), dict[str, str]()
    for content in request.contents:
        contents.append({"role": content.role or "user", "parts": []})
        for part in content.parts or ():
            # A copy, from which fields may be removed.
            fields = cast(dict[str, Any], _json(part))
            # It differs from recording to recording, and says nothing about the conversation.
            fields.pop("thought_signature", None)
            for kind in ("function_call", "function_response"):
                if call_id := fields.get(kind, {}).get("id"):
                    # Ids are random in each run, their order is not; a service may give several calls one id.
                    first = ids.setdefault(call_id, f"call-{len(ids) + 1}")
                    if kind == "function_call":
                        calls += 1
                        numbers[first] = f"call-{calls}"
                    fields[kind]["id"] = numbers.get(first, first)
            if part.inline_data and (data := part.inline_data.data) is not None:
                # A digest: the bytes of images would make the cassette, and its differences, unreadable.
                digest = hashlib.sha256(data).hexdigest()[:16]
                fields["inline_data"]["data"] = f"{len(data)} bytes, sha256 {digest}"
            contents[-1]["parts"].append(fields)
    exact: dict[str, Any] = {
        "model": request.model or model,
        "instruction": _instruction(request.config),
        "tools": declarations,
        "config": {name: value for name, value in _json(request.config).items() if name not in _NOT_COMPARED},
        "contents": contents,
    }
    if other_tools:
        exact["config"]["tools"] = other_tools
    # Through JSON, like the recording that it is compared with: tuples become lists.
    exact = redactor.redact(json.loads(json.dumps(exact)))
    digest = hashlib.sha256(json.dumps(exact, sort_keys=True).encode()).hexdigest()[:16]
    return NormalizedRequest.model_validate(_mask_volatile(exact)), digest


def _json(value: Any) -> Any:
    def schema_or_name(value: Any) -> Any:
        """The JSON schema of a class, as in `response_schema`; of other objects their name."""
        if inspect.isclass(value) or hasattr(value, "__origin__") or isinstance(value, UnionType):
            return TypeAdapter(cast(Any, value)).json_schema()
        return getattr(value, "__qualname__", type(value).__qualname__)

    return to_jsonable_python(value, by_alias=False, exclude_none=True, fallback=schema_or_name)


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
    """The function declarations, sorted by name, and the other tools."""
    declarations: list[dict[str, Any]] = []
    other_tools: list[Any] = []
    for tool in _json(config).get("tools", []):
        if isinstance(tool, dict):
            # One Tool may hold declarations beside a built-in tool.
            declarations += cast(dict[str, Any], tool).pop("function_declarations", [])
        if tool:
            other_tools.append(tool)
    return sorted(declarations, key=lambda declaration: str(declaration.get("name"))), other_tools


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


Json = dict[str, Any]
_MAX_CHARS = 60
"""Length of a value in a reason."""
_MAX_REASONS = 3


def closest_recording(request: NormalizedRequest, recordings: Sequence[Recording]) -> int:
    """Index of the recording (of at least one) whose request is most similar; of equal ones the earliest."""
    scores: list[float] = []
    for recorded in (recording.request for recording in recordings):
        equal_fields = sum(getattr(request, name) == getattr(recorded, name) for name in ("model", "config", "tools"))
        pairs = list(zip_longest(request.contents, recorded.contents))
        messages = sum(
            0.1 * (new == old) + 0.9 * _shared_words(_message_text(new), _message_text(old)) for new, old in pairs
        )
        instruction = _shared_words(request.instruction, recorded.instruction)
        scores.append(equal_fields + 3 * instruction + 5 * messages / (len(pairs) or 1))
    return scores.index(max(scores))


def describe_difference(request: NormalizedRequest, recorded: NormalizedRequest) -> str:
    """The difference of each field, `request` first: at most three reasons, then the number of the others."""
    reasons: list[str] = []
    if request.model != recorded.model:
        reasons.append(f"the model is {request.model!r} instead of {recorded.model!r}")
    if request.instruction != recorded.instruction:
        lines = zip_longest(request.instruction.split("\n"), recorded.instruction.split("\n"))
        number, (new, old) = next((n, pair) for n, pair in enumerate(lines, start=1) if pair[0] != pair[1])
        if old is None:
            reasons.append(f"the instruction has a new line {number}: {_short(new)}")
        elif new is None:
            reasons.append(f"the instruction lost line {number}: {_short(old)}")
        else:
            reasons.append(f"the instruction changed at line {number}: {_compare_texts(new, old)}")
    tools, recorded_tools = ({str(tool.get("name")): tool for tool in side.tools} for side in (request, recorded))
    reasons += _compare_by_name(tools, recorded_tools, "tool", _compare_declarations)
    reasons += _compare_by_name(
        request.config,
        recorded.config,
        "setting",
        lambda name, new, old: [f"{name} is {_short(new)} instead of {_short(old)}"],
    )
    # Of the messages the first that differs: those after it follow from it.
    messages = enumerate(zip_longest(request.contents, recorded.contents), start=1)
    for number, (new, old) in [pair for pair in messages if pair[1][0] != pair[1][1]][:1]:
        text, recorded_text = _message_text(new), _message_text(old)
        if old is None:
            reasons.append(f"message {number} is new: {_short(text)}")
        elif new is None:
            reasons.append(f"message {number} is missing: {_short(recorded_text)}")
        elif text == recorded_text:
            reasons.append(f"message {number} differs in its role or form: {_short(new)} instead of {_short(old)}")
        else:
            reasons.append(f"message {number} differs: {_compare_texts(text, recorded_text)}")
    more = len(reasons) - _MAX_REASONS
    return "; ".join(reasons[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _shared_words(new: str, old: str) -> float:
    """Share of the words of both texts that are in each."""
    if new == old:
        return 1.0
    new_words, old_words = set(re.findall(r"\w+", new)), set(re.findall(r"\w+", old))
    return len(new_words & old_words) / (len(new_words | old_words) or 1)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def _compare_texts(new: str, old: str) -> str:
    """Both texts; long ones from shortly before their first difference."""
    start = next((n for n, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), min(len(new), len(old)))
    start = max(0, start - 20) if max(len(new), len(old)) > _MAX_CHARS else 0
    dots = "…" if start else ""
    return f"{_short(dots + new[start:])} instead of {_short(dots + old[start:])}"


def _compare_by_name(new: Json, old: Json, kind: str, compare: Callable[[str, Any, Any], list[str]]) -> list[str]:
    """Compare two mappings; `compare` describes a value that changed."""
    reasons = [f"{kind} {name!r} is new" for name in new if name not in old]
    reasons += [f"{kind} {name!r} is gone" for name in old if name not in new]
    for name in new:
        if name in old and new[name] != old[name]:
            reasons += compare(name, new[name], old[name])
    return reasons


def _compare_declarations(name: str, new: Json, old: Json) -> list[str]:
    new_schema, old_schema = _parameter_schema(new), _parameter_schema(old)
    new_parameters: Json = new_schema.get("properties", {})
    old_parameters: Json = old_schema.get("properties", {})
    new_required, old_required = set(new_schema.get("required", [])), set(old_schema.get("required", []))

    def changed(name: str, new: Json, old: Json) -> list[str]:
        keys = [key for key in sorted({*new, *old}) if new.get(key) != old.get(key)]
        changes = [f"{key} is {_short(new.get(key))} instead of {_short(old.get(key))}" for key in keys]
        return [f"parameter {name!r}: {', '.join(changes)}"]

    reasons = _compare_by_name(new_parameters, old_parameters, "parameter", changed)
    reasons += [
        f"parameter {key!r} is required now" for key in sorted((new_required - old_required) & {*old_parameters})
    ]
    reasons += [
        f"parameter {key!r} is optional now" for key in sorted((old_required - new_required) & {*new_parameters})
    ]
    reasons += [
        f"its {key} changed"
        for key in sorted({*new, *old})
        if not key.startswith("parameters") and new.get(key) != old.get(key)
    ]
    return [f"tool {name!r}: {reason}" for reason in reasons or ["its schema changed"]]


def _parameter_schema(declaration: Json) -> Json:
    return declaration.get("parameters_json_schema") or declaration.get("parameters") or {}


def _message_text(content: Json | None) -> str:
    """A message in short: its text, its calls, its tool results."""
    parts = cast(list[Json], (content or {}).get("parts", []))
    return " ".join(_part_text(part) for part in parts)


def _part_text(part: Json) -> str:
    if "text" in part:
        return str(part["text"])
    if call := part.get("function_call"):
        call_args: Json = call.get("args") or {}
        return f"calls {call.get('name')}({', '.join(f'{name}={value!r}' for name, value in call_args.items())})"
    if answer := part.get("function_response"):
        return f"{answer.get('name')} answered {answer.get('response')}"
    return str(part)
