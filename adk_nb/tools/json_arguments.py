"""Validates arguments and results against a JSON Schema from outside, such as an MCP server's."""

import importlib
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from adk_nb.lazy import require
from adk_nb.tools import bounded_schema

_MAX_ERRORS = 5
"""Errors in one message; the rest are counted."""


class JsonArguments:
    """Validates values against a schema.

    References to other documents are not fetched. A rule with such a reference, a pattern that needs more than linear
    time, or a schema that takes longer than a second is not enforced: the owner of the schema checks arguments itself.
    """

    def __init__(self, schema: Mapping[str, Any], package: str) -> None:
        """`package`: the package that needs the checker, for the error if it is missing.

        Raises:
            MissingExtraError: jsonschema is not installed.
        """
        jsonschema = _jsonschema(package)
        specifications = require("jsonschema_specifications", package=package).REGISTRY
        self._schema = schema
        # MCP and OpenAPI 3.1 default to JSON Schema 2020-12.
        self._validator_class: Any = jsonschema.validators.validator_for(
            schema, default=jsonschema.Draft202012Validator
        )
        self._jsonschema: Any = jsonschema
        self._registry: Any = specifications  # this registry fetches nothing
        self._unusable: Any = (
            bounded_schema.ValidationTimeout,
            RecursionError,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            require("referencing.exceptions", package=package).Unresolvable,
            ValueError,
            TypeError,
        )

    @cached_property
    def _validator(self) -> Any:
        kind = bounded_schema.bounded(self._validator_class, self._jsonschema)
        return kind(bounded_schema.prepare(self._schema), registry=self._registry)

    def error_message(self, args: Any) -> str | None:
        """Validate `args`. Return a message; None if they are valid, or the schema cannot be used."""
        try:
            errors = sorted(bounded_schema.find_errors(self._validator, args), key=lambda error: error.json_path)
        except self._unusable:
            return None
        messages = [
            (f"{error.json_path[2:]}: " if error.json_path != "$" else "") + f"{error.message:.200}" for error in errors
        ]
        if len(messages) > _MAX_ERRORS:
            messages[_MAX_ERRORS:] = [f"and {len(messages) - _MAX_ERRORS} more"]
        return "; ".join(messages) or None


_IRI_GRAMMAR = "rfc3987_syntax"


def _jsonschema(package: str) -> Any:
    """Import jsonschema, but defer the slow grammar of its format `iri` until such a format is checked."""
    # rfc3987-syntax comes with JupyterLab and builds 35 parsers at import, about a second; formats are not checked
    # here.
    # Source: https://github.com/jupyter-server/jupyter_server/issues/1559
    if "jsonschema" in sys.modules or _IRI_GRAMMAR in sys.modules or not find_spec(_IRI_GRAMMAR):
        return require("jsonschema", package=package)
    stub: Any = ModuleType(_IRI_GRAMMAR)
    stub.is_valid_syntax = _is_valid_syntax
    sys.modules[_IRI_GRAMMAR] = stub
    try:
        return require("jsonschema", package=package)
    finally:
        sys.modules.pop(_IRI_GRAMMAR, None)  # a later import gets the real module


def _is_valid_syntax(rule: str, text: str) -> bool:
    return importlib.import_module(_IRI_GRAMMAR).is_valid_syntax(rule, text)
