"""The shape of everything that is stored or sent: snake_case in Python, camelCase in JSON, both read."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from adk_nb.errors import InputError, closest


class WireModel(BaseModel):
    """A record that travels as JSON. Keys it does not know are ignored, so an older reader reads a newer record."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        arbitrary_types_allowed=True,
        defer_build=True,  # each record is built when the first is made: an import that makes none is a third cheaper
    )


def plain_json(given: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """A copy of `given`, empty for None, that a file can hold and give back equal.

    Args:
        given: The caller's own; not kept.
        what: Whose it is, for the error: `custom_metadata of artifact 'a.txt'`.

    Raises:
        InputError: JSON would change it, or cannot hold it.
    """
    whole = dict(given or {})
    try:
        copy = json.loads(json.dumps(whole, allow_nan=False))
        same = bool(copy == whole)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is kept as JSON, and {whole!r:.80} cannot be: {error}") from error
    if not same:
        raise InputError(f"{what} is kept as JSON, which would change {whole!r:.80}; use str, int, float, list, dict")
    return copy


def wrong_fields(error: ValidationError, known: Iterable[str]) -> str:
    """What is wrong with each field, joined by `; `. `known`: the fields there are."""
    told: list[str] = []
    for wrong in error.errors(include_url=False, include_context=False):
        field = ".".join(str(step) for step in wrong["loc"])
        if wrong["type"] == "missing":
            told.append(f"{field!r} is missing")
        elif wrong["type"] == "extra_forbidden":
            near = closest(field, known)
            told.append(f"there is no field {field!r}" + (f"; did you mean {near!r}?" if near else ""))
        else:
            told.append(f"{field!r}: {wrong['msg']} (got {' '.join(repr(wrong['input']).split()):.80})")
    return "; ".join(told)
