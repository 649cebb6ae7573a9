"""Variables of the notebook: their names, and their values as text in a prompt."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from adk_nb.notebook import settings
from adk_nb.redaction import redacted

_ROWS = 10
MAX_ROWS = 1_000
"""Rows of an attached table."""
_SUMMARY = (("min", "min"), ("max", "max"), ("mean", "mean"))


def as_text(value: Any) -> tuple[str, str | None]:
    """`value` as text for a model, and a note if it was cut: `12,340 → 4,000 characters`. None: it was not.

    Text stays as it is; dicts, lists, dataclasses and pydantic models become JSON; a table its columns and first ten
    rows in markdown; an array its shape, type, range and beginning. `%config AdkNb.interp_max_chars` is the limit.
    """
    text, most = whole_text(value), settings.now.interp_max_chars
    if len(text) > most:
        return text[:most], f"{len(text):,} → {most:,} characters"
    return text, None


def is_secret(text: str) -> bool:
    """True if `text` has something that looks like a key or a token, or a known secret of this process."""
    return redacted(text) != text


def is_table(value: Any) -> bool:
    """True for a DataFrame, of pandas or alike; pandas itself is not imported."""
    return hasattr(value, "columns") and hasattr(value, "itertuples")


def whole_text(value: Any) -> str:
    """As `as_text`, without a limit."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if _is_json(value):
        return to_json(value, fallback=repr, inf_nan_mode="strings").decode()
    if is_table(value):
        return _table(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"array of shape {tuple(value.shape)}, {value.dtype}{_summary(value)}: {str(value)[:1_000]}"
    return str(value)


def _is_json(value: object) -> bool:
    if isinstance(value, dict | list | tuple | set | frozenset):
        return True
    return is_dataclass(value) and not isinstance(value, type)


def whole_table(frame: Any) -> str:
    """A DataFrame as CSV; beyond `MAX_ROWS` rows only the first, and a last line that says so."""
    count = len(frame)
    note = f"(the first {MAX_ROWS:,} of {count:,} rows)\n" if count > MAX_ROWS else ""
    return str(frame.head(MAX_ROWS).to_csv(index=_has_index(frame))) + note


def _has_index(frame: Any) -> bool:
    """False for the default index of pandas, which only counts the rows."""
    return type(frame.index).__name__ != "RangeIndex"


def _table(frame: Any) -> str:
    """The columns with their types, and a table of the first rows."""
    columns = [f"{name} ({kind})" for name, kind in zip(frame.columns, frame.dtypes, strict=True)]
    count, head = len(frame), frame.head(_ROWS)
    caption = f"table of {count:,} row{'' if count == 1 else 's'}" + (f", the first {_ROWS}" if count > _ROWS else "")
    indexed = _has_index(frame)
    rows = [_row(([label] if indexed else []) + list(row)) for label, row in zip(head.index, _cells(head), strict=True)]
    columns = [str(frame.index.name or "index")] * indexed + columns
    return "\n".join([f"{caption}:", "", _row(columns), "|" + " --- |" * len(columns), *rows])


def _cells(frame: Any) -> Iterable[tuple[Any, ...]]:
    return frame.itertuples(index=False, name=None) if len(frame.columns) else [()] * len(frame)


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in cells) + " |"


def _summary(array: Any) -> str:
    """The smallest, largest and mean value; empty for an array without numbers."""
    with suppress(Exception):  # arrays of text and empty arrays raise errors of many types
        return "".join(f", {word} {float(getattr(array, name)()):g}" for word, name in _SUMMARY)
    return ""


_IPYTHON_NAMES = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython"})
"""IPython puts them into the user's namespace."""


def user_variables(names: Iterable[str]) -> list[str]:
    """Those of `names` that are neither private nor IPython's."""
    return [name for name in names if not name.startswith("_") and name not in _IPYTHON_NAMES]
