"""Events as they lie in a store, each parsed when something is first asked of it."""

from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json

from adk_nb import parts, types
from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import no_actions
from adk_nb.wire import copied

_RAW = "__pydantic_extra__"
"""The slot that holds the JSON and its place of an event that was not looked at yet: no dict is made for it. Events
have no extra fields."""
_NO_EVENT = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What pydantic says of JSON that is no event, and what google-genai's own checks stumble over in it."""
_put = object.__setattr__
_SIMPLE = {"id", "author", "invocationId", "timestamp", "branch", "content", "actions", "modelVersion", "usageMetadata"}
"""Fields that are read the same from JSON and from what JSON was read into: no bytes are in them."""
_PLAIN: dict[str, tuple[str, type]] = {
    "id": ("id", str),
    "invocationId": ("invocation_id", str),
    "author": ("author", str),
    "branch": ("branch", str),
    "modelVersion": ("model_version", str),
    "timestamp": ("timestamp", float),
}
"""Alias -> field, and the one type of which a value needs no reading."""
_ALWAYS = {"id", "invocation_id", "author", "timestamp"}
_NODE = Event.model_fields["node_info"].default


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
        fields, said = _fields_of(*cast(tuple[bytes, str], kept))
        _put(one, "__pydantic_fields_set__", said)
        _put(one, "__pydantic_private__", None)
        _put(one, "__dict__", fields)
        _put(one, _RAW, None)
    _put(one, "__class__", Event)


def _fields_of(raw: bytes, where: str) -> tuple[dict[str, Any], set[str]]:
    """The fields of an event, and which of them its JSON has."""
    try:
        said: dict[str, Any] = from_json(raw)
        content = _words_in(said.get("content")) if type(said) is dict else None
        if content and (fields := _plain(said, content)):
            return fields
        if content and said.keys() <= _SIMPLE and _is_delta(said.get("actions", {})):
            event = Event.model_validate(said | {"content": content})
        else:
            event = Event.model_validate_json(raw)
    except _NO_EVENT as error:
        first = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StorageError(f"{where} holds what is no event: {first:.200}; put a copy in its place") from error
    return cast(dict[str, Any], event.__dict__), event.model_fields_set


def _words_in(content: Any) -> types.Content | None:
    """`content` made without google-genai, which takes half of the time; None if it is more than words of a role."""
    if type(content) is not dict or len(given := cast(dict[str, Any], content)) != 2:
        return None
    role, found = given.get("role"), given.get("parts")
    if type(role) is not str or type(found) is not list:
        return None
    made: list[types.Part] = []
    for part in cast(list[dict[str, Any]], found):
        if type(part) is not dict or len(part) != 1 or type(text := part.get("text")) is not str:
            return None
        made.append(parts.words(text))
    return parts.content(role, made)


def _plain(said: dict[str, Any], content: types.Content) -> tuple[dict[str, Any], set[str]] | None:
    """`said` without pydantic, which takes two thirds of what is left; None if a value is not of its type already."""
    fields: dict[str, Any] = {"content": content, "node_info": _NODE}
    for alias, value in said.items():
        if alias in _PLAIN:
            name, kind = _PLAIN[alias]
            if type(value) is not kind:
                return None
            fields[name] = value
        elif alias != "content" and not (alias == "actions" and _is_delta(value)):
            return None
    if not fields.keys() >= _ALWAYS:
        return None
    acts = said.get("actions")
    fields["actions"] = copied(no_actions(), state_delta=acts["stateDelta"]) if acts else no_actions()
    return fields, {_PLAIN[alias][0] if alias in _PLAIN else alias for alias in said}


def _is_delta(actions: Any) -> bool:
    """True if that is all that is in it, or nothing is."""
    if type(actions) is not dict:
        return False
    given = cast(dict[str, Any], actions)
    return not given or (given.keys() == {"stateDelta"} and type(given["stateDelta"]) is dict)
