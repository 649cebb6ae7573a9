"""Events as they lie in a store, each parsed or copied when something is first asked of it."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import from_json

from adk_nb import parts, types
from adk_nb.errors import StorageError
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.wire import SharedNames, copy_model, deep_copy, new_model, prototype

_RAW, _PLACE = "__pydantic_extra__", "__pydantic_private__"
"""The slots of an event that was not looked at yet: the JSON, and of what place it is, or the event to copy. No dict is
made for it. Events have no extra and no private fields."""
_NO_EVENT = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What pydantic says of JSON that is no event, and what google-genai's own checks stumble over in it."""
_put = object.__setattr__
_get = object.__getattribute__
_SCALARS = {
    *("id", "invocation_id", "author", "branch", "timestamp", "partial", "turn_complete", "interrupted"),
    *("error_code", "error_message", "finish_reason", "model_version"),
}
"""Fields whose values cannot be changed: a reader that looks at no others needs no copy."""
_FIXED = {*_SCALARS, "node_info"}
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
_CALLS: dict[str, tuple[str, Callable[[str, str, dict[str, Any]], types.Part]]] = {
    "functionCall": ("args", parts.call),
    "functionResponse": ("response", parts.result),
}
"""Kind of part -> the third of its fields, and what makes it of all three."""
_ALWAYS = {"id", "invocation_id", "author", "timestamp"}
_NODE = Event.model_fields["node_info"].default


def unread(raw: bytes, where: str) -> Event:
    """The event that `raw`, its JSON, says. `where`: of what file or table it is, for the error.

    To open a long session parses no event: 100,000 of them are there in a tenth of the time.

    Raises:
        StorageError: When it is first read: this is no event.
    """
    one = _Unread.__new__(_Unread)
    _put(one, _RAW, raw)
    _put(one, _PLACE, where)
    return one


def lent(event: Event) -> Event:
    """A copy of `event`, made when it is first looked at: what a reader changes in it is in no history.

    Args:
        event: A stored event, which nobody changes.
    """
    if type(event) is not Event:
        return event.model_copy(deep=True)
    one = _Unread.__new__(_Unread)
    _put(one, _RAW, event)
    _put(one, _PLACE, None)
    return one


def originals(events: Iterable[Event]) -> list[Event]:
    """The stored events in the place of `lent` ones that nobody has looked at, for a run: it copies no history."""
    return [kept if type(kept := _get(event, _RAW)) is Event else event for event in events]


class _Unread(Event):
    """Becomes the event, class and all, when it is first looked at."""

    def __getattribute__(self, name: str) -> Any:
        if type(stored := _get(self, _RAW)) is Event:
            if name in _SCALARS:
                return getattr(stored, name)
            if name == "content":
                return _content_copied(self, stored)
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
    raw: bytes | Event | None = _get(one, _RAW)
    if raw is not None:  # else another thread has just read it, or it is a copy
        place = _get(one, _PLACE)
        fields, names = _fields_copied(raw, place) if type(raw) is Event else _fields_of(cast(bytes, raw), place)
        _put(one, "__pydantic_fields_set__", names)
        _put(one, "__dict__", fields)
        _put(one, _RAW, None)
    _put(one, "__class__", Event)
    _put(one, _PLACE, None)


def _content_copied(one: Event, event: Event) -> types.Content | None:
    """The content of a lent event, copied without the rest: most readers look at no more, and a turn is 3 % faster."""
    content: types.Content | None = _get(one, _PLACE)
    if content is None and event.content is not None:
        content = parts.copied_content(event.content)
        _put(one, _PLACE, content)
        if _get(one, _RAW) is None:  # another thread has read the whole meanwhile
            _put(one, _PLACE, None)
            return one.content
    return content


def _fields_copied(event: Event, content: types.Content | None) -> tuple[dict[str, Any], set[str]]:
    """Copies of the fields of `event`, and of the names of those that were given. `content`: if copied before."""
    fields: dict[str, Any] = event.__dict__.copy()
    names = event.__pydantic_fields_set__
    for name in fields.keys() - _FIXED:
        value = fields[name]
        if name == "content" and value:
            fields[name] = content or parts.copied_content(value)
        elif name == "actions" and _is_empty(value):
            fields[name] = no_actions()
        else:
            fields[name] = deep_copy(value)
    return fields, names if type(names) is SharedNames else names.copy()


def _is_empty(actions: EventActions) -> bool:
    """True if no field was given; dicts that were only looked at are there, and empty."""
    return not actions.__pydantic_fields_set__ and not any(list(actions.__dict__.values()))


