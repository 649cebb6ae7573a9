"""Memories in memory, for the lifetime of the process."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.memory.memory_entry import (
    MAX_RESULTS,
    MemoryEntry,
    SearchTerms,
    ascii_words,
    event_entries,
    fold,
    search_terms,
    stored_entry,
)
from adk_nb.sessions.session import Session


class _IndexedEntry:
    """A memory with its search terms."""

    def __init__(self, entry: MemoryEntry, session_id: str | None) -> None:
        self.entry = entry
        self.session_id = session_id
        self.text = fold(entry.text)
        self.ascii_terms = frozenset(ascii_words(self.text))

    def score(self, terms: SearchTerms) -> int:
        """Number of the terms that it contains."""
        return sum(term in self.ascii_terms for term in terms.ascii) + sum(
            term in self.text for term in terms.non_ascii
        )


@dataclass
class _Memory:
    """The memories of a user in an app."""

    entries: dict[str, _IndexedEntry] = field(default_factory=dict[str, _IndexedEntry])
    """By id, oldest first."""
    deleted: set[str] = field(default_factory=set[str])


class InMemoryMemoryService(BaseMemoryService):
    """Memories of one process, searched by words: entries with more of the query's words first, then the oldest first.

    A search returns at most ten. A non-ASCII term also matches inside words; of Chinese, Japanese, Thai and other texts
    without spaces, each pair of characters is a word. Thread-safe.
    """

    def __init__(self) -> None:
        self._memories: dict[tuple[str, str], _Memory] = {}
        self._lock = threading.Lock()

    async def add_session_to_memory(self, session: Session) -> None:
        """Replace the memories of the session."""
        entries = event_entries(session.events)
        with self._lock:
            memory = self._memory(session.app_name, session.user_id)
            current_ids = {entry.id for entry in entries}
            removed = [
                key
                for key, stored in memory.entries.items()
                if stored.session_id == session.id and key not in current_ids
            ]
            for key in removed:
                del memory.entries[key]
            _add(memory, entries, session.id, overwrite=True)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the events that are not stored yet."""
        entries = event_entries(events, custom_metadata)
        with self._lock:
            _add(self._memory(app_name, user_id), entries, session_id, overwrite=False)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Store the entries; a deleted id may be used again."""
        entries = [stored_entry(memory, custom_metadata) for memory in memories]
        with self._lock:
            memory = self._memory(app_name, user_id)
            memory.deleted.difference_update(entry.id or "" for entry in entries)
            _add(memory, entries, None, overwrite=True)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Rank the user's memories by the number of matching terms."""
        terms = search_terms(fold(query))
        with self._lock:
            memory = self._memories.get((app_name, user_id))
            stored_entries = list(memory.entries.values()) if memory and terms else []
        matches = [(score, stored) for stored in stored_entries if (score := stored.score(terms))]
        matches.sort(key=lambda match: -match[0])  # stable: equal scores keep the order of arrival
        return SearchMemoryResponse(
            memories=[stored.entry.model_copy(deep=True) for _, stored in matches[:MAX_RESULTS]]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        """Delete a memory, and remember its id."""
        with self._lock:
            memory = self._memory(app_name, user_id)
            # Remembered: the next `add_session_to_memory` would bring it back.
            if memory.entries.pop(memory_id, None):
                memory.deleted.add(memory_id)

    def _memory(self, app_name: str, user_id: str) -> _Memory:
        return self._memories.setdefault((app_name, user_id), _Memory())


def _add(memory: _Memory, entries: Iterable[MemoryEntry], session_id: str | None, *, overwrite: bool) -> None:
    """Add `entries`; `overwrite`: replace stored ones with the same ids."""
    for entry in entries:
        key = entry.id or ""
        stored = memory.entries.get(key)
        if key in memory.deleted or (stored and not overwrite):
            continue
        if stored and stored.session_id == session_id and stored.entry == entry:
            continue  # unchanged, as most of a session that is added after every turn
        memory.entries[key] = _IndexedEntry(entry, session_id)
