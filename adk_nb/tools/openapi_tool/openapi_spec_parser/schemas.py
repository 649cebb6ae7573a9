"""Converts the schemas of an OpenAPI document to self-contained JSON Schema."""

from collections.abc import Callable
from typing import Any, cast

Json = dict[str, Any]

_DROPPED_KEYWORDS = {
    "xml",
    "externalDocs",
    "discriminator",
    "example",
    "examples",
    "nullable",
    "deprecated",
    "readOnly",
    "writeOnly",
}
"""Keywords that mean nothing to a model, or are converted."""
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MAPS = ("properties", "patternProperties", "dependentSchemas")


class Schemas:
    """Converts the schemas of one operation. Referenced schemas are collected in `definitions`."""

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        """`look_up`: resolves a reference."""
        self._look_up = look_up
        self._names: dict[str, str] = {}
        self.definitions: Json = {}
        """Name -> schema, referred to as `#/$defs/name`, so that a schema may contain itself."""

    def read(self, schema: Any) -> Json:
        """Convert to JSON Schema 2020-12. Source: OpenAPI 3.0 and 3.1, Schema Object."""
        if not isinstance(schema, dict):
            return {}  # true: anything; a property with schema false is not declared
        source = cast(Json, schema)
        converted = {
            key: self._value(key, value)
            for key, value in source.items()
            if key not in _DROPPED_KEYWORDS and key[:2] != "x-"  # x-: specification extensions
        }
        if "$ref" in source:
            converted["$ref"] = f"#/$defs/{self._definition_name(str(source['$ref']))}"
        _convert_exclusive_limits(converted)
        _fix_types(converted)
        _convert_one_of(converted, source)
        if converted.get("properties") and "required" in converted:
            converted["required"] = [name for name in converted["required"] if name in converted["properties"]]
        return {"anyOf": [converted, {"type": "null"}]} if source.get("nullable") else converted

    def fields(self, schema: Any) -> tuple[Json, set[str]] | None:
        """Properties and required names of an object schema; None if it is not one, or has alternatives."""
        if not isinstance(schema, dict):
            return None
        source = cast(Json, schema)
        if "$ref" in source:
            name = str(source["$ref"])
            return self.fields(self._look_up(name)) if not self._refers_to_itself(name) else None
        if "anyOf" in source or "oneOf" in source:
            return None
        properties = self._value("properties", source.get("properties") or {})
        required: set[str] = set(source.get("required") or ())
        parts: list[Any] = source.get("allOf") or []
        for part in parts:
            inner = self.fields(part)
            if inner is None:
                return None
            properties |= inner[0]
            required |= inner[1]
        return (properties, required) if properties else None

    def _refers_to_itself(self, reference: str) -> bool:
        """True if following references from `reference` alone returns to it."""
        seen, pending = set[str](), [reference]
        while pending:
            current = pending.pop()
            if current in seen:
                return True
            seen.add(current)
            target = _object(self._look_up(current))
            all_of: list[Any] = target.get("allOf") or []
            parts = [target, *(_object(part) for part in all_of)]
            pending += [str(part["$ref"]) for part in parts if "$ref" in part]
        return False

    def _value(self, key: str, value: Any) -> Any:
        if key in _LISTS and isinstance(value, list):
            return [self.read(item) for item in cast(list[Any], value)]
        if key in _SINGLE and isinstance(value, dict):
            return self.read(value)
        if key in _MAPS and isinstance(value, dict):
            return {
                name: self.read(subschema)
                for name, subschema in cast(Json, value).items()
                if not _is_read_only(subschema)
            }
        return value

    def _definition_name(self, reference: str) -> str:
        if reference not in self._names:
            name = self._unused_name(reference.rsplit("/", 1)[-1])
            self._names[reference] = name
            self.definitions[name] = {}  # reserved before the conversion: the schema may refer to itself
            self.definitions[name] = self.read(self._look_up(reference))
        return self._names[reference]

    def _unused_name(self, base: str) -> str:
        name, number = base, 1
        while name in self.definitions:
            number += 1
            name = f"{base}_{number}"
        return name


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _is_read_only(schema: Any) -> bool:
    """True for a property that only the service writes."""
    return bool(_object(schema).get("readOnly"))


def _convert_exclusive_limits(schema: Json) -> None:
    """In OpenAPI 3.0 exclusive limits are booleans beside the limit."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and limit in schema:
            schema[exclusive] = schema.pop(limit)


def _fix_types(schema: Json) -> None:
    """Some documents write `String` or `Any`, which model services refuse."""
    if "type" not in schema:
        return
    declared: Any = schema["type"]
    declared_types = cast(list[Any], declared) if isinstance(declared, list) else [declared]
    types = [kind for name in declared_types if (kind := str(name).lower()) in _TYPES]
    if types:
        schema["type"] = types if isinstance(declared, list) else types[0]
    else:
        del schema["type"]


def _convert_one_of(schema: Json, source: Json) -> None:
    """Convert `oneOf` to `anyOf`, the only one that model services know; the service itself checks for uniqueness."""
    if "oneOf" not in schema:
        return
    alternatives: list[Any] = schema.pop("oneOf")
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", []), {"anyOf": alternatives}]
    else:
        schema["anyOf"] = alternatives
    discriminator = _object(source.get("discriminator"))
    names = list(_object(discriminator.get("mapping"))) or [
        str(_object(alternative).get("$ref", "")).rsplit("/", 1)[-1] for alternative in cast(list[Any], source["oneOf"])
    ]
    if discriminator.get("propertyName") and all(names):
        hint = f"{discriminator['propertyName']!r} says which: {', '.join(names)}."
        schema["description"] = " ".join(filter(None, [schema.get("description"), hint]))
