"""Validates arguments and results against a JSON Schema from outside, such as an MCP server's, in limited time."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

from pydantic_core import SchemaError, SchemaValidator, core_schema

from adk_nb.lazy import require

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
            ValidationTimeout,
            RecursionError,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            require("referencing.exceptions", package=package).Unresolvable,
            ValueError,
            TypeError,
        )

    @cached_property
    def _validator(self) -> Any:
        kind = bounded(self._validator_class, self._jsonschema)
        return kind(prepare(self._schema), registry=self._registry)

    def error_message(self, args: Any) -> str | None:
        """Validate `args`. Return a message; None if they are valid, or the schema cannot be used."""
        try:
            errors = sorted(find_errors(self._validator, args), key=lambda error: error.json_path)
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
    # rfc3987-syntax comes with JupyterLab and builds 35 parsers at import, in about a second. Source:
    # https://github.com/jupyter-server/jupyter_server/issues/1559
    if "jsonschema" in sys.modules or _IRI_GRAMMAR in sys.modules or not find_spec(_IRI_GRAMMAR):
        return require("jsonschema", package=package)

    def is_valid_syntax(rule: str, text: str) -> bool:
        return importlib.import_module(_IRI_GRAMMAR).is_valid_syntax(rule, text)

    stub: Any = ModuleType(_IRI_GRAMMAR)
    stub.is_valid_syntax = is_valid_syntax
    sys.modules[_IRI_GRAMMAR] = stub
    try:
        return require("jsonschema", package=package)
    finally:
        sys.modules.pop(_IRI_GRAMMAR, None)  # a later import gets the real module


MAX_SECONDS = 1.0
"""Time limit of one validation: nested references may double the work at each level."""
MAX_PATTERN = 1_000
"""Length limit of a regular expression, in characters."""
MAX_TEXT = 10_000
"""Length limit of a matched text, in characters."""
MAX_UNIQUE = 1_000
"""Item limit of a list with `uniqueItems`: jsonschema compares all pairs."""
_SIZE_MARGIN = 20
"""This many copies of a pattern must compile within the engine's size limit (10 MB): the time per character grows with
the compiled size, which counted repetitions multiply."""

Rule = Callable[[Any, Any, Any, Mapping[str, Any]], Any]
_deadline: ContextVar[float] = ContextVar("adk_nb_schema_deadline")


class ValidationTimeout(Exception):
    """A validation took longer than `MAX_SECONDS`."""


def find_errors(validator: Any, value: Any) -> list[Any]:
    """The errors that `validator`, of a class made by `bounded`, finds in `value`.

    Raises:
        ValidationTimeout: It took too long.
    """
    token = _deadline.set(time.monotonic() + MAX_SECONDS)  # per task: validators are shared
    try:
        return list(validator.iter_errors(value))
    finally:
        _deadline.reset(token)


@cache
def bounded(kind: Any, jsonschema: Any) -> Any:
    """`kind`, a validator class of the package `jsonschema`, with a time limit and patterns in linear time."""
    rules: dict[str, Rule] = {
        **kind.VALIDATORS,
        "pattern": _pattern(jsonschema.ValidationError),
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(kind.VALIDATORS["additionalProperties"]),
        "uniqueItems": _unique_items(kind.VALIDATORS["uniqueItems"]),
    }
    return jsonschema.validators.extend(kind, {name: _timed(rule) for name, rule in rules.items()})


def prepare(schema: Any) -> Any:
    """Copy `schema` for a validator of a class made by `bounded`.

    Drops `$schema` in subschemas, for which jsonschema would switch to an unbounded class, and `unevaluatedProperties`
    where `patternProperties` occurs: jsonschema matches those with Python's `re`, in exponential time.
    """
    dropped = {"$schema", "unevaluatedProperties"} if _has_patterns(schema) else {"$schema"}
    return _without(schema, dropped)


def matches(pattern: Any, text: str) -> bool | None:
    """Search `pattern` in `text` in linear time. None: not possible for this pattern or this text."""
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN or len(text) > MAX_TEXT:
        return None
    compiled = _compile(pattern)
    return compiled and compiled.isinstance_python(text)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> SchemaValidator | None:
    """Compile for the Rust engine, which refuses look-around and back references."""
    try:
        # Raises SchemaError if _SIZE_MARGIN copies exceed the engine's size limit.
        _engine(f"(?:{pattern}){{{_SIZE_MARGIN}}}")
        return _engine(pattern)
    except SchemaError:
        return None


def _engine(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _timed(rule: Rule) -> Rule:
    def check(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        # Checked at every keyword: jsonschema has no time limit of its own.
        if time.monotonic() > _deadline.get():
            raise ValidationTimeout
        yield from rule(validator, value, instance, schema) or ()

    return check


def _pattern(error: Callable[[str], Any]) -> Rule:
    def check(validator: Any, pattern: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if validator.is_type(instance, "string") and matches(pattern, instance) is False:
            yield error(f"{instance!r} does not match {pattern!r}")

    return check


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Mapping[str, Any]
) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, rule in patterns.items():
            for name, value in instance.items():
                if matches(pattern, name):
                    yield from validator.descend(value, rule, path=name, schema_path=pattern)


def _additional_properties(rule: Rule) -> Rule:
    def check(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        patterns: Mapping[str, Any] = schema.get("patternProperties") or {}
        if not patterns or not validator.is_type(instance, "object"):
            return rule(validator, value, instance, schema)
        # jsonschema would match the patterns with `re` here, so pass the matching names as known properties.
        matched = {name: [matches(pattern, name) for pattern in patterns] for name in instance}
        covered = {name: True for name, results in matched.items() if any(result is not False for result in results)}
        return rule(validator, value, instance, {"properties": {**(schema.get("properties") or {}), **covered}})

    return check


def _unique_items(rule: Rule) -> Rule:
    def check(validator: Any, value: Any, instance: Any, schema: Mapping[str, Any]) -> Any:
        if isinstance(instance, list) and len(cast(list[Any], instance)) > MAX_UNIQUE:
            return ()
        return rule(validator, value, instance, schema)

    return check


def _has_patterns(schema: Any) -> bool:
    if isinstance(schema, dict):
        inner = cast(dict[str, Any], schema)
        return "patternProperties" in inner or any(_has_patterns(value) for value in inner.values())
    return isinstance(schema, list) and any(_has_patterns(value) for value in cast(list[Any], schema))


def _without(schema: Any, dropped: set[str]) -> Any:
    if isinstance(schema, dict):
        inner = cast(dict[str, Any], schema)
        return {key: _without(value, dropped) for key, value in inner.items() if key not in dropped}
    return [_without(value, dropped) for value in cast(list[Any], schema)] if isinstance(schema, list) else schema
