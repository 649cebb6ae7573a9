"""A closer look at one value: a frame, an array, a picture, a text, a container."""

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import InputError, MissingExtraError, did_you_mean
from adk_nb.lazy import require
from adk_nb.notebook.extensions.notebook_tools.values import (
    MOST_ROWS,
    Json,
    cut,
    fitted,
    key_text,
    length_of,
    library_of,
    plain,
    size_text,
    type_name,
)
from adk_nb.notebook.variables import user_variables
from adk_nb.redaction import REDACTED, is_secret_name
from adk_nb.tools.media import media_in
from adk_nb.tools.tool_result import MAX_COLUMNS, Piece, table_piece

_HEAD = 5
"""Rows of a frame."""
_COLUMNS = 30
"""Columns of a frame that are described, and whose values are shown."""
_EXACT = 20_000_000
"""Numbers that are read for exact ranges and counts; of what is beyond it, some rows."""
_SAMPLE = 50_000
"""Rows, evenly spread, of a column that is not read whole."""
_TEXT = 2_000
"""Characters of a text."""
_SIDE = 1_024
"""Pixels of the longer side of a picture."""
_FRAMES = {
    ("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame"), ("polars", "Series"),
    ("polars", "LazyFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"), ("modin", "DataFrame"),
    ("modin", "Series"), ("duckdb", "DuckDBPyRelation"),
}  # fmt: skip


def look(variables: Mapping[str, Any], name: str) -> Json:
    """What a model is told of a variable.

    Raises:
        InputError: There is no such variable, or its name is that of a key.
    """
    name = name.strip()
    if name not in variables or name.startswith("__"):
        hint = did_you_mean(name, user_variables(variables), "list_variables() lists them")
        raise InputError(f"there is no variable {name!r:.80}; {hint}")
    if is_secret_name(name):
        raise InputError(f"{name!r:.80} is not shown: its name is that of a key")
    return described(variables[name])


def described(value: object) -> Json:
    """What a model is told of a value: its type first."""
    library = library_of(value)
    kind: Callable[[Any], Json] | None = None
    if library in _FRAMES:
        kind = _frame
    elif library[0] == "numpy" and library[1] == "ndarray":
        kind = _array
    elif _is_picture(value, library):
        kind = _picture
    elif library[0] == "torch" and hasattr(value, "shape"):
        kind = _tensor
    try:
        facts = kind(value) if kind else _other(value)
    except MissingExtraError as error:
        facts = {"problem": str(error)}
    except Exception as error:  # another thread may change it meanwhile, and a library may have its own reasons
        facts = {"problem": f"it could not be read: {type(error).__name__}: {cut(str(error), 300)}"}
    picture = {key: facts.pop(key) for key in ("picture",) if key in facts}
    return {**fitted({"type": type_name(value), **facts}), **picture}


def _other(value: object) -> Json:
    length = length_of(value)
    if type(value) in (str, bytes):
        content = cast(Any, value)
        return {"length": length, **({"beginning": cut(content, _TEXT)} if type(value) is str else {})}
    if type(value) in (list, tuple, set, frozenset, dict):
        return {"length": length, "items": plain(value, most=200)}
    shown = plain(value, most=200)
    if isinstance(shown, str) and shown.startswith(f"<{type_name(value)}"):
        facts = {} if length is None else {"length": length}
        return {**facts, "note": "its content is not read, as that would run code of its class"}
    return {"value": shown}


def first_rows(facts: Json) -> Piece | None:
    """The rows that a model is told of a frame, as a table for the user: no more, as to show the frame itself would run
    code of its values. None: it is no frame, or has no rows.
    """
    rows, index = facts.get("first_rows"), facts.get("index_first")
    if not rows or not isinstance(rows, list):
        return None
    table = [[*row.values()][:MAX_COLUMNS] for row in cast(list[Json], rows)]
    columns = [*cast(list[Json], rows)[0]][:MAX_COLUMNS]
    if isinstance(index, list) and len(labels := cast(list[Any], index)) == len(table):
        columns, table = ["index", *columns], [[label, *row] for label, row in zip(labels, table, strict=True)]
    return table_piece(columns, table, row_count=facts["rows"], column_count=facts["column_count"])


