"""Says in words which part of a request is not as it was recorded."""

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, cast

from adk_nb.models.recorded.cassette import Asked, Recording

Json = dict[str, Any]
_SHOWN = 60
_REASONS = 3


def nearest(request: Asked, recordings: Sequence[Recording]) -> int:
    """Which of `recordings` (at least one) asked something most like `request`; of equals the earliest."""
    likeness = [_likeness(request, one.request) for one in recordings]
    return likeness.index(max(likeness))


def differences(request: Asked, recorded: Asked) -> str:
    """What is not the same, part by part, `request` first; at most three reasons, then how many more."""
    found: list[str] = []
    if request.model != recorded.model:
        found.append(f"the model is {request.model!r} instead of {recorded.model!r}")
    if request.instruction != recorded.instruction:
        found.append(_instruction(request.instruction, recorded.instruction))
    found += _tools(request.tools, recorded.tools)
    found += _config(request.config, recorded.config)
    found += _contents(request.contents, recorded.contents)
    more = len(found) - _REASONS
    return "; ".join(found[:_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _likeness(request: Asked, recorded: Asked) -> float:
    alike = sum(getattr(request, part) == getattr(recorded, part) for part in ("model", "config", "tools"))
    pairs = list(zip_longest(request.contents, recorded.contents))
    messages = sum(0.1 * (one == two) + 0.9 * _words_shared(_told(one), _told(two)) for one, two in pairs)
    return alike + 3 * _words_shared(request.instruction, recorded.instruction) + 5 * messages / (len(pairs) or 1)


def _words_shared(one: str, two: str) -> float:
    if one == two:
        return 1.0
    first, second = set(re.findall(r"\w+", one)), set(re.findall(r"\w+", two))
    return len(first & second) / (len(first | second) or 1)


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= _SHOWN else said[: _SHOWN - 1] + "…"


def _instruction(now: str, then: str) -> str:
    lines = zip_longest(now.split("\n"), then.split("\n"))
    number, (new, old) = next((n, pair) for n, pair in enumerate(lines, start=1) if pair[0] != pair[1])
    if old is None:
        return f"the instruction has a new line {number}: {_short(new)}"
    if new is None:
        return f"the instruction lost line {number}: {_short(old)}"
    return f"the instruction changed at line {number}: {_around(new, old)}"


def _around(new: str, old: str) -> str:
    """Both, cut to where they part when they are long."""
    start = next((n for n, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), min(len(new), len(old)))
    start = max(0, start - 20) if max(len(new), len(old)) > _SHOWN else 0
    dots = "…" if start else ""
    return f"{_short(dots + new[start:])} instead of {_short(dots + old[start:])}"


def _named(now: Json, then: Json, kind: str, changed: Callable[[str, Any, Any], list[str]]) -> list[str]:
    """The differences of two mappings by name: what is new, gone, or `changed`."""
    found = [f"{kind} {name!r} is new" for name in now if name not in then]
    found += [f"{kind} {name!r} is gone" for name in then if name not in now]
    for name in now:
        if name in then and now[name] != then[name]:
            found += changed(name, now[name], then[name])
    return found


def _tools(now: list[Json], then: list[Json]) -> list[str]:
    def by_name(declarations: list[Json]) -> Json:
        return {str(one.get("name")): one for one in declarations}

    return _named(by_name(now), by_name(then), "tool", _tool)


def _tool(name: str, now: Json, then: Json) -> list[str]:
    def of(declaration: Json) -> tuple[Json, Json, set[str]]:
        schema: Json = declaration.get("parameters_json_schema") or declaration.get("parameters") or {}
        rest = {key: one for key, one in declaration.items() if not key.startswith("parameters")}
        return rest, schema.get("properties", {}), set(schema.get("required", []))

    (rest, parameters, needed), (rest_then, parameters_then, needed_then) = of(now), of(then)
    said = f"tool {name!r}: "
    found = [said + one for one in _named(parameters, parameters_then, "parameter", _parameter)]
    found += [
        f"{said}parameter {one!r} must be given now" for one in sorted((needed - needed_then) & {*parameters_then})
    ]
    found += [f"{said}parameter {one!r} may be left out now" for one in sorted((needed_then - needed) & {*parameters})]
    found += [said + f"its {one} changed" for one in sorted({*rest, *rest_then}) if rest.get(one) != rest_then.get(one)]
    return found or [said + "its schema changed"]


def _parameter(name: str, now: Json, then: Json) -> list[str]:
    changed = [key for key in sorted({*now, *then}) if now.get(key) != then.get(key)]
    told = [f"{key} is {_short(now.get(key))} instead of {_short(then.get(key))}" for key in changed]
    return [f"parameter {name!r}: {', '.join(told)}"]


def _config(now: Json, then: Json) -> list[str]:
    return _named(now, then, "setting", lambda name, a, b: [f"{name} is {_short(a)} instead of {_short(b)}"])


def _contents(now: list[Json], then: list[Json]) -> list[str]:
    for number, (new, old) in enumerate(zip_longest(now, then), start=1):
        if new == old:
            continue
        if old is None:
            return [f"message {number} is new: {_short(_told(new))}"]
        if new is None:
            return [f"message {number} is not there: {_short(_told(old))}"]
        if _told(new) == _told(old):
            return [f"message {number} differs in its role or form: {_short(new)} instead of {_short(old)}"]
        return [f"message {number} differs: {_around(_told(new), _told(old))}"]
    return []


def _told(content: Json | None) -> str:
    """A message in a few words: its text, its calls, its tool results."""
    parts = cast(list[Json], (content or {}).get("parts", []))
    return " ".join(_part(part) for part in parts)


def _part(part: Json) -> str:
    if "text" in part:
        return str(part["text"])
    if call := part.get("function_call"):
        given: Json = call.get("args") or {}
        args = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"calls {call.get('name')}({args})"
    if answer := part.get("function_response"):
        return f"{answer.get('name')} answered {answer.get('response')}"
    return str(part)
