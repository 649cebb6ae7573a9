"""Tables of other libraries, through narwhals: pandas, polars, pyarrow and modin."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from adk_nb.lazy import require

_LIBRARIES = ("pandas", "polars", "pyarrow", "modin")


def is_frame(value: Any) -> bool:
    """True for a frame; imports no library."""
    library = type(value).__module__.partition(".")[0]
    return library in _LIBRARIES and library in sys.modules and hasattr(value, "columns")


def is_missing(value: Any) -> bool:
    """True for an empty cell: None, NaN, NaT, pandas' NA, the text `<NA>` that it becomes, and blanks."""
    if value is None or (isinstance(value, str) and value.strip() in ("", "<NA>")):
        return True
    try:
        return bool(value != value)  # NaN alone is not equal to itself
    except TypeError:  # pandas' NA has no truth
        return type(value).__name__ == "NAType"
    except ValueError:  # an array
        return False


def rows_of_frame(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame as dicts, one at a time.

    Raises:
        MissingExtraError: narwhals is not installed.
    """
    narwhals = require("narwhals", package="narwhals")
    yield from narwhals.from_native(frame, eager_only=True).iter_rows(named=True)


def add_columns(frame: Any, columns: Mapping[str, list[Any]]) -> Any:
    """A frame of the same library with more columns; a column that is there is replaced.

    Raises:
        MissingExtraError: narwhals is not installed.
    """
    narwhals = require("narwhals", package="narwhals")
    native = narwhals.from_native(frame, eager_only=True)
    series = [
        narwhals.new_series(name=name, values=values, backend=native.implementation) for name, values in columns.items()
    ]
    # pandas joins columns by index, and the frame may be sorted or filtered.
    if native.implementation.is_pandas_like():
        index = narwhals.to_native(native).index
        series = [narwhals.maybe_set_index(column, index=index) for column in series]
    return narwhals.to_native(native.with_columns(*series))


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A frame of rows: of pandas, or of polars where pandas is not installed.

    Raises:
        MissingExtraError: Neither is installed.
    """
    records = [dict(row) for row in rows]
    if find_spec("pandas") is None and find_spec("polars") is not None:
        return require("polars", package="polars").DataFrame(records, infer_schema_length=None)
    return require("pandas", package="pandas").DataFrame(records)
