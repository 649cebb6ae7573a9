"""Frames of pandas, polars and Arrow: whether one has changed, its Arrow copy in a file, and frames made of results."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError
from adk_nb.lazy import require

LIBRARIES = ("pandas", "polars", "pyarrow")
SUFFIXES = ("csv", "tsv", "parquet", "jsonl", "ndjson")
"""Of files that can be read as tables."""
_PARTS = ("_ndarray", "_data", "_mask", "_codes", "_sparse_values")
"""Attributes of pandas' arrays that hold numpy arrays."""


def library_of(value: Any) -> str:
    """`pandas`, `polars` or `pyarrow` for a frame of it; empty for anything else. Imports no library."""
    names = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in sys.modules and names.get(library) == kind.__name__:
            return library
    return ""


# ---- has it changed?

_SMALL = 50_000_000
"""Bytes."""


class Version:
    """A frame as it was, which notices that the frame has been changed in place.

    A shallow copy makes pandas (from 3 on) and polars write elsewhere when the frame is edited, so the same addresses
    mean the same values. Where addresses differ without a reason, or say nothing, the values are compared.
    """

    def __init__(self, frame: Any) -> None:
        """Remember `frame` as it is now."""
        self.library = library_of(frame)
        self._frame: Any = frame
        self._copies_on_write = True
        if self.library == "pandas":
            self._copies_on_write = int(require("pandas", package="pandas").__version__.partition(".")[0]) >= 3
            self._frame = frame.copy(deep=not self._copies_on_write)
        elif self.library == "polars":
            self._frame = frame.clone()

    def is_of(self, frame: Any) -> bool:
        """True if `frame` has the same columns, types and values."""
        if library_of(frame) != self.library:
            return False
        if self.library == "pandas":
            return self._is_same_pandas(frame)
        if self.library == "polars":
            return self._is_same_polars(frame)
        return frame is self._frame  # Arrow's tables cannot be changed

    def _is_same_pandas(self, frame: Any) -> bool:
        old = self._frame
        if frame.shape != old.shape:
            return False
        for now, before in ((frame.columns, old.columns), (frame.index, old.index)):
            if list(now.names) != list(before.names) or not (now.is_(before) or now.equals(before)):
                return False
        if self._copies_on_write and _addresses_of_blocks(frame) == _addresses_of_blocks(old):
            return True
        return bool(frame.dtypes.equals(old.dtypes)) and bool(frame.equals(old))

    def _is_same_polars(self, frame: Any) -> bool:
        old = self._frame
        if frame.schema != old.schema or frame.shape != old.shape:
            return False
        if frame.estimated_size() < _SMALL:  # to compare its values is faster than to look where they are
            return bool(frame.equals(old))
        pairs = zip(frame.get_columns(), old.get_columns(), strict=True)
        return all(_address_of_series(now) == _address_of_series(was) or now.equals(was) for now, was in pairs)


def _addresses_of_blocks(frame: Any) -> list[Any]:
    """Where the values of a pandas frame lie; an object that equals nothing where that is not known."""
    return [(list(block.mgr_locs), _address_of_array(block.values)) for block in frame._mgr.blocks]


def _address_of_array(values: Any) -> Any:
    interface: Any = getattr(values, "__array_interface__", None)
    if interface:
        return interface["data"][0], values.shape, values.strides, values.dtype.str
    held = (getattr(values, name, None) for name in _PARTS)
    found = [_address_of_array(part) for part in held if hasattr(part, "__array_interface__")]
    if hasattr(chunked := getattr(values, "_pa_array", None), "chunks"):
        found.append(_address_of_arrow(chunked))
    return (str(values.dtype), *found) if found else object()


def _address_of_series(series: Any) -> Any:
    polars = require("polars", package="polars")
    try:
        arrow = series.to_physical().to_arrow(compat_level=polars.CompatLevel.newest())
    except Exception:  # a type that Arrow does not have in this form
        return object()
    return _address_of_arrow(arrow)


def _address_of_arrow(array: Any) -> Any:
    if hasattr(array, "chunks"):
        return [_address_of_arrow(chunk) for chunk in array.chunks]
    return len(array), array.offset, [buffer and buffer.address for buffer in array.buffers()]


# ---- frames as Arrow


