"""What a tool returned, as the JSON a model gets and a session keeps: one form, and never a reason to end a run."""

import base64
import dataclasses
import datetime as dt
import decimal
import logging
import math
import pathlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import islice
from types import GeneratorType
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import to_json

logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024
"""Of JSON. A larger result is cut to an excerpt that says how much there was."""
MAX_ITEMS = 10_000
"""Of a generator or an array; the rest is counted, not kept."""
MAX_DEPTH = 50
_EXCERPT = 2_000
_MAX_INT_DIGITS = 4_000


def as_response(answer: Any, tool: str) -> dict[str, Any]:
    """A tool's answer as a function response: an object as it is, anything else under `result`.

    Returns:
        JSON: str keys, finite numbers (NaN and infinities as text), at most 256 KB. What cannot be told in JSON is
        `{"unserializable": its type, "repr": a bounded text}`.
    """
    plain = _plain(answer, _Walk(tool))
    response = cast(dict[str, Any], plain) if isinstance(plain, dict) else {"result": plain}
    return _cut(response, tool)


class _Walk:
    """Where the conversion stands: how deep, and inside what."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.inside: set[int] = set()


def _plain(value: Any, walk: _Walk) -> Any:
    if value is None or type(value) is bool:
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value).encode("utf-8", "replace").decode()
    if type(value) is int:
        return value if value.bit_length() < _MAX_INT_DIGITS * 3 else _unserializable(value, walk, "a very long number")
    if type(value) is float:
        return value if math.isfinite(value) else _odd_float(value)
    if id(value) in walk.inside or len(walk.inside) >= MAX_DEPTH:
        return _unserializable(value, walk, "nested in itself" if id(value) in walk.inside else "nested too deeply")
    walk.inside.add(id(value))
    try:
        return _converted(value, walk)
    except Exception as error:  # a hostile object may fail in any of its methods; its tool has already run
        return _unserializable(value, walk, f"{type(error).__name__} while reading it")
    finally:
        walk.inside.discard(id(value))


def _odd_float(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _converted(value: Any, walk: _Walk) -> Any:
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            return _plain(convert(value), walk)
    if isinstance(value, Mapping):
        return {_key(key): _plain(one, walk) for key, one in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(one, walk) for one in cast(list[Any], value)]
    if isinstance(value, AbstractSet | GeneratorType) or type(value).__name__ in ("deque", "dict_keys", "dict_values"):
        return _listed(cast(Iterable[Any], value), walk)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), walk) for field in dataclasses.fields(value)}
    return _foreign(value, walk)


_CONVERSIONS: list[tuple[Any, Callable[[Any], Any]]] = [
    (Enum, lambda value: value.value),
    (BaseModel, lambda value: value.model_dump(mode="python")),
    (bool, bool),
    (int, int),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(bytes(value)).decode()),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    ((uuid.UUID, pathlib.PurePath, decimal.Decimal), str),
]


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(_plain(key, _Walk("")))


def _listed(values: Iterable[Any], walk: _Walk) -> list[Any]:
    iterator = iter(values)
    found = [_plain(one, walk) for one in islice(iterator, MAX_ITEMS)]
    if next(iterator, None) is not None:
        found.append(f"... cut after {MAX_ITEMS} items")
    if isinstance(values, AbstractSet):
        found.sort(key=lambda one: to_json(one))
    return found


def _foreign(value: Any, walk: _Walk) -> Any:
    """Numpy and pandas values, told by their module so that neither need be imported."""
    home = type(value).__module__.partition(".")[0]
    if home == "pandas" and type(value).__name__ == "DataFrame":
        return _frame(value, walk)
    if home == "pandas" and type(value).__name__ in ("Series", "Index"):
        return _array(value, walk)
    if home == "pandas" and type(value).__name__ in ("NAType", "NaTType"):
        return None
    if home == "numpy" and type(value).__name__ == "ndarray" and value.ndim:
        return _array(value, walk)
    if home in ("numpy", "pandas") and hasattr(value, "item"):
        item = value.item()
        return _unserializable(value, walk, "no JSON form") if item is value else _plain(item, walk)
    return _unserializable(value, walk, "no JSON form")


def _frame(frame: Any, walk: _Walk) -> Any:
    rows, columns = len(frame), [_key(one) for one in frame.columns]
    kept = min(rows, MAX_ITEMS // max(1, len(columns)))
    values = [[_plain(one, walk) for one in row] for row in frame.head(kept).itertuples(index=False, name=None)]
    if len(set(columns)) < len(columns):
        return {"columns": columns, "rows": values, "row_count": rows}
    records = [dict(zip(columns, row, strict=True)) for row in values]
    return records if kept == rows else {"rows": records, "row_count": rows, "note": f"the first {kept} of {rows} rows"}


def _array(array: Any, walk: _Walk) -> Any:
    size = int(getattr(array, "size", len(array)))
    if size <= MAX_ITEMS:
        return _plain(array.tolist(), walk)
    flat: Iterable[Any] = array.ravel() if hasattr(array, "ravel") else array
    head = _plain(list(islice(flat, 100)), walk)
    return {"first": head, "size": size, "shape": list(getattr(array, "shape", [size]))}


def _unserializable(value: Any, walk: _Walk, why: str) -> dict[str, Any]:
    name = type(value).__qualname__
    if walk.tool:
        logger.warning(
            "tool %r returned a %s that JSON cannot hold (%s); the model gets a text of it", walk.tool, name, why
        )
    return {"unserializable": name, "repr": _bounded_repr(value)}


def _bounded_repr(value: Any) -> str:
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception as error:  # any object may fail here
        return f"<{type(value).__qualname__}, whose repr raises {type(error).__name__}>"
    return text.encode("utf-8", "replace").decode()[:500]


def _cut(response: dict[str, Any], tool: str) -> dict[str, Any]:
    text = to_json(response)
    if len(text) <= MAX_BYTES:
        return response
    logger.warning("tool %r returned %d bytes; the model gets the first %d", tool, len(text), _EXCERPT)
    excerpt = text[:_EXCERPT].decode("utf-8", "ignore")
    note = f"the result was {len(text)} bytes of JSON, over the limit of {MAX_BYTES}; this is its beginning"
    return {"excerpt": excerpt, "bytes": len(text), "note": note}
