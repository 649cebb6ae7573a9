"""A Python value as text inside a prompt."""

from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json

from adk_nb.redaction import redacted

MOST = 4_000
"""Characters of one value."""
_ROWS = 10


def as_text(value: Any) -> tuple[str, str | None]:
    """`value` as a model can read it, and a note if something was left out.

    Text as it is; dicts, lists and pydantic models as JSON; a table as its columns and first ten rows; an array as its
    shape and beginning.
    """
    text = _spelled(value)
    if len(text) > MOST:
        return text[:MOST], f"{len(text):,} -> {MOST:,} characters"
    return text, None


def is_secret(text: str) -> bool:
    """Whether there is what looks like a key or a token in `text`."""
    return redacted(text) != text


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, dict | list | tuple | set):
        return to_json(value, fallback=repr, inf_nan_mode="strings").decode()
    if hasattr(value, "columns") and hasattr(value, "itertuples"):
        return _table(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"array of shape {tuple(value.shape)}, {value.dtype}: {str(value)[:1_000]}"
    return str(value)


def _table(frame: Any) -> str:
    """A pandas DataFrame, duck-typed: pandas is not ours to import."""
    columns = [f"{name} ({kind})" for name, kind in zip(frame.columns, frame.dtypes, strict=True)]
    rows = [" | ".join(str(one) for one in row) for row in frame.head(_ROWS).itertuples(index=False)]
    count = len(frame)
    said = f"table of {count:,} rows" + (f", the first {_ROWS}" if count > _ROWS else "")
    return "\n".join([said + ":", " | ".join(columns), *rows])
