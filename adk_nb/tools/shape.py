"""The shape that JSON must have: what `output_schema` and `input_schema` stand for."""

import inspect
import re
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_json

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.sessions.state import committed

_WRAPPER, _MODELS_WRAPPER = "response", "items"
"""The one argument of a shape that is no object, and of a list of models. Source: google-adk 2.13."""
_JSON_TYPES: dict[str, Any] = {
    "object": dict[str, Any],
    "array": list[Any],
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
}
_SAYS_SOMETHING = {"type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
_FENCE = "```"
_LANGUAGE = re.compile(r"\A(?:json|[A-Za-z]*[ \t]*\n)")
_TOLD = 5
"""Faults that are told at once."""
_QUOTED = 100
"""Characters of a value that does not fit."""


class Shape:
    """A schema that JSON text is read with.

    A type that pydantic knows is checked in full: a model, `list[...]` of models or plain values, `dict`, plain values,
    a TypedDict, a dataclass, a union of these. A JSON Schema as a dict, or a types.Schema, is told to the model in full
    and checked in its outermost type only.
    """

    def __init__(self, schema: Any) -> None:
        """Read `schema`.

        Raises:
            ConfigurationError: It is none of these.
        """
        self.schema = _google_schema(schema)
        """As it is handed to a model."""
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(_python_type(self.schema))
            self.json_schema = _json_schema(self.schema, self._adapter)
        except PydanticUserError as error:
            why = str(error).splitlines()[0]
            raise ConfigurationError(f"{_shown(schema)} is no schema that JSON can have ({why})") from error
        self.wrapper = None if "properties" in self.json_schema else _wrapper(schema)
        """The argument that carries a value which is no object with fields, when a tool is called with it."""

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of a tool's arguments that carry such a value."""
        if not self.wrapper:
            return self.json_schema
        inner = {key: one for key, one in self.json_schema.items() if key != "$defs"}
        outer = {"type": "object", "properties": {self.wrapper: inner}, "required": [self.wrapper]}
        return outer | ({"$defs": shared} if (shared := self.json_schema.get("$defs")) else {})

    def read(self, text: str) -> Any:
        """The value that `text` is, as JSON values; a code fence around it is taken off, None is left out of models.

        Raises:
            ValidationError: It is another shape, or no JSON.
            ConfigurationError: It is JSON that no state can hold: NaN, or too deep.
        """
        value = self._adapter.dump_python(self.parse(text), mode="json", exclude_none=True)
        committed({"the answer": value})
        return value

    def parse(self, text: str) -> Any:
        """The value that `text` is, of the schema's own Python type: a model, a list of models.

        Raises:
            ValidationError: As `read`.
        """
        text = _unfenced(text)
        try:
            return self._adapter.validate_json(text)
        except ValidationError:
            if self.json_schema.get("type") == "string" and not self.json_schema.keys() - {"type", "title"}:
                return text  # a string is what it says, in quotes or not
            raise

    def read_arguments(self, args: dict[str, Any]) -> Any:
        """As `read`, for the arguments of a tool that was declared with `parameters`."""
        return self.read(to_json(args.get(self.wrapper) if self.wrapper else args).decode())


def in_words(error: Exception) -> str:
    """What is wrong, in one line; field by field where that is known."""
    if not isinstance(error, ValidationError):
        return " ".join(f"{type(error).__name__}: {error}".split())[:1_000]
    errors = error.errors(include_url=False, include_context=False)
    told = [
        f"{where}{one['msg']} (got {_quoted(one['input'])})"
        for one in errors
        for where in ["".join(f"{step}." for step in one["loc"])[:-1] + ": " if one["loc"] else ""]
    ]
    if len(told) > _TOLD:
        told[_TOLD:] = [f"and {len(told) - _TOLD} more"]
    return "; ".join(told)


def _quoted(value: Any) -> str:
    whole = repr(value)
    return whole if len(whole) <= _QUOTED else f"{whole[:_QUOTED]}…"


def _google_schema(schema: Any) -> Any:
    """`schema`, read where it is a dict in the words of google's API, `OBJECT` and not `object`."""
    if not isinstance(schema, dict):
        return schema
    known = cast(dict[str, Any], schema)
    wrong = f"{_shown(known)} is no JSON Schema; write one, or a pydantic model"
    name = known.get("type")
    if not _SAYS_SOMETHING & known.keys() or (isinstance(name, str) and name.lower() not in {*_JSON_TYPES, "null"}):
        raise ConfigurationError(wrong)
    try:
        to_json(known)
        return types.Schema.model_validate(known) if isinstance(name, str) and name.isupper() else known
    except (ValidationError, PydanticSerializationError) as error:
        raise ConfigurationError(wrong) from error


def _python_type(schema: Any) -> Any:
    """The type that pydantic is to check."""
    if isinstance(schema, types.Schema):
        found = _JSON_TYPES.get(schema.type.value.lower() if schema.type else "", Any)
        return found | None if schema.nullable else found
    if isinstance(schema, dict):
        name = cast(dict[str, Any], schema).get("type")
        return _JSON_TYPES.get(name, Any) if isinstance(name, str) else Any
    # pydantic would take the name of a type, a function and a value's class for types, and check something else.
    if isinstance(schema, str | BaseModel) or inspect.isroutine(schema):
        raise ConfigurationError(f"{_shown(schema)} is no schema; pass a type, or a JSON Schema as a dict")
    return schema


def _json_schema(schema: Any, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    if isinstance(schema, types.Schema):
        return schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cast(dict[str, Any], schema) if isinstance(schema, dict) else adapter.json_schema()


def _wrapper(schema: Any) -> str:
    models = get_origin(schema) is list and inspect.isclass(get_args(schema)[0])
    return _MODELS_WRAPPER if models and issubclass(get_args(schema)[0], BaseModel) else _WRAPPER


def _unfenced(text: str) -> str:
    bare = text.strip()
    if len(bare) < 2 * len(_FENCE) or not (bare.startswith(_FENCE) and bare.endswith(_FENCE)):
        return text
    inside = bare.removeprefix(_FENCE).removesuffix(_FENCE)
    return _LANGUAGE.sub("", inside)


def _shown(schema: Any) -> str:
    """`schema` for an error: on one line, and not long."""
    return f"{' '.join((schema.__name__ if isinstance(schema, type) else repr(schema)).split()):.80}"
