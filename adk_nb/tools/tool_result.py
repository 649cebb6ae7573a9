"""Converts tool results to the JSON that a model gets and a session stores. Never raises: the tool has already run.

Tables and other values of data libraries are plain JSON for the model, and previews for the user.
"""

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
from itertools import islice
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, Secret, SecretBytes, SecretStr
from pydantic_core import to_json

from adk_nb.tools.media import MAX_MEDIA, Media, close_inline_figure, media_in

MAX_CELLS = 10_000
"""Limit of an array or a table; of a larger one the model gets the beginning and the counts."""
_HEAD_ITEMS = 100


def plain_table(value: Any) -> Any:
    """Convert a numpy or pandas value to lists, dicts and Python scalars; returns any other value as it is.

    A table becomes a list of records. Its index is a field of each record, unless it only numbers the rows.
    """
    for cls in type(value).__mro__:
        convert = _CONVERTERS.get((cls.__module__.partition(".")[0], cls.__name__))
        if convert:
            return convert(value)
    return value


def _scalar(value: Any) -> Any:
    value = _to_microseconds(value)
    item = value.item()
    return float(item) if type(item) is type(value) else item  # numpy.longdouble.item() returns a longdouble


def _array(array: Any) -> Any:
    if array.ndim == 0:
        return array[()]
    array = _to_microseconds(array)
    if array.size <= MAX_CELLS:
        return array.tolist()
    return {"shape": list(array.shape), "size": array.size, "first": _first_items(array.flat)}


def _to_microseconds(value: Any) -> Any:
    """Reduce times to microseconds, the precision of Python's datetime: numpy converts finer ones to integers."""
    units = {"M": "datetime64[us]", "m": "timedelta64[us]"}
    return value.astype(units[value.dtype.kind]) if value.dtype.kind in units else value


def _first_items(values: Iterable[Any]) -> list[Any]:
    return list(islice(values, _HEAD_ITEMS))


def _series(series: Any) -> Any:
    if not _is_row_number(series.index):
        return _frame(series.to_frame("value" if series.name is None else series.name))
    return _column(series)


def _column(values: Any) -> Any:
    if len(values) <= MAX_CELLS:
        return list(values)
    return {"size": len(values), "first": _first_items(values)}


def columns_and_rows(frame: Any) -> tuple[list[Any], list[list[Any]]]:
    """Column names and cells of a table. The index comes first, unless it only numbers the rows."""
    index: list[Any] = [] if _is_row_number(frame.index) else list(frame.index.names)
    default_names = ["index"] if len(index) == 1 else [f"level_{level}" for level in range(len(index))]
    names = [default if name is None else name for name, default in zip(index, default_names, strict=True)]
    labels: Iterable[Iterable[Any]] = [()] * len(frame)
    if index:
        labels = frame.index if hasattr(frame.index, "levels") else ([label] for label in frame.index)
    rows = zip(labels, _cells(frame), strict=True)
    return [*names, *frame.columns], [[*row_labels, *cells] for row_labels, cells in rows]


