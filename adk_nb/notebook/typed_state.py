"""A key of the state and its value as somebody typed them, checked: for `%state` and for a live view alike."""

import json
import re
from typing import Any

from adk_nb.errors import InputError
from adk_nb.events.event_actions import DELETED

_KEY = re.compile(r"(?:(?:app|user):)?[^\W\d]\w*")


def check_key(key: str, where: str = "the state") -> None:
    """Raise an InputError, which begins with `where`, if a person may not write that key."""
    if key.startswith("temp:"):
        raise InputError(f"{where}: {key!r} would last for one turn only; leave temp: out")
    if not _KEY.fullmatch(key):
        raise InputError(f"{where}: {key!r} cannot be a key; write name=value, user:name=value or app:name=value")


def typed_change(key: str, text: str | None) -> dict[str, Any]:
    """The change of one key, for an event.

    Args:
        key: Checked as by `check_key`.
        text: The value as JSON, or else as text. None: the key goes away.

    Raises:
        InputError: The key cannot be one, or the text begins like JSON and is none.
    """
    if text is None:
        return {key: dict(DELETED)}
    check_key(key)
    try:
        return {key: json.loads(text, parse_constant=lambda word: word)}
    except (ValueError, RecursionError) as wrong:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InputError(f"the value of {key!r} begins like JSON and is none: {wrong}") from wrong
        return {key: text}
