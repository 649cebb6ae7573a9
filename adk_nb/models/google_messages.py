"""A request as Gemini takes it: a history without other services' ids and signatures, and a schema that it reads."""

import inspect
import json
from types import UnionType
from typing import Any, Union, cast, get_origin

from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models.pairing import is_paired, paired
from adk_nb.models.signatures import is_gemini_s

OURS = "adk-"
"""What they start with."""

_ONLY_IN_JSON_SCHEMA = ('"additionalProperties":', '"prefixItems":')
"""What google's own `Schema` has no word for. Source: https://ai.google.dev/api/caching#Schema."""


def as_sent(content: types.Content) -> types.Content:
    """The content as it is sent: itself, or a copy when one of its calls carries an id of ours.

    Nor is a result told to be an interim one: Vertex AI takes no `will_continue`, and other services ignore it.
    Thoughts that another service signed are left out, if there is nothing else all that there is; so are its
    signatures of calls.
    """
    parts = content.parts or []
    sent = [_without_our_id(part) for part in _without_others_signatures(content).parts or ()]
    if len(sent) == len(parts) and all(one is other for one, other in zip(sent, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": sent})


def all_as_sent(contents: list[types.Content]) -> list[types.Content]:
    """A history that a fault has left is put right; others are sent as they are, and so found again in a cache."""
    sent = [one for content in contents if (one := as_sent(content)).parts]
    return sent if is_paired(sent) else [as_sent(one) for one in paired(map(_without_others_signatures, contents))]


def _without_others_signatures(content: types.Content) -> types.Content:
    parts = content.parts or []
    if all(map(is_gemini_s, parts)):
        return content
    kept = [
        part if is_gemini_s(part) else part.model_copy(update={"thought_signature": None})
        for part in parts
        if is_gemini_s(part) or not part.thought
    ]
    return content.model_copy(update={"parts": kept})


def _without_our_id(part: types.Part) -> types.Part:
    for name in ("function_call", "function_response"):
        told: types.FunctionCall | types.FunctionResponse | None = getattr(part, name)
        if not told:
            continue
        ours = told.id is not None and told.id.startswith(OURS)
        interim = name == "function_response" and told.will_continue is not None
        if ours or interim:
            update = {"id": None if ours else told.id} | ({"will_continue": None} if interim else {})
            return part.model_copy(update={name: told.model_copy(update=update)})
    return part


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
