"""A session's state: a dict that records its writes, so that an event can carry them."""

import copy
import functools
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json, to_jsonable_python

from adk_nb.errors import ConfigurationError, StateSchemaError, closest
from adk_nb.events.event_actions import DELETED
from adk_nb.wire import deep_copy, json_problem

logger = logging.getLogger(__name__)

_ABSENT = object()
_closed_here: "ContextVar[State | None]" = ContextVar("closed_here", default=None)
"""The state that this task, or the task whose callback this is, has closed."""


class State(MutableMapping[str, Any]):
    """The live state; each write also goes into the delta of the next event.

    A list or dict that was read and then changed in place is noticed by `settle`.
    """

    APP_PREFIX = "app:"
    USER_PREFIX = "user:"
    TEMP_PREFIX = "temp:"

    def __init__(
        self,
        value: dict[str, Any],
        delta: dict[str, Any],
        schema: type[BaseModel] | None = None,
        *,
        only_json: bool = False,
    ) -> None:
        """Wrap `value` and `delta`, which belong to the caller and are both written to.

        With a `schema`, only its fields can be written, with values of their types; a key with a `:` is free.
        With `only_json`, other values are refused, except under `temp:` keys.
        """
        self._value = value
        self._delta = delta
        self._schema = schema
        self._only_json = only_json
        self._closed: tuple[str, int | None] | None = None
        self._read_reprs: dict[str, str] = {}
        """Key -> repr of its list or dict when it was read."""

    def __getitem__(self, key: str) -> Any:
        value = self._value[key]
        if isinstance(value, list | dict) and key not in self._read_reprs:
            # A repr shows changes at any depth, also of objects that only compare by identity.
            self._read_reprs[key] = repr(cast(Any, value))
        return cast(Any, value)

    def __setitem__(self, key: str, value: Any) -> None:
        """Write a key.

        Raises:
            ConfigurationError: The value cannot be stored, and `key` does not start with `temp:`.
            StateSchemaError: The schema has no such key, or another type for it.
        """
        if self._closed and self._is_dropped(key, self._closed):
            return
        self._check(key, value)
        self._value[key] = value
        self._delta[key] = value
        self._read_reprs.pop(key, None)

    def __delitem__(self, key: str) -> None:
        if self._closed and self._is_dropped(key, self._closed):
            return
        del self._value[key]
        self._delta[key] = dict(DELETED)
        self._read_reprs.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._value))  # a tool in another thread may write meanwhile

    def __len__(self) -> int:
        return len(self._value)

    def __contains__(self, key: object) -> bool:
        return key in self._value

    def __repr__(self) -> str:
        return f"State({self._value!r})"

    def has_delta(self) -> bool:
        """True if there are writes that no event carries yet."""
        self.settle()
        return bool(self._delta)

    def close(self, function: str, thread_id: int | None = None) -> None:
        """Drop every later write with a warning.

        Args:
            function: Name of the function whose call has ended.
            thread_id: Id of a thread whose writes are still accepted.
        """
        self._closed = function, thread_id
        if thread_id is not None:
            _closed_here.set(self)  # callbacks of this task run in other threads, and may write

    def _is_dropped(self, key: str, closed: tuple[str, int | None]) -> bool:
        function, thread_id = closed
        if thread_id == threading.get_ident() or (thread_id is not None and _closed_here.get() is self):
            return False
        logger.warning("state[%r] was not changed: %s wrote it after its call had ended", key, function)
        return True

    def to_dict(self) -> dict[str, Any]:
        """Copy all keys and values into a dict."""
        return dict(self._value)

    def settle(self) -> None:
        """Add values that were changed in place since they were read to the delta.

        Raises:
            ConfigurationError: A changed value cannot be stored.
            StateSchemaError: A changed value does not match the schema.
        """
        for key, old in list(self._read_reprs.items()):
            value = self._value.get(key, _ABSENT)
            if value is not _ABSENT and (new := repr(value)) != old:
                self._check(key, value)
                self._delta[key] = value
                self._read_reprs[key] = new

    def _check(self, key: str, value: Any) -> None:
        _storable_value(key, value, self._only_json)
        if self._schema:
            check_schema(self._schema, {key: value})


def check_schema(schema: type[BaseModel], delta: Mapping[str, Any]) -> None:
    """Validate a delta against `schema`.

    Raises:
        StateSchemaError: The schema has no such field, or the value does not match its type.
    """
    for key, value in delta.items():
        if ":" in key or key.startswith("_") or _is_deletion(value):  # `_` starts the runtime's own keys
            continue
        if key not in schema.model_fields:
            suggestion = closest(key, schema.model_fields)
            fields = f"its fields are: {', '.join(schema.model_fields)}"
            hint = f"did you mean {suggestion!r}?" if suggestion else fields
            raise StateSchemaError(f"state[{key!r}] is not a field of the state_schema {schema.__name__}; {hint}")
        try:
            _field(schema, key).validate_python(value)
        except ValidationError as error:
            details, annotation = error.errors(include_url=False)[0], cast(Any, schema.model_fields[key].annotation)
            type_name = annotation.__name__ if type(annotation) is type else str(annotation)
            path = "".join(f"[{step!r}]" for step in (key, *details["loc"]))
            raise StateSchemaError(
                f"state[{key!r}] cannot hold the {type(value).__name__} {' '.join(repr(value).split()):.80}: "
                f"state_schema {schema.__name__} has {type_name} "
                f"(state{path}: {details['msg']})"
            ) from error


