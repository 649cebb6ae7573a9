"""A session's state: a dict that remembers what was written to it, so that one event can carry the change."""

import copy
import functools
import logging
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from adk_nb.errors import ConfigurationError, StateSchemaError, closest
from adk_nb.events.event_actions import DELETED
from adk_nb.wire import deep_copy, json_problem

logger = logging.getLogger(__name__)

_ABSENT = object()


class State(MutableMapping[str, Any]):
    """Reads and writes the live state; each write also lands in the pending delta of the event that follows.

    A list or dict that is read and then changed in place is noticed by `settle`.
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
        """`value` and `delta` are the caller's own: both are written to.

        With a `schema`, only its fields can be written, with values of their types; a key with a `:` is free.
        With `only_json`, other values are refused, except under `temp:` keys.
        """
        self._value = value
        self._delta = delta
        self._schema = schema
        self._only_json = only_json
        self._closed: tuple[str, int | None] | None = None
        self._read: dict[str, str] = {}
        """Key -> what its list or dict looked like when it was read."""

    def __getitem__(self, key: str) -> Any:
        found = self._value[key]
        if isinstance(found, list | dict) and key not in self._read:
            self._read[key] = repr(cast(Any, found))
        return cast(Any, found)

    def __setitem__(self, key: str, value: Any) -> None:
        """Write.

        Raises:
            ConfigurationError: The store cannot keep `value`, and `key` does not begin with `temp:`.
            StateSchemaError: The schema has no such key, or another type for it.
        """
        if self._closed and self._drops(key, self._closed):
            return
        self._check(key, value)
        self._value[key] = value
        self._delta[key] = value
        self._read.pop(key, None)

    def __delitem__(self, key: str) -> None:
        if self._closed and self._drops(key, self._closed):
            return
        del self._value[key]
        self._delta[key] = dict(DELETED)
        self._read.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._value))  # a tool in another thread may write meanwhile

    def __len__(self) -> int:
        return len(self._value)

    def __contains__(self, key: object) -> bool:
        return key in self._value

    def __repr__(self) -> str:
        return f"State({self._value!r})"

    def has_delta(self) -> bool:
        """True if something was written that no event carries yet."""
        self.settle()
        return bool(self._delta)

    def close(self, function: str, keeper: int | None = None) -> None:
        """Drop every later write with a warning: `function` goes on although its call has ended.

        `keeper`: the id of a thread whose writes still count.
        """
        self._closed = function, keeper

    def _drops(self, key: str, closed: tuple[str, int | None]) -> bool:
        function, keeper = closed
        if keeper == threading.get_ident():
            return False
        logger.warning("state[%r] was not changed: %s wrote it after its call had ended", key, function)
        return True

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in a dict of the caller's own."""
        return dict(self._value)

    def settle(self) -> None:
        """Put into the delta what was changed in place since it was read.

        Raises:
            ConfigurationError: Something was put in that the store cannot keep.
            StateSchemaError: Something was put in that does not fit the schema.
        """
        for key, before in list(self._read.items()):
            value = self._value.get(key, _ABSENT)
            if value is not _ABSENT and (now := repr(value)) != before:
                self._check(key, value)
                self._delta[key] = value
                self._read[key] = now

    def _check(self, key: str, value: Any) -> None:
        _check_value(key, value, self._only_json)
        if self._schema:
            check_schema(self._schema, {key: value})


def check_schema(schema: type[BaseModel], delta: Mapping[str, Any]) -> None:
    """Refuse what `schema` does not allow to be written.

    Raises:
        StateSchemaError: It has no such field, or the value does not fit the field's type.
    """
    for key, value in delta.items():
        if ":" in key or key.startswith("_") or _is_deletion(value):  # `_` begins what the runtime keeps, and no field
            continue
        if key not in schema.model_fields:
            near = closest(key, schema.model_fields)
            raise StateSchemaError(
                f"state[{key!r}] is no field of the state_schema {schema.__name__}"
                + (f"; did you mean {near!r}?" if near else f"; its fields are: {', '.join(schema.model_fields)}")
            )
        try:
            _field(schema, key).validate_python(value)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            at = "".join(f"[{step!r}]" for step in (key, *wrong["loc"]))
            raise StateSchemaError(
                f"state[{key!r}] cannot hold the {type(value).__name__} {' '.join(repr(value).split()):.80}: "
                f"state_schema {schema.__name__} says {_spelt(schema.model_fields[key].annotation)} "
                f"(state{at}: {wrong['msg']})"
            ) from error


