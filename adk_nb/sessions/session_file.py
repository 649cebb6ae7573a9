"""A session as a JSON file: written for people to read, and validated when it is read, since anyone may write one.

Requests to the user and their answers are removed from events of unknown origin.
"""

import json
import operator
import os
import shlex
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb import types
from adk_nb.errors import InputError, StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import no_actions
from adk_nb.events.graph_checkpoint import CHECKPOINT, checkpoint_in
from adk_nb.events.requests import NODE_APPROVAL, REQUESTS
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session import Session, unstorable
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


NOT_RUN = (
    "this call has no result in the file that the session was loaded from, and was not made; call it again if it is "
    "still needed"
)


def remove_decisions(events: Sequence[Event]) -> tuple[list[Event], int]:
    """Remove requests for approvals and credentials, and the answers to them.

    A tool that needs an approval or a credential requests it again when it is next called. A call without a result is
    not made: it gets an error result, unless an open question to the user arose within it. Open questions to the user,
    and long-running calls, can still be answered.

    Returns:
        The remaining events, and the number of requests that were open.
    """
    requests = _Requests(events)
    remaining = [scrubbed for event in events if (scrubbed := requests.scrub(event)) is not None]
    return [*remaining, *_closing_events(remaining)], len(requests.calls.keys() - requests.answered)


class _Requests:
    """The approval and credential requests of a session, and the calls that waited for them."""

    def __init__(self, events: Sequence[Event]) -> None:
        calls = [call for event in events for call in event.get_function_calls()]
        self.calls = {call.id or "": call for call in calls if _is_decision(call)}
        responses = [(event, response) for event in events for response in event.get_function_responses()]
        self.answered = {response.id for event, response in responses if event.author == "user"}
        self._requested_while_running = set[str | None]()
        """Ids of calls whose tool requested something while it ran: its return value is the call's result."""
        for request in self.calls.values():
            args: Any = request.args or {}
            origin, call = args.get("askedOf"), args.get("originalFunctionCall")
            if isinstance(origin, dict) and isinstance(call, dict) and cast(Any, origin).get("ran") is True:
                self._requested_while_running.add(str(cast(Any, call).get("id")))
        self._has_result = {response.id for event, response in responses if response.id not in _placeholder_ids(event)}

    def scrub(self, event: Event) -> Event | None:
        """Remove decisions from `event`: the same object if it has none, None if nothing else remains."""
        actions, placeholders = event.actions, _placeholder_ids(event)
        parts = [part for original in event.parts if (part := self._scrub_part(original, placeholders))]
        state = actions.agent_state and self._scrub_state(actions.agent_state)
        is_unchanged = len(parts) == len(event.parts) and all(map(operator.is_, parts, event.parts))
        if is_unchanged and not placeholders and state == actions.agent_state:
            return event
        scrubbed_actions = copy_model(
            actions, requested_tool_confirmations={}, requested_auth_configs={}, agent_state=state
        )
        if not parts and scrubbed_actions == no_actions() and event.output is None and not event.error_code:
            return None
        long_running = {key for key in event.long_running_tool_ids or () if key not in self.calls}
        content = copy_model(event.content, parts=parts) if event.content and parts else None
        return copy_model(event, content=content, actions=scrubbed_actions, long_running_tool_ids=long_running or None)

    def _scrub_part(self, part: types.Part, placeholders: Collection[str | None]) -> types.Part | None:
        """Remove a decision, or replace the placeholder of a call that waited for one by an error result."""
        if (call := part.function_call or part.function_response) and _is_decision(call):
            return None
        response = part.function_response
        if not response or response.id not in placeholders or response.id in self._requested_while_running:
            return part
        if response.id in self._has_result:
            return None
        return types.Part(function_response=copy_model(response, response={"error": NOT_RUN}, will_continue=None))

    def _scrub_state(self, state: Any) -> Any:
        """Remove decisions from the checkpoint of a graph; a node that waited for decisions alone runs again."""
        if isinstance(state, list):
            return [self._scrub_state(item) for item in cast(list[Any], state)]
        if not isinstance(state, dict):
            return state
        scrubbed = {key: self._scrub_state(value) for key, value in cast(dict[str, Any], state).items()}
        # Recognized by their keys: here the run of a node, below the state of a graph. See `workflow.node_run`.
        asked, answers = scrubbed.get("asked"), scrubbed.get("answers")
        if isinstance(asked, list) and isinstance(answers, dict) and {"held", "let"} <= scrubbed.keys():
            questions = [key for key in cast(list[Any], asked) if not self._is_gate(key)]
            other_answers = {k: value for k, value in cast(dict[str, Any], answers).items() if not self._is_gate(k)}
            return scrubbed | {"asked": questions, "answers": other_answers, "held": None, "let": None}
        waiting, running, inner = (scrubbed.get(key) for key in ("waiting", "running", "inner_waiting"))
        if isinstance(waiting, list) and isinstance(running, list) and isinstance(inner, dict):
            runs = cast(list[Any], waiting)
            scrubbed["running"] = [*cast(list[Any], running), *(run for run in runs if not _asks(run))]
            scrubbed["waiting"] = [run for run in runs if _asks(run)]
            inner_runs = cast(dict[str, Any], inner)
            scrubbed["inner_waiting"] = {path: run for path, run in inner_runs.items() if _asks(run)}
        return scrubbed

    def _is_gate(self, key: Any) -> bool:
        return isinstance(key, str) and (key in self.calls or key.startswith(NODE_APPROVAL))


def _asks(run: Any) -> bool:
    return isinstance(run, dict) and bool(cast(dict[str, Any], run).get("asked"))


def _placeholder_ids(event: Event) -> Collection[str | None]:
    """Ids of the calls whose result in `event` is a placeholder."""
    return {*event.actions.requested_tool_confirmations, *event.actions.requested_auth_configs}


def _is_decision(call: types.FunctionCall | types.FunctionResponse) -> bool:
    return call.name in REQUESTS or (call.id or "").startswith(NODE_APPROVAL)


def _closing_events(events: Sequence[Event]) -> list[Event]:
    """Build an event with error results for each event with open calls."""
    answered = {response.id for event in events for response in event.get_function_responses()}
    newest = {event.isolation_scope: event for event in events if event.author != "user"}
    waiting_branches: list[str] = []
    for event in events:
        asks = any(key not in answered for key in event.long_running_tool_ids or ())
        is_last = event.isolation_scope and newest.get(event.isolation_scope) is event
        # An open question to the user, or the last message of a task's agent.
        if asks or (is_last and event.text and not event.get_function_calls()):
            waiting_branches.append(event.branch or "")
    closing_events: list[Event] = []
    for event in events:
        settled = answered.union(event.long_running_tool_ids or ())
        prefix = f"{event.branch}." if event.branch else ""
        # A run for a call is on a branch that starts so.
        parts = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"error": NOT_RUN})
            )
            for call in event.get_function_calls()
            if call.id not in settled
            and not any(branch.startswith(f"{prefix}{call.name}@") for branch in waiting_branches)
        ]
        if parts:
            closing_events.append(
                Event(
                    author=event.author,
                    invocation_id=event.invocation_id,
                    branch=event.branch,
                    isolation_scope=event.isolation_scope,
                    content=types.Content(role="user", parts=parts),
                    timestamp=events[-1].timestamp,
                )
            )
    return closing_events
