"""`key=value` words of a magic's line as a dict."""

import json
from collections.abc import Iterable
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.magics.arguments import no_json


def pairs(words: Iterable[str], mark: str) -> dict[str, Any]:
    """`key=value` words as a dict; a value is JSON, else text.

    Raises:
        InputError: There is no `=`, nothing before it, or what begins like JSON behind it and is none.
    """
    made: dict[str, Any] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise InputError(f"{mark}: {word!r} is no key=value")
        made[key] = json_or_text(value)
        if value[:1] in ("{", "[") and isinstance(made[key], str):
            raise no_json(mark, key, value)
    return made


def json_or_text(text: str) -> Any:
    """`text` as JSON, else as it is."""
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except ValueError:
        return text
