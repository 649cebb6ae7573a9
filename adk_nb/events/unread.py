"""Events as they lie in a store, each parsed when something is first asked of it."""

from typing import Any

from pydantic import ValidationError

from adk_nb.errors import StorageError
from adk_nb.events.event import Event

_RAW = " raw"
"""No field's name: where an event that was not asked yet keeps its JSON."""
_WHERE = " where"
_put = object.__setattr__


def unread(raw: bytes, where: str) -> Event:
    """The event that `raw`, its JSON, says. `where`: of what file or table it is, for the error.

    To open a long session parses no event: 100,000 of them are there in a tenth of the time.

    Raises:
        StorageError: When it is first read: this is no event.
    """
    one = _Unread.__new__(_Unread)
    _put(one, "__dict__", {_RAW: raw, _WHERE: where})
    return one


class _Unread(Event):
    """Becomes the event, class and all, when it is first looked at."""

    def __getattribute__(self, name: str) -> Any:
        _read(self)
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _read(self)
        setattr(self, name, value)

    def __eq__(self, other: Any) -> bool:
        _read(self)
        return self == other

    __hash__ = None


def _read(one: Event) -> None:
    kept = object.__getattribute__(one, "__dict__")
    raw = kept.get(_RAW)
    if raw is not None:  # None: another thread has just read it
        try:
            event = Event.model_validate_json(raw)
        except ValidationError as error:
            raise StorageError(
                f"{kept[_WHERE]} holds what is no event: {error.errors(include_url=False)[0]['msg']}; "
                "put a copy of the file in its place"
            ) from error
        _put(one, "__pydantic_fields_set__", event.model_fields_set)
        _put(one, "__pydantic_extra__", None)
        _put(one, "__pydantic_private__", None)
        _put(one, "__dict__", event.__dict__)
    _put(one, "__class__", Event)
