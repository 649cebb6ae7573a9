"""Previews of tool results for the user, beside the JSON for the model: tables, HTML pages, SVG drawings."""

import math
from collections.abc import Callable
from typing import Any, cast

from adk_nb.tools.tables import columns_and_rows

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
            return _render(_table, value if cls.__name__ == "DataFrame" else value.to_frame())
    for name, form in (("_repr_svg_", "svg"), ("_repr_html_", "page")):
        render = getattr(kind, name, None)
        if callable(render) and (text := _markup(render, value)):
            return {"kind": form, "text": text}
    return None


def _render(render: Callable[[Any], Piece], value: Any) -> Piece | None:
    try:
        return render(value)
    except Exception:  # the model still gets the JSON
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


def _markup(render: Callable[[Any], Any], value: Any) -> str:
    """Output of a `_repr_*_` method: text, alone or before metadata; empty for anything else."""
    try:
        output = render(value)
    except Exception:  # the model still gets the JSON
        return ""
    if isinstance(output, tuple):
        output = next(iter(cast(tuple[Any, ...], output)), None)
    return str.__str__(output).encode("utf-8", "replace").decode() if isinstance(output, str) else ""
