"""The schemas of an OpenAPI document as JSON Schema that stands by itself."""

from collections.abc import Callable
from typing import Any, cast

Json = dict[str, Any]

_DROPPED = {
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
"""Words that say nothing to a model, or have another form in JSON Schema."""
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MAPS = ("properties", "patternProperties", "dependentSchemas")


class Schemas:
    """Reads the schemas of one operation. What they refer to, by its place in the document, goes into `definitions`."""

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        """`look_up`: what stands at a reference."""
        self._look_up = look_up
        self._names: dict[str, str] = {}
        self.definitions: Json = {}
        """Name -> schema; others refer to them as `#/$defs/name`, so that one may contain itself."""

    def read(self, schema: Any) -> Json:
        """`schema` as JSON Schema 2020-12. Source: OpenAPI 3.0 and 3.1, Schema Object."""
        if not isinstance(schema, dict):
            return {}  # true: anything; a property that nothing fits is not told of
        said = cast(Json, schema)
        made = {key: self._value(key, one) for key, one in said.items() if key not in _DROPPED and key[:2] != "x-"}
        if "$ref" in said:
            made["$ref"] = f"#/$defs/{self._defined(str(said['$ref']))}"
        _limits_as_numbers(made)
        _known_types(made)
        _one_of_as_any_of(made, said)
        if made.get("properties") and "required" in made:
            made["required"] = [name for name in made["required"] if name in made["properties"]]
        return {"anyOf": [made, {"type": "null"}]} if said.get("nullable") else made

    def fields(self, schema: Any) -> tuple[Json, set[str]] | None:
        """The properties of an object, and which it needs; None if it is no object whose properties are all known."""
        if not isinstance(schema, dict):
            return None
        said = cast(Json, schema)
        if "$ref" in said:
            name = str(said["$ref"])
            return self.fields(self._look_up(name)) if not self._refers_to_itself(name) else None
        if "anyOf" in said or "oneOf" in said:
            return None
        properties = self._value("properties", said.get("properties") or {})
        required: set[str] = set(said.get("required") or ())
        parts: list[Any] = said.get("allOf") or []
        for part in parts:
            inner = self.fields(part)
            if inner is None:
                return None
            properties |= inner[0]
            required |= inner[1]
        return (properties, required) if properties else None

    def _refers_to_itself(self, reference: str) -> bool:
        """Whether following references from `reference` alone comes back to it."""
        seen, left = set[str](), [reference]
        while left:
            one = left.pop()
            if one in seen:
                return True
            seen.add(one)
            said = _object(self._look_up(one))
            inner: list[Any] = said.get("allOf") or []
            parts = [said, *(_object(part) for part in inner)]
            left += [str(part["$ref"]) for part in parts if "$ref" in part]
        return False

    def _value(self, key: str, value: Any) -> Any:
        if key in _LISTS and isinstance(value, list):
            return [self.read(one) for one in cast(list[Any], value)]
        if key in _SINGLE and isinstance(value, dict):
            return self.read(value)
        if key in _MAPS and isinstance(value, dict):
            return {name: self.read(one) for name, one in cast(Json, value).items() if not _only_read(one)}
        return value

    def _defined(self, reference: str) -> str:
        if reference not in self._names:
            name = self._free(reference.rsplit("/", 1)[-1])
            self._names[reference] = name
            self.definitions[name] = {}  # there before it is read: it may refer to itself
            self.definitions[name] = self.read(self._look_up(reference))
        return self._names[reference]

    def _free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.definitions:
            number += 1
            name = f"{wanted}_{number}"
        return name


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _only_read(schema: Any) -> bool:
    """A property that only the service writes."""
    return bool(_object(schema).get("readOnly"))


def _limits_as_numbers(schema: Json) -> None:
    """OpenAPI 3.0 says with true or false whether a limit itself is allowed."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and limit in schema:
            schema[exclusive] = schema.pop(limit)


def _known_types(schema: Json) -> None:
    """Some documents say `String` or `Any`, which providers refuse."""
    if "type" not in schema:
        return
    said: Any = schema["type"]
    every = cast(list[Any], said) if isinstance(said, list) else [said]
    known = [kind for one in every if (kind := str(one).lower()) in _TYPES]
    if known:
        schema["type"] = known if isinstance(said, list) else known[0]
    else:
        del schema["type"]


def _one_of_as_any_of(schema: Json, said: Json) -> None:
    """Providers know `anyOf` alone; whether it is no more than one of them, the service says."""
    if "oneOf" not in schema:
        return
    either: list[Any] = schema.pop("oneOf")
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", []), {"anyOf": either}]
    else:
        schema["anyOf"] = either
    kind = _object(said.get("discriminator"))
    names = list(_object(kind.get("mapping"))) or [
        str(_object(one).get("$ref", "")).rsplit("/", 1)[-1] for one in cast(list[Any], said["oneOf"])
    ]
    if kind.get("propertyName") and all(names):
        told = f"{kind['propertyName']!r} says which: {', '.join(names)}."
        schema["description"] = " ".join(filter(None, [schema.get("description"), told]))