def write_arrow(frame: Any, path: Path, label: str) -> None:
    """Write a frame as an Arrow file. What Arrow has no type for becomes text.

    Raises:
        InputError: It has no columns, or Arrow cannot take it.
        MissingExtraError: pyarrow is not installed.
    """
    arrow = require("pyarrow", package="adk-nb[data]")
    table = _arrow_table(frame, label)
    if not table.num_columns:
        raise InputError(f"{label} has no columns; give it some, or name another frame")
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _arrow_table(frame: Any, label: str) -> Any:
    arrow = require("pyarrow", package="adk-nb[data]")
    library = library_of(frame)
    if library == "pyarrow":
        return frame.rename_columns(unique_names(frame.column_names))
    if library == "polars":
        columns = [_arrow_series(series) for series in frame]
        return arrow.Table.from_arrays(columns, names=unique_names(frame.columns))
    index = frame.index
    if not (index.nlevels == 1 and index.name is None and type(index).__name__ == "RangeIndex"):
        frame = frame.reset_index(allow_duplicates=True)
    names = unique_names(frame.columns)
    if not names:
        raise InputError(f"{label} has no columns; give it some, or name another frame")
    renamed = frame.set_axis(names, axis=1)
    try:
        table = arrow.Table.from_pandas(renamed, preserve_index=False)
        if not any(_is_unknown(field.type) for field in table.schema):
            return table.replace_schema_metadata(None)
    except (arrow.ArrowException, TypeError, ValueError, NotImplementedError):
        pass  # a column of it: found below
    arrays = [_arrow_column(renamed.iloc[:, number]) for number in range(len(names))]
    return arrow.Table.from_arrays(arrays, names=names)


def _arrow_series(series: Any) -> Any:
    """A column of polars."""
    arrow = require("pyarrow", package="adk-nb[data]")
    try:
        array = series.to_arrow()
    except Exception:  # of polars alone: objects, numbers of 128 bits
        return _texts(series)
    return _texts(series) if _is_unknown(array.type) else arrow.chunked_array([array])


def _arrow_column(series: Any) -> Any:
    """A column of pandas."""
    arrow = require("pyarrow", package="adk-nb[data]")
    series = series.sparse.to_dense() if hasattr(series.array, "sp_values") else series
    try:
        array = arrow.Array.from_pandas(series)
        if not _is_unknown(array.type):
            return array
    except (arrow.ArrowException, TypeError, ValueError, NotImplementedError):
        pass
    return _texts(series)


def _is_unknown(kind: Any) -> bool:
    """True for types of pandas alone (periods, intervals), and for numbers that are too long for DuckDB."""
    return hasattr(kind, "extension_name") or str(kind).startswith(("decimal256", "halffloat"))


def _texts(series: Any) -> Any:
    arrow = require("pyarrow", package="adk-nb[data]")
    missing = (value is None or value != value or type(value).__name__ == "NAType" for value in _safely(series))
    texts = [None if no else str(value)[:10_000] for no, value in zip(missing, series, strict=True)]
    return arrow.array(texts, arrow.string())


def _safely(values: Any) -> Iterator[Any]:
    """The values; a list or an array in place of those whose comparison has no truth."""
    for value in values:
        yield "" if hasattr(value, "__len__") else value


def unique_names(names: Iterable[Any]) -> list[str]:
    """The names of columns as texts, each once: a second `price` is `price_2`. SQL ignores case."""
    found: dict[str, str] = {}
    for name in map(str, names):
        label, number = name or "column", 1
        while label.casefold() in found:
            number += 1
            label = f"{name or 'column'}_{number}"
        found[label.casefold()] = label
    return list(found.values())


# ---- results as frames


def frame_library(preferred: str = "") -> str:
    """The library that results are given in: that of the data, else the first that is installed."""
    if preferred in LIBRARIES:
        return preferred
    return next((name for name in LIBRARIES if find_spec(name)), "")


def frame_of_arrow(table: Any, library: str) -> Any:
    """An Arrow table as a frame of `library`."""
    if library == "pandas":
        return table.to_pandas()
    return require("polars", package="polars").from_arrow(table) if library == "polars" else table


def frame_of_columns(names: Sequence[str], rows: Sequence[Sequence[Any]], library: str) -> Any:
    """Rows of Python's values as a frame of `library`; a list of dicts if it is empty."""
    columns: Mapping[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    if library == "pandas":
        return require("pandas", package="pandas").DataFrame(columns)
    if library == "polars":
        return require("polars", package="polars").DataFrame(columns, strict=False)
    if library == "pyarrow":
        return require("pyarrow", package="pyarrow").table(columns)
    return [dict(zip(names, row, strict=True)) for row in rows]
