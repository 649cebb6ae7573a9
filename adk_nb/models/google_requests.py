"""Requests to Gemini: history and schema as the API accepts them, and the explicit cache."""

import asyncio
import hashlib
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import UnionType
from typing import Any, Protocol, Union, cast, get_origin

from pydantic import TypeAdapter

from adk_nb import clock, types
from adk_nb.errors import ModelHTTPError
from adk_nb.models.adaptation import is_gemini_signature, is_paired, pair_turns
from adk_nb.models.cache_metadata import CacheMetadata, ContextCacheConfig
from adk_nb.models.http_address import redacted_excerpt
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Payload
from adk_nb.models.vendor_facts import gemini_family

logger = logging.getLogger(__name__)

OWN_ID_PREFIX = "adk-"
"""Prefix of the ids that this package gives to calls."""

_ONLY_IN_JSON_SCHEMA = ('"additionalProperties":', '"prefixItems":')
"""Keywords that Gemini's `Schema` lacks. Source: https://ai.google.dev/api/caching#Schema."""


def prepare_content(content: types.Content) -> types.Content:
    """Prepare a content for Gemini; returns the same object if nothing changes, so that its cache stays valid.

    Removes our ids of calls, the thoughts and signatures of other services, and `will_continue` of interim results,
    which Vertex AI refuses.
    """
    parts, prepared = content.parts or [], list[types.Part]()
    for part in _without_foreign_thoughts(content).parts or ():
        name = "function_call" if part.function_call else "function_response"
        call: types.FunctionCall | types.FunctionResponse | None = getattr(part, name)
        # A call without an id from the API got one of ours, anew in each run: sent, it would make a cache useless.
        has_own_id = call is not None and call.id is not None and call.id.startswith(OWN_ID_PREFIX)
        is_interim = isinstance(call, types.FunctionResponse) and call.will_continue is not None
        if call and (has_own_id or is_interim):
            update = {"id": None if has_own_id else call.id} | ({"will_continue": None} if is_interim else {})
            part = part.model_copy(update={name: call.model_copy(update=update)})
        prepared.append(part)
    if len(prepared) == len(parts) and all(new is old for new, old in zip(prepared, parts, strict=True)):
        return content
    return content.model_copy(update={"parts": prepared})


def prepare_contents(contents: list[types.Content]) -> list[types.Content]:
    """Prepare a history. Its turns are paired only if Gemini would refuse them, so that a cache stays valid."""
    prepared = [content for content in map(prepare_content, contents) if content.parts]
    if is_paired(prepared):
        return prepared
    return [prepare_content(content) for content in pair_turns(map(_without_foreign_thoughts, contents))]


_PLAIN_PARTS: dict[str, frozenset[str] | None] = {
    "text": None,
    "thought": None,
    "thoughtSignature": None,
    "functionCall": frozenset({"id", "name", "args"}),
    "functionResponse": frozenset({"id", "name", "response"}),
    "inlineData": frozenset({"data", "mimeType"}),
    "fileData": frozenset({"fileUri", "mimeType"}),
}
"""Parts, and the fields of them, that the Gemini API and Vertex AI take alike."""
_CONTENTS = TypeAdapter(list[types.Content])
_IN_EXTRA_BODY = [types.Content(role="user", parts=[types.Part(text="see extra_body")])]


def with_contents_as_json(payload: Payload, options: types.HttpOptions) -> Payload:
    """`payload` with its contents as JSON in `extra_body`, which google-genai sends in place of what it converts.

    It walks and converts each part several times, which takes seconds in long conversations (`benchmarks/wire.py`).
    What the two services take differently is left to it.

    Args:
        payload: `model`, `contents` and `config` of `generate_content`.
        options: Settings of the client, which those of a request replace.
    """
    contents = _CONTENTS.dump_python(payload["contents"], mode="json", by_alias=True, exclude_none=True)
    if not all(_is_plain(part) for content in contents for part in content.get("parts", ())):
        return payload
    config: types.GenerateContentConfig = payload["config"]
    own = config.http_options or types.HttpOptions()
    body = {"contents": contents} | (own.extra_body or options.extra_body or {})
    http_options = own.model_copy(update={"extra_body": body})
    return payload | {"contents": _IN_EXTRA_BODY, "config": config.model_copy(update={"http_options": http_options})}


def _is_plain(part: dict[str, Any]) -> bool:
    return all(
        name in _PLAIN_PARTS and ((fields := _PLAIN_PARTS[name]) is None or fields.issuperset(value))
        for name, value in part.items()
    )


