"""The sessions of a notebook: all agents share them, one of them is the current one."""

from collections.abc import Mapping, Sequence
from typing import Any

from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from adk_nb.errors import InputError, SessionNotFoundError, StateKeyError, closest
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook.view.rows import NOTEBOOK
from adk_nb.runtime import approvals
from adk_nb.runtime.approvals import Pending
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.session import Session

APP = "notebook"
USER = "user"


class SessionStore:
    """Sessions by name."""

    def __init__(self) -> None:
        self.service = InMemorySessionService()
        self.artifacts = InMemoryArtifactService()
        self.memory = InMemoryMemoryService()
        self.credentials = InMemoryCredentialService()
        self.current = "main"
        self.keys: set[str] = set()
        """State keys that were ever set by hand."""

    @property
    def names(self) -> list[str]:
        """In the order they were last used, the newest last."""
        return [one.id for one in self.service.list_sessions(app_name=APP, user_id=USER).sessions]

    def find(self, name: str | None = None) -> Session | None:
        """A copy of the session as it stands; None if nothing was said in it yet. Without a name: the current one.

        Raises:
            SessionNotFoundError: It was named, and there is none.
        """
        found = self.service.get_session(app_name=APP, user_id=USER, session_id=name or self.current)
        if isinstance(found, Session):
            return found
        if name is not None and name != self.current:
            raise SessionNotFoundError("session", name, {*self.names, self.current})
        return None

    def events(self, name: str | None = None) -> list[Event]:
        """Oldest first."""
        found = self.find(name)
        return found.events if found else []

    def state(self, name: str | None = None) -> dict[str, Any]:
        """A copy."""
        found = self.find(name)
        return dict(found.state) if found else {}

    def start_fresh(self, name: str | None = None) -> str:
        """The name of a session that nothing was said in; it is the current one from now on.

        Raises:
            InputError: There is one of that name already.
        """
        taken = {*self.names, self.current}
        if name is None:
            count = 2
            while (name := f"main-{count}") in taken:
                count += 1
        elif name in self.names:
            raise InputError(
                f"there is a session {name!r} already; leave --new out to go on in it, or give another name"
            )
        self.current = name
        return name

    def write(self, delta: Mapping[str, Any], name: str | None = None) -> None:
        """Write keys to the state, as an event of the user's; the session is made if it is not there."""
        self.keys |= delta.keys()
        session = self._made(name or self.current)
        self.service.append_event(session, Event(author="user", actions=EventActions(state_delta=dict(delta))))

    def delete(self, keys: list[str], name: str | None = None) -> None:
        """Delete keys from the state.

        Raises:
            StateKeyError: One is not there; nothing is deleted.
        """
        state = self.state(name)
        for key in keys:
            if key not in state:
                raise self.no_key(key, state, name)
        self.write({key: dict(DELETED) for key in keys}, name)

    def settle(self, refused: Sequence[Pending], reason: str | None, name: str) -> list[Event]:
        """Refuse calls without their agents, which are not there to hear of it.

        Raises:
            InputError: One was answered in the meantime.
        """
        session = self._made(name)
        said = ToolConfirmation(confirmed=False, reason=reason, by="%confirm")
        made: list[Event] = []
        for one in refused:
            if not self.service.consume(session, approvals.use_of(one.id)):
                raise InputError(f"approval {one.id!r} was answered in the meantime")
            made.append(approvals.refused(one, said))
            self.service.append_event(session, made[-1])
        return made

    def no_key(self, key: str, state: Mapping[str, Any], name: str | None) -> StateKeyError:
        """The error for a key that is not there."""
        near = closest(key, state)
        hint = f"did you mean {near!r}?" if near else f"there is: {', '.join(sorted(state)) or 'none yet'}"
        return StateKeyError(f"no key {key!r} in the state of session {name or self.current!r}; {hint}")

    def mark(self, what: str, said: str) -> int:
        """Note a change of the notebook in the current session, if anything was said in it.

        Returns:
            How many events it had, without those of the notebook.
        """
        session = self.find()
        if session is None or not session.events:
            return 0
        count = sum(event.author != NOTEBOOK for event in session.events)
        self.service.append_event(session, Event(author=NOTEBOOK, custom_metadata={what: said}))
        return count

    def _made(self, name: str) -> Session:
        found = self.service.get_session(app_name=APP, user_id=USER, session_id=name)
        if isinstance(found, Session):
            return found
        return self.service.create_session(app_name=APP, user_id=USER, session_id=name)
