"""Answers in plain words: the fact that the message names, what a call still needs, and what there is to ask."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from adk_nb import mcp_results
from adk_nb.models.offline.arguments import Plan
from adk_nb.models.offline.matching import Tool
from adk_nb.models.offline.words import STOP, likeness, words_of

MAX_ROWS, MAX_CHARS = 12, 1_500
_MODEL_HINT = "For a language model type %key gemini, %key openai or %key anthropic, or start Ollama."
_REJECTED = "this call was rejected; it did not run"
_EDITED = "a person changed the arguments before approving them, to "


def introduction(tools: Sequence[Tool], *, greeted: bool) -> str:
    """What this is, what there is to ask, and how to get a language model."""
    start = "I am not a language model: I only pick a tool by the words of your message"
    if not tools:
        return f"{start}, and this agent has no tools. {_MODEL_HINT} An agent that names no model asks it at once."
    lines = [f"{start}{'.' if greeted else ', and none fits this one.'} There is:"]
    lines += [f"- {tool.signature}: {tool.purpose[:200]}".removesuffix(": ") for tool in tools[:MAX_ROWS]]
    lines += [f"- and {len(tools) - MAX_ROWS} more"] if len(tools) > MAX_ROWS else []
    return "\n".join([*lines, "", f"Ask in a tool's own words, for example: {tools[0].example}", "", _MODEL_HINT])


def missing_arguments(tool: Tool, plan: Plan) -> str:
    """Name the missing arguments."""
    details = {
        parameter.name: f"one of {parameter.values}" if parameter.values else parameter.description.rstrip(".")
        for parameter in plan.missing
    }
    arguments = ", ".join(f"`{name}` ({text[:200]})" if text else f"`{name}`" for name, text in details.items())
    return f"To use `{tool.name}` I need {arguments}. Ask again in one message, for example: {tool.example}"


def describe_result(tool: str, args: Mapping[str, Any], response: Any, question: str) -> str:
    """What a call returned; of several facts those that the question names."""
    answer = dict(cast(dict[str, Any], response)) if isinstance(response, dict) else {"result": response}
    edits = [key for key in ("note", "approval_note") if str(answer.get(key)).startswith(_EDITED)]
    note = answer.pop(edits[0]) if edits else answer.pop("note") if set(answer) == {"result", "note"} else ""
    args = (_edited_args(note) if edits else None) or args
    known = {word for text in [tool, *args.values()] for word in words_of(str(text))}
    outcome = _outcome(answer, args, [word for word in words_of(question) if word not in known | STOP])
    text = f"{tool}({', '.join(f'{name}={_inline(value)}' for name, value in args.items())}){outcome}"
    return f"{text}\n\nNote: {note}." if note else text


def _edited_args(note: Any) -> dict[str, Any] | None:
    """The arguments that ran, if `note` says that an approval changed them."""
    try:
        return dict(ast.literal_eval(str(note).removeprefix(_EDITED)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # another note, or a shortened one
        return None


def _outcome(answer: dict[str, Any], args: Mapping[str, Any], question: Sequence[str]) -> str:
    if error := answer.get("error"):
        is_rejected, reason = str(error).startswith(_REJECTED), str(error).partition("the reason given: ")[2]
        text = f"was not approved and did not run: {reason}" if is_rejected else f"did not work: {_inline(error)}"
        return f" {text.rstrip(': .')}."
    value: Any = mcp_results.value_of(answer)
    value = answer["result"] if value is answer and list(answer) == ["result"] else value
    if value in (None, "", [], {}):
        return " is done; it returned nothing."
    if isinstance(value, dict):
        facts = cast(dict[str, Any], value)
        keys = _named_keys([key for key in facts if key not in args and facts[key] not in args.values()], question)
        count = f" ({len(keys)} of {len(facts)} values)" if len(keys) < len(facts) else ""
        text = f": {', '.join(f'{key} is {_inline(facts[key])}' for key in keys)}{count}."
        return text if keys else _rows([f"- {key}: " for key in facts], list(facts.values()), _inline(facts))
    if isinstance(value, list):
        items = cast(list[Any], value)
        return _rows([f"{n}. " for n in range(1, len(items) + 1)], items, _inline(items))
    text = _cut(value, MAX_CHARS) if isinstance(value, str) else _inline(value)
    return f": {text}" if re.search(r"\s", text.strip()) else f" gives {text.rstrip('.')}."


def _named_keys(keys: Sequence[str], question: Sequence[str]) -> list[str]:
    """The keys that words of a question name: each word the one that most of the others name, too."""
    scores = [{key: score for key in keys if (score := _score(word, key))} for word in question]
    totals = {key: sum(word_scores.get(key, 0) for word_scores in scores) for key in keys}
    best_keys = {max(word_scores, key=lambda key: totals[key]) for word_scores in scores if word_scores}
    return [key for key in keys if key in best_keys]


def _score(word: str, key: str) -> float:
    """How much a word speaks for a key: most for its first word, least for a unit at its end."""
    return max((likeness(word, key_word) * 0.9**n for n, key_word in enumerate(words_of(key))), default=0.0)


def _rows(names: Sequence[str], values: Sequence[Any], short: str) -> str:
    """A short flat value in one line, another in one line for each of its items."""
    if len(names) <= MAX_ROWS and len(short) < 120 and not any(isinstance(value, dict | list) for value in values):
        return f": {short}."
    lines = [name + _inline(value) for name, value in zip(names, values, strict=True)]
    rest = [f"\nand {len(lines) - MAX_ROWS} more"] if len(lines) > MAX_ROWS else []
    return "\n".join([f" has {len(lines)} rows:" if "2. " in names else ":", "", *lines[:MAX_ROWS], *rest])


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key} {_inline(item)}" for key, item in cast(dict[str, Any], value).items())
    elif isinstance(value, list):
        value = ", ".join(_inline(item) for item in cast(list[Any], value)[: 2 * MAX_ROWS])
    elif isinstance(value, float):
        value = f"{value:.4g}" if abs(value) < 0.01 else f"{round(value, 4):.15g}"
    elif value is None or isinstance(value, bool):
        value = {None: "nothing", True: "yes", False: "no"}[value]
    return _cut(" ".join(str(value).split()), 300)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
