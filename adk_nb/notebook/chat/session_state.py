"""The state of a session between turns: read and written from Python, or typed by the user."""

import json
import re
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from adk_nb.errors import InputError
from adk_nb.events.event_actions import DELETED

_KEY = re.compile(r"(?:(?:app|user):)?[^\W\d]\w*")


class ChatState(MutableMapping[str, Any]):
    """A session's state as it stands now; a write is an event, so that it is in the history like any other."""

    def __init__(self, read: Callable[[], dict[str, Any]], write: Callable[[dict[str, Any]], None]) -> None:
        self._read = read
        self._write = write

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._write({key: value})

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._write({key: dict(DELETED)})

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __repr__(self) -> str:
        return repr(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in a dict of the caller's own."""
        return self._read()


def check_key(key: str, where: str = "the state") -> None:
    """Raise an InputError, which begins with `where`, if the user may not write that key."""
    if key.startswith("temp:"):
        raise InputError(f"{where}: {key!r} would last for one turn only; leave temp: out")
    if not _KEY.fullmatch(key):
        raise InputError(f"{where}: {key!r} cannot be a key; write name=value, user:name=value or app:name=value")


def typed_change(key: str, text: str | None) -> dict[str, Any]:
    """The change of one key, for an event.

    Args:
        key: Checked as by `check_key`.
        text: The value as JSON, or else as text. None: the key is deleted.

    Raises:
        InputError: The key cannot be one, or the text begins like JSON and is not valid.
    """
    if text is None:
        return {key: dict(DELETED)}
    check_key(key)
    try:
        return {key: json.loads(text, parse_constant=lambda word: word)}
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise InputError(f"the value of {key!r} begins like JSON, but is not valid JSON: {error}") from error
        return {key: text}
