"""A session as a file that people can read: written, read back as if a stranger had written it, put into a service."""

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
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.imported import without_decisions
from adk_nb.sessions.session import Session
from adk_nb.sessions.sql.codec import unstorable
from adk_nb.sessions.state import State, committed
from adk_nb.wire import copy_model, json_problem

VERSION = 1
MAX_BYTES = 100_000_000
MAX_EVENTS = 100_000
MAX_NAME = 100
"""Characters of a session's name."""

_LONGEST_NAME = 255
"""Bytes of a file's name, on most disks."""
_FORMAT = "adk_nb session"
_SHARED = (State.APP_PREFIX, State.USER_PREFIX)


class SavedSession(BaseModel):
    """What such a file holds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["adk_nb session"] = _FORMAT
    version: Literal[1] = VERSION
    name: str
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """With the `app:` and `user:` keys that reached it."""
    events: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Oldest first."""


def write(session: Session, path: str | os.PathLike[str], *, replace: bool = False) -> bool:
    """Save a session to a file. A file that holds an earlier save of it is replaced; it is whole at any time.

    Returns:
        Whether there was such a file.

    Raises:
        InputError: There is a file of that name that holds something else, and `replace` does not say that it may go.
        StorageError: The file cannot be written.
    """
    file = _path(path)
    is_there = os.path.lexists(file)
    if is_there and not replace and not _is_save_of(session, file):
        raise InputError(
            f"{str(path)!r} is there, and holds no save of session {session.id!r} as it is here; give another file "
            f"name, or replace it: %session save {shlex.quote(str(path))} --replace"
        )
    for number, event in enumerate(session.events, 1):
        if odd := unstorable(event):
            raise InputError(f"session {session.id!r} cannot be saved: event {number}: {odd}, which JSON cannot hold")
    events = [event.model_dump(mode="json", by_alias=True, exclude_defaults=True) for event in session.events]
    saved = SavedSession(name=session.id, state=committed(session.state), events=events)
    if odd := json_problem(saved.model_dump()):
        raise InputError(f"session {session.id!r} cannot be saved: it holds {odd}")
    text = json.dumps(saved.model_dump(), ensure_ascii=False, indent=1)
    try:
        _put(file, text + "\n")
    except OSError as error:
        why = str(error.strerror or error)
        if not file.parent.is_dir():
            why = f"there is no folder {file.parent}; make it, or give another path"
        raise StorageError(f"{str(path)!r} cannot be written: {why}") from error
    return is_there


def read(path: str | os.PathLike[str]) -> "Loaded":
    """What `write` has written, or a stranger: nothing in it is believed, and none of it is ever run.

    Requests for approvals and credentials are left out, with all answers to them; a call that waited for one has an
    error for a result.

    Raises:
        InputError: It is not there, or holds no session that this package reads.
        StorageError: It cannot be read.
    """
    file = _path(path)
    data = _json_in(file, str(path))
    if not isinstance(data, dict) or cast(Any, data).get("format") != _FORMAT:
        raise InputError(f"{str(path)!r} holds no session that was saved here; write one with %session save")
    version = cast(Any, data).get("version")
    if type(version) is not int:
        _refuse(path, "it has no version")
    if version > VERSION:
        raise InputError(
            f"{str(path)!r} is of version {version}, and this adk_nb reads up to {VERSION}; "
            "install the newer adk_nb that wrote it"
        )
    if odd := json_problem(data):
        _refuse(path, f"it holds {odd}")
    try:
        saved = SavedSession.model_validate(data)
    except ValidationError as error:
        _refuse(path, _first(error))
    if len(saved.events) > MAX_EVENTS:
        _refuse(path, f"it has {len(saved.events)} events, and the most is {MAX_EVENTS}")
    try:
        events, dropped = without_decisions(_events(path, saved.events))
    except (AttributeError, KeyError, TypeError) as error:
        _refuse(path, f"where a graph stands in it cannot be read: {error!r:.80}")
    return Loaded(saved.name, saved.state, events, dropped)


