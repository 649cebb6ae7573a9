"""The sessions of a notebook: each agent speaks in one of them, and one is the current one."""

import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from adk_nb import sessions, sync  # a store in SQL is imported when it is opened
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from adk_nb.concurrency.threads import can_wait, run_at_once
from adk_nb.errors import (
    InputError,
    SessionBusyError,
    SessionNotFoundError,
    StaleSessionError,
    StateKeyError,
    did_you_mean,
)
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook.cells.definitions import addressed_in
from adk_nb.notebook.chat import conversation, past
from adk_nb.notebook.chat.past import Rewound, unused_name
from adk_nb.notebook.view.plain_text import quoted
from adk_nb.notebook.view.rows import NOTEBOOK
from adk_nb.redaction import hidden
from adk_nb.runtime import approvals
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, use_key
from adk_nb.runtime.rewind import fork
from adk_nb.sessions import session_file
from adk_nb.sessions.base_session_service import BaseSessionService, refuse_control, strip_id
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import Loaded

APP = "notebook"
USER = "user"
MAIN = "main"
"""The session of the agent that is asked first."""
_SQLITE = "sqlite:///"
_CLIENTS = "@"
"""Begins the names of sessions of clients."""
_SPECIAL = (_CLIENTS, "-")
T = TypeVar("T")


