"""Answers of a user to what a model asked: checked against what was asked for, and read where they were typed."""

import json
from collections.abc import Iterator
from typing import Any

from adk_nb import types
from adk_nb.errors import InputError, MissingExtraError
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, answered_value
from adk_nb.tools.json_arguments import JsonArguments

_WORDS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def check(message: types.Content, history: History) -> None:
    """Refuse an answer that does not fit the schema of its question.

    Without the package `jsonschema` any answer fits, as with google-adk.

    Raises:
        InputError: It does not; the question stays open.
    """
    responses = [part.function_response for part in message.parts or () if part.function_response]
    asked = {one.id: one for one in history.interrupts() if one.response_schema} if responses else {}
    for response in responses:
        if one := asked.get(response.id or ""):
            _refuse(one, _wrong(one, answered_value(response)))


def typed(asked: Interrupt, text: str) -> Any:
    """`text` as the answer to `asked`: one of its options, by words or number, or JSON where the schema wants that.

    Raises:
        InputError: No reading of it fits.
    """
    if asked.options:
        return _chosen(asked.options, text.strip())
    wrong = None
    for value in _readings(asked, text):
        if not (wrong := _wrong(asked, value)):
            return value
    _refuse(asked, wrong)
    return text


def _chosen(options: list[str], text: str) -> str:
    """An option; or what else was said, which the model is to make something of."""
    for option in options:
        if option.strip().lower() == text.lower():
            return option
    return options[int(text) - 1] if text.isdecimal() and 1 <= int(text) <= len(options) else text


def _readings(asked: Interrupt, text: str) -> Iterator[Any]:
    if asked.response_schema.get("type", "string") == "string":
        yield text
    if text.strip().lower() in _WORDS:
        yield _WORDS[text.strip().lower()]
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        yield text


def _wrong(asked: Interrupt, value: Any) -> str | None:
    if not asked.response_schema:
        return None
    try:
        return JsonArguments(asked.response_schema, "jsonschema").wrong(value)
    except MissingExtraError:
        return None


def _refuse(asked: Interrupt, wrong: str | None) -> None:
    if wrong:
        wanted = json.dumps(asked.response_schema, ensure_ascii=False)
        raise InputError(
            f"this does not answer {asked.prompt!r:.200}: {wrong}; it is still open, answer what fits {wanted:.500}"
        )
