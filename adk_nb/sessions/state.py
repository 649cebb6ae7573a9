"""A session's state: a dict that remembers what was written to it, so that one event can carry the change."""

import copy
import math
from collections.abc import Iterator, MutableMapping
from typing import Any, cast

from adk_nb.errors import ConfigurationError
from adk_nb.events.event_actions import DELETED

_ABSENT = object()


class State(MutableMapping[str, Any]):
    """Reads and writes the live state; each write also lands in the pending delta of the event that follows.

    A list or dict that is read and then changed in place is noticed by `settle`.
    """

    APP_PREFIX = "app:"
    USER_PREFIX = "user:"
    TEMP_PREFIX = "temp:"

    def __init__(self, value: dict[str, Any], delta: dict[str, Any]) -> None:
        """`value` and `delta` are the caller's own: both are written to."""
        self._value = value
        self._delta = delta
        self._read: dict[str, str] = {}
        """Key -> what its list or dict looked like when it was read."""

    def __getitem__(self, key: str) -> Any:
        found = self._value[key]
        if isinstance(found, list | dict) and key not in self._read:
            self._read[key] = repr(cast(Any, found))
        return cast(Any, found)

    def __setitem__(self, key: str, value: Any) -> None:
        _check(key, value)
        self._value[key] = value
        self._delta[key] = value
        self._read.pop(key, None)

    def __delitem__(self, key: str) -> None:
        del self._value[key]
        self._delta[key] = dict(DELETED)
        self._read.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

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

    def to_dict(self) -> dict[str, Any]:
        """All keys with their values, in a dict of the caller's own."""
        return dict(self._value)

    def settle(self) -> None:
        """Put into the delta what was changed in place since it was read.

        Raises:
            ConfigurationError: Something was put in that is not JSON.
        """
        for key, before in self._read.items():
            value = self._value.get(key, _ABSENT)
            if value is not _ABSENT and (now := repr(value)) != before:
                _check(key, value)
                self._delta[key] = value
                self._read[key] = now


def committed(delta: dict[str, Any]) -> dict[str, Any]:
    """What of `delta` is kept: all but `temp:` keys. Lists and dicts are copied: their writer may change them later.

    Raises:
        ConfigurationError: A value is not JSON.
    """
    kept: dict[str, Any] = {}
    for key, value in delta.items():
        if key.startswith(State.TEMP_PREFIX):
            continue
        _check(key, value)
        kept[key] = copy.deepcopy(cast(Any, value)) if isinstance(value, list | dict) else value
    return kept


def apply_delta(state: dict[str, Any], delta: dict[str, Any]) -> None:
    """Write `delta` into `state`; a deletion mark removes its key."""
    for key, value in delta.items():
        if isinstance(value, dict) and value == DELETED:
            state.pop(key, None)
        else:
            state[key] = value


def _check(key: str, value: Any) -> None:
    if not key.startswith(State.TEMP_PREFIX) and (odd := _not_json(value)):
        raise ConfigurationError(
            f"state[{key!r}] cannot hold {odd}: state is kept as JSON; "
            f"store its data as str, number, list or dict, or keep the object for this turn in state['temp:{key}']"
        )


def _not_json(value: Any) -> str | None:
    """What in `value` is not JSON, in words; None if all of it is."""
    if value is None or isinstance(value, str | bool | int):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if isinstance(value, list):
        return next((odd for one in cast(list[Any], value) if (odd := _not_json(one))), None)
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
        return next((odd for key, one in items if (odd := _odd_key(key) or _not_json(one))), None)
    return f"a {type(value).__name__}"


def _odd_key(key: Any) -> str | None:
    return None if isinstance(key, str) else f"a dict with the key {key!r}, which is no string"
