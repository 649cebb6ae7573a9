"""Validates and parses the user's answers to input requests."""

import json
from collections.abc import Iterator
from typing import Any

from adk_nb import types
from adk_nb.errors import InputError, MissingExtraError
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, answered_value, read_as
from adk_nb.tools.json_arguments import JsonArguments

_BOOLEANS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def check(message: types.Content, history: History) -> None:
    """Refuse an answer that does not match the response schema of its input request.

    Without the package `jsonschema` any answer is accepted, as in google-adk.

    Raises:
        InputError: It does not match; the request stays open.
    """
    responses = [part.function_response for part in message.parts or () if part.function_response]
    if not responses:
        return
    interrupts = {interrupt.id: interrupt for interrupt in history.interrupts() if interrupt.response_schema}
    for response in responses:
        if interrupt := interrupts.get(response.id or ""):
            value = answered_value(response)
            if interrupt.kind != "node_approval":  # a yes is `true`, and no text that reads like it
                value = read_as(value, interrupt.response_schema)
            _refuse(interrupt, _error_message(interrupt, value))


def parse(interrupt: Interrupt, text: str) -> Any:
    """Parse the answer that the user typed: an option, by its text or number, or JSON if the schema wants that.

    Raises:
        InputError: No interpretation matches the schema.
    """
    if interrupt.options:
        options, text = interrupt.options, text.strip()
        if matches := [option for option in options if option.strip().lower() == text.lower()]:
            return matches[0]
        # Other words are for the model to interpret.
        return options[int(text) - 1] if text.isdecimal() and 1 <= int(text) <= len(options) else text
    message = None
    for value in _candidates(interrupt, text):
        if not (message := _error_message(interrupt, value)):
            return value
    _refuse(interrupt, message)
    return text


def _candidates(interrupt: Interrupt, text: str) -> Iterator[Any]:
    if interrupt.response_schema.get("type", "string") == "string":
        yield text
    if text.strip().lower() in _BOOLEANS:
        yield _BOOLEANS[text.strip().lower()]
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        yield text


def _error_message(interrupt: Interrupt, value: Any) -> str | None:
    if not interrupt.response_schema:
        return None
    try:
        return JsonArguments(interrupt.response_schema, "jsonschema").error_message(value)
    except MissingExtraError:
        return None


def _refuse(interrupt: Interrupt, message: str | None) -> None:
    if message:
        schema = json.dumps(interrupt.response_schema, ensure_ascii=False)
        raise InputError(
            f"this does not answer {interrupt.prompt!r:.200}: {message}; the question is "
            f"still open, answer with a value that fits {schema:.500}"
        )