def _frame(frame: Any) -> Any:
    count, width = len(frame), len(frame.columns) + (0 if _is_row_number(frame.index) else frame.index.nlevels)
    head = frame.head(max(1, min(count, MAX_CELLS // max(1, width))))
    columns, rows = columns_and_rows(head)
    unique = len({str(column) for column in columns}) == len(columns)
    records: list[Any] = [dict(zip(columns, row, strict=True)) for row in rows] if unique else rows
    if unique and len(head) == count:
        return records
    note = {} if len(head) == count else {"note": f"the first {len(head)} of {count} rows"}
    return {"row_count": count, **note, **({} if unique else {"columns": columns}), "rows": records}


def _is_row_number(index: Any) -> bool:
    return index.nlevels == 1 and index.name is None and index.dtype.kind == "i"


def _cells(frame: Any) -> Iterable[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None) if len(frame.columns) else [()] * len(frame)


def _null(value: Any) -> None:
    """`pandas.NA` and `NaT` are null."""


_CONVERTERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("numpy", "ndarray"): _array,
    ("numpy", "generic"): _scalar,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _column,
    ("pandas", "ExtensionArray"): _column,
    ("pandas", "NAType"): _null,
    ("pandas", "NaTType"): _null,
}


MAX_PREVIEWS = 4
"""Limit per result."""
MAX_ROWS, MAX_COLUMNS = 20, 12
_MAX_CELL = 80
"""Length in characters."""
Piece = dict[str, Any]
"""JSON: `{"kind": "table", "columns", "rows", "row_count", "column_count"}`, with column names and cells as text; or
`{"kind": "page" | "svg", "text"}`, where the text is unsanitized markup."""
MIME_TYPES = {"page": "text/html", "svg": "image/svg+xml"}


def preview(value: Any) -> Piece | None:
    """The preview of a pandas table, recognized by its class name, or of an object with `_repr_svg_` or `_repr_html_`.
    None: there is no preview.
    """
    kind = cast(type[Any], type(value))  # not __class__, which a proxy can fake
    for cls in kind.__mro__:
        if cls.__module__.partition(".")[0] == "pandas" and cls.__name__ in ("DataFrame", "Series"):
            try:
                return _table(value if cls.__name__ == "DataFrame" else value.to_frame())
            except Exception:  # the model still gets the JSON
                return None
    for name, form in (("_repr_svg_", "svg"), ("_repr_html_", "page")):
        if not callable(render := getattr(kind, name, None)):
            continue
        try:
            output: Any = render(value)
        except Exception:  # the model still gets the JSON
            continue
        if isinstance(output, tuple):  # markup before metadata
            output = next(iter(cast(tuple[Any, ...], output)), None)
        if isinstance(output, str) and (text := str.__str__(output).encode("utf-8", "replace").decode()):
            return {"kind": form, "text": text}
    return None


def _table(frame: Any) -> Piece:
    head = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    columns, rows = columns_and_rows(head)
    return table_piece(columns, rows, row_count=len(frame), column_count=len(frame.columns))


def table_piece(columns: Iterable[Any], rows: Iterable[Iterable[Any]], *, row_count: int, column_count: int) -> Piece:
    """A table to show: the names and cells of its beginning as text, and its real size."""
    return {
        "kind": "table",
        "columns": [_cell(value) for value in columns],
        "rows": [[_cell(value) for value in row] for row in rows],
        "row_count": row_count,
        "column_count": column_count,
    }


def _cell(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    text = ("" if math.isnan(value) else f"{value:.6g}") if isinstance(value, float) else str(value)
    return text.encode("utf-8", "replace").decode()[:_MAX_CELL]


logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024
"""Limit of a result's JSON. A larger result is cut to an excerpt with a note about its size."""
MAX_ITEMS = 10_000
"""Limit for iterators; an endless one is abandoned after so many items."""
MAX_DEPTH = 50
_MAX_CHARS = 4 * MAX_BYTES
"""Limit of the converted text, in characters; the rest of the value is not visited."""
_MAX_FULL_CHARS = 8 * 1024 * 1024
"""The same limit for a full result, which is saved as an artifact."""
_EXCERPT = 2_000
_MAX_INT_BITS = 12_000
"""About 3,600 digits. Python's own JSON parser refuses more than 4,300."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def as_response(answer: Any, tool: str) -> dict[str, Any]:
    """Convert a tool's return value to a function response: a dict as it is, anything else under `result`.

    Returns:
        JSON: str keys, finite numbers (NaN and infinities as text), at most 256 KB. A value without JSON form becomes
        `{"unserializable": its type, "repr": a bounded text}`.
    """
    return convert_result(answer, tool).response


class ToolResult(NamedTuple):
    """A converted tool result."""

    response: dict[str, Any]
    """JSON; see `as_response`."""
    full_json: Callable[[], bytes] | None
    """For a truncated result: computes the full JSON, up to 8 MB. It may take seconds: call it off the event loop.
    None: the result was not truncated."""
    media: list[Media]
    """Media in the result, in order; the JSON has a placeholder with type, size and number for each."""
    previews: list[Piece]
    """Previews for the user, beside the JSON."""


def convert_result(answer: Any, tool: str) -> ToolResult:
    """Convert a tool's return value, whatever its type."""
    conversion = _Conversion(_MAX_CHARS)
    response, text = _response_and_json(answer, conversion)
    if conversion.unconvertible:
        logger.warning(
            "tool %r returned a value without JSON form: %s; the model gets its repr", tool, conversion.unconvertible
        )
    if conversion.remaining > 0 and len(text) <= MAX_BYTES:
        return ToolResult(response, None, conversion.media, conversion.previews)
    size = (
        str(len(text)) if conversion.remaining > 0 else f"more than {max(len(text), _MAX_CHARS - conversion.remaining)}"
    )
    logger.warning("tool %r returned %s bytes; the model gets the first %d", tool, size, _EXCERPT)
    note = f"the result was {size} bytes of JSON, over the limit of {MAX_BYTES}; this is its beginning"
    excerpt = {"note": note, "excerpt": text[:_EXCERPT].decode("utf-8", "ignore")}
    is_complete = conversion.remaining > 0 or conversion.consumed_iterator  # a consumed iterator cannot be read again
    return ToolResult(
        excerpt,
        lambda: text if is_complete else _response_and_json(answer, _Conversion(_MAX_FULL_CHARS))[1],
        conversion.media,
        conversion.previews,
    )


def _response_and_json(answer: Any, conversion: "_Conversion") -> tuple[dict[str, Any], bytes]:
    plain = _to_plain(answer, conversion)
    response = cast(dict[str, Any], plain) if isinstance(plain, dict) else {"result": plain}
    return response, to_json(response)


def collect(items: Iterable[Any]) -> list[Any]:
    """Items of an iterable as a list, cut with a note after 10,000 items or a megabyte of text."""
    collected, remaining = list[Any](), _MAX_CHARS
    for item in items:
        if len(collected) == MAX_ITEMS or remaining <= 0:
            return [*collected, _cut_note(collected)]
        collected.append(item)
        remaining -= _weight(item)
    return collected


async def acollect(items: AsyncGenerator[Any, None]) -> list[Any]:
    """As `collect`, for an async generator, which is closed when cut."""
    collected, remaining = list[Any](), _MAX_CHARS
    async with aclosing(items):
        async for item in items:
            if len(collected) == MAX_ITEMS or remaining <= 0:
                return [*collected, _cut_note(collected)]
            collected.append(item)
            remaining -= _weight(item)
    return collected


def _weight(item: Any) -> int:
    return len(item) if type(item) in (str, bytes) else 1


def _cut_note(collected: list[Any]) -> str:
    return f"... cut after {len(collected)} items"


LAZY_TYPES = (types.GeneratorType, map, filter, zip, enumerate)
"""Types of lazy iterators."""


class _Conversion:
    """State of one conversion."""

    __slots__ = ("budget", "consumed_iterator", "inside", "media", "previews", "remaining", "unconvertible")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.remaining = budget
        """Characters of JSON left; the count is a lower bound of the JSON's length."""
        self.inside: set[int] = set()
        """Ids of the objects being converted, to detect cycles."""
        self.media: list[Media] = []
        self.previews: list[Piece] = []
        self.unconvertible = ""
        """The first value without JSON form, for the log."""
        self.consumed_iterator = False
        """True: an iterator was consumed."""


def _to_plain(value: Any, conversion: _Conversion) -> Any:
    kind = cast(type[Any], type(value))
    if kind is str:
        return _text(value, conversion)
    if kind is int and value.bit_length() <= _MAX_INT_BITS:
        conversion.remaining -= 1 + value.bit_length() // 4  # a decimal digit has less than 4 bits
        return value
    if value is None or kind is bool:
        conversion.remaining -= 4
        return value
    if kind is float:
        conversion.remaining -= 3
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if conversion.remaining <= 0:
        return None
    if id(value) in conversion.inside or len(conversion.inside) >= MAX_DEPTH:
        return _unserializable(
            value, conversion, "nested in itself" if id(value) in conversion.inside else "nested too deeply"
        )
    conversion.inside.add(id(value))
    try:
        return _EXACT.get(kind, _convert)(value, conversion)
    except Exception as error:  # any method of a foreign object may raise, and the tool has already run
        return _unserializable(value, conversion, f"{type(error).__name__} while reading it")
    finally:
        conversion.inside.discard(id(value))


def _text(text: str, conversion: _Conversion) -> str:
    conversion.remaining -= len(text) + 2
    if conversion.remaining <= 0:
        text = text[: conversion.budget]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8 form


def _object(value: Mapping[Any, Any], conversion: _Conversion) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    conversion.remaining -= 2
    for key, item in value.items():
        if conversion.remaining <= 0:
            break
        name = key if type(key) is str and key.isascii() else _key(key, conversion)
        while name in converted:  # 1 and "1" are different keys
            name += f" ({type(key).__name__})"
        conversion.remaining -= len(name) + 2
        converted[name] = _to_plain(item, conversion)
    return converted


def _key(key: Any, conversion: _Conversion) -> str:
    plain = _to_plain(key, conversion)
    return plain if isinstance(plain, str) else str(plain)


def _items(values: Iterable[Any], conversion: _Conversion) -> list[Any]:
    converted: list[Any] = []
    conversion.remaining -= 2
    for item in values:
        if conversion.remaining <= 0:
            break
        converted.append(_to_plain(item, conversion))
    return converted


def _sorted(values: Iterable[Any], conversion: _Conversion) -> list[Any]:
    return sorted(_items(values, conversion), key=lambda item: to_json(item))  # sets have no stable order


def _model(value: BaseModel) -> Any:
    try:
        return value.model_dump(mode="json", warnings=False)
    except ValueError:  # a field without JSON form
        return value.model_dump(mode="python", warnings=False)


# The order matters: an Enum may be a str or an int, and a bool is an int.
_CONVERSIONS: list[tuple[Any, Callable[[Any], Any]]] = [
    (Enum, lambda value: value.value),
    (BaseModel, _model),
    ((Secret, SecretStr, SecretBytes), str),  # str() masks the value
    (str, str.__str__),
    (bool, bool),
    (int, int),
    (float, float),
    ((bytes, bytearray, memoryview), lambda value: base64.b64encode(bytes(value)).decode()),
    ((dt.datetime, dt.date, dt.time), lambda value: value.isoformat()),
    (dt.timedelta, lambda value: value.total_seconds()),
    ((uuid.UUID, pathlib.PurePath, decimal.Decimal, fractions.Fraction), str),
    (LAZY_TYPES, collect),
]


class Told:
    """A result of which the user sees something beside what the model is told."""

    def __init__(self, told: Any, shown: Piece | None) -> None:
        self.told = told
        self.shown = shown
        """None: nothing more."""


def _convert(value: Any, conversion: _Conversion) -> Any:
    if type(value) is Told:
        if value.shown:
            conversion.previews.append(value.shown)
        return _to_plain(value.told, conversion)
    close_inline_figure(value)  # before rendering it: the notebook may render and close open figures at any moment
    if media := media_in(value):
        # The piece goes beside the JSON, which says what and how much it is.
        size = {"uri": _text(media.uri, conversion)} if media.uri is not None else {"bytes": len(media.data)}
        media.placeholder = {"media": _text(media.mime_type, conversion), **size}
        if len(conversion.media) < MAX_MEDIA:
            conversion.media.append(media)
            media.placeholder["part"] = len(conversion.media)
        else:
            media.placeholder["note"] = f"left out: a result can have at most {MAX_MEDIA} pieces of media"
        conversion.remaining -= 40
        return media.placeholder
    if piece := preview(value) if len(conversion.previews) < MAX_PREVIEWS else None:
        conversion.previews.append(piece)
    if (table := plain_table(value)) is not value:
        return _to_plain(table, conversion)
    for kinds, convert in _CONVERSIONS:
        if isinstance(value, kinds):
            conversion.consumed_iterator = conversion.consumed_iterator or kinds is LAZY_TYPES
            return _to_plain(convert(value), conversion)
    if isinstance(value, Mapping):
        return _object(cast(Mapping[Any, Any], value), conversion)
    if isinstance(value, list | tuple | AbstractSet | ValuesView | range | deque):
        return _items(cast(Iterable[Any], value), conversion)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object({field.name: getattr(value, field.name) for field in dataclasses.fields(value)}, conversion)
    if piece:  # only the user sees it
        text = _bounded_repr(value, _bounded_text(type(value).__qualname__, 100))
        conversion.remaining -= 80 + len(text)
        note = "this is shown to the user; you cannot see it"
        return {"media": MIME_TYPES[piece["kind"]], "note": note, "repr": text}
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()  # it will never be awaited; avoid the warning
    return _unserializable(value, conversion, "no JSON form")


_EXACT: dict[type, Callable[[Any, _Conversion], Any]] = {
    dict: _object,
    int: lambda value, conversion: _unserializable(
        value, conversion, "a very long number", f"an integer of {value.bit_length()} bits"
    ),
    list: _items,
    tuple: _items,
    set: _sorted,
    frozenset: _sorted,
}
"""Converters by exact type; an `int` gets here only if it is too long."""


def _unserializable(value: Any, conversion: _Conversion, reason: str, text: str | None = None) -> dict[str, Any]:
    name = _bounded_text(type(value).__qualname__, 100)
    conversion.unconvertible = conversion.unconvertible or f"{name} ({reason})"
    if reason.startswith("nested"):  # its repr may be endless too
        text = f"<{name}, {reason}>"
    replacement = {"unserializable": name, "repr": text or _bounded_repr(value, name)}
    conversion.remaining -= len(name) + len(replacement["repr"])
    return replacement


def _bounded_repr(value: Any, name: str) -> str:
    try:
        return _bounded_text(_ADDRESS.sub("", repr(value)[:2_000]), 500)
    except Exception as error:  # any __repr__ may raise
        return f"<{name}, whose repr raises {type(error).__name__}>"


def _bounded_text(text: str, limit: int) -> str:
    return str.__str__(text)[:limit].encode("utf-8", "replace").decode()