@functools.lru_cache(maxsize=256)
def _field(schema: type[BaseModel], key: str) -> TypeAdapter[Any]:
    return TypeAdapter(schema.model_fields[key].rebuild_annotation())


def _spelt(annotation: Any) -> str:
    return annotation.__name__ if type(annotation) is type else str(annotation)


def committed(delta: dict[str, Any], *, only_json: bool = True) -> dict[str, Any]:
    """What of `delta` is kept: all but `temp:` keys. Lists and dicts are copied: their writer may change them later.

    Raises:
        ConfigurationError: A value is not JSON; or, without `only_json`, is broken text or endless.
    """
    if not isinstance(cast(Any, delta), dict):
        raise ConfigurationError(f"a state is a dict, and not {delta!r:.80}")
    kept: dict[str, Any] = {}
    for key, value in delta.items():
        if isinstance(cast(Any, key), str) and key.startswith(State.TEMP_PREFIX):
            continue
        _check_value(key, value, only_json)
        kept[key] = detached(value)
    return kept


def detached(value: Any) -> Any:
    """A copy of a list, dict, set or tuple; any other object itself."""
    if not isinstance(value, list | dict | set | tuple):
        return value
    try:
        return copy.deepcopy(cast(Any, value))
    except RuntimeError:  # a sync tool in another thread writes to it
        return deep_copy(cast(Any, value))
    except Exception:  # an object in it, such as an open connection, cannot be copied
        return copy.copy(cast(Any, value))


def apply_delta(state: dict[str, Any], delta: dict[str, Any]) -> None:
    """Write `delta` into `state`; a deletion mark removes its key."""
    for key, value in delta.items():
        if _is_deletion(value):
            state.pop(key, None)
        else:
            state[key] = value


def take_delta(state: dict[str, Any], given: dict[str, Any], kept: dict[str, Any]) -> None:
    """Write a stored delta into the live `state`.

    Args:
        state: The live state.
        given: The delta as it was written, with its `temp:` keys.
        kept: Its `committed` copy, which is the event's.
    """
    # A value that is live already stays: another agent may hold it and change it in place, which its `settle` sees.
    fresh = {key: value for key, value in given.items() if state.get(key, _ABSENT) is not value}
    apply_delta(state, {key: detached(kept[key]) if key in kept else value for key, value in fresh.items()})


def _is_deletion(value: Any) -> bool:
    return isinstance(value, dict) and cast(dict[Any, Any], value) == DELETED  # an array has no truth value


def read_state(text: Any) -> dict[str, Any]:
    """The state in `text`, as a store has it.

    Raises:
        ValueError: That is no JSON object, or one that nobody here has written.
    """
    state = from_json(text, allow_inf_nan=False) if isinstance(text, str) else text
    if not isinstance(state, dict):
        raise ValueError(f"that is {type(state).__name__}, and no state")
    return cast(dict[str, Any], state)


def read_value(key: Any, text: Any) -> Any:
    """The value of a state's key in `text`, as a store has it.

    Raises:
        ValueError: That is no JSON, or `key` no text.
    """
    if not isinstance(key, str) or not isinstance(text, str):
        raise ValueError(f"that is {type(key).__name__} and {type(text).__name__}, and no key of a state")
    return from_json(text, allow_inf_nan=False)


def is_same(state: dict[str, Any], stored: dict[str, Any]) -> bool:
    """True if the two are equal."""
    try:
        return state == stored
    except ValueError:  # someone put an array there, past `State`: it has no truth value
        return False


_DATA = {"model_dump": "model_dump(mode='json')", "tolist": "tolist()", "isoformat": "isoformat()"}
"""How pydantic's models, numpy's and pandas' numbers and arrays, and dates are asked for their data."""


def _check_value(key: str, value: Any, only_json: bool) -> None:
    if not isinstance(cast(Any, key), str) or json_problem(key):
        raise ConfigurationError(f"a key of the state is a str, and not {key!r:.80}")
    if not key.startswith(State.TEMP_PREFIX) and (odd := json_problem(value, objects=not only_json)):
        how = next((f", as {says} gives it" for method, says in _DATA.items() if hasattr(value, method)), "")
        raise ConfigurationError(
            f"state[{key!r}] cannot hold {odd}: state is kept as JSON; "
            f"store its data as str, number, list or dict{how}, or keep the object for this turn in state['temp:{key}']"
        )
