"""The sessions of a notebook: all agents share them, one of them is the current one."""

import os
import shlex
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from adk_nb import sync
from adk_nb.artifacts.in_memory_artifact_service import InMemoryArtifactService
from adk_nb.auth.credential_service.in_memory_credential_service import InMemoryCredentialService
from adk_nb.errors import (
    InputError,
    SessionBusyError,
    SessionNotFoundError,
    StaleSessionError,
    StateKeyError,
    closest,
)
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.in_memory_memory_service import InMemoryMemoryService
from adk_nb.notebook.interrupted_runs import at_work, interrupted_runs, leave
from adk_nb.notebook.past_turns import Rewound, free, rewind
from adk_nb.notebook.view.rows import NOTEBOOK
from adk_nb.redaction import hidden
from adk_nb.runtime import approvals
from adk_nb.runtime.fork import fork
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, use_key
from adk_nb.sessions import session_file
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.database_session_service import DatabaseSessionService
from adk_nb.sessions.in_memory_session_service import InMemorySessionService
from adk_nb.sessions.journal import Run
from adk_nb.sessions.session import Session
from adk_nb.sessions.session_file import Loaded
from adk_nb.sessions.sqlite_session_service import SqliteSessionService

APP = "notebook"
USER = "user"
T = TypeVar("T")


class SessionStore:
    """Sessions by name."""

    def __init__(self) -> None:
        self._in_memory = InMemorySessionService()
        self.service: BaseSessionService = self._in_memory
        self.kept_in = ""
        """The address of the file or the database that they are in; empty: they are in memory."""
        self.artifacts = InMemoryArtifactService()
        self.memory = InMemoryMemoryService()
        self.credentials = InMemoryCredentialService()
        self.current = "main"
        self._histories: dict[str, History] = {}
        self.keys: set[str] = set()
        """State keys that were ever set by hand."""

    @property
    def names(self) -> list[str]:
        """In the order they were last used, the newest last."""
        return [one.id for one in _done(self.service.list_sessions(app_name=APP, user_id=USER)).sessions]

    def find(self, name: str | None = None) -> Session | None:
        """A copy of the session as it stands; None if nothing was said in it yet. Without a name: the current one.

        Raises:
            SessionNotFoundError: It was named, and there is none.
        """
        if found := self._get(name or self.current):
            return found
        if name is not None and name != self.current:
            raise SessionNotFoundError("session", name, {*self.names, self.current})
        return None

    def keep_in(self, address: str, folder: Path) -> list[str]:
        """Go on in the sessions that are kept there; those that are in memory go there too.

        Args:
            address: As for `session_place.opened`; empty for memory.
            folder: Where a path begins.

        Returns:
            What there is to say of it, a line each.

        Raises:
            UserError: They cannot be kept there; all is as it was.
        """
        if address == self.kept_in:
            return []
        service = open_service(address, folder) if address else self._in_memory
        told = self._carried_over(service) if address and not self.kept_in else []
        if not address:
            told = [f"{hidden(self.kept_in)} keeps its sessions; those from here on are in this kernel's memory"]
        self.service, self.kept_in = service, address
        return told

    def _carried_over(self, service: BaseSessionService) -> list[str]:
        """Move what is in memory; nothing is lost of it, and nothing of what is there is written over."""
        there = {one.id for one in _done(service.list_sessions(app_name=APP, user_id=USER)).sessions}
        told: list[str] = []
        for name in self.names:
            found = self.find(name)
            if found is None:
                continue
            other = free(name, there)
            there.add(other)
            loaded = Loaded(name, found.state, found.events)
            _done(loaded.put(service, app_name=APP, user_id=USER, session_id=other))
            _done(self.service.delete_session(app_name=APP, user_id=USER, session_id=name))
            as_other = f" as {other!r}, since there is another {name!r}" if other != name else ""
            told.append(f"session {name!r} ({counted(found.events)}) is kept there from now on{as_other}")
        return told

    def use(self, name: str) -> None:
        """Make a session the current one.

        Raises:
            SessionNotFoundError: There is none.
        """
        if name != self.current and name not in self.names:
            hint = f"a new one is begun with: %session new {shlex.quote(name)}"
            raise SessionNotFoundError("session", name, {*self.names, self.current}, hint=hint)
        self.current = name

    def save(self, file: str, name: str | None = None, *, replace: bool = False) -> tuple[Session, bool]:
        """Save a session to a file; what was saved, and whether an earlier save of it was there.

        Raises:
            InputError: Nothing was said in it yet, or the file is something else.
            StorageError: The file cannot be written.
        """
        found = self.find(name)
        if found is None:
            raise InputError(f"nothing was said in session {name or self.current!r} yet; there is nothing to save")
        return found, session_file.write(found, file, replace=replace)

    def load(self, file: str, name: str | None = None) -> tuple[str, list[str], int]:
        """Make a session of a file, which is the current one then.

        Returns:
            Its name, the keys that other sessions see too, and that stay as they are here, and how many requests for
            approvals and credentials were open in the file.

        Raises:
            InputError: The file holds none, or there is a session of that name.
            StorageError: It cannot be read, or not be stored.
        """
        loaded = session_file.read(file)
        name = session_file.check_name(name or loaded.name)
        if name in self.names:
            other = free(name, self.names)
            raise InputError(
                f"there is a session {name!r} already, and it stays as it is; write --as {other} for another name"
            )
        kept = _done(loaded.put(self.service, app_name=APP, user_id=USER, session_id=name))
        self.current = name
        return name, kept, loaded.dropped

    def fork(self, new: str | None = None, name: str | None = None, *, at: str | None = None) -> tuple[str, str, int]:
        """Make a copy of a session, which is the current one then.

        Args:
            new: The copy's name. None: the session's, with a number behind it.
            name: The session's. None: the current one's.
            at: The id of the last event that is copied. None: all are.

        Returns:
            The names of the session and of its copy, and how many events were copied.

        Raises:
            InputError: Nothing was said in it yet, or it has no such event, or there is a session of the new name.
        """
        found = self.find(name)
        if found is None:
            raise InputError(f"nothing was said in session {name or self.current!r} yet; there is nothing to copy")
        if new is not None and new in (*self.names, self.current):
            raise InputError(f"there is a session {new!r} already, and it stays as it is; give the copy another name")
        new = new or free(found.id, self.names)
        count = _done(fork(found, self.service, self.artifacts, session_id=new, at=at))
        self.current = new
        return found.id, new, count

    def rewind(self, to: int | str, name: str | None = None, *, dry_run: bool = False) -> Rewound:
        """Undo turns of a session, as `time_travel.rewind`."""
        found = self.find(name) or Session(id=name or self.current)
        return _done(rewind(found, self.service, self.artifacts, to, dry_run=dry_run))

    def events(self, name: str | None = None) -> list[Event]:
        """Oldest first."""
        found = self.find(name)
        return found.events if found else []

    def history(self, name: str | None = None) -> History:
        """The read model of a session; only events that came since the last look are read."""
        known = self._histories.setdefault(name or self.current, History())
        return known.update(self.events(name))

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
            name = free("main", {*taken, "main"})
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
        self._append(session, Event(author="user", actions=EventActions(state_delta=dict(delta))))

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

    def settle(self, refused: Sequence[Interrupt], reason: str | None, name: str) -> list[Event]:
        """Refuse calls without their agents, which are not there to hear of it.

        Raises:
            InputError: One was answered in the meantime.
        """
        service: Any = self.service
        session = self._made(name)
        said = ToolConfirmation(confirmed=False, reason=reason, by="%confirm")
        made: list[Event] = []
        for one in refused:
            if not _done(service.consume(session, use_key(one.id, "approval"))):
                raise InputError(f"approval {one.id!r} was answered in the meantime")
            made.append(approvals.refused(one, said))
            self._append(session, made[-1])
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
        with suppress(SessionBusyError, StaleSessionError):  # a run is under way: it is only a note
            self._append(session, Event(author=NOTEBOOK, custom_metadata={what: said}))
        return events_of(session.events)

    def cut(self, session: Session) -> list[Run]:
        """The runs of it that were cut, oldest first."""
        return _done(interrupted_runs(self.service, session))

    def at_work(self, session: Session) -> Run | None:
        """The run of it that someone works on, here or in another kernel."""
        return _done(at_work(self.service, session))

    def drop(self, session: Session, run: Run) -> None:
        """Leave a run as it is that was cut.

        Raises:
            SessionBusyError: Another run works on the session.
        """
        _done(leave(self.service, session, run))

    def _get(self, name: str) -> Session | None:
        return _done(self.service.get_session(app_name=APP, user_id=USER, session_id=name)) or None

    def _made(self, name: str) -> Session:
        return self._get(name) or _done(self.service.create_session(app_name=APP, user_id=USER, session_id=name))

    def _append(self, session: Session, event: Event) -> None:
        _done(self.service.append_event(session, event))