def _without_foreign_thoughts(content: types.Content) -> types.Content:
    """Drop what Gemini did not make: thoughts, and the signatures of other parts."""
    parts = content.parts or []
    if all(map(is_gemini_signature, parts)):
        return content
    remaining = [
        part if is_gemini_signature(part) else part.model_copy(update={"thought_signature": None})
        for part in parts
        # Gemini answers 400 to a signature that it did not make; foreign thoughts are useless without it.
        if is_gemini_signature(part) or not part.thought
    ]
    return content.model_copy(update={"parts": remaining})


def with_json_schema(config: types.GenerateContentConfig) -> types.GenerateContentConfig:
    """`config` itself, or if Gemini's `Schema` cannot express its output schema, a copy with JSON Schema instead."""
    schema: Any = config.response_schema
    if schema is None or isinstance(schema, types.Schema):
        return config
    json_schema = cast(dict[str, Any], schema) if isinstance(schema, dict) else TypeAdapter(schema).json_schema()
    # What google-genai converts to a `Schema`.
    is_google_schema = inspect.isclass(cast(Any, schema)) or get_origin(schema) in (list, Union, UnionType)
    if is_google_schema and not any(keyword in json.dumps(json_schema) for keyword in _ONLY_IN_JSON_SCHEMA):
        return config
    # Gemini takes one of the two, not both.
    return config.model_copy(update={"response_schema": None, "response_json_schema": json_schema})


_CACHED_SETTINGS = {"system_instruction", "tools", "tool_config"}
"""Settings that a cache has; Gemini refuses them beside `cached_content`."""
_CACHE_LOST_STATUSES = (400, 403, 404)
"""HTTP statuses for a cache that expired, or belongs to another key."""
_CACHE_TIMEOUT = 60
"""Seconds to create or delete a cache."""


class Caches(Protocol):
    """The used methods of google-genai's AsyncCaches."""

    async def create(self, *, model: str, config: types.CreateCachedContentConfig) -> types.CachedContent:
        """Create a cache."""
        ...

    async def delete(self, *, name: str) -> Any:
        """Delete a cache."""
        ...


class ContextCache:
    """The explicit cache of one request. Any failure of it is logged, and the whole request is sent.

    Source: https://ai.google.dev/api/caching, and google-adk 2.13 for when a cache is created, used and deleted.
    """

    def __init__(self, caches: Caches, request: LlmRequest) -> None:
        """Read the settings and the previous metadata of `request`.

        Args:
            caches: The service's caches.
            request: Has a `cache_config`, and the `cache_metadata` of the agent's last answer.
        """
        self._caches = caches
        self._config = request.cache_config or ContextCacheConfig()
        self._previous = request.cache_metadata
        self._prompt_tokens = request.cacheable_contents_token_count

    async def generate(
        self, payload: Payload, send: Callable[[Payload], AsyncGenerator[LlmResponse, None]]
    ) -> AsyncGenerator[LlmResponse, None]:
        """Send the request with the cache; the complete answer has the metadata of the cache.

        Args:
            payload: `model`, `contents` and `config` of the request without a cache; not changed.
            send: Sends a request. Called again, without a cache, if the cache has expired.
        """
        prefix = _Prefix(payload)
        metadata = await self._renew(prefix)
        if metadata.cache_name:
            try:
                async for answer in _with_metadata(send(prefix.cached_payload(metadata)), metadata):
                    yield answer
                return
            # Refusals come before the first chunk: nothing was shown, and the request can be sent again.
            except ModelHTTPError as error:
                if error.status not in _CACHE_LOST_STATUSES:
                    raise
                self._warn(f"cache {metadata.cache_name!r} cannot be used, sending the whole request", error)
            # Without the name of the cache: the next request creates a new one.
            metadata = prefix.metadata(metadata.contents_count)
        async for answer in _with_metadata(send(payload), metadata):
            yield answer

    async def _renew(self, prefix: "_Prefix") -> CacheMetadata:
        """The cache to use: the last one, or else a new one, after deleting the last one.

        Without a cache, the fingerprint of the prefix: a prefix is cached when it is sent again.
        """
        previous = self._previous
        if previous is None:
            return prefix.metadata()
        is_same_prefix = prefix.matches(previous)
        is_alive = previous.cache_name is not None and clock.now() < (previous.expire_time or 0)
        # `<=`, as in google-adk: a cache that was used `cache_intervals` times is used once more.
        # `flow/request.py` counts the uses, when it reads the metadata of the last answer.
        if is_same_prefix and is_alive and (previous.invocations_used or 0) <= self._config.cache_intervals:
            return previous
        if is_alive:
            # Gemini charges for stored caches by the hour.
            await self._delete(previous.cache_name or "")
        count = max(prefix.count, previous.contents_count) if is_same_prefix else prefix.count
        tokens, least = self._prompt_tokens, self._config.min_tokens
        if is_same_prefix and tokens is not None and tokens >= least and prefix.is_long_enough(tokens, count):
            return await self._create(prefix, count) or prefix.metadata(count)
        return prefix.metadata(count)

    async def _create(self, prefix: "_Prefix", count: int) -> CacheMetadata | None:
        config = prefix.cache_config(count)
        config.ttl = f"{self._config.ttl_seconds}s"
        config.http_options = self._config.create_http_options
        try:
            async with asyncio.timeout(_CACHE_TIMEOUT):
                cache = await self._caches.create(model=prefix.model, config=config)
        except Exception as error:
            self._warn(f"no cache for model {prefix.model!r}, sending the whole request", error)
            return None
        now = clock.now()
        fields = {
            "cache_name": cache.name,
            # The service may shorten the lifetime that was requested.
            "expire_time": cache.expire_time.timestamp() if cache.expire_time else now + self._config.ttl_seconds,
            "invocations_used": 1,
            "created_at": now,
        }
        return prefix.metadata(count).model_copy(update=fields) if cache.name else None

    async def _delete(self, name: str) -> None:
        try:
            async with asyncio.timeout(_CACHE_TIMEOUT):
                await self._caches.delete(name=name)
        except Exception as error:
            self._warn(f"unused cache {name!r} could not be deleted", error)

    def _warn(self, problem: str, error: Exception) -> None:
        logger.warning("%s: %s: %s", problem, type(error).__name__, redacted_excerpt(str(error)))