def _fields_of(raw: bytes, where: str) -> tuple[dict[str, Any], set[str]]:
    """The fields of an event, and which of them its JSON has."""
    try:
        stored: dict[str, Any] = from_json(raw)
        content = _content(stored.get("content")) if type(stored) is dict else None
        if content and (fields := _plain(stored, content)):
            return fields
        if content and stored.keys() <= _SIMPLE and _is_delta(stored.get("actions", {})):
            event = Event.model_validate(stored | {"content": content})
        else:
            event = Event.model_validate_json(raw)
    except _NO_EVENT as error:
        first = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StorageError(f"{where} holds what is no event: {first:.200}; put a copy in its place") from error
    return cast(dict[str, Any], event.__dict__), event.model_fields_set


def _content(stored: Any) -> types.Content | None:
    """The content made without google-genai, which takes half of the time; None if it is more than text and calls."""
    if type(stored) is not dict or len(fields := cast(dict[str, Any], stored)) != 2:
        return None
    role, stored_parts = fields.get("role"), fields.get("parts")
    if type(role) is not str or type(stored_parts) is not list:
        return None
    made: list[types.Part] = []
    for stored_part in cast(list[Any], stored_parts):
        part = _part(stored_part)
        if part is None:
            return None
        made.append(part)
    return parts.content(role, made)


def _part(stored: Any) -> types.Part | None:
    if type(stored) is not dict or len(fields := cast(dict[str, Any], stored)) != 1:
        return None
    ((kind, value),) = fields.items()
    if type(value) is str:
        return parts.text_part(value) if kind == "text" else None
    if kind not in _CALLS or type(value) is not dict or len(values := cast(dict[str, Any], value)) != 3:
        return None
    last, make = _CALLS[kind]
    key, name, given = values.get("id"), values.get("name"), values.get(last)
    if type(key) is not str or type(name) is not str or type(given) is not dict:
        return None
    return make(key, name, cast(dict[str, Any], given))


def _plain(stored: dict[str, Any], content: types.Content) -> tuple[dict[str, Any], set[str]] | None:
    """The fields without pydantic, which takes two thirds of what is left; None if a value is not of its type."""
    fields: dict[str, Any] = {"content": content, "node_info": _NODE, "actions": None}
    for alias, value in stored.items():
        if alias in _PLAIN:
            name, kind = _PLAIN[alias]
            if type(value) is not kind:
                return None
            fields[name] = value
        elif alias == "usageMetadata" and (usage := _usage(value)):
            fields["usage_metadata"] = usage
        elif alias != "content" and not (alias == "actions" and _is_delta(value)):
            return None
    if not fields.keys() >= _ALWAYS:
        return None
    given = stored.get("actions")
    fields["actions"] = (
        new_model(EventActions, {"state_delta"}, {"state_delta": given["stateDelta"]}) if given else no_actions()
    )
    blank = _blank(frozenset(fields), "actions" in stored)
    return blank.__dict__ | fields, blank.__pydantic_fields_set__


@cache
def _blank(names: frozenset[str], has_actions: bool) -> Event:
    """An event of these fields; the names of those that its JSON has are shared by all that are like it."""
    fields = _any_event().__dict__.copy()
    for name in fields.keys() - names:
        del fields[name]
    return new_model(Event, SharedNames(names - {"node_info"} - (set() if has_actions else {"actions"})), fields)


@cache
def _any_event() -> Event:
    known = {name for name, _ in _PLAIN.values()} | {"content", "node_info", "actions", "usage_metadata"}
    names = [name for name in Event.model_fields if name in known]
    return prototype(new_model(Event, set(names), dict.fromkeys(names)))


def _usage(stored: Any) -> types.GenerateContentResponseUsageMetadata | None:
    """Tokens as counted, of no kind but whole numbers."""
    if type(stored) is not dict or not (counts := cast(dict[str, Any], stored)):
        return None
    known = _counts()
    if not (counts.keys() <= known.keys() and all(type(count) is int for count in counts.values())):
        return None
    usage = copy_model(_no_usage(), **{known[alias]: count for alias, count in counts.items()})
    _put(usage, "__pydantic_private__", dict.fromkeys(usage.__private_attributes__))
    return usage


@cache
def _no_usage() -> types.GenerateContentResponseUsageMetadata:
    return prototype(types.GenerateContentResponseUsageMetadata())


@cache
def _counts() -> dict[str, str]:
    fields = types.GenerateContentResponseUsageMetadata.model_fields
    return {field.alias or name: name for name, field in fields.items() if field.annotation == int | None}


def _is_delta(actions: Any) -> bool:
    """True if that is all that is in it, or nothing is."""
    if type(actions) is not dict:
        return False
    given = cast(dict[str, Any], actions)
    return not given or (given.keys() == {"stateDelta"} and type(given["stateDelta"]) is dict)