class SessionStore:
    """Sessions by name, for code that is not async: `SESSION`, or `USER/SESSION` of another user, see `session_name`.

    A method that takes the name of a session means the current one without it.

    Args:
        agents: Returns the names of the agents that can be asked.
    """

    def __init__(self, agents: Callable[[], Collection[str]] = tuple) -> None:
        self._agents = agents
        self._in_memory = InMemorySessionService()
        self.service: BaseSessionService = self._in_memory
        self.address = ""
        """Address of the file or database of the sessions; empty: they are in memory."""
        self.artifacts = InMemoryArtifactService()
        self.memory = InMemoryMemoryService()
        self.credentials = InMemoryCredentialService()
        self.current = MAIN
        """The session of the agent that was asked last, unless another one was chosen since."""
        self.shared = False
        """All agents speak in the current session."""
        self._is_free = False
        """The current session was chosen, and belongs to the agent that is asked next."""
        self._of_agent: dict[str, str] = {}
        """Agent -> the session in which it goes on."""
        self.keys: set[str] = set()
        """State keys that were ever set by hand."""
        self.served: set[str] = set()
        """Agents that were served, whose clients have sessions of their own."""
        self.opened: set[str] = set()
        """Sessions that a chat box has opened; they may have no events yet."""
        self._histories: dict[str, History] = {}

    @property
    def names(self) -> list[str]:
        """In the order in which they were used last, the newest last."""
        return self._names(self.service)

    def _names(self, service: BaseSessionService) -> list[str]:
        apps = (APP, *map(client_app, sorted(self.served)))
        listed = [session for app in apps for session in _read(service.list_sessions(app_name=app)).sessions]
        return [name_of(session) for session in sorted(listed, key=lambda session: session.last_update_time)]

    def find(self, name: str | None = None) -> Session | None:
        """A copy of a session; None if the current one has no events yet.

        Raises:
            SessionNotFoundError: There is none of that name.
        """
        session = _read(self.service.get_session(**self.key(name or self.current)))
        if not session and name not in (None, self.current):
            raise SessionNotFoundError("session", name or "", {*self.names, self.current})
        return session

    def key(self, name: str) -> dict[str, Any]:
        """The arguments of the services for a session.

        Raises:
            InputError: The name ends where the id should be.
            SessionNotFoundError: It is one of the clients of an agent that was not served.
        """
        app, rest = APP, name
        if name.startswith(_CLIENTS):
            agent, _, rest = name.removeprefix(_CLIENTS).partition("/")
            app = client_app(agent)
            if agent not in self.served:
                hint = f"names with {_CLIENTS} are those of clients; type: %serve {quoted(agent)}"
                raise SessionNotFoundError("session", name, self.names, hint=hint)
        user, session = owner(rest)
        if not session:
            raise InputError(f"session {name!r} has no name after the last slash; write {name.rstrip('/')}/main")
        refuse_control(user_id=user, session=session)
        return {"app_name": app, "user_id": user, "session_id": session}

    def in_full(self, name: str) -> str:
        """The one name of a session for all that may be typed for it. Raises as `key`."""
        return session_name(**self.key(name))

    def events(self, name: str | None = None) -> list[Event]:
        """Oldest first."""
        session = self.find(name)
        return session.events if session else []

    def events_if_any(self, name: str) -> list[Event]:
        """As `events`; none if there is no such session."""
        session = _read(self.service.get_session(**self.key(name)))
        return session.events if session else []

    def history(self, name: str | None = None) -> History:
        """The read model of a session; only events since the last call are read."""
        return self._histories.setdefault(name or self.current, History()).update(self.events(name))

    def state(self, name: str | None = None) -> dict[str, Any]:
        """A copy."""
        session = self.find(name)
        return dict(session.state) if session else {}

    def state_if_any(self, name: str) -> dict[str, Any]:
        """As `state`; empty if there is no such session."""
        session = _read(self.service.get_session(**self.key(name)))
        return dict(session.state) if session else {}

    # ---- the sessions of agents

    def of_agent(self, agent: str) -> str:
        """The session in which an agent speaks: as chosen, else where it has spoken, else one of its own.

        Its own is `main` for the first one that is asked, and has the agent's name for others.
        """
        if self.shared or self._is_free:
            return self.current
        if spoken := self.where_spoken(agent):
            return spoken
        return agent if MAIN in self._of_agent.values() or self.speakers(MAIN) else MAIN

    def where_spoken(self, agent: str) -> str | None:
        """The session in which an agent goes on; None: it has spoken neither in one of its name nor in `main`."""
        stored = (name for name in (agent, MAIN) if agent in self.speakers(name))
        return self._of_agent.get(agent) or next(stored, None)

    def speakers(self, name: str) -> set[str]:
        """The agents that were asked in a session; none if there is no such session."""
        return speakers_in(self.events_if_any(name))

    def spoken(self, agent: str, name: str) -> None:
        """Let an agent go on in a session, which becomes the current one."""
        self.current, self._is_free = name, False
        if not self.shared:
            self._of_agent[agent] = name

    def _choose(self, name: str) -> None:
        """Make a session the current one; the agents that have spoken in it go on there, or else the next one asked."""
        speakers = self.speakers(name).intersection(self._agents())
        self._of_agent |= dict.fromkeys(speakers, name)
        self.current, self._is_free = name, not speakers

    # ---- the current session

    def move_to(self, address: str, folder: Path) -> list[str]:
        """Use the sessions at an address from now on; returns a report, a line each.

        Those in memory move there, and overwrite none. `address`, `folder`: as for `open_service`; empty for memory.

        Raises:
            UserError: The address cannot be used; nothing is changed.
        """
        if address == self.address:
            return []
        service = open_service(address, folder) if address else self._in_memory
        report: list[str] = []
        moved: dict[str, str] = {}
        if not address:
            report.append(f"{hidden(self.address)} keeps its sessions; new ones are in this kernel's memory")
        elif not self.address:
            names = set(self._names(service))
            for name in self.names:
                if (session := self.find(name)) is None:
                    continue
                new = unused_name(name, names)
                names.add(new)
                loaded = Loaded(name, session.state, session.events, initial_state=session.initial_state)
                _wait(loaded.put(service, **self.key(new)))
                # Deleted only now: if the new service fails, the session is still in memory.
                _wait(self.service.delete_session(**self.key(name)))
                renamed = f" as {new!r}; another {name!r} was there already" if new != name else ""
                report.append(f"session {name!r} ({events_label(session.events)}) is now kept there{renamed}")
                moved[name] = new
        self.service, self.address, self.opened = service, address, set()
        for agent, name in self._of_agent.items():
            if name in moved and agent not in self.speakers(name):
                self._of_agent[agent] = moved[name]
        return report

    def use(self, name: str) -> None:
        """Make a session the current one.

        Raises:
            SessionNotFoundError: There is none.
        """
        name = self.in_full(name)
        if name != self.current and name not in self.names:
            hint = f"start a new one with: %session new {quoted(name)}"
            raise SessionNotFoundError("session", name, {*self.names, self.current}, hint=hint)
        self._choose(name)

    def start_fresh(self, name: str | None = None, agent: str = "") -> str:
        """Make an empty session the current one; returns its name.

        Args:
            name: None: the name of the one before, with a number.
            agent: The agent that speaks in it. Empty: the one that is asked next.

        Raises:
            InputError: There is one of that name already.
        """
        name = name and self.in_full(name)
        if name in self.names:
            raise InputError(f"there is a session {name!r} already; leave --new out to use it, or give another name")
        before = self.of_agent(agent) if agent else self.current
        base = re.sub(r"-\d+$", "", before)
        name = name or unused_name(base, {*self.names, self.current, base})
        self._choose(name)
        if agent:
            self.spoken(agent, name)
        return name

    def save(self, file: str, name: str | None = None, *, replace: bool = False) -> tuple[Session, bool]:
        """Save a session to a file; returns it, and True if an earlier save of it was there.

        Raises:
            InputError: It has no events yet, or the file is something else.
            StorageError: The file cannot be written.
        """
        session = self._with_events(name)
        return session, session_file.write(session, file, replace=replace)

    def load(self, file: str, name: str | None = None) -> tuple[str, list[str], int]:
        """Make a session of a file the current one.

        Returns its name, the keys shared with other sessions, which keep their values here, and the number of
        interrupts that were open in the file.

        Raises:
            InputError: The file holds none, or there is a session of that name.
            StorageError: It cannot be read, or not be stored.
        """
        # Read before anything changes: a bad file must not lose the current session.
        loaded = session_file.read(file)
        # The name in a file is an id of the notebook's own, whatever is in it: a file chooses no other user.
        name = session_file.check_name(name or label(USER, loaded.name))
        if name in self.names:
            raise InputError(
                f"there is a session {name!r} already; add --as {unused_name(name, self.names)} for another name"
            )
        shared_keys = _wait(loaded.put(self.service, **self.key(name)))
        self._choose(name)
        return name, shared_keys, loaded.dropped

    def fork(self, new: str | None = None, name: str | None = None, *, at: str | None = None) -> tuple[str, str]:
        """Make a copy of a session the current one, up to the event `at` if there is one; returns the names of both.

        Raises:
            InputError: The session has no events yet, or no such event, or there is a session of the new name.
        """
        session = self._with_events(name)
        copied = name_of(session)
        new = new or unused_name(copied, self.names)
        key = self.key(new)
        if (key["app_name"], key["user_id"]) != (session.app_name, session.user_id):
            # A copy is the same user's, so a name without that user is the id alone.
            key |= {"app_name": session.app_name, "user_id": session.user_id, "session_id": new}
        new = session_name(**key)
        if new in (*self.names, self.current):
            raise InputError(f"there is a session {new!r} already; give the copy another name")
        _wait(fork(session, self.service, self.artifacts, session_id=key["session_id"], up_to_event_id=at))
        self._choose(new)
        return copied, new

    # ---- changes of a session

    def rewind(self, to: int | str, name: str | None = None, *, dry_run: bool = False) -> Rewound:
        """Undo turns of a session, as `past.rewind`."""
        session = self.find(name) or Session(id=name or self.current)
        return _wait(past.rewind(session, self.service, self.artifacts, to, dry_run=dry_run))

    def tell_undone(self, name: str) -> None:
        """Let the boxes that show a session know of turns that were undone."""
        _wait(conversation.tell_undone(self.service, self.key(name)))

    def write(self, delta: Mapping[str, Any], name: str | None = None) -> None:
        """Write keys of the state in one event of the user; the session is created if needed."""
        self.keys |= delta.keys()
        self._append(self._find_or_create(name), Event(author="user", actions=EventActions(state_delta=dict(delta))))

    def delete(self, keys: list[str], name: str | None = None) -> None:
        """Delete keys from the state.

        Raises:
            StateKeyError: One is not there; nothing is deleted.
        """
        state = self.state(name)
        for key in keys:
            if key not in state:
                raise self.unknown_key(key, state, name)
        self.write({key: dict(DELETED) for key in keys}, name)

    def unknown_key(self, key: str, state: Mapping[str, Any], name: str | None) -> StateKeyError:
        """The error for a key that is not in the state."""
        hint = did_you_mean(key, state, f"there is: {', '.join(sorted(state))}" if state else "the state is empty")
        return StateKeyError(f"no key {key!r} in the state of session {name or self.current!r}; {hint}")

    def note_change(self, kind: str, text: str, name: str) -> int:
        """Note a change of the notebook in a session if it has events; returns their number, notes aside."""
        session = _read(self.service.get_session(**self.key(name)))
        if session is None or not session.events:
            return 0
        with suppress(SessionBusyError, StaleSessionError):  # a run is under way, and this is only a note
            self._append(session, Event(author=NOTEBOOK, custom_metadata={kind: text}))
        return count_events(session.events)

    def reject(self, interrupts: Sequence[Interrupt], reason: str | None, name: str) -> list[Event]:
        """Reject calls whose agents are gone, so that no run receives the answer.

        Raises:
            InputError: One was answered in the meantime.
        """
        session = self._find_or_create(name)
        answer = ToolConfirmation(confirmed=False, reason=reason, by="%confirm")
        events: list[Event] = []
        for interrupt in interrupts:
            if not _wait(self.service.consume(session, use_key(interrupt.id, "approval"))):
                raise InputError(f"approval {interrupt.id!r} was answered in the meantime; see %confirm --list")
            events.append(approvals.rejection_event(interrupt, answer))
            self._append(session, events[-1])
        return events

    # ---- runs

    def interrupted_runs(self, session: Session) -> list[Run]:
        """The interrupted runs of a session, oldest first."""
        return _wait(conversation.interrupted_runs(self.service, session))

    def active_run(self, session: Session) -> Run | None:
        """The run that works on a session, here or in another kernel."""
        return _wait(conversation.active_run(self.service, session))

    def drop_run(self, session: Session, run: Run) -> None:
        """Give an interrupted run up.

        Raises:
            SessionBusyError: Another run works on the session.
        """
        _wait(conversation.drop(self.service, session, run))

    def _find_or_create(self, name: str | None) -> Session:
        name = name or self.current
        with suppress(SessionNotFoundError):
            if session := self.find(name):
                return session
        return _wait(self.service.create_session(**self.key(name)))

    def _with_events(self, name: str | None) -> Session:
        if session := self.find(name):
            return session
        raise InputError(f"session {name or self.current!r} has no messages yet; send one with %chat first")

    def _append(self, session: Session, event: Event) -> None:
        _wait(self.service.append_event(session, event))


