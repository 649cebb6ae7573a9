"""Answers in plain words: the fact that was asked for, what a call still needs, and what there is to ask."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from adk_nb import mcp_results
from adk_nb.models.offline.arguments import Plan
from adk_nb.models.offline.tools import OfferedTool
from adk_nb.models.offline.words import STOP, likeness, words_of

MAX_TOOLS, MAX_ROWS, MAX_CHARS = 20, 12, 1_500
QUESTION = re.compile(r"To use `([^`]+)` I need ")
"""The beginning of `question_for`, with the name of the tool."""
_REAL = "For a language model type %key gemini, %key openai or %key anthropic, or start Ollama."


def introduction(offered: Sequence[OfferedTool], *, greeted: bool) -> str:
    """What this is, what there is to ask, and how to get a language model."""
    start = "I am not a language model: I only pick a tool by the words of your message"
    if not offered:
        return f"{start}, and this agent has no tools. {_REAL} An agent that names no model asks it at once."
    lines = [f"{start}{'.' if greeted else ', and none fits this one.'} There is:"]
    for tool in offered[:MAX_TOOLS]:
        taken = ", ".join(one.name if one.required else f"{one.name}?" for one in tool.parameters)
        name = f"the agent `{tool.name}`" if tool.is_agent else f"`{tool.name}({taken})`"
        lines.append(f"- {name}: {_short(tool.purpose)}" if tool.purpose else f"- {name}")
    wanted = [f"{one.name} = {one.enum[0] if one.enum else '…'}" for one in offered[0].parameters if one.required]
    example = ", ".join([" ".join(offered[0].words), *wanted])
    lines += [f"- and {len(offered) - MAX_TOOLS} more"] if len(offered) > MAX_TOOLS else []
    return "\n".join([*lines, "", f"Ask in a tool's own words, for example: {example}", "", _REAL])


def question_for(plan: Plan) -> str:
    """Ask for the missing arguments by name."""
    told = [(one.name, f"one of {one.enum}" if one.enum else one.description.rstrip(".")) for one in plan.missing]
    wanted = ", ".join(f"`{name}` ({_short(about)})" if about else f"`{name}`" for name, about in told)
    return f"To use `{plan.tool.name}` I need {wanted}. What should it be?"


def result_in_words(tool: str, args: Mapping[str, Any], response: Any, questions: Sequence[str]) -> str:
    """What a call returned; of several facts those that a question names, the first question that names any."""
    call = f"{tool}({', '.join(f'{name}={_inline(value)}' for name, value in args.items())})"
    answer: dict[str, Any] = cast(dict[str, Any], response) if isinstance(response, dict) else {"result": response}
    if "error" in answer:
        return _failure(call, _inline(answer["error"], MAX_CHARS).rstrip("."))
    if set(answer) == {"result", "note"}:
        return f"{result_in_words(tool, args, answer['result'], questions)}\n\nNote: {answer['note']}."
    value: Any = mcp_results.value_of(answer)
    value = answer["result"] if value is answer and list(answer) == ["result"] else value
    if value in (None, "", [], {}):
        return f"{call} is done; it returned nothing."
    if isinstance(value, dict):
        facts = cast(dict[str, Any], value)
        keys = [key for key, fact in facts.items() if key not in args and fact not in args.values()]
        given = {word for value in args.values() for word in words_of(str(value))}
        asked = [[word for word in words_of(question) if word not in given] for question in questions]
        if wanted := next((found for words in asked if (found := _asked_for(words, keys, words_of(tool)))), None):
            few = f" ({len(wanted)} of {len(facts)} values)" if len(wanted) < len(facts) else ""
            return f"{call}: {', '.join(f'{key} is {_inline(facts[key])}' for key in wanted)}{few}."
        return f"{call}{_rows({f'- {key}: ': fact for key, fact in facts.items()}, _inline(facts))}"
    if isinstance(value, list):
        items = cast(list[Any], value)
        return f"{call}{_rows({f'{n}. ': one for n, one in enumerate(items, start=1)}, _inline(items))}"
    text = _short(value, MAX_CHARS) if isinstance(value, str) else _inline(value)
    return f"{call}: {text}" if re.search(r"\s", text.strip()) else f"{call} gives {text.rstrip('.')}."


def _failure(call: str, error: str) -> str:
    if not error.startswith("this call was rejected"):
        return f"{call} did not work: {error}."
    reason = error.partition("the reason given: ")[2]
    return f"{call} was not approved and did not run{f': {reason}' if reason else ''}."


def _asked_for(asked: Sequence[str], keys: Sequence[str], tool: Sequence[str]) -> list[str]:
    """The key that most words of a question speak for, and others for the words that say nothing for that one."""
    wanted: list[str] = []
    while len(wanted) < len(keys) > 1:
        scores = {key: {word: _likeness(word, key, tool) for word in asked} for key in keys if key not in wanted}
        key = max(scores, key=lambda key: sum(scores[key].values()))
        if sum(scores[key].values()) < (0.8 if wanted else 0.3):
            break
        wanted.append(key)
        asked = [word for word in asked if not scores[key][word]]
    return wanted


def _likeness(word: str, key: str, tool: Sequence[str]) -> float:
    """How much a word of a question speaks for a key: most for its first word, least for a unit at its end."""
    fits = [(likeness(word, known), n) for n, known in enumerate(words_of(key))]
    fits = [fit - 0.1 * n for fit, n in fits if fit and (fit < 1 or word not in STOP)]
    return max(fits, default=0.0) / (2 if word in tool else 1)


def _rows(rows: Mapping[str, Any], short: str) -> str:
    """A short flat value in one line, another in one line for each of its items."""
    if len(rows) <= MAX_ROWS and len(short) < 120 and not any(isinstance(one, dict | list) for one in rows.values()):
        return f": {short}."
    lines = [name + _inline(value) for name, value in rows.items()]
    more = [f"\nand {len(lines) - MAX_ROWS} more"] if len(lines) > MAX_ROWS else []
    count = f" has {len(lines)} rows" if "2. " in rows else ""
    return "\n".join([f"{count}:", "", *lines[:MAX_ROWS], *more])


def _inline(value: Any, limit: int = 200) -> str:
    if isinstance(value, dict):
        value = ", ".join(f"{key} {_inline(one)}" for key, one in cast(dict[str, Any], value).items())
    elif isinstance(value, list):
        value = ", ".join(_inline(one) for one in cast(list[Any], value)[: 2 * MAX_ROWS])
    elif isinstance(value, float):
        value = f"{value:.4g}" if abs(value) < 0.01 else f"{round(value, 4):.15g}"
    elif value is None or isinstance(value, bool):
        value = {None: "nothing", True: "yes", False: "no"}[value]
    return _short(" ".join(str(value).split()), limit)


def _short(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
