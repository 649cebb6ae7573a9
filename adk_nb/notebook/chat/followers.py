"""Who follows the turns of a session, whichever cell, box or click began them."""

from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from adk_nb.events.event import Event
from adk_nb.notebook.chat.conversation import Conversation
from adk_nb.notebook.view.answers import Status
from adk_nb.notebook.view.run_view import RunView
from adk_nb.sessions.session import Session


class Follower(Protocol):
    """Is told of the turns of a session, on the event loop of all runs."""

    @property
    def view(self) -> RunView:
        """Its own view; it is not told of turns that are shown there."""
        ...

    @property
    def cell(self) -> str:
        """The id of its cell; empty if it is unknown. The cell, run again, has another follower."""
        ...

    def turn_begins(self, place: str, session: Session | None, stop: Callable[[], None]) -> None:
        """A turn begins. `place`: of its view; `session`: before it; `stop`: stops it."""
        ...

    def turn_event(self, event: Event) -> None:
        """An event of it, partial or complete."""
        ...

    def turn_ends(self, status: Status, error: str | None) -> None:
        """It has ended, or pauses."""
        ...


_followers: WeakKeyDictionary[Any, dict[tuple[str, ...], list[Follower]]] = WeakKeyDictionary()
"""By the service of the sessions, then by app, user and session."""


def followers_of(conversation: Conversation, view: RunView) -> list[Follower]:
    """The followers of a session, without that of `view`."""
    known = _followers.get(conversation.service, {}).get(tuple(conversation.key.values()), [])
    return [follower for follower in known if follower.view is not view]


def follow(conversation: Conversation, follower: Follower) -> None:
    """Tell the follower of the turns of this session from now on, and of no other one."""
    earlier = [one for known in _followers.values() for each in known.values() for one in each]
    for other in earlier:
        if other is follower or (follower.cell and other.cell == follower.cell):
            unfollow(other)
    _followers.setdefault(conversation.service, {}).setdefault(tuple(conversation.key.values()), []).append(follower)


def unfollow(follower: Follower) -> None:
    """Tell the follower of nothing any more."""
    for sessions in _followers.values():
        for known in sessions.values():
            if follower in known:
                known.remove(follower)
