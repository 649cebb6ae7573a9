"""Memory entries: their class, their making from events, and the terms to search them by."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
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
_TERM = re.compile(r"\w+")


@dataclass(frozen=True)
class SearchTerms:
    """Search terms in normal form (NFC, lower case), without duplicates, in order."""

    ascii: list[str]
    non_ascii: list[str]
    """Non-ASCII terms also match inside words: not every script separates words by spaces."""

    def __bool__(self) -> bool:
        return bool(self.ascii or self.non_ascii)


def fold(text: str) -> str:
    """Normalize `text` for the search."""
    return replace_surrogates(unicodedata.normalize("NFC", text).lower())


def search_terms(folded_text: str) -> SearchTerms:
    """The search terms in a folded text."""
    terms = list(dict.fromkeys(_TERM.findall(folded_text)))
    return SearchTerms([term for term in terms if term.isascii()], [term for term in terms if not term.isascii()])


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
