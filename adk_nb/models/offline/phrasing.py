"""Puts tool results, missing arguments and the list of tools into plain words."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from adk_nb import mcp_results
from adk_nb.models.offline.tools import OfferedTool, Parameter

MAX_ROWS = 12
MAX_CHARS = 1_500
_ASKED = re.compile(r"^To use `([^`]+)` I need ")
_REJECTED = re.compile(r"\b(reject|declin|denied|not approved)", re.IGNORECASE)
_REASON = re.compile(r"\breason[^:]{0,20}: ?(.+)", re.IGNORECASE | re.DOTALL)
_WAITING = re.compile(r"\b(needs?|waits? for|awaiting|requires?)\b.{0,30}\b(approval|confirmation)\b", re.IGNORECASE)
_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "yes or no",
    "array": "a list",
    "object": "JSON",
}


def results_told(results: Sequence[tuple[str, Mapping[str, Any], Any]]) -> str:
    """What the tools answered.

    Args:
        results: Tool name, arguments and response of each call, in order.
    """
    told = [_result(*one) for one in results]
    if len(told) == 1:
        return told[0]
    return "\n".join(f"- {one}" if "\n" not in one else f"- {_indented(one)}" for one in told)


def question_for(tool: OfferedTool, missing: Sequence[Parameter]) -> str:
    """Asks for what is missing, by name. `asked_tool` recognises it."""
    wanted = _listed([_wanted(one) for one in missing])
    return f"To use `{tool.name}` I need {wanted}. What should it be?"


def asked_tool(text: str) -> str | None:
    """The tool that `question_for` asked about, if `text` is its question."""
    found = _ASKED.match(text)
    return found[1] if found else None


def introduction(offered: Sequence[OfferedTool], *, understood: bool = False) -> str:
    """Says what this is, which tools there are and how to ask for one."""
    said = "I am not a language model: I only pick a tool by the words of your message"
    if not offered:
        return (
            f"{said}, and this agent has no tools. Give it one, or a real model: type %key gemini, %key openai or "
            "%key anthropic, or start Ollama. An agent that names no model asks it at once."
        )
    lines = [f"{said}{'.' if understood else ', and none fits this one.'} There is:"]
    lines += [f"- {_tool_told(one)}" for one in offered[:MAX_ROWS]]
    if len(offered) > MAX_ROWS:
        lines.append(f"- and {len(offered) - MAX_ROWS} more")
    lines += ["", f"Ask in a tool's own words, for example: {_example(offered[0])}"]
    return "\n".join(lines)


def _tool_told(tool: OfferedTool) -> str:
    if tool.takes_over:
        return f"the agent `{tool.name}`" + (f": {_short(tool.purpose, 200)}" if tool.purpose else "")
    taken = ", ".join(one.name if one.required else f"{one.name}?" for one in tool.parameters)
    return f"`{tool.name}({taken})`" + (f": {_short(tool.purpose, 200)}" if tool.purpose else "")


def _example(tool: OfferedTool) -> str:
    words = " ".join(tool.words)
    given = ", ".join(f"{one.name} = {_sample(one)}" for one in tool.parameters if one.required)
    return f"{words}, {given}" if given else words


def _sample(one: Parameter) -> str:
    if one.enum:
        return str(one.enum[0])
    return {"integer": "3", "number": "2.5", "boolean": "yes", "array": "a, b"}.get(one.kind, '"…"')


def _wanted(one: Parameter) -> str:
    if one.enum:
        about = "one of " + ", ".join(str(value) for value in one.enum[:MAX_ROWS])
    else:
        about = one.description.rstrip(".") or _KINDS.get(one.kind, "")
    return f"`{one.name}`" + (f" ({_short(about, 200)})" if about else "")


def _result(tool: str, args: Mapping[str, Any], response: Any) -> str:
    given = ", ".join(f"{name}={_scalar(value)}" for name, value in args.items())
    name = f"{tool}({given})"
    answer: dict[str, Any] = cast(dict[str, Any], response) if isinstance(response, dict) else {"result": response}
    if "error" in answer:
        return _failure(name, answer["error"])
    if (value := mcp_results.value_of(answer)) is not answer:
        return _value(name, value)
    note = answer.get("note")
    told = _value(name, answer["result"] if "result" in answer and set(answer) <= {"result", "note"} else answer)
    return f"{told}\n\nNote: {_sentence(str(note))}" if note and "result" in answer else told


def _failure(name: str, error: Any) -> str:
    said = _short(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False), MAX_CHARS)
    if _WAITING.search(said):
        return f"{name} waits for an approval and has not run."
    if _REJECTED.search(said):
        reason = _REASON.search(said)
        return f"{name} was not approved, so it did not run." + (
            f" The reason: {_sentence(reason[1])}" if reason else ""
        )
    return f"{name} did not work. The tool said: {_sentence(said)}"


def _value(name: str, value: Any) -> str:
    if value is None or value == "":
        return f"{name} is done; it returned nothing."
    if isinstance(value, dict):
        return _mapping(name, cast(dict[str, Any], value))
    if isinstance(value, list):
        return _rows(name, cast(list[Any], value))
    if isinstance(value, str) and (" " in value.strip() or "\n" in value):
        return f"{name}: {_short(value, MAX_CHARS)}"
    return f"{name} gives {_sentence(_scalar(value))}"


def _mapping(name: str, value: Mapping[str, Any]) -> str:
    if not value:
        return f"{name} is done; it returned nothing."
    flat = all(not isinstance(one, dict | list) for one in value.values())
    if flat and len(value) <= 6 and sum(len(str(one)) for one in value.values()) < 200:
        return f"{name}: {_pairs(value)}."
    lines = [f"- {key}: {_inline(one)}" for key, one in list(value.items())[:MAX_ROWS]]
    if len(value) > MAX_ROWS:
        lines.append(f"- and {len(value) - MAX_ROWS} more")
    return "\n".join([f"{name}:", "", *lines])


def _rows(name: str, value: Sequence[Any]) -> str:
    if not value:
        return f"{name} found nothing."
    if all(not isinstance(one, dict | list) for one in value) and len(value) <= MAX_ROWS:
        return f"{name}: {_listed([_scalar(one) for one in value])}."
    lines = [f"{n}. {_inline(one)}" for n, one in enumerate(value[:MAX_ROWS], start=1)]
    if len(value) > MAX_ROWS:
        lines.append(f"\nand {len(value) - MAX_ROWS} more.")
    return "\n".join([f"{name} has {len(value)} rows:" if len(value) > 1 else f"{name}:", "", *lines])


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return _pairs(cast(dict[str, Any], value))
    if isinstance(value, list):
        items = cast(list[Any], value)
        more = f" and {len(items) - MAX_ROWS} more" if len(items) > MAX_ROWS else ""
        return ", ".join(_scalar(one) for one in items[:MAX_ROWS]) + more
    return _scalar(value)


def _pairs(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_scalar(one)}" for key, one in list(value.items())[:MAX_ROWS])


def _scalar(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 0.01 else f"{round(value, 4):.15g}"
    if isinstance(value, dict | list):
        return _short(json.dumps(value, ensure_ascii=False), 120)
    return _short(" ".join(str(value).split()), 200)


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _indented(text: str) -> str:
    return "\n  ".join(text.split("\n"))
