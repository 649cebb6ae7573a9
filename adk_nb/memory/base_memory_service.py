"""The interface of memory services."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb.events.event import Event
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.sessions.session import Session
from adk_nb.wire import WireModel


class SearchMemoryResponse(WireModel):
    """The result of a search."""

    memories: list[MemoryEntry] = Field(default_factory=list[MemoryEntry])
    """The best match first."""


class BaseMemoryService(ABC):
    """Stores memories of users' conversations, for later ones. Only what is added explicitly is stored.

    Raises, in all methods:
        StorageError: The storage failed.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    async def add_session_to_memory(self, session: Session) -> None:
        """Store the texts of `session`, replacing the earlier memories of it.

        May be called after every turn. Deleted memories are not added again.
        """

    @abstractmethod
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Search the user's memories in the app; those of other users are never returned."""

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add the texts of `events`; events that are stored already, or were deleted, are skipped.

        Args:
            app_name: The app of the memory.
            user_id: The user of the memory.
            events: Any part of a conversation.
            session_id: The session of the events.
            custom_metadata: JSON to store with each memory.

        Raises:
            NotImplementedError: The service does not support it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot add events; call add_session_to_memory(session)")

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Store copies of `memories`; one with the id of a stored memory replaces it.

        Args:
            app_name: The app of the memory.
            user_id: The user of the memory.
            memories: The entries.
            custom_metadata: JSON to store with each memory; the entry's own metadata takes precedence.

        Raises:
            NotImplementedError: The service does not support it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot add single memories; call add_session_to_memory")

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        """Delete a memory by its `id`. No error if there is none.

        Raises:
            NotImplementedError: The service does not support it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot delete single memories")
