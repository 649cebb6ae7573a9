"""Tools' parameters and output schemas as plain JSON Schema, which is what most services read."""

import copy
from typing import Any, cast

from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest


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
