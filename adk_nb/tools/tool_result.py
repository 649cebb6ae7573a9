"""What a tool returned, as the JSON a model gets and a session keeps: one form, and never a reason to end a run."""

import base64
import dataclasses
import datetime as dt
import decimal
import fractions
import inspect
import logging
import math
import pathlib
import re
import types
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from enum import Enum
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_core import to_json

from adk_nb.tools.media import MAX_MEDIA, Media, media_in, put_away
from adk_nb.tools.showing import MAX_SHOWN, MIME_TYPES, Piece, piece_of
from adk_nb.tools.tables import told_in_json

logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024
"""Of JSON. A larger result is cut to an excerpt that says how much there was."""
MAX_ITEMS = 10_000
"""Of what makes its items as it goes; an endless one is left after so many."""
MAX_DEPTH = 50
_ENOUGH = 4 * MAX_BYTES
"""Characters; beyond it the rest of a result is not even looked at."""
_KEPT = 8 * 1024 * 1024
"""Characters that are looked at where the whole of a result is kept."""
_EXCERPT = 2_000
_MAX_INT_BITS = 12_000  # some 3,600 digits; Python's own readers of JSON refuse 4,300
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def as_response(answer: Any, tool: str) -> dict[str, Any]:
    """A tool's answer as a function response: an object as it is, anything else under `result`.

    Returns:
        JSON: str keys, finite numbers (NaN and infinities as text), at most 256 KB. What cannot be told in JSON is
        `{"unserializable": its type, "repr": a bounded text}`.
    """
    return told(answer, tool).response


class Told(NamedTuple):
    """What a tool returned, in the words of a model."""

    response: dict[str, Any]
    """JSON, as `as_response` tells of it."""
    whole: Callable[[], bytes] | None
    """For an answer that was cut, what makes the JSON of the whole, up to 8 MB. To make it may take seconds: not on an
    event loop. None: the answer was not cut."""
    media: list[Media]
    """The pieces of media in it, in their order; in the JSON stands for each its kind, its size and its number here."""
    shown: list[Piece]
    """What a person is shown of it beside the JSON."""


def told(answer: Any, tool: str) -> Told:
    """A tool's answer, whatever it is."""
    walk = _Walk(_ENOUGH)
    response, text = _as_json(answer, walk)
    if walk.odd:
        logger.warning("tool %r returned what JSON cannot hold: %s; the model gets a text of it", tool, walk.odd)
    if walk.left > 0 and len(text) <= MAX_BYTES:
        return Told(response, None, walk.media, walk.shown)
    size = str(len(text)) if walk.left > 0 else f"more than {max(len(text), _ENOUGH - walk.left)}"
    logger.warning("tool %r returned %s bytes; the model gets the first %d", tool, size, _EXCERPT)
    note = f"the result was {size} bytes of JSON, over the limit of {MAX_BYTES}; this is its beginning"
    excerpt = {"note": note, "excerpt": text[:_EXCERPT].decode("utf-8", "ignore")}
    seen_whole = walk.left > 0 or walk.used_up  # what was made as it was read cannot be read again
    return Told(excerpt, lambda: text if seen_whole else _as_json(answer, _Walk(_KEPT))[1], walk.media, walk.shown)


def _as_json(answer: Any, walk: "_Walk") -> tuple[dict[str, Any], bytes]:
    plain = _plain(answer, walk)
    response = cast(dict[str, Any], plain) if isinstance(plain, dict) else {"result": plain}
    return response, to_json(response)


def drained(items: Iterable[Any]) -> list[Any]:
    """What a generator yields, as a list that is cut, and says so, after 10,000 items or a megabyte of text."""
    kept, room = list[Any](), _ENOUGH
    for item in items:
        if len(kept) == MAX_ITEMS or room <= 0:
            return [*kept, _rest_cut(kept)]
        kept.append(item)
        room -= _weight(item)
    return kept


