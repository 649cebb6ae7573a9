"""Whether a model's arguments fit a JSON Schema that someone else wrote."""

from collections.abc import Mapping
from typing import Any

from adk_nb.lazy import require

_TOLD = 5
"""Faults that are told at once."""


class JsonArguments:
    """Checks arguments against a schema. References to other documents are not followed, and count as no rule."""

    def __init__(self, schema: Mapping[str, Any], package: str) -> None:
        """`package`: what brings the checker, for the error that says it is missing.

        Raises:
            MissingExtraError: It is not installed.
        """
        jsonschema = require("jsonschema", package=package)
        known = require("jsonschema_specifications", package=package).REGISTRY
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        self._validator: Any = kind(schema, registry=known)  # one that fetches nothing
        self._broken: Any = (
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            require("referencing.exceptions", package=package).Unresolvable,
            ValueError,
            TypeError,
        )

    def wrong(self, args: Mapping[str, Any]) -> str | None:
        """What does not fit, in words. None: nothing, or the schema itself cannot be used."""
        try:
            errors = sorted(self._validator.iter_errors(args), key=lambda error: error.json_path)
        except self._broken:
            return None
        told = [
            (f"{error.json_path[2:]}: " if error.json_path != "$" else "") + f"{error.message:.200}" for error in errors
        ]
        if len(told) > _TOLD:
            told[_TOLD:] = [f"and {len(told) - _TOLD} more"]
        return "; ".join(told) or None
