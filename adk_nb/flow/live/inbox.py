"""What a live conversation has yet to handle, in the order in which it came."""

import asyncio
from dataclasses import dataclass

from adk_nb.events.event import Event
from adk_nb.models.llm_response import LlmResponse

READ_AHEAD = 1_000
"""Limit of responses that are read before they are handled: minutes of audio.

Not a few: a websocket whose reader waits answers no pings, and counts as broken while a long tool works.
"""


@dataclass
class UserEvent:
    """A message of the user, stored in its place among the model's events."""

    event: Event


InboxItem = UserEvent | Event | LlmResponse | asyncio.Task[None]
"""A message of the user, an event of a callback, a response of the model, or a connection's task that has ended."""


class Inbox:
    """A queue in which only the model's responses are limited: nothing that the user does waits for room."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[InboxItem] = asyncio.Queue()
        self._unread_responses = 0
        self._has_room = asyncio.Event()

    def put(self, item: UserEvent | Event | asyncio.Task[None]) -> None:
        """Add anything but a response."""
        self._items.put_nowait(item)

    async def put_response(self, response: LlmResponse) -> None:
        """Add a response, then wait until there is room for another."""
        self._items.put_nowait(response)
        self._unread_responses += 1
        while self._unread_responses >= READ_AHEAD:
            self._has_room.clear()
            await self._has_room.wait()

    async def get(self) -> InboxItem:
        """Wait for the next item."""
        return self._take(await self._items.get())

    def drain(self) -> list[InboxItem]:
        """Take everything that is there."""
        return [self._take(self._items.get_nowait()) for _ in range(self._items.qsize())]

    def _take(self, item: InboxItem) -> InboxItem:
        if isinstance(item, LlmResponse):
            self._unread_responses -= 1
            self._has_room.set()
        return item
