"""Numpy and pandas values in JSON's words, told by their names so that neither package need be imported."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

MAX_CELLS = 10_000
"""Of an array or a table; of a larger one the model gets the beginning and the counts."""
_HEAD = 100


def told_in_json(value: Any) -> Any:
    """A numpy or pandas value as lists, dicts and Python's own scalars; any other value as it is.

    A table becomes a list of records. Its index is a column of them, unless it only counts the rows.
    """
    for one in type(value).__mro__:
        tell = _TELLERS.get((one.__module__.partition(".")[0], one.__name__))
        if tell:
            return tell(value)
    return value


def _scalar(value: Any) -> Any:
    value = _in_microseconds(value)
    item = value.item()
    return float(item) if type(item) is type(value) else item  # a long double is its own item


def _array(array: Any) -> Any:
    if array.ndim == 0:
        return array[()]
    array = _in_microseconds(array)
    if array.size <= MAX_CELLS:
        return array.tolist()
    return {"shape": list(array.shape), "size": array.size, "first": _head(array.flat)}


def _in_microseconds(value: Any) -> Any:
    """Python's own times have microseconds; finer ones would be told as bare numbers."""
    units = {"M": "datetime64[us]", "m": "timedelta64[us]"}
    return value.astype(units[value.dtype.kind]) if value.dtype.kind in units else value


def _head(values: Iterable[Any]) -> list[Any]:
    return list(islice(values, _HEAD))


def _series(series: Any) -> Any:
    if not _only_counts(series.index):
        return _frame(series.to_frame("value" if series.name is None else series.name))
    return _column(series)


def _column(values: Any) -> Any:
    if len(values) <= MAX_CELLS:
        return list(values)
    return {"size": len(values), "first": _head(values)}


def columns_and_rows(frame: Any) -> tuple[list[Any], list[list[Any]]]:
    """The names of a table's columns, and its cells. The index comes first, unless it only counts the rows."""
    index: list[Any] = [] if _only_counts(frame.index) else list(frame.index.names)
    columns = [*(_index_name(name, at, len(index)) for at, name in enumerate(index)), *frame.columns]
    rows = zip(_labels(frame, bool(index)), _cells(frame), strict=True)
    return columns, [[*labels, *cells] for labels, cells in rows]


def _frame(frame: Any) -> Any:
    count, width = len(frame), len(frame.columns) + (0 if _only_counts(frame.index) else frame.index.nlevels)
    head = frame.head(max(1, min(count, MAX_CELLS // max(1, width))))
    columns, rows = columns_and_rows(head)
    unique = len({str(one) for one in columns}) == len(columns)
    told: list[Any] = [dict(zip(columns, row, strict=True)) for row in rows] if unique else rows
    if unique and len(head) == count:
        return told
    note = {} if len(head) == count else {"note": f"the first {len(head)} of {count} rows"}
    return {"row_count": count, **note, **({} if unique else {"columns": columns}), "rows": told}


def _only_counts(index: Any) -> bool:
    return index.nlevels == 1 and index.name is None and index.dtype.kind == "i"


def _index_name(name: Any, at: int, levels: int) -> Any:
    return name if name is not None else "index" if levels == 1 else f"level_{at}"


def _labels(frame: Any, told: bool) -> Iterable[Iterable[Any]]:
    if not told:
        return [()] * len(frame)
    return frame.index if hasattr(frame.index, "levels") else ([label] for label in frame.index)


def _cells(frame: Any) -> Iterable[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None) if len(frame.columns) else [()] * len(frame)


def _nothing(value: Any) -> None:
    """`pandas.NA` and `NaT` are null."""


_TELLERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("numpy", "ndarray"): _array,
    ("numpy", "generic"): _scalar,
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _column,
    ("pandas", "ExtensionArray"): _column,
    ("pandas", "NAType"): _nothing,
    ("pandas", "NaTType"): _nothing,
}