def open_service(address: str, folder: Path) -> BaseSessionService:
    """The sessions at an address: `sqlite:///` and a path, relative to `folder`, or the URL of a PostgreSQL database.

    Raises:
        InputError: There can be no file of that path, or the address is none.
        MissingExtraError: The driver of the database is not installed.
        StorageError: The file or the database cannot be used.
    """
    if address.startswith(_SQLITE):
        path_part, mark, query = address.partition("?")
        if mark:  # other packages read settings there; here they would be part of the file's name
            raise InputError(
                f"sessions in a file take no settings, and {'?' + query!r} cannot be in its name; write {path_part}, "
                "or, from Python, hand SqliteSessionService(path, durability=...) to Chat"
            )
        path = folder / Path(address.removeprefix(_SQLITE)).expanduser()
        _check_path(path, address)
        service: BaseSessionService = sessions.SqliteSessionService(path)
    else:
        service = sessions.DatabaseSessionService(address)
    _wait(service.flush())
    return service


def _check_path(path: Path, address: str) -> None:
    """Refuse early, with a hint, what SQLite would refuse at the first write."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, as {address.rstrip('/')}/nb.db")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it, or give another path")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a file; give another path")
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.W_OK):
            raise InputError(f"{place} is read-only; allow writing to it, or give another path")


def speakers_in(events: Sequence[Event]) -> set[str]:
    """The agents that were asked in a session with these events."""
    return addressed_in(events) - {"user", NOTEBOOK}


def count_events(events: Sequence[Event]) -> int:
    """Number of events, without the notes of the notebook."""
    return sum(event.author != NOTEBOOK for event in events)


def events_label(events: Sequence[Event]) -> str:
    """`1 event`, `2 events`."""
    count = count_events(events)
    return f"{count} event{'' if count == 1 else 's'}"


def client_app(agent: str) -> str:
    """The app of the sessions that clients of a served agent have for themselves: with state, files and memories."""
    return f"{APP}:{agent}"


def session_name(*, app_name: str, user_id: str, session_id: str) -> str:
    """The name of a session; no two have the same. One of a served agent's clients begins with `@AGENT/`."""
    _, is_of_clients, agent = app_name.partition(f"{APP}:")
    return (f"{_CLIENTS}{agent}/" if is_of_clients else "") + label(user_id, session_id)


