"""A session as a JSON file: written for people to read, and validated when it is read, since anyone may write one."""

import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.events.graph_checkpoint import CHECKPOINT, checkpoint_in
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.imported import remove_decisions
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import unstorable
from adk_nb.sessions.state import State, storable_delta
from adk_nb.wire import copy_model, json_problem

VERSION = 1
MAX_BYTES = 100_000_000
MAX_EVENTS = 100_000
MAX_NAME = 100
"""Characters of a session's name."""

_MAX_FILE_NAME = 255
"""Bytes; the limit of most file systems."""
_FORMAT = "adk_nb session"
_SHARED = (State.APP_PREFIX, State.USER_PREFIX)


class SavedSession(BaseModel):
    """The content of a session file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["adk_nb session"] = _FORMAT
    version: Literal[1] = VERSION
    name: str
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Includes the `app:` and `user:` keys."""
    initial_state: dict[str, Any] | None = None
    """The session's own keys before the first event. None: unknown."""
    events: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Oldest first."""


def write(session: Session, path: str | os.PathLike[str], *, replace: bool = False) -> bool:
    """Save a session to a file, atomically. A file with an earlier save of the session is replaced.

    Returns:
        True if there was such a file.

    Raises:
        InputError: The file exists and holds something else, and `replace` is false; or its name is that of another
            format.
        StorageError: The file cannot be written.
    """
    file = _check_path(path)
    if file.suffix.lower() not in ("", ".json"):
        raise InputError(
            f"a session is saved as JSON, and {file.name!r} says otherwise; type "
            f"%session save {shlex.quote(f'{file.stem}.json')}"
        )
    exists = os.path.lexists(file)
    if exists and not replace and not _is_save_of(session, file):
        raise InputError(
            f"{str(path)!r} exists, and is not an earlier save of session {session.id!r}; give another file "
            f"name, or replace it: %session save {shlex.quote(str(path))} --replace"
        )
    for number, event in enumerate(session.events, 1):
        if problem := unstorable(event):
            raise InputError(
                f"session {session.id!r} cannot be saved: event {number}: {problem}, which JSON cannot hold"
            )
    events = [event.model_dump(mode="json", by_alias=True, exclude_defaults=True) for event in session.events]
    initial = None if session.initial_state is None else storable_delta(session.initial_state)
    saved = SavedSession(name=session.id, state=storable_delta(session.state), initial_state=initial, events=events)
    if problem := json_problem(saved.model_dump()):
        raise InputError(f"session {session.id!r} cannot be saved: it holds {problem}")
    text = json.dumps(saved.model_dump(), ensure_ascii=False, indent=1)
    try:
        _write_atomically(file, text + "\n")
    except OSError as error:
        reason = str(error.strerror or error)
        if not file.parent.is_dir():
            reason = f"there is no folder {file.parent}; make it, or give another path"
        raise StorageError(f"{str(path)!r} cannot be written: {reason}") from error
    return exists


def read(path: str | os.PathLike[str]) -> "Loaded":
    """Load and validate a session file. Nothing in it is trusted or run.

    Requests for approvals and credentials are removed, with all answers to them; a call that waited for one gets an
    error result.

    Raises:
        InputError: The file is missing, or holds no session that this version reads.
        StorageError: The file cannot be read.
    """
    file = _check_path(path)
    data = _read_json(file, str(path))
    if not isinstance(data, dict) or cast(Any, data).get("format") != _FORMAT:
        raise InputError(f"{str(path)!r} is not a saved session; write one with %session save")
    version = cast(Any, data).get("version")
    if type(version) is not int:
        _refuse(path, "it has no version")
    if version > VERSION:
        raise InputError(
            f"{str(path)!r} is of version {version}, and this adk_nb reads up to {VERSION}; "
            "install the newer adk_nb that wrote it"
        )
    # Before pydantic, which would accept text that no service can store.
    if problem := json_problem(data):
        _refuse(path, f"it holds {problem}")
    try:
        saved = SavedSession.model_validate(data)
    except ValidationError as error:
        _refuse(path, _first_error(error))
    if len(saved.events) > MAX_EVENTS:
        _refuse(path, f"it has {len(saved.events)} events, and the maximum is {MAX_EVENTS}")
    stored = _parse_events(path, saved.events)
    for number, event in enumerate(stored, 1):
        state = event.actions.agent_state or {}
        if CHECKPOINT in state and checkpoint_in(state) is None:
            _refuse(path, f"event {number}: the checkpoint of a graph cannot be read")
    events, dropped = remove_decisions(stored)
    return Loaded(saved.name, saved.state, events, dropped, initial_state=saved.initial_state)


class Loaded:
    """A session that was read from a file, and is not stored in a service yet."""

    def __init__(
        self,
        name: str,
        state: dict[str, Any],
        events: list[Event],
        dropped: int = 0,
        initial_state: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.state = state
        self.initial_state = initial_state
        """The session's own keys before the first event; None: unknown but for those that no event has."""
        self.events = events
        self.dropped = dropped
        """Number of open requests that were removed."""

    async def put(self, service: BaseSessionService, *, app_name: str, user_id: str, session_id: str) -> list[str]:
        """Create the session in a service.

        Returns:
            The `app:` and `user:` keys, sorted, that have another value there already: it is kept, since other
            sessions share it.

        Raises:
            AlreadyExistsError: The user has a session with this id.
            AdkNbError: The session could not be stored; nothing of it remains there.
        """
        names = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        event_keys = {key for event in self.events for key in event.actions.state_delta}
        initial = {key: value for key, value in self.state.items() if key not in event_keys}
        untouched = {key: value for key, value in initial.items() if not _is_shared(key)}
        own_state = (self.initial_state or {}) | untouched
        session = await service.create_session(**names, state=own_state)
        existing = dict(session.state)
        try:
            if missing := {key: value for key, value in initial.items() if _is_shared(key) and key not in existing}:
                # Only a session shows which shared keys exist: create it again with the missing ones.
                await service.delete_session(**names)
                session = await service.create_session(**names, state=own_state | missing)
            for event in self.events:
                await service.append_event(session, _without_shared_keys(event, existing))
        except BaseException:
            await service.delete_session(**names)
            raise
        return sorted(
            key for key, value in self.state.items() if _is_shared(key) and key in existing and existing[key] != value
        )


