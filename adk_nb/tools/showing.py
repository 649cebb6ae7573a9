"""What a person is shown of a tool's result, beside the JSON that a model gets of it: a table, a page, a drawing."""

import math
from collections.abc import Callable
from typing import Any, cast

from adk_nb.tools.tables import columns_and_rows

MAX_SHOWN = 4
"""Pieces of one result."""
MAX_ROWS, MAX_COLUMNS = 20, 12
_MAX_CELL = 80
"""Characters."""
Piece = dict[str, Any]
"""JSON: `{"kind": "table", "columns", "rows", "row_count", "column_count"}`, where the columns are names and the cells
text; or `{"kind": "page" | "svg", "text"}`, where the text is markup that nobody has checked."""
MIME_TYPES = {"page": "text/html", "svg": "image/svg+xml"}


def piece_of(value: Any) -> Piece | None:
    """What shows `value`: tables of pandas, told by their names, and whatever has a form of its own for a notebook,
    `_repr_svg_` or `_repr_html_`. None: it has none, or makes none.
    """
    kind = cast(type[Any], type(value))  # not what a proxy says of itself: an object may claim to have any method
    for one in kind.__mro__:
        if one.__module__.partition(".")[0] == "pandas" and one.__name__ in ("DataFrame", "Series"):
            return _guarded(_table, value if one.__name__ == "DataFrame" else value.to_frame())
    for name, form in (("_repr_svg_", "svg"), ("_repr_html_", "page")):
        draws = getattr(kind, name, None)
        if callable(draws) and (text := _drawn(draws, value)):
            return {"kind": form, "text": text}
    return None


def _guarded(shows: Callable[[Any], Piece], value: Any) -> Piece | None:
    try:
        return shows(value)
    except Exception:  # an object that cannot show itself is still told as JSON
        return None


def _table(frame: Any) -> Piece:
    head = frame.iloc[:MAX_ROWS, :MAX_COLUMNS]
    columns, rows = columns_and_rows(head)
    return {
        "kind": "table",
        "columns": [_cell(one) for one in columns],
        "rows": [[_cell(one) for one in row] for row in rows],
        "row_count": len(frame),
        "column_count": len(frame.columns),
    }


def _cell(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    text = ("" if math.isnan(value) else f"{value:.6g}") if isinstance(value, float) else str(value)
    return text.encode("utf-8", "replace").decode()[:_MAX_CELL]


def _drawn(draws: Callable[[Any], Any], value: Any) -> str:
    """What such a method gave: text, alone or before metadata; empty for anything else."""
    try:
        drawn = draws(value)
    except Exception:  # an object that cannot show itself is still told as JSON
        return ""
    if isinstance(drawn, tuple):
        drawn = next(iter(cast(tuple[Any, ...], drawn)), None)
    return str.__str__(drawn).encode("utf-8", "replace").decode() if isinstance(drawn, str) else ""