async def _with_metadata(
    answers: AsyncGenerator[LlmResponse, None], metadata: CacheMetadata
) -> AsyncGenerator[LlmResponse, None]:
    async with aclosing(answers):
        async for answer in answers:
            # The next request reads it from the stored answer; partial ones are not stored.
            if not answer.partial:
                answer.cache_metadata = metadata
            yield answer


class _Prefix:
    """The cacheable prefix of a request: instruction, tools, and the contents before the last user message."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self.model: str = payload["model"]
        self._settings: types.GenerateContentConfig = payload["config"]
        self.contents: list[types.Content] = payload["contents"]
        count = len(self.contents)
        while count and self.contents[count - 1].role == "user":
            count -= 1
        # Gemini: a function response must follow the turn with its call in the same request.
        last_parts = [part for content in self.contents[count:] for part in content.parts or ()]
        has_responses = any(part.function_response for part in last_parts)
        self.count = count - 1 if has_responses and count else count
        self._head = self._settings.model_dump_json(include=_CACHED_SETTINGS, exclude_none=True, fallback=str)

    def metadata(self, count: int | None = None) -> CacheMetadata:
        """Fingerprint of the instruction, the tools and the first `count` contents; without a cache name."""
        count = self.count if count is None else count
        digest = hashlib.sha256(f"{self.model}\n{self._head}".encode())
        for content in self.contents[:count]:
            digest.update(content.model_dump_json(exclude_none=True).encode() + b"\n")
        return CacheMetadata(fingerprint=digest.hexdigest()[:16], contents_count=count)

    def matches(self, previous: CacheMetadata) -> bool:
        """True if this request starts with the prefix of `previous`."""
        count = previous.contents_count
        return count <= len(self.contents) and self.metadata(count).fingerprint == previous.fingerprint

    def is_long_enough(self, prompt_tokens: int, count: int) -> bool:
        """True if the prefix reaches the service's minimum; its tokens are estimated from its share of characters."""
        lengths = [_length(content) for content in self.contents]
        # Counting tokens would be one more request.
        share = (len(self._head) + sum(lengths[:count])) / (len(self._head) + sum(lengths))
        return prompt_tokens * share >= gemini_family(self.model).min_cached_tokens

    def cache_config(self, count: int) -> types.CreateCachedContentConfig:
        """Config of a new cache with the first `count` contents."""
        settings: dict[str, Any] = {name: getattr(self._settings, name) for name in _CACHED_SETTINGS}
        return types.CreateCachedContentConfig(contents=list(self.contents[:count]) or None, **settings)

    def cached_payload(self, cache: CacheMetadata) -> Payload:
        """The request without its cached prefix."""
        changes = dict.fromkeys(_CACHED_SETTINGS) | {"cached_content": cache.cache_name}
        start = min(cache.contents_count, len(self.contents) - 1)  # Gemini requires at least one content
        config = self._settings.model_copy(update=changes)
        return self._payload | {"contents": self.contents[start:], "config": config}


def _length(content: types.Content) -> int:
    """Number of characters without data: the tokens of an image do not depend on its size in bytes."""
    return len(content.model_dump_json(exclude_none=True, exclude={"parts": {"__all__": {"inline_data"}}}))
