"""What nodes hand on, as JSON, for the run that goes on after a pause."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from adk_nb import types


def kept(value: Any) -> dict[str, Any]:
    """What nodes hand on, as JSON that `as_it_was` reads."""
    if isinstance(value, types.Content):
        return {"content": value.model_dump(mode="json", exclude_none=True)}
    return {"json": to_jsonable_python(value, fallback=str)}


def as_it_was(stood: Mapping[str, Any]) -> Any:
    """The value that was kept so; a message as one, anything else as its JSON."""
    return types.Content.model_validate(stood["content"]) if "content" in stood else stood["json"]