async def adrained(items: AsyncGenerator[Any, None]) -> list[Any]:
    """`drained` for an async generator; it is closed when it is cut."""
    kept, room = list[Any](), _ENOUGH
    async with aclosing(items):
        async for item in items:
            if len(kept) == MAX_ITEMS or room <= 0:
                return [*kept, _rest_cut(kept)]
            kept.append(item)
            room -= _weight(item)
    return kept


def _weight(item: Any) -> int:
    return len(item) if type(item) in (str, bytes) else 1


def _rest_cut(kept: list[Any]) -> str:
    return f"... cut after {len(kept)} items"


LAZY = (types.GeneratorType, map, filter, zip, enumerate)
"""What makes its items as it goes."""


class _Walk:
    """Where the conversion stands."""

    __slots__ = ("inside", "left", "media", "odd", "room", "shown", "used_up")

    def __init__(self, room: int) -> None:
        self.room = room
        self.left = room
        """Characters of JSON that may still be made; never more is taken off than is made."""
        self.inside: set[int] = set()
        """Ids of the objects that are being converted."""
        self.media: list[Media] = []
        self.shown: list[Piece] = []
        self.odd = ""
        """The first value that has no JSON form, in words."""
        self.used_up = False
        """True: a generator was read, and has nothing more to give."""


def _plain(value: Any, walk: _Walk) -> Any:
    kind = cast(type[Any], type(value))
    if kind is str:
        return _text(value, walk)
    if kind is int and value.bit_length() <= _MAX_INT_BITS:
        walk.left -= 1 + value.bit_length() // 4
        return value
    if value is None or kind is bool:
        walk.left -= 4
        return value
    if kind is float:
        walk.left -= 3
        return value if math.isfinite(value) else _odd_float(value)
    if walk.left <= 0:
        return None
    if id(value) in walk.inside or len(walk.inside) >= MAX_DEPTH:
        return _unserializable(value, walk, "nested in itself" if id(value) in walk.inside else "nested too deeply")
    return _guarded(value, walk)


def _guarded(value: Any, walk: _Walk) -> Any:
    walk.inside.add(id(value))
    try:
        kind = cast(type[Any], type(value))
        return _EXACT.get(kind, _converted)(value, walk)
    except Exception as error:  # a hostile object may fail in any of its methods; its tool has already run
        return _unserializable(value, walk, f"{type(error).__name__} while reading it")
    finally:
        walk.inside.discard(id(value))


def _text(text: str, walk: _Walk) -> str:
    walk.left -= len(text) + 2
    if walk.left <= 0:
        text = text[: walk.room]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8


def _odd_float(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _object(value: Mapping[Any, Any], walk: _Walk) -> dict[str, Any]:
    made: dict[str, Any] = {}
    walk.left -= 2
    for key, one in value.items():
        if walk.left <= 0:
            break
        name = key if type(key) is str and key.isascii() else _key(key, walk)
        while name in made:  # 1 and "1" are two keys
            name += f" ({type(key).__name__})"
        walk.left -= len(name) + 2
        made[name] = _plain(one, walk)
    return made


def _key(key: Any, walk: _Walk) -> str:
    plain = _plain(key, walk)
    return plain if isinstance(plain, str) else str(plain)


def _items(values: Iterable[Any], walk: _Walk) -> list[Any]:
    made: list[Any] = []
    walk.left -= 2
    for one in values:
        if walk.left <= 0:
            break
        made.append(_plain(one, walk))
    return made


def _sorted(values: Iterable[Any], walk: _Walk) -> list[Any]:
    return sorted(_items(values, walk), key=lambda one: to_json(one))


def _model(value: BaseModel) -> Any:
    try:
        return value.model_dump(mode="json", warnings=False)
    except ValueError:  # a field that has no JSON form by itself
        return value.model_dump(mode="python", warnings=False)


_CONVERSIONS: list[tuple[Any, Callable[[Any], Any]]] = [
    (Enum, lambda value: value.value),
    (BaseModel, _model),
    ((Secret, SecretStr, SecretBytes), str),
    (str, str.__str__),
    (bool, bool),
    (int, int),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(bytes(value)).decode()),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    ((uuid.UUID, pathlib.PurePath, decimal.Decimal, fractions.Fraction), str),
    (LAZY, drained),
]


