"""Memories in this process's memory: gone with the kernel."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adk_nb.events.event import Event
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.memory.remembered import MOST, Words, entries_of, folded, kept_entry, words_of
from adk_nb.sessions.session import Session


class _Kept:
    """A memory and what it is found by."""

    def __init__(self, entry: MemoryEntry, session_id: str | None) -> None:
        self.entry = entry
        self.session_id = session_id
        self.text = folded(entry.text)
        self.words = frozenset(words_of(self.text).ascii)

    def score(self, asked: Words) -> int:
        """How many of the words asked for it has."""
        return sum(word in self.words for word in asked.ascii) + sum(word in self.text for word in asked.other)


@dataclass
class _Memory:
    """What one user's memory in one app holds."""

    kept: dict[str, _Kept] = field(default_factory=dict[str, _Kept])
    """By id, in the order in which they came."""
    deleted: set[str] = field(default_factory=set[str])


class InMemoryMemoryService(BaseMemoryService):
    """Memories of one process, found by their words: those with most of the query's words first, the oldest first.

    A search tells at most ten. A word outside of ASCII is also found inside of longer ones. Safe to call from
    several threads.
    """

    def __init__(self) -> None:
        self._memories: dict[tuple[str, str], _Memory] = {}
        self._lock = threading.Lock()

    async def add_session_to_memory(self, session: Session) -> None:
        entries = entries_of(session.events)
        with self._lock:
            memory = self._memory(session.app_name, session.user_id)
            said = {entry.id for entry in entries}
            gone = [key for key, one in memory.kept.items() if one.session_id == session.id and key not in said]
            for key in gone:
                del memory.kept[key]
            _add(memory, entries, session.id, again=True)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        entries = entries_of(events, custom_metadata)
        with self._lock:
            _add(self._memory(app_name, user_id), entries, session_id, again=False)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        entries = [kept_entry(one, custom_metadata) for one in memories]
        with self._lock:
            memory = self._memory(app_name, user_id)
            memory.deleted.difference_update(entry.id or "" for entry in entries)
            _add(memory, entries, None, again=True)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        asked = words_of(folded(query))
        with self._lock:
            memory = self._memories.get((app_name, user_id))
            kept = list(memory.kept.values()) if memory and asked else []
        found = [(score, one) for one in kept if (score := one.score(asked))]
        found.sort(key=lambda scored: -scored[0])
        return SearchMemoryResponse(memories=[one.entry.model_copy(deep=True) for _, one in found[:MOST]])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        with self._lock:
            memory = self._memory(app_name, user_id)
            if memory.kept.pop(memory_id, None):
                memory.deleted.add(memory_id)

    def _memory(self, app_name: str, user_id: str) -> _Memory:
        return self._memories.setdefault((app_name, user_id), _Memory())


def _add(memory: _Memory, entries: Iterable[MemoryEntry], session_id: str | None, *, again: bool) -> None:
    """Keep `entries`; `again`: also in place of what is kept by their ids."""
    for entry in entries:
        key = entry.id or ""
        before = memory.kept.get(key)
        if key in memory.deleted or (before and not again):
            continue
        if before and before.session_id == session_id and before.entry == entry:
            continue  # a session that is added after every turn is mostly what it was
        memory.kept[key] = _Kept(entry, session_id)