@functools.lru_cache(maxsize=256)
def _field(schema: type[BaseModel], key: str) -> TypeAdapter[Any]:
    return TypeAdapter(schema.model_fields[key].rebuild_annotation())


def storable_delta(delta: dict[str, Any], *, only_json: bool = True) -> dict[str, Any]:
    """The storable part of `delta`: without `temp:` keys, lists and dicts copied, since their writer may change them.

    With `only_json`, dates, models of pydantic, sets, tuples and the like are converted to JSON.

    Raises:
        ConfigurationError: A value has no JSON form; or, without `only_json`, is malformed text or recursive.
    """
    if not isinstance(cast(Any, delta), dict):
        raise ConfigurationError(f"a state must be a dict, got {delta!r:.80}")
    stored: dict[str, Any] = {}
    for key, value in delta.items():
        if isinstance(cast(Any, key), str) and key.startswith(State.TEMP_PREFIX):
            continue
        stored[key] = detached(_storable_value(key, value, only_json))
    return stored


def detached(value: Any) -> Any:
    """Copy a list, dict, set or tuple; return any other object as it is."""
    if not isinstance(value, list | dict | set | tuple):
        return value
    try:
        return copy.deepcopy(cast(Any, value))
    except RuntimeError:  # a sync tool in another thread writes to it
        return deep_copy(cast(Any, value))
    except Exception:  # it has an object that cannot be copied, such as an open connection
        return copy.copy(cast(Any, value))


def apply_delta(state: dict[str, Any], delta: dict[str, Any]) -> None:
    """Write `delta` into `state`; a deletion mark removes its key."""
    for key, value in delta.items():
        if _is_deletion(value):
            state.pop(key, None)
        else:
            state[key] = value


def apply_stored_delta(state: dict[str, Any], delta: dict[str, Any], stored: dict[str, Any]) -> None:
    """Write a stored delta into the live `state`.

    Args:
        state: The live state.
        delta: The delta as it was written, with its `temp:` keys.
        stored: Its `storable_delta`, which belongs to the event.
    """
    # A value that is in the live state already stays: another agent may hold it and change it in place (see `settle`).
    changed = {key: value for key, value in delta.items() if state.get(key, _ABSENT) is not value}
    apply_delta(state, {key: detached(stored[key]) if key in stored else value for key, value in changed.items()})


def _is_deletion(value: Any) -> bool:
    return isinstance(value, dict) and cast(dict[Any, Any], value) == DELETED  # `==` of an array is an array


def read_state(text: Any) -> dict[str, Any]:
    """Parse a stored state.

    Raises:
        ValueError: `text` is not a JSON object.
    """
    state = from_json(text, allow_inf_nan=False) if isinstance(text, str) else text
    if not isinstance(state, dict):
        raise ValueError(f"it is {type(state).__name__}, not a JSON object")
    return cast(dict[str, Any], state)


def read_value(key: Any, text: Any) -> Any:
    """Parse the stored value of a state key.

    Raises:
        ValueError: `text` is not JSON, or `key` is not text.
    """
    if not isinstance(key, str) or not isinstance(text, str):
        raise ValueError(f"it is {type(key).__name__} and {type(text).__name__}, not a key and its JSON")
    return from_json(text, allow_inf_nan=False)


def is_same(state: dict[str, Any], stored: dict[str, Any]) -> bool:
    """True if the states are equal."""
    try:
        return state == stored
    except ValueError:  # an array, written past `State`, has no truth value
        return False


def _as_json(value: Any) -> Any:
    """Convert dates, models of pydantic, sets, tuples and the like to JSON, with the same result as google-adk 2.13.

    Raises:
        ValueError: A value has no JSON form, or reading it would use it up.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_as_json(item) for item in cast(Iterable[Any], value)]
    if isinstance(value, Iterator):
        raise ValueError("an iterator can be read only once")
    return to_jsonable_python(value)


def _storable_value(key: str, value: Any, only_json: bool) -> Any:
    """The value as it is stored; the same object where it is JSON, or where a store keeps objects.

    Raises:
        ConfigurationError: It cannot be stored, and `key` does not start with `temp:`.
    """
    if not isinstance(cast(Any, key), str) or json_problem(key):
        raise ConfigurationError(f"a state key must be a str, got {key!r:.80}")
    if key.startswith(State.TEMP_PREFIX) or not (problem := json_problem(value, objects=not only_json)):
        return value
    if only_json:
        try:
            converted = _as_json(value)
        except (ValueError, TypeError, RecursionError):
            converted = value
        if not json_problem(converted):
            return converted
    suggestion = ", as tolist() gives it" if hasattr(value, "tolist") else ""
    raise ConfigurationError(
        f"state[{key!r}] cannot hold {problem}: state is stored as JSON; store its data as str, number, list or "
        f"dict{suggestion}, or keep the object for this turn in state['temp:{key}']"
    )