def _converted(value: Any, walk: _Walk) -> Any:
    put_away(value)  # before it is drawn: the notebook may draw and close what is open at any moment
    if media := media_in(value):
        return _shown(media, walk)
    piece = _to_be_seen(value, walk)
    if (table := told_in_json(value)) is not value:
        return _plain(table, walk)
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            walk.used_up = walk.used_up or kinds is LAZY
            return _plain(convert(value), walk)
    if isinstance(value, Mapping):
        return _object(cast(Mapping[Any, Any], value), walk)
    if isinstance(value, list | tuple | AbstractSet | ValuesView | range | deque):
        return _items(cast(Iterable[Any], value), walk)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, walk)
    return _odd(value, walk, piece)


def _to_be_seen(value: Any, walk: _Walk) -> Piece | None:
    piece = piece_of(value) if len(walk.shown) < MAX_SHOWN else None
    if piece:
        walk.shown.append(piece)
    return piece


def _only_seen(value: Any, piece: Piece, walk: _Walk) -> dict[str, Any]:
    """What stands in the JSON for what is only to be looked at."""
    told = {
        "media": MIME_TYPES[piece["kind"]],
        "note": "this is shown to the user; you cannot see it",
        "repr": _bounded_repr(value, _clean(type(value).__qualname__, 100)),
    }
    walk.left -= 80 + len(told["repr"])
    return told


def _shown(media: Media, walk: _Walk) -> dict[str, Any]:
    """What stands for a piece of media in the JSON; the piece itself goes beside it."""
    size = {"uri": _text(media.uri, walk)} if media.uri is not None else {"bytes": len(media.data)}
    media.told = {"media": _text(media.mime_type, walk), **size}
    if len(walk.media) < MAX_MEDIA:
        walk.media.append(media)
        media.told["part"] = len(walk.media)
    else:
        media.told["note"] = f"left out: a result can have at most {MAX_MEDIA} pieces of media"
    walk.left -= 40
    return media.told


def _odd(value: Any, walk: _Walk, piece: Piece | None) -> dict[str, Any]:
    if piece:
        return _only_seen(value, piece, walk)
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()  # nobody will await it now
    return _unserializable(value, walk, "no JSON form")


def _long_number(value: int, walk: _Walk) -> dict[str, Any]:
    return _unserializable(value, walk, "a very long number", f"an integer of {value.bit_length()} bits")


_EXACT: dict[type, Callable[[Any, _Walk], Any]] = {
    dict: _object,
    int: _long_number,
    list: _items,
    tuple: _items,
    set: _sorted,
    frozenset: _sorted,
}
"""By exact type; an `int` that comes here is too long."""


def _unserializable(value: Any, walk: _Walk, why: str, text: str | None = None) -> dict[str, Any]:
    name = _clean(type(value).__qualname__, 100)
    walk.odd = walk.odd or f"{name} ({why})"
    if why.startswith("nested"):  # its repr may be as endless as itself
        text = f"<{name}, {why}>"
    told = {"unserializable": name, "repr": text or _bounded_repr(value, name)}
    walk.left -= len(name) + len(told["repr"])
    return told


def _bounded_repr(value: Any, name: str) -> str:
    try:
        return _clean(_ADDRESS.sub("", repr(value)[:2_000]), 500)
    except Exception as error:  # any object may fail here
        return f"<{name}, whose repr raises {type(error).__name__}>"


def _clean(text: str, limit: int) -> str:
    return str.__str__(text)[:limit].encode("utf-8", "replace").decode()
