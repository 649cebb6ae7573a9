"""Values between nodes: stored as JSON during a pause, and coerced into the type that a node takes."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from adk_nb import types
from adk_nb.errors import WorkflowDataError
from adk_nb.tools.shape import error_text


def to_stored(value: Any) -> dict[str, Any]:
    """A node's output as JSON that `from_stored` reads."""
    if isinstance(value, types.Content):
        return {"content": value.model_dump(mode="json", exclude_none=True)}
    return {"json": to_jsonable_python(value, fallback=str)}


def from_stored(stored: Mapping[str, Any]) -> Any:
    """The value that `to_stored` stored: a message, or plain JSON."""
    return types.Content.model_validate(stored["content"]) if "content" in stored else stored["json"]


def coerced(adapter: TypeAdapter[Any], value: Any, label: str) -> Any:
    """`value` converted by pydantic; a message also as its text, or as the JSON in it.

    Raises:
        WorkflowDataError: It cannot be converted; the message begins with `label`.
    """
    try:
        try:
            return adapter.validate_python(value)
        except ValidationError:
            if not isinstance(value, types.Content):
                raise
            text = "".join(part.text for part in value.parts or () if part.text)
        try:
            return adapter.validate_python(text)
        except ValidationError:
            return adapter.validate_json(text)
    except ValidationError as error:
        raise WorkflowDataError(f"{label} does not fit: {error_text(error)}") from error


def fitting(schema: Any, value: Any, label: str) -> Any:
    """`value` coerced to the type `schema`; None and a JSON Schema, which only documents, leave it as it is."""
    if schema is None or value is None or isinstance(schema, dict):
        return value
    return coerced(TypeAdapter(schema), value, label)
