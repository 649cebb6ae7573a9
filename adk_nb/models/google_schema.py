"""An output schema in the words that Gemini's service reads."""

import inspect
import json
from types import UnionType
from typing import Any, Union, cast, get_origin

from pydantic import TypeAdapter

from adk_nb import types

_ONLY_IN_JSON_SCHEMA = ('"additionalProperties":', '"prefixItems":')
"""What google's own `Schema` has no word for. Source: https://ai.google.dev/api/caching#Schema."""


def with_readable_schema(config: types.GenerateContentConfig) -> types.GenerateContentConfig:
    """`config`, with its output schema as JSON Schema if it is one, or one that google's `Schema` cannot say."""
    schema: Any = config.response_schema
    if schema is None or isinstance(schema, types.Schema):
        return config
    told = cast(dict[str, Any], schema) if isinstance(schema, dict) else TypeAdapter(schema).json_schema()
    if _can_be_google_s(schema) and not any(word in json.dumps(told) for word in _ONLY_IN_JSON_SCHEMA):
        return config
    return config.model_copy(update={"response_schema": None, "response_json_schema": told})


def _can_be_google_s(schema: Any) -> bool:
    """True if google-genai turns it into a `Schema`."""
    return inspect.isclass(schema) or get_origin(schema) in (list, Union, UnionType)
