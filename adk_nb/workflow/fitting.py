"""What nodes are given is made into what they take."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from adk_nb import types


def fitted(wanted: TypeAdapter[Any], value: Any) -> Any:
    """`value` as pydantic makes it into a type; a message's words as text, or as the JSON that they are.

    Raises:
        ValidationError: It cannot be made into that.
    """
    if not isinstance(value, types.Content):
        return wanted.validate_python(value)
    try:
        return wanted.validate_python(value)
    except ValidationError:
        text = "".join(part.text for part in value.parts or () if part.text)
    try:
        return wanted.validate_python(text)
    except ValidationError:
        return wanted.validate_json(text)
