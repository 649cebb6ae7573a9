"""The part of a result that a model gets: columns, types, the count and the first rows, in at most 4,000 characters."""

import datetime as dt
import json
import math
from collections.abc import Sequence
from typing import Any, cast

from adk_nb.errors import closest
from adk_nb.redaction import REDACTED, redacted, remember_environment
from adk_nb.tools.data_tool.frames import unique_names

MAX_CHARS = 4_000
"""Characters of JSON that a model gets of one answer."""
MAX_ROWS = 20
_MAX_SHOWN = 12
"""Columns that a person sees in the cell."""
_CELL, _NAME = 200, 100
"""Characters of a value, and of a name."""
Table = dict[str, Any]
"""`{"name", "row_count", "columns": [[name, type], ...]}`; `row_count` may be None."""


def rows_answer(columns: Sequence[Sequence[str]], rows: Sequence[Sequence[Any]], **facts: Any) -> dict[str, Any]:
    """The columns with their types, and as many of `rows` as fit; of many columns the first ones."""
    remember_environment()
    names = [_short(name, _NAME) for name, _ in columns]
    kinds = [_short(kind, _NAME) for _, kind in columns]
    cells = [[cell(value, name) for value, (name, _) in zip(row, columns, strict=True)] for row in rows[:MAX_ROWS]]
    width, height = len(columns), len(cells)

    def answer() -> dict[str, Any]:
        fields = dict(zip(unique_names(names[:width]), kinds[:width], strict=True))
        left_out = {"columns_left_out": len(columns) - width} if width < len(columns) else {}
        return {"columns": fields, **left_out, **facts, "rows": [row[:width] for row in cells[:height]]}

    while _size(made := answer()) > MAX_CHARS:
        if height > 3 or (height and width <= 3):
            height = height // 2
        elif width > 1:
            width = max(1, width * 3 // 4)
        else:
            break
    return made


def tables_answer(tables: Sequence[Table], like: str = "") -> dict[str, Any]:
    """The tables with their columns and types; of many as many as fit, and how to see the others."""
    words = like.casefold().split()
    kept: list[Table] = []
    for table in tables:
        columns = [column for column in table["columns"] if _has_word(column[0], words)]
        if columns or _has_word(table["name"], words):
            kept.append({**table, "columns": columns or table["columns"], "all": len(table["columns"])})
    shown, most = len(kept), max((len(table["columns"]) for table in kept), default=0)

    def answer() -> dict[str, Any]:
        listed: list[dict[str, Any]] = []
        for table in kept[:shown]:
            columns = {_short(name, _NAME): _short(kind, _NAME) for name, kind in table["columns"][:most]}
            listed.append({"name": _short(table["name"], _NAME), "row_count": table["row_count"], "columns": columns})
            if len(columns) < table["all"]:
                listed[-1]["column_count"] = table["all"]
        cut = shown < len(kept) or any(most < len(table["columns"]) for table in kept[:shown])
        more = {"table_count": len(kept)} if shown < len(kept) else {}
        hint = "not all is listed: name a table, or give a word of a column's name in `like`"
        return {"tables": listed, **more, **({"note": hint} if cut else {})}

    while _size(made := answer()) > MAX_CHARS:
        if most > 8:
            most = most * 3 // 4
        elif shown > 1:
            shown = shown * 3 // 4
        elif most > 1:
            most -= 1
        else:
            break
    return made


def schema_line(tables: Sequence[Table], most: int = 600) -> str:
    """The tables and their columns in one line: `sales(month, city, price)`."""
    parts = [f"{table['name']}({', '.join(name for name, _ in table['columns'])})" for table in tables]
    line = ", ".join(parts)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def unknown_name(reason: str, name: str, tables: Sequence[Table]) -> str:
    """The end of an error for an unknown table or column: the nearest name, and what there is."""
    bare = name.rpartition(".")[2].strip('"')
    if reason == "table":
        known = [table["name"] for table in tables]
    else:
        known = [column[0] for table in tables for column in table["columns"]]
    near = closest(bare, known) or next((other for other in known if bare.casefold() in other.casefold()), None)
    meant = f"did you mean {near}? " if near and bare else ""
    return f"{meant}There is: {schema_line(tables)}"


def shown_table(columns: Sequence[Sequence[str]], rows: Sequence[Sequence[Any]], count: int) -> dict[str, Any]:
    """The first rows for a person, as a piece that views show."""
    names = [name for name, _ in columns]
    cells = [
        [_text(cell(value, name)) for value, name in zip(row[:_MAX_SHOWN], names[:_MAX_SHOWN], strict=True)]
        for row in rows[:MAX_ROWS]
    ]
    heads = [redacted(name)[:_NAME] for name in names[:_MAX_SHOWN]]
    return {"kind": "table", "columns": heads, "rows": cells, "row_count": count, "column_count": len(names)}


def cell(value: Any, column: str) -> Any:
    """A value as JSON, without secrets, and no longer than a model needs."""
    if value is not None and redacted("x", column) == REDACTED:  # whatever its type
        return REDACTED
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    if isinstance(value, list | dict):
        plain = redacted(json.loads(json.dumps(cast(Any, value), default=str)), column)
        value = json.dumps(plain, ensure_ascii=False)
    # Hidden before it is cut: the beginning of a secret would not be found.
    text = str(redacted(str(value), column)).encode("utf-8", "replace").decode()
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _short(name: str, most: int) -> str:
    name = str(redacted(name))
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _has_word(name: str, words: Sequence[str]) -> bool:
    return not words or any(word in name.casefold() for word in words)


def _size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False))