def check_name(name: str) -> str:
    """Check a session name that a user chose.

    Raises:
        InputError: It is empty, too long, or not printable.
    """
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise InputError(f"a session cannot be named {name[:40]!r}; a name has 1 to {MAX_NAME} printable characters")
    return name


def _check_path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    try:
        file = Path(text).expanduser()
    except RuntimeError:  # ~user without a home directory
        file = Path()
    is_text = bool(text.strip()) and "\0" not in text and not json_problem(text)
    if not is_text or not 0 < len(os.fsencode(file.name)) <= _MAX_FILE_NAME:
        raise InputError(f"{text!r:.200} is not a file name; write a path that ends in .json")
    return file


def _write_atomically(file: Path, text: str) -> None:
    # In the same folder: a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:40]}.")
    try:
        with open(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            # Before the rename: after a power failure there is the old file or the whole new one.
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _read_json(file: Path, name: str) -> Any:
    if not os.path.isfile(file):  # also for a name that the file system does not allow
        raise InputError(f"there is no file {name!r}")
    try:
        with file.open("rb") as data:
            text = data.read(MAX_BYTES + 1)
    except OSError as error:
        raise StorageError(f"{name!r} cannot be read: {error.strerror or error}") from error
    if len(text) > MAX_BYTES:
        _refuse(name, f"it is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name!r} is not JSON: {error!s:.200}") from error


def _is_save_of(session: Session, file: Path) -> bool:
    """True if a file holds an earlier save: the same session name, and the same first event."""
    try:
        saved = read(file)
    except (InputError, StorageError):
        return False
    if saved.name != session.id or not saved.events:
        return saved.name == session.id
    return bool(session.events) and saved.events[0].id == session.events[0].id


def _parse_events(path: str | os.PathLike[str], stored: list[dict[str, Any]]) -> list[Event]:
    events: list[Event] = []
    seen: set[str] = set()
    for number, data in enumerate(stored, 1):
        try:
            event = Event.model_validate_json(json.dumps(data))  # as JSON: bytes are text there
        except (ValidationError, ValueError, TypeError, RecursionError) as error:
            reason = _first_error(error) if isinstance(error, ValidationError) else str(error)
            _refuse(path, f"event {number}: {reason}")
        if not event.id or event.id in seen:
            _refuse(path, f"event {number} has no id, or the id of another event")
        if event.partial:
            _refuse(path, f"event {number} is a partial event")
        seen.add(event.id)
        events.append(event)
    return events


def _first_error(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(step) for step in details["loc"])
    return f"{field:.80}: {details['msg']:.200}"


def _refuse(path: str | os.PathLike[str], reason: str) -> NoReturn:
    raise InputError(f"{os.fspath(path)!r} cannot be loaded: {reason}; nothing was loaded")


def _is_shared(key: str) -> bool:
    return key.startswith(_SHARED)


def _without_shared_keys(event: Event, existing: Mapping[str, Any]) -> Event:
    """Remove `app:` and `user:` keys that exist already from the event's state delta."""
    delta = event.actions.state_delta
    remaining = {key: value for key, value in delta.items() if not (_is_shared(key) and key in existing)}
    if len(remaining) == len(delta):
        return event
    return copy_model(event, actions=copy_model(event.actions, state_delta=remaining))