def events_of(events: Sequence[Event]) -> int:
    """How many events there are without those of the notebook."""
    return sum(event.author != NOTEBOOK for event in events)


def counted(events: Sequence[Event]) -> str:
    """`1 event`."""
    count = events_of(events)
    return f"{count} event{'' if count == 1 else 's'}"


def _done(answer: Awaitable[T]) -> T:
    """The answer of a session service, which may have to be waited for."""

    async def awaited() -> T:
        return await answer

    return sync.run(awaited())


_IN_A_FILE = "sqlite:///"


def open_service(address: str, folder: Path) -> BaseSessionService:
    """The sessions that are kept there, found to be usable.

    Args:
        address: `sqlite:///` and a path, or the URL of a PostgreSQL database.
        folder: Where a path begins.

    Raises:
        InputError: There can be no file of that path, or the address is none.
        MissingExtraError: What speaks to a database server is not installed.
        StorageError: The file or the database cannot be used.
    """
    if address.startswith(_IN_A_FILE):
        _refuse_a_query(address)
        path = folder / Path(address.removeprefix(_IN_A_FILE)).expanduser()
        _check(path, address)
        service: BaseSessionService = SqliteSessionService(path)
    else:
        service = DatabaseSessionService(address)
    sync.run(_flushed(service))
    return service


def _refuse_a_query(address: str) -> None:
    """What other packages read as settings would only be a part of the file's name here."""
    before, mark, query = address.partition("?")
    if mark:
        raise InputError(
            f"sessions in a file take no settings, and {'?' + query!r} cannot be in its name; write {before}, or, from "
            "Python, hand SqliteSessionService(path, durability=...) to Chat"
        )


def _check(path: Path, address: str) -> None:
    """What SQLite would say with less words, or only when something is to be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it, as {address.rstrip('/')}/nb.db")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it, or give another path")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no file; give another path")
    for place in (path.parent, path):
        if place.exists() and not os.access(place, os.W_OK):
            raise InputError(f"{place} may only be read; let yourself write to it, or give another path")


async def _flushed(service: BaseSessionService) -> None:
    await service.flush()
