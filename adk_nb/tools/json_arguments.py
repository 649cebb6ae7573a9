"""Checks of arguments and results against a JSON Schema that someone else wrote."""

import importlib
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from adk_nb.lazy import require
from adk_nb.tools import bounded_schema

_TOLD = 5
"""Faults that are told at once."""


class JsonArguments:
    """Checks values against a schema.

    References to other documents are not followed, and count as no rule; nor does a pattern that needs more than linear
    time, and nothing of a schema that takes longer than a second: whoever wrote it checks by itself.
    """

    def __init__(self, schema: Mapping[str, Any], package: str) -> None:
        """`package`: what brings the checker, for the error that says it is missing.

        Raises:
            MissingExtraError: It is not installed.
        """
        jsonschema = _jsonschema(package)
        known = require("jsonschema_specifications", package=package).REGISTRY
        self._schema = schema
        self._kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        self._jsonschema: Any = jsonschema
        self._registry: Any = known  # one that fetches nothing
        self._broken: Any = (
            bounded_schema.OutOfTime,
            RecursionError,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            require("referencing.exceptions", package=package).Unresolvable,
            ValueError,
            TypeError,
        )

    @cached_property
    def _validator(self) -> Any:
        kind = bounded_schema.bounded(self._kind, self._jsonschema)
        return kind(bounded_schema.prepared(self._schema), registry=self._registry)

    def wrong(self, args: Any) -> str | None:
        """What does not fit, in words. None: nothing, or the schema itself cannot be used."""
        try:
            errors = sorted(bounded_schema.errors(self._validator, args), key=lambda error: error.json_path)
        except self._broken:
            return None
        told = [
            (f"{error.json_path[2:]}: " if error.json_path != "$" else "") + f"{error.message:.200}" for error in errors
        ]
        if len(told) > _TOLD:
            told[_TOLD:] = [f"and {len(told) - _TOLD} more"]
        return "; ".join(told) or None


_IRI_GRAMMAR = "rfc3987_syntax"


def _jsonschema(package: str) -> Any:
    """Import jsonschema without the grammar of its format `iri`, which is imported when such a format is checked."""
    # rfc3987-syntax comes with JupyterLab and builds 35 parsers at import, for a second; nothing here checks formats.
    # Source: https://github.com/jupyter-server/jupyter_server/issues/1559
    if "jsonschema" in sys.modules or _IRI_GRAMMAR in sys.modules or not find_spec(_IRI_GRAMMAR):
        return require("jsonschema", package=package)
    stand_in: Any = ModuleType(_IRI_GRAMMAR)
    stand_in.is_valid_syntax = _is_valid_syntax
    sys.modules[_IRI_GRAMMAR] = stand_in
    try:
        return require("jsonschema", package=package)
    finally:
        sys.modules.pop(_IRI_GRAMMAR, None)


def _is_valid_syntax(rule: str, text: str) -> bool:
    return importlib.import_module(_IRI_GRAMMAR).is_valid_syntax(rule, text)
