"""Schemas of JSON values: `output_schema` and `input_schema`."""

import inspect
import re
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.sessions.state import storable_delta

_WRAPPER, _MODELS_WRAPPER = "response", "items"
"""Argument name for a schema that is not an object, and for a list of models. Source: google-adk 2.13."""
_JSON_TYPES: dict[str, Any] = {
    "object": dict[str, Any],
    "array": list[Any],
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
}
_SCHEMA_KEYWORDS = {"type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
_FENCE = "```"
_LANGUAGE = re.compile(r"\A(?:json|[A-Za-z]*[ \t]*\n)")
_MAX_ERRORS = 5
"""Errors in one message; the rest are counted."""
_MAX_QUOTE = 100
"""Length of a quoted value, in characters."""


class Shape:
    """A schema to parse and validate JSON text with.

    Types known to pydantic are validated in full: models, `list[...]` of models or plain values, `dict`, plain values,
    TypedDicts, dataclasses, unions of these. A JSON Schema as a dict, or a types.Schema, is sent to the model in full,
    but only its outermost type is validated.
    """

    def __init__(self, schema: Any) -> None:
        """Analyze `schema`.

        Raises:
            ConfigurationError: It is not a schema.
        """
        self.schema = _normalize(schema)
        """The schema as sent to a model."""
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(_python_type(self.schema))
            self.json_schema = _json_schema(self.schema, self._adapter)
        except PydanticUserError as error:
            reason = str(error).splitlines()[0]
            raise ConfigurationError(
                f"{_schema_text(schema)} is not a schema that JSON can express ({reason})"
            ) from error
        item: Any = get_args(schema)[0] if get_origin(schema) is list else None
        wrapper = _MODELS_WRAPPER if inspect.isclass(item) and issubclass(item, BaseModel) else _WRAPPER
        self.wrapper = None if "properties" in self.json_schema else wrapper
        """Name of the one argument that holds the value. None: the fields of the value are the arguments."""

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments of a tool that takes such a value."""
        if not self.wrapper:
            return self.json_schema
        inner = {key: value for key, value in self.json_schema.items() if key != "$defs"}
        outer = {"type": "object", "properties": {self.wrapper: inner}, "required": [self.wrapper]}
        return outer | ({"$defs": shared} if (shared := self.json_schema.get("$defs")) else {})

    def read(self, text: str) -> Any:
        """Parse `text` to JSON values. A code fence is stripped; None is left out of models.

        Raises:
            ValidationError: The text is not JSON, or does not match the schema.
            ConfigurationError: The value cannot be stored in a state: NaN, or nested too deeply.
        """
        value = self._adapter.dump_python(self.parse(text), mode="json", exclude_none=True)
        storable_delta({"the answer": value})  # raises for values that a state cannot store
        return value

    def parse(self, text: str) -> Any:
        """Parse `text` to the schema's Python type, such as a model or a list of models.

        Raises:
            ValidationError: As for `read`.
        """
        stripped = text.strip()
        # Models often wrap JSON in a code fence.
        if stripped.startswith(_FENCE) and stripped.endswith(_FENCE) and len(stripped) >= 2 * len(_FENCE):
            text = _LANGUAGE.sub("", stripped.removeprefix(_FENCE).removesuffix(_FENCE))
        try:
            return self._adapter.validate_json(text)
        except ValidationError:
            if self.json_schema.get("type") == "string" and not self.json_schema.keys() - {"type", "title"}:
                return text  # a plain string schema accepts unquoted text
            raise

    def read_arguments(self, args: dict[str, Any]) -> Any:
        """As `read`, for the arguments of a tool declared with `parameters`."""
        return self.read(to_json(args.get(self.wrapper) if self.wrapper else args).decode())


def error_text(error: Exception) -> str:
    """The message of `error` in one line; field by field for a ValidationError."""
    if not isinstance(error, ValidationError):
        return " ".join(f"{type(error).__name__}: {error}".split())[:1_000]
    errors = error.errors(include_url=False, include_context=False)
    messages = [
        f"{path}{fault['msg']} (got {_quote(fault['input'])})"
        for fault in errors
        for path in ["".join(f"{step}." for step in fault["loc"])[:-1] + ": " if fault["loc"] else ""]
    ]
    if len(messages) > _MAX_ERRORS:
        messages[_MAX_ERRORS:] = [f"and {len(messages) - _MAX_ERRORS} more"]
    return "; ".join(messages)


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"


def _normalize(schema: Any) -> Any:
    """`schema`, parsed if it is a dict in the notation of Google's API, `OBJECT` rather than `object`."""
    if not isinstance(schema, dict):
        return schema
    fields = cast(dict[str, Any], schema)
    message = f"{_schema_text(fields)} is not a JSON Schema; write one, or a pydantic model"
    name = fields.get("type")
    if not _SCHEMA_KEYWORDS & fields.keys() or (isinstance(name, str) and name.lower() not in {*_JSON_TYPES, "null"}):
        raise ConfigurationError(message)
    try:
        to_json(fields)
        return types.Schema.model_validate(fields) if isinstance(name, str) and name.isupper() else fields
    except (ValidationError, PydanticSerializationError) as error:
        raise ConfigurationError(message) from error


def _python_type(schema: Any) -> Any:
    """The type for pydantic to validate."""
    if isinstance(schema, types.Schema):
        json_type = _JSON_TYPES.get(schema.type.value.lower() if schema.type else "", Any)
        return json_type | None if schema.nullable else json_type
    if isinstance(schema, dict):
        name = cast(dict[str, Any], schema).get("type")
        return _JSON_TYPES.get(name, Any) if isinstance(name, str) else Any
    # pydantic would take these for types, too: a text as the name of one, a function, or a model object.
    if isinstance(schema, str | BaseModel) or inspect.isroutine(schema):
        raise ConfigurationError(f"{_schema_text(schema)} is not a schema; pass a type, or a JSON Schema as a dict")
    return schema


def _json_schema(schema: Any, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    if isinstance(schema, types.Schema):
        return schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cast(dict[str, Any], schema) if isinstance(schema, dict) else adapter.json_schema()


def _schema_text(schema: Any) -> str:
    """`schema` for an error message: one line, bounded."""
    return f"{' '.join((schema.__name__ if isinstance(schema, type) else repr(schema)).split()):.80}"
