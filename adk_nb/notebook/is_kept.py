"""The part of a chat that is kept: the session's state, and the session as a file."""

import os
from typing import Any

from adk_nb import sync
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.session_state import ChatState
from adk_nb.notebook.turn import TurnRunner
from adk_nb.sessions.state import detached


class IsKept:
    """What `Chat` can do with its session as it stands."""

    _talk: TurnRunner
    _conversation: Conversation

    @property
    def state(self) -> ChatState:
        """The session's state; a write becomes an event of its own."""
        return ChatState(self.read_state, self.write_state)

    def read_state(self) -> dict[str, Any]:
        """The state as it stands, in a dict of the caller's own."""
        session = sync.run(self._conversation.loaded())
        return {key: detached(value) for key, value in session.state.items()} if session else {}

    def write_state(self, delta: dict[str, Any]) -> None:
        """Write several keys in one event. `None` is a value; `events.event_actions.DELETED` removes the key."""
        sync.run(self._conversation.append(Event(author="user", actions=EventActions(state_delta=delta))))

    def save(self, file: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the session to a file that people can read.

        Args:
            file: An earlier save of this session is written over.
            replace: Anything else too.

        Raises:
            InputError: Nothing was said yet, or the file holds something else.
            StorageError: It cannot be written.
        """
        sync.run(self._conversation.save(file, replace=replace))

    def load(self, file: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Make a session of a file, and go on in it. Keys that other sessions see too stay as they are here.

        Args:
            file: What `save` has written.
            name: The session's here. None: as in the file.

        Raises:
            InputError: The file holds none, the name cannot be one, or there is a session of that name.
            StorageError: It cannot be read.
        """
        self._talk.refuse_while_busy()
        sync.run(self._conversation.load(file, name))
