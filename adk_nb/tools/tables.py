"""Tables and other values of data libraries: as plain JSON for the model, and as previews for the user."""

import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

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
    return {
        "kind": "table",
        "columns": [_cell(value) for value in columns],
        "rows": [[_cell(value) for value in row] for row in rows],
        "row_count": len(frame),
        "column_count": len(frame.columns),
    }


def _cell(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    text = ("" if math.isnan(value) else f"{value:.6g}") if isinstance(value, float) else str(value)
    return text.encode("utf-8", "replace").decode()[:_MAX_CELL]