def name_of(session: Session) -> str:
    """The name of a session."""
    return session_name(app_name=session.app_name, user_id=session.user_id, session_id=session.id)


def label(user: str, session: str, own: str = USER) -> str:
    """A session's id for the user `own`, else `USER/SESSION`.

    The first slash ends the user: one in a user's name is written `%2F`. `own` is named, too, if the id has a slash, or
    begins like a client's or an option.
    """
    session = strip_id(session)
    if user == own and "/" not in session and not session.startswith(_SPECIAL):
        return session
    user = user.replace("%", "%25").replace("/", "%2F")
    if user.startswith(_SPECIAL):
        user = f"%{ord(user[0]):X}{user[1:]}"
    return f"{user}/{session}"


def owner(name: str, own: str = USER) -> tuple[str, str]:
    """The user and the id of the session that has this label."""
    user, slash, session = name.partition("/")
    return (unquote(user), strip_id(session)) if slash else (own, strip_id(name))


def _wait(result: Awaitable[T]) -> T:
    return sync.run(_awaited(result))


def _read(result: Awaitable[T]) -> T:
    # An editor's question is a callback, which a browser cannot suspend; sessions in memory are read without a wait.
    return _wait(result) if can_wait() else run_at_once(_awaited(result))


async def _awaited(result: Awaitable[T]) -> T:  # a service returns any awaitable, `sync.run` takes coroutines
    return await result
