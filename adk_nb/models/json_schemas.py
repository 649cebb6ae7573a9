"""Tool parameters and output schemas as plain JSON Schema, which most services read."""

import copy
from typing import Any, cast

from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest, tools_of

_Json = dict[str, Any]
_ANNOTATIONS = {"$schema", "$id", "$comment", "discriminator", "examples", "deprecated", "readOnly", "writeOnly"}
"""Keywords without effect on validation; OpenAI refuses some of them."""
_SUPPORTED = {"type", "description", "title", "const", "required", "additionalProperties", "pattern", "$ref"} | {
    *("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "minItems", "maxItems")
}
_NOT_AT_TOP = {"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "if", "then", "else", "dependentSchemas"}
"""Keywords that OpenAI or Anthropic refuse at the top of a tool's parameters, and those that may hide properties."""
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_MAX_DEPTH, _MAX_PROPERTIES, _MAX_ENUM = 10, 5_000, 1_000
"""Limits of OpenAI's strict mode; the last two are totals of a schema."""


def declared_functions(request: LlmRequest) -> list[types.FunctionDeclaration]:
    """All function declarations of the request."""
    tools = [tool for tool in tools_of(request) if isinstance(tool, types.Tool)]
    return [function for tool in tools for function in tool.function_declarations or ()]


def allowed_functions(request: LlmRequest) -> list[types.FunctionDeclaration]:
    """Function declarations of the request, restricted to the allowed names if its settings have them."""
    allowed = calling_config(request).allowed_function_names
    return [function for function in declared_functions(request) if not allowed or function.name in allowed]


def calling_config(request: LlmRequest) -> types.FunctionCallingConfig:
    """The function calling mode and allowed names of the request."""
    tool_config = request.config.tool_config
    return (tool_config and tool_config.function_calling_config) or types.FunctionCallingConfig()


def parameters_schema(declaration: types.FunctionDeclaration, *, whole: bool = False) -> dict[str, Any]:
    """The parameters of a function, as the schema of an object; `whole`: with the alternatives that it has."""
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.json_schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    parameters: dict[str, Any] = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    # OpenAI and Anthropic require an object, also for a function without parameters.
    empty: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    return empty | (parameters if whole else flat_schema(parameters))


def flat_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with the properties of all alternatives and of what it refers to; no copy if flat.

    OpenAI and Anthropic refuse `anyOf`, `oneOf`, `allOf` and the like at the top of a tool's parameters. What is valid
    for `schema` is valid for the result; the owner of the schema checks the rest.
    """
    return _flatten(schema, schema, ()) if schema.keys() & _NOT_AT_TOP else schema


def _flatten(schema: _Json, root: _Json, expanded: tuple[str, ...]) -> _Json:
    """`expanded`: references around it, which are not followed again."""
    flat: _Json = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    own: _Json = schema.get("properties") or {}
    required = list[str](schema.get("required") or ())
    together, alternatives = list[Any](schema.get("allOf") or ()), list[Any]()
    if isinstance(ref := schema.get("$ref"), str) and ref not in expanded:
        together.append(_target(root, ref))
        expanded = (*expanded, ref)
    for keyword in ("anyOf", "oneOf"):
        branches = [_flatten(branch, root, expanded) for branch in _objects(schema.get(keyword))]
        alternatives += branches
        shared = [set[str](branch.get("required") or ()) for branch in branches]
        required += sorted(set[str].intersection(*shared)) if shared else []
    whole = [_flatten(part, root, expanded) for part in _objects(together)]
    conditional = [schema[key] for key in ("then", "else") if key in schema]
    conditional += (schema.get("dependentSchemas") or {}).values()
    alternatives += [_flatten(part, root, expanded) for part in _objects(conditional)]
    found: dict[str, list[Any]] = {}
    for part in [*whole, *alternatives]:
        properties: _Json = part.get("properties") or {}
        for name, value in properties.items():
            values = found.setdefault(name, [])
            values += [] if value in values else [value]
        for key in ("additionalProperties", "patternProperties"):
            if part.get(key) and key not in flat:
                flat[key] = part[key]
    for part in whole:
        required += part.get("required") or ()
    flat["type"] = "object"
    flat["properties"] = {
        name: values[0] if len(values) == 1 else {"anyOf": values} for name, values in found.items()
    } | own
    flat["required"] = list(dict.fromkeys(required))
    return flat


def _objects(schemas: Any) -> list[_Json]:
    return [schema for schema in schemas or () if isinstance(schema, dict)]


def _target(root: _Json, ref: str) -> Any:
    """What `ref` points to within `root`; None: nothing."""
    target: Any = root
    for key in ref.removeprefix("#/").split("/") if ref != "#" else ():
        target = cast(_Json, target).get(key) if isinstance(target, dict) else None
    return target


def output_schema(config: types.GenerateContentConfig) -> dict[str, Any] | None:
    """The JSON Schema of the answer. None: any answer."""
    schema: Any = config.response_schema
    if schema is None:
        schema = cast(Any, config).response_json_schema
    if schema is None or isinstance(schema, dict):
        return cast("dict[str, Any] | None", schema)
    if isinstance(schema, types.Schema):
        return schema.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return TypeAdapter(schema).json_schema()


def close_objects(schema: dict[str, Any]) -> dict[str, Any] | None:
    """Copy `schema` with `additionalProperties: false` in every object; None if an object has free keys.

    Args:
        schema: JSON Schema, not changed.
    """
    closed = copy.deepcopy(schema)
    return closed if _close(closed) else None


def _close(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_close, cast(list[Any], schema)))
    if not isinstance(schema, dict):
        return True
    keywords = cast(dict[str, Any], schema)
    if keywords.get("type") == "object" or "properties" in keywords:
        names = set(cast(dict[str, Any], keywords.get("properties") or {}))
        # `setdefault` closes the object. A value other than False, or no property at all, means free keys.
        if not names or keywords.setdefault("additionalProperties", False):
            return False
    subschemas = [*keywords.get("properties", {}).values(), *keywords.get("$defs", {}).values()]
    subschemas += [keywords[name] for name in ("items", "anyOf", "prefixItems") if name in keywords]
    return all(map(_close, subschemas))


# ---- the subset of JSON Schema in OpenAI's strict mode
# Source: https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". A `$ref` beside other
# keywords is inlined as openai's own package does (`openai.lib._pydantic`), since the API answers 400 to it.


class _Unsupported(Exception):
    """The schema is outside the subset."""


def strict_schema(schema: _Json) -> _Json | None:
    """Convert `schema` for `strict: true`; None if it is outside the subset.

    Objects are closed, unions become `anyOf`, and a `$ref` beside other keywords is replaced by its target.
    """
    try:
        strict = _Strict(schema)
        converted = strict.convert(schema, 1, ())
    except _Unsupported:
        return None
    # OpenAI: the root must be an object, and no anyOf.
    is_object = converted.get("type") == "object" and "anyOf" not in converted
    return converted if is_object and strict.is_within_limits() else None


class _Strict:
    """The conversion of one schema."""

    def __init__(self, root: _Json) -> None:
        self._root = root
        self._properties = self._enum = 0

    def is_within_limits(self) -> bool:
        """True if the schema is within OpenAI's limits on properties and enum values."""
        return self._properties <= _MAX_PROPERTIES and self._enum <= _MAX_ENUM

    def convert(self, schema: Any, depth: int, expanded: tuple[str, ...]) -> _Json:
        """Convert a schema, as a copy.

        Args:
            schema: A subschema of the root.
            depth: Nesting depth of objects, this one included.
            expanded: References that are inlined around it.
        """
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            raise _Unsupported
        keywords: _Json = {name: value for name, value in cast(_Json, schema).items() if name not in _ANNOTATIONS}
        if len(keywords) > 1 and isinstance(ref := keywords.get("$ref"), str):
            if ref in expanded:  # recursive: keep the reference, without its description
                keywords = {"$ref": ref}
            else:
                if not isinstance(target := _target(self._root, ref), dict):
                    raise _Unsupported
                own = {name: value for name, value in keywords.items() if name != "$ref"}
                keywords = {name: value for name, value in cast(_Json, target).items() if name not in _ANNOTATIONS}
                keywords |= own
                expanded = (*expanded, ref)
        if "oneOf" in keywords and "anyOf" not in keywords:
            keywords["anyOf"] = keywords.pop("oneOf")
        intersection = cast(list[Any], keywords.get("allOf") or [])
        # Older versions of pydantic write a `$ref` with a description as an `allOf` of one.
        if len(intersection) == 1 and isinstance(intersection[0], dict):
            del keywords["allOf"]
            return self.convert(cast(_Json, intersection[0]) | keywords, depth, expanded)
        if not keywords.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
            raise _Unsupported
        return {
            name: self._convert_keyword(name, value, depth, expanded)
            for name, value in self._close_object(keywords).items()
        }

    def _close_object(self, keywords: _Json) -> _Json:
        """Close an object; it must have properties, all of them required."""
        if keywords.get("type") != "object" and "properties" not in keywords:
            return keywords
        names = set(cast(_Json, keywords.get("properties") or {}))
        # OpenAI's strict mode: every property is required, and no other is allowed.
        if (
            not names
            or names - set(keywords.get("required") or ())
            or keywords.get("additionalProperties", False) is not False
        ):
            raise _Unsupported
        self._properties += len(names)
        return keywords | {"additionalProperties": False}

    def _convert_keyword(self, name: str, value: Any, depth: int, expanded: tuple[str, ...]) -> Any:
        if name in _SUPPORTED or (name == "format" and value in _FORMATS):
            return value
        if name == "enum":
            self._enum += len(value)
            return value
        if name == "properties":
            return {key: self.convert(subschema, depth + 1, expanded) for key, subschema in value.items()}
        if name in ("$defs", "definitions"):
            # Depth counts from each definition anew: a reference may be recursive.
            return {key: self.convert(subschema, 1, ()) for key, subschema in value.items()}
        if name == "items":
            return self.convert(value, depth, expanded)
        if name == "anyOf":
            return [self.convert(subschema, depth, expanded) for subschema in value]
        raise _Unsupported
