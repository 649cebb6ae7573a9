"""Events as they lie in a store, each parsed when something is first asked of it."""

from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json

from adk_nb import parts
from adk_nb.errors import StorageError
from adk_nb.events.event import Event

_RAW = "__pydantic_extra__"
"""The slot that holds the JSON and its place of an event that was not looked at yet: no dict is made for it. Events
have no extra fields."""
_NO_EVENT = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What pydantic says of JSON that is no event, and what google-genai's own checks stumble over in it."""
_put = object.__setattr__
_SIMPLE = {"id", "author", "invocationId", "timestamp", "branch", "content", "actions", "modelVersion", "usageMetadata"}
"""Fields that are read the same from JSON and from what JSON was read into: no bytes are in them."""


def unread(raw: bytes, where: str) -> Event:
    """The event that `raw`, its JSON, says. `where`: of what file or table it is, for the error.

    To open a long session parses no event: 100,000 of them are there in a tenth of the time.

    Raises:
        StorageError: When it is first read: this is no event.
    """
    one = _Unread.__new__(_Unread)
    _put(one, _RAW, (raw, where))
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
    kept = object.__getattribute__(one, _RAW)
    if isinstance(kept, tuple):  # else another thread has just read it, or it is a copy
        event = _event_of(*cast(tuple[bytes, str], kept))
        _put(one, "__pydantic_fields_set__", event.model_fields_set)
        _put(one, "__pydantic_private__", None)
        _put(one, "__dict__", event.__dict__)
        _put(one, _RAW, None)
    _put(one, "__class__", Event)


def _event_of(raw: bytes, where: str) -> Event:
    try:
        said: Any = from_json(raw)
        if isinstance(said, dict) and (plain := _with_plain_words(cast(dict[str, Any], said))):
            return Event.model_validate(plain)
        return Event.model_validate_json(raw)
    except _NO_EVENT as error:
        first = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StorageError(f"{where} holds what is no event: {first:.200}; put a copy in its place") from error


def _with_plain_words(said: dict[str, Any]) -> dict[str, Any] | None:
    """`said` with a content made without google-genai, which takes half of the time; None if it is more than words."""
    content, acts = said.get("content"), said.get("actions", {})
    if not (said.keys() <= _SIMPLE and isinstance(content, dict) and isinstance(acts, dict)):
        return None
    given = cast(dict[str, Any], content)
    if given.keys() != {"parts", "role"} or not cast(dict[str, Any], acts).keys() <= {"stateDelta"}:
        return None
    found: list[Any] = cast(list[Any], given["parts"]) if isinstance(given["parts"], list) else [None]
    if any(type(part) is not dict or part.keys() != {"text"} for part in found):
        return None
    words: list[Any] = [part["text"] for part in found]
    if any(type(one) is not str for one in [given["role"], *words]):
        return None
    return said | {"content": parts.content(given["role"], [parts.words(one) for one in words])}
