"""Where memories are kept: the interface."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from adk_nb.events.event import Event
from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.sessions.session import Session
from adk_nb.wire import WireModel


class SearchMemoryResponse(WireModel):
    """What a search found."""

    memories: list[MemoryEntry] = Field(default_factory=list[MemoryEntry])
    """The best first."""


class BaseMemoryService(ABC):
    """Keeps what users' conversations were about, for later ones. Nothing is kept that was not added.

    Raises, in all methods:
        StorageError: What keeps the memories failed.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in `session`, in place of what was kept of it before.

        May be called after every turn. Memories that were deleted do not come back.
        """

    @abstractmethod
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What the user's memories in the app say to `query`; none of anyone else's."""

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what was said in `events`, beside what is kept; events that are kept already, or were deleted, are not.

        Args:
            app_name: Whose memory it is.
            user_id: Whose memory it is.
            events: Any part of a conversation.
            session_id: The session they are of.
            custom_metadata: JSON to keep with each.

        Raises:
            NotImplementedError: The service cannot do it.
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
        """Keep `memories` as they are; one with the id of a kept one takes its place.

        Args:
            app_name: Whose memory it is.
            user_id: Whose memory it is.
            memories: The caller's own; copies are kept.
            custom_metadata: JSON to keep with each; what an entry says itself wins.

        Raises:
            NotImplementedError: The service cannot do it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot add single memories; call add_session_to_memory")

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        """Forget one memory, by the `id` that a search told. No error if there is none.

        Raises:
            NotImplementedError: The service cannot do it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot delete single memories")
