"""Memory entries: their class, their making from events, and the terms to search them by."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from pydantic import Field

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.wire import WireModel, plain_json, replace_surrogates


class MemoryEntry(WireModel):
    """A memory: a piece of an earlier conversation."""

    content: types.Content
    custom_metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    id: str | None = None
    """For an event, the event's id. None: assigned by the service."""
    author: str | None = None
    """`user`, or the name of the agent."""
    timestamp: str | None = None
    """Time of the text, ISO 8601, UTC. Shown to the model as it is."""

    @property
    def text(self) -> str:
        """The text, without thoughts."""
        parts = self.content.parts or ()
        return " ".join(part.text for part in parts if part.text and not part.thought)


MAX_RESULTS = 10
"""Limit of memories in one search result."""
_UNSPACED = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece"  # Thai, Lao
    "\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"  # Myanmar, Khmer
)
"""Letters and marks of scripts that do not separate words by spaces."""
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_MAX_PAIRS = 200
"""Limit of pairs of characters in one query: each is searched for in the user's texts that are not ASCII."""


@dataclass(frozen=True)
class SearchTerms:
    """Search terms in normal form (NFC, lower case), without duplicates, in order."""

    ascii: list[str]
    non_ascii: list[str]
    """Non-ASCII terms also match inside words: not every script separates words by spaces. Where a script does not,
    they are all pairs of neighbouring characters, so that a question finds what shares a word with it."""

    def __bool__(self) -> bool:
        return bool(self.ascii or self.non_ascii)


def fold(text: str) -> str:
    """Normalize `text` for the search."""
    return replace_surrogates(unicodedata.normalize("NFC", text).lower())


def ascii_words(folded_text: str) -> list[str]:
    """The ASCII words in a folded text, also those in a text without spaces."""
    return [run for run in dict.fromkeys(_RUN.findall(folded_text)) if run.isascii()]


def search_terms(folded_text: str) -> SearchTerms:
    """The terms to search for, in a folded query."""
    words: list[str] = []
    pairs: list[str] = []
    for run in _RUN.findall(folded_text):
        if run.isascii():
            continue
        if not re.match(f"[{_UNSPACED}]", run):
            words.append(run)
            continue
        characters: list[str] = []
        for char in run:
            if characters and unicodedata.category(char).startswith("M"):
                characters[-1] += char  # a vowel or tone mark belongs to its letter
            else:
                characters.append(char)
        pairs += map("".join, pairwise(characters)) if len(characters) > 1 else characters
    return SearchTerms(ascii_words(folded_text), list(dict.fromkeys([*words, *pairs[:_MAX_PAIRS]])))


def event_entries(events: Iterable[Event], metadata: Mapping[str, Any] | None = None) -> list[MemoryEntry]:
    """Memory entries of the events that have text, with the events' ids.

    Raises:
        InputError: `metadata` is not JSON.
    """
    entries = [_entry(event, plain_json(metadata, "custom_metadata")) for event in events if event.content]
    return [entry for entry in entries if entry.text.strip()]  # only events with text are stored


def stored_entry(entry: MemoryEntry, metadata: Mapping[str, Any] | None) -> MemoryEntry:
    """Copy an entry for storage, with an id and a time; its own metadata take precedence over `metadata`.

    Raises:
        InputError: The metadata is not JSON.
    """
    return MemoryEntry(
        id=entry.id or clock.new_id(),
        content=entry.content.model_copy(deep=True),
        author=entry.author,
        timestamp=entry.timestamp or _iso(clock.now()),
        custom_metadata=plain_json({**(metadata or {}), **entry.custom_metadata}, "custom_metadata"),
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
    except (ValueError, OverflowError, OSError):  # outside of the years 1 to 9999
        return f"{seconds} seconds since 1970"