def shape_of(value: Any) -> Any:
    """The shape of a value of a known library; None if it has none."""
    with suppress(Exception):  # of a closed connection
        return getattr(value, "shape", None)


# ---- frames


def _frame(value: Any) -> Json:
    narwhals = require("narwhals", package="narwhals")
    native, width = _pandas_columns(value) if library_of(value)[0] == "pandas" else (value, None)
    frame: Any = narwhals.from_native(native, allow_series=True)
    frame = frame.to_frame() if isinstance(frame, narwhals.Series) else frame
    if isinstance(frame, narwhals.LazyFrame):
        schema = frame.collect_schema()
        columns = {key_text(name): str(kind) for name, kind in list(schema.items())[:_COLUMNS]}
        return {**_more_columns(len(schema)), "columns": columns, "note": "it is lazy, and was not computed"}
    rows, width = len(frame), width or len(frame.columns)
    names: list[str] = frame.columns[:_COLUMNS]
    sample = frame.gather_every(rows // _SAMPLE | 1) if rows > _SAMPLE else frame  # odd: not in step with most patterns
    budget = _EXACT
    columns: Json = {}
    for name in names:
        series = frame.get_column(name)
        is_exact = rows <= _SAMPLE or (budget >= rows and _is_quick(series))
        budget -= rows if is_exact else 0
        facts = _column(series if is_exact else sample.get_column(name), narwhals)
        columns[key_text(name)] = facts if is_exact else f"{facts}, of {len(sample):,} rows"
    shown = frame.select(names[: MOST_ROWS // 2] if width > _COLUMNS else names).head(_HEAD)
    head = [
        {key_text(name): REDACTED if is_secret_name(name) else plain(cell) for name, cell in row.items()}
        for row in shown.iter_rows(named=True)
    ]
    return {"rows": rows, **_more_columns(width), **_index(value), "columns": columns, "first_rows": head}


def _pandas_columns(value: Any) -> tuple[Any, int]:
    """The first columns, with names that are text and differ, and the number of all."""
    if not hasattr(value, "columns"):
        return value.to_frame(key_text("value" if value.name is None else value.name)), 1
    names = [key_text(name) for name in value.columns[:_COLUMNS]]
    names = [name if names.count(name) == 1 else f"{n}.{name}" for n, name in enumerate(names, 1)]
    return value.iloc[:, :_COLUMNS].set_axis(names, axis=1), len(value.columns)


def _more_columns(width: int) -> Json:
    return {"column_count": width, **({"described": f"the first {_COLUMNS}"} if width > _COLUMNS else {})}


def _index(value: Any) -> Json:
    if library_of(value)[0] != "pandas" or type(value.index).__name__ == "RangeIndex":
        return {}
    names = [key_text(name) for name in value.index.names if name is not None]
    is_secret = any(map(is_secret_name, names))
    kind = f"{type(value.index).__name__} {', '.join(names)}".strip()
    return {"index": kind, "index_first": REDACTED if is_secret else plain([*value.index[:_HEAD]])}


def _numbers(series: Any) -> Any:
    """The numpy array that a column of pandas is, if it is one; else None."""
    native = series.to_native()
    if library_of(native)[0] != "pandas" or getattr(native.dtype, "kind", "O") not in "iuf":
        return None
    return native.to_numpy() if type(native.dtype).__module__.startswith("numpy") else None


def _is_quick(series: Any) -> bool:
    """True if its range is found in one pass without a copy."""
    if library_of(series.to_native())[0] in ("polars", "pyarrow"):
        return bool(series.dtype.is_numeric() or series.dtype.is_temporal())
    return _numbers(series) is not None


def _column(series: Any, narwhals: Any) -> str:
    """The facts of a column on a line: `Int64, 2 nulls, 1 to 40`."""
    facts, kind = [cut(str(series.to_native().dtype), 80)], series.dtype
    numbers = _numbers(series)
    nulls = _not_a_number(numbers) if numbers is not None else int(series.null_count())
    facts += [f"{nulls:,} null{'' if nulls == 1 else 's'}"] if nulls else []
    if is_secret_name(series.name) or not len(series) or nulls == len(series):
        return ", ".join(facts)
    with suppress(Exception):  # an order that a library does not know
        if numbers is not None:
            facts.append(_range(*_extremes(numbers)))
        elif kind.is_numeric() or kind.is_temporal():
            facts.append(_range(series.min(), series.max()))
        elif kind == narwhals.Boolean:
            facts.append(f"{int(series.sum()):,} true")
        elif kind in (narwhals.String, narwhals.Categorical, narwhals.Enum):
            facts.append(f"{series.n_unique() - bool(nulls):,} different")
    return ", ".join(facts)


def _range(least: Any, most: Any) -> str:
    ends = [f"{end:.6g}" if isinstance(end, float) else str(end) for end in (plain(least), plain(most))]
    return " to ".join(ends)


def _extremes(numbers: Any) -> tuple[Any, Any]:
    numpy: Any = sys.modules["numpy"]
    return numpy.fmin.reduce(numbers, axis=None), numpy.fmax.reduce(numbers, axis=None)


def _not_a_number(numbers: Any) -> int:
    """The number of NaNs, counted in slices, so that no copy is made."""
    if numbers.dtype.kind != "f":
        return 0
    numpy, flat, step = sys.modules["numpy"], numbers.reshape(-1) if numbers.flags.c_contiguous else numbers, 1 << 16
    if flat.ndim > 1:
        return sum(_not_a_number(row) for row in flat)
    slices = (flat[at : at + step] for at in range(0, len(flat), step))
    return sum(int(numpy.count_nonzero(part != part)) for part in slices)


# ---- arrays and pictures


def _array(value: Any) -> Json:
    facts: Json = {"shape": [*value.shape], "dtype": cut(str(value.dtype), 200), "size": size_text(value.nbytes)}
    is_whole = value.size <= _EXACT
    if value.size and value.dtype.kind in "iuf" and (is_whole or value.flags.c_contiguous):
        numbers = value if is_whole else value.reshape(-1)[:: value.size // _SAMPLE | 1]
        of = "" if is_whole else f", of {numbers.size:,} values"
        facts["range"] = _range(*_extremes(numbers)) + of
        if nan := _not_a_number(numbers):
            facts["nan"] = f"{nan:,}{of}"
    elif value.size and value.dtype.kind == "b" and is_whole:
        facts["true"] = int(value.sum())
    facts["first_values"] = [plain(one) for one in value.flat[:MOST_ROWS].tolist()] if value.dtype.kind != "V" else []
    return facts


def _tensor(value: Any) -> Json:
    return {"shape": [*value.shape], "dtype": str(value.dtype), "device": str(value.device)}


def _is_picture(value: object, library: tuple[str, str]) -> bool:
    if type(value) is bytes:
        return media_in(value) is not None
    pillow: Any = sys.modules.get("PIL.Image")
    if pillow and library[0] == "PIL":
        return issubclass(type(value), pillow.Image)
    return library == ("matplotlib", "Figure") or type(value) is getattr(sys.modules.get("IPython.display"), "Image", 0)


def _picture(value: Any) -> Json:
    """The picture itself, not larger than a screen; the figure stays open."""
    facts: Json = {}
    if library_of(value)[0] == "matplotlib":
        file, inches = io.BytesIO(), max(value.get_size_inches())
        value.savefig(file, format="png", bbox_inches="tight", dpi=min(value.get_dpi(), _SIDE / inches))
        facts["axes"] = [_axes(axes) for axes in value.axes[:MOST_ROWS]]
        return {**facts, "picture": types.Blob(data=file.getvalue(), mime_type="image/png")}
    if library_of(value)[0] == "PIL":
        facts["size"] = f"{value.width:,} x {value.height:,} pixels, {value.mode}"
        scale = _SIDE / max(value.size)
        if scale < 1:
            value = value.resize([max(1, round(side * scale)) for side in value.size], reducing_gap=2.0)
    media = media_in(value)
    if media is None or not media.data:
        return {**facts, "note": "it has no picture that can be shown"}
    return {**facts, "picture": types.Blob(data=media.data, mime_type=media.mime_type)}


def _axes(axes: Any) -> str:
    texts = (("", axes.get_title()), ("x: ", axes.get_xlabel()), ("y: ", axes.get_ylabel()))
    return ", ".join(f"{word}{cut(text, 100)}" for word, text in texts if text) or "without a title"
