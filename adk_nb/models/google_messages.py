"""A request as Gemini takes it: a history without other services' ids and signatures, and a schema that it reads."""

import inspect
import json
from types import UnionType
from typing import Any, Union, cast, get_origin

from pydantic import TypeAdapter

from adk_nb import types
from adk_nb.models.pairing import is_paired, pair_turns
from adk_nb.models.signatures import is_gemini_signature

OWN_ID_PREFIX = "adk-"
"""What they start with."""

_ONLY_IN_JSON_SCHEMA = ('"additionalProperties":', '"prefixItems":')
"""What google's own `Schema` has no word for. Source: https://ai.google.dev/api/caching#Schema."""


def prepare_content(content: types.Content) -> types.Content:
    """The content as it is sent: itself, or a copy when one of its calls carries an id of ours.

    Nor is a result told to be an interim one: Vertex AI takes no `will_continue`, and other services ignore it.
    Thoughts that another service signed are left out, if there is nothing else all that there is; so are its
    signatures of calls.
    """
    parts = content.parts or []
    sent = [_drop_own_id(part) for part in _drop_foreign_signatures(content).parts or ()]
    if len(sent) == len(parts) and all(new is old for new, old in zip(sent, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": sent})


def prepare_contents(contents: list[types.Content]) -> list[types.Content]:
    """A history that a fault has left is put right; others are sent as they are, and so found again in a cache."""
    sent = [prepared for content in contents if (prepared := prepare_content(content)).parts]
    return (
        sent
        if is_paired(sent)
        else [prepare_content(content) for content in pair_turns(map(_drop_foreign_signatures, contents))]
    )


def _drop_foreign_signatures(content: types.Content) -> types.Content:
    parts = content.parts or []
    if all(map(is_gemini_signature, parts)):
        return content
    remaining = [
        part if is_gemini_signature(part) else part.model_copy(update={"thought_signature": None})
        for part in parts
        if is_gemini_signature(part) or not part.thought
    ]
    return content.model_copy(update={"parts": remaining})


def _drop_own_id(part: types.Part) -> types.Part:
    for name in ("function_call", "function_response"):
        call: types.FunctionCall | types.FunctionResponse | None = getattr(part, name)
        if not call:
            continue
        has_own_id = call.id is not None and call.id.startswith(OWN_ID_PREFIX)
        is_interim = name == "function_response" and call.will_continue is not None
        if has_own_id or is_interim:
            update = {"id": None if has_own_id else call.id} | ({"will_continue": None} if is_interim else {})
            return part.model_copy(update={name: call.model_copy(update=update)})
    return part


def with_readable_schema(config: types.GenerateContentConfig) -> types.GenerateContentConfig:
    """`config`, with its output schema as JSON Schema if it is one, or one that google's `Schema` cannot say."""
    schema: Any = config.response_schema
    if schema is None or isinstance(schema, types.Schema):
        return config
    json_schema = cast(dict[str, Any], schema) if isinstance(schema, dict) else TypeAdapter(schema).json_schema()
    if _is_google_schema(schema) and not any(word in json.dumps(json_schema) for word in _ONLY_IN_JSON_SCHEMA):
        return config
    return config.model_copy(update={"response_schema": None, "response_json_schema": json_schema})


def _is_google_schema(schema: Any) -> bool:
    """True if google-genai turns it into a `Schema`."""
    return inspect.isclass(schema) or get_origin(schema) in (list, Union, UnionType)
