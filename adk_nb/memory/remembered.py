"""What of an event is remembered, and the words it is found by."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.wire import plain_json

MOST = 10
"""Memories that one search tells."""
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Words:
    """Words, in the one form in which they are compared: NFC, lower case, each once, in their order."""

    ascii: list[str]
    other: list[str]
    """Found also inside of longer ones: not every script puts spaces between its words."""

    def __bool__(self) -> bool:
        return bool(self.ascii or self.other)


def folded(text: str) -> str:
    """`text` in the form in which it is searched."""
    return unicodedata.normalize("NFC", text).lower().encode("utf-8", "replace").decode()


def words_of(folded_text: str) -> Words:
    """The words of a text that is folded."""
    found = list(dict.fromkeys(_WORD.findall(folded_text)))
    return Words([one for one in found if one.isascii()], [one for one in found if not one.isascii()])


def entries_of(events: Iterable[Event], metadata: Mapping[str, Any] | None = None) -> list[MemoryEntry]:
    """What of `events` is remembered: those that have words, with their ids as ids.

    Raises:
        InputError: `metadata` is not JSON.
    """
    made = [_entry(event, plain_json(metadata, "custom_metadata")) for event in events if event.content]
    return [entry for entry in made if entry.text.strip()]


def kept_entry(given: MemoryEntry, metadata: Mapping[str, Any] | None) -> MemoryEntry:
    """A copy of a single memory, with an id, a time, and `metadata` where it says nothing itself.

    Raises:
        InputError: The metadata is not JSON.
    """
    return MemoryEntry(
        id=given.id or clock.new_id(),
        content=given.content.model_copy(deep=True),
        author=given.author,
        timestamp=given.timestamp or _iso(clock.now()),
        custom_metadata=plain_json({**(metadata or {}), **given.custom_metadata}, "custom_metadata"),
    )


def _entry(event: Event, metadata: dict[str, Any]) -> MemoryEntry:
    return MemoryEntry(
        id=event.id,
        content=event.content or types.Content(),
        author=event.author,
        timestamp=_iso(event.timestamp),
        custom_metadata=metadata,
    )


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):  # beyond the years 1 to 9999
        return f"{seconds} seconds since 1970"