class Loaded:
    """A session that was read, and is in no service yet."""

    def __init__(self, name: str, state: dict[str, Any], events: list[Event], dropped: int = 0) -> None:
        self.name = name
        self.state = state
        self.events = events
        self.dropped = dropped
        """How many requests were open in the file, and are not any more."""

    async def put(self, service: BaseSessionService, *, app_name: str, user_id: str, session_id: str) -> list[str]:
        """Make it a session of that name.

        Returns:
            The `app:` and `user:` keys, sorted, that have another value there already: it stays, as other sessions
            see it too.

        Raises:
            AlreadyExistsError: The user has a session with this id.
            AdkNbError: It could not be stored; nothing of it is left there.
        """
        where = {"app_name": app_name, "user_id": user_id, "session_id": session_id}
        written = {key for event in self.events for key in event.actions.state_delta}
        first = {key: value for key, value in self.state.items() if key not in written}
        session = await service.create_session(**where, state={k: v for k, v in first.items() if not _is_shared(k)})
        there = dict(session.state)
        try:
            if missing := {key: value for key, value in first.items() if _is_shared(key) and key not in there}:
                await service.delete_session(**where)
                own = {key: value for key, value in first.items() if not _is_shared(key)}
                session = await service.create_session(**where, state=own | missing)
            for event in self.events:
                await service.append_event(session, _without(event, there))
        except BaseException:
            await service.delete_session(**where)
            raise
        return sorted(
            key for key, value in self.state.items() if _is_shared(key) and key in there and there[key] != value
        )


def check_name(name: str) -> str:
    """A name that a session can have, of a person's choice.

    Raises:
        InputError: It cannot.
    """
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise InputError(
            f"a session cannot be named {name[:40]!r}; a name has up to {MAX_NAME} letters, digits and signs"
        )
    return name


def _path(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    try:
        found = Path(text).expanduser()
    except RuntimeError:  # ~somebody, who has no home here
        found = Path()
    is_text = bool(text.strip()) and "\0" not in text and not json_problem(text)
    if not is_text or not 0 < len(os.fsencode(found.name)) <= _LONGEST_NAME:
        raise InputError(f"no file is named by {text!r:.200}; write a path that ends in .json")
    return found


def _put(file: Path, text: str) -> None:
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:40]}.")
    try:
        with open(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, file)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _json_in(file: Path, named: str) -> Any:
    if not os.path.isfile(file):  # what no file's name can be is none, too
        raise InputError(f"there is no file {named!r}")
    try:
        with file.open("rb") as data:
            text = data.read(MAX_BYTES + 1)
    except OSError as error:
        raise StorageError(f"{named!r} cannot be read: {error.strerror or error}") from error
    if len(text) > MAX_BYTES:
        _refuse(named, f"it is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{named!r} holds no JSON: {error!s:.200}") from error


def _is_save_of(session: Session, file: Path) -> bool:
    """True if a file holds an earlier state of the session: of one name there are many, so it begins the same."""
    try:
        saved = read(file)
    except (InputError, StorageError):
        return False
    begins = [event.id for event in saved.events[:1]]
    return saved.name == session.id and begins == [event.id for event in session.events[:1]][: len(begins)]


def _events(path: str | os.PathLike[str], given: list[dict[str, Any]]) -> list[Event]:
    made: list[Event] = []
    seen: set[str] = set()
    for number, one in enumerate(given, 1):
        try:
            event = Event.model_validate_json(json.dumps(one))  # as JSON: bytes are text there
        except (ValidationError, ValueError, TypeError, RecursionError) as error:
            said = _first(error) if isinstance(error, ValidationError) else str(error)
            _refuse(path, f"event {number}: {said}")
        if not event.id or event.id in seen:
            _refuse(path, f"event {number} has the id of another, or none")
        if event.partial:
            _refuse(path, f"event {number} is a piece of an event")
        seen.add(event.id)
        made.append(event)
    return made


def _first(error: ValidationError) -> str:
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in wrong["loc"])
    return f"{where:.80}: {wrong['msg']:.200}"


def _refuse(path: str | os.PathLike[str], why: str) -> NoReturn:
    raise InputError(f"{os.fspath(path)!r} cannot be loaded, and nothing of it was: {why}")


def _is_shared(key: str) -> bool:
    return key.startswith(_SHARED)


def _without(event: Event, there: Mapping[str, Any]) -> Event:
    """`event`, not writing what other sessions see and have already."""
    delta = event.actions.state_delta
    kept = {key: value for key, value in delta.items() if not (_is_shared(key) and key in there)}
    return event if len(kept) == len(delta) else copy_model(event, actions=copy_model(event.actions, state_delta=kept))
