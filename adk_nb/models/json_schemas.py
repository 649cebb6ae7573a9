"""Tools' parameters and output schemas as plain JSON Schema, which is what most services read."""

import copy
from typing import Any, cast

from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest

_Json = dict[str, Any]
_NOTES = {"$schema", "$id", "$comment", "discriminator", "examples", "deprecated", "readOnly", "writeOnly"}
"""Keywords that allow and forbid nothing; some of them are refused."""
_PLAIN = {"type", "description", "title", "const", "required", "additionalProperties", "pattern", "$ref"} | {
    *("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems")
}
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_MAX_DEPTH, _MAX_PROPERTIES, _MAX_ENUM = 10, 5_000, 1_000


def functions_of(request: LlmRequest) -> list[types.FunctionDeclaration]:
    """What the model may call, fewer if the settings allow only some."""
    offered: list[Any] = [*(cast(Any, request.config).tools or [])]
    found = [
        one for tool in offered if isinstance(tool, types.Tool) for one in cast(Any, tool).function_declarations or ()
    ]
    allowed = calling_of(request).allowed_function_names
    return [one for one in found if not allowed or one.name in allowed]


def calling_of(request: LlmRequest) -> types.FunctionCallingConfig:
    """Whether the model must, may or must not call."""
    tool_config = request.config.tool_config
    return (tool_config and tool_config.function_calling_config) or types.FunctionCallingConfig()


def parameters_of(declared: types.FunctionDeclaration) -> dict[str, Any]:
    """The arguments of a function: an object's schema."""
    schema = declared.parameters_json_schema
    if schema is None and declared.parameters is not None:
        schema = declared.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    given: dict[str, Any] = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    empty: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    return empty | given


def output_schema_of(config: types.GenerateContentConfig) -> dict[str, Any] | None:
    """What the answer is to be. None: anything."""
    schema: Any = config.response_schema
    if schema is None:
        schema = cast(Any, config).response_json_schema
    if schema is None or isinstance(schema, dict):
        return cast("dict[str, Any] | None", schema)
    if isinstance(schema, types.Schema):
        return schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return TypeAdapter(schema).json_schema()


def closed(schema: dict[str, Any]) -> dict[str, Any] | None:
    """`schema`, every object in it closed to further keys; None if one of them names keys of its own.

    Args:
        schema: JSON Schema, not changed.
    """
    made = copy.deepcopy(schema)
    return made if _close(made) else None


def _close(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_close, cast(list[Any], schema)))
    if not isinstance(schema, dict):
        return True
    told = cast(dict[str, Any], schema)
    if told.get("type") == "object" or "properties" in told:
        names = set(cast(dict[str, Any], told.get("properties") or {}))
        if not names or told.setdefault("additionalProperties", False):
            return False
    below = [*told.get("properties", {}).values(), *told.get("$defs", {}).values()]
    below += [told[name] for name in ("items", "anyOf", "prefixItems") if name in told]
    return all(map(_close, below))


# ---- the subset of JSON Schema that OpenAI holds its models to
# Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". What becomes of `$ref` beside
# other keywords is what openai's own package does (`openai.lib._pydantic`), since the API answers 400 to that.


class _Outside(Exception):
    """The schema is not in the subset."""


def strict_schema(schema: _Json) -> _Json | None:
    """`schema` as it can be sent with `strict: true`; None if it says what that subset does not have.

    Objects are closed to further keys, unions are `anyOf`, and a `$ref` beside other keywords is what it refers to.
    """
    try:
        strict = _Strict(schema)
        made = strict.converted(schema, 1, ())
    except _Outside:
        return None
    is_object = made.get("type") == "object" and "anyOf" not in made
    return made if is_object and strict.is_within_limits() else None


class _Strict:
    """Converts one schema."""

    def __init__(self, root: _Json) -> None:
        self._root = root
        self._properties = self._enum = 0

    def is_within_limits(self) -> bool:
        return self._properties <= _MAX_PROPERTIES and self._enum <= _MAX_ENUM

    def converted(self, schema: Any, depth: int, within: tuple[str, ...]) -> _Json:
        """`schema`, a copy.

        Args:
            schema: Or what stands in its place.
            depth: Objects around it, with itself.
            within: References that are written out around it.
        """
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            raise _Outside
        told: _Json = {name: value for name, value in cast(_Json, schema).items() if name not in _NOTES}
        if len(told) > 1 and isinstance(ref := told.get("$ref"), str):
            if ref in within:  # endless, so without its description
                told = {"$ref": ref}
            else:
                told = self._merged(told, ref)
                within = (*within, ref)
        if "oneOf" in told and "anyOf" not in told:
            told["anyOf"] = told.pop("oneOf")
        intersection = cast(list[Any], told.get("allOf") or [])
        if len(intersection) == 1 and isinstance(intersection[0], dict):
            del told["allOf"]
            return self.converted(cast(_Json, intersection[0]) | told, depth, within)
        if not told.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
            raise _Outside
        return {name: self._keyword(name, value, depth, within) for name, value in self._closed(told).items()}

    def _merged(self, told: _Json, ref: str) -> _Json:
        target: Any = self._root
        for key in ref.removeprefix("#/").split("/") if ref != "#" else ():
            target = cast(_Json, target).get(key) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise _Outside
        found = {name: value for name, value in cast(_Json, target).items() if name not in _NOTES}
        return {**found, **{name: value for name, value in told.items() if name != "$ref"}}

    def _closed(self, told: _Json) -> _Json:
        """Every object has keys, needs all of them, and takes no other."""
        if told.get("type") != "object" and "properties" not in told:
            return told
        names = set(cast(_Json, told.get("properties") or {}))
        if not names or names - set(told.get("required") or ()) or told.get("additionalProperties", False) is not False:
            raise _Outside
        self._properties += len(names)
        return told | {"additionalProperties": False}

    def _keyword(self, name: str, value: Any, depth: int, within: tuple[str, ...]) -> Any:
        if name in _PLAIN or (name == "format" and value in _FORMATS):
            return value
        if name == "enum":
            self._enum += len(value)
            return value
        if name == "properties":
            return {key: self.converted(one, depth + 1, within) for key, one in value.items()}
        if name in ("$defs", "definitions"):
            return {key: self.converted(one, 1, ()) for key, one in value.items()}
        if name == "items":
            return self.converted(value, depth, within)
        if name == "anyOf":
            return [self.converted(one, depth, within) for one in value]
        raise _Outside
