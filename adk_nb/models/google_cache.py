"""Gemini's explicit cache: the beginning of a conversation, kept by the service and named instead of sent again.

Source: https://ai.google.dev/api/caching, and google-adk 2.13 for when a cache is made, used and given up.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Protocol

from adk_nb import clock, types
from adk_nb.errors import ModelHTTPError
from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.models.context_cache_config import ContextCacheConfig
from adk_nb.models.http_address import redacted_excerpt
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.vendor_facts import gemini_family

logger = logging.getLogger(__name__)

_CACHED_SETTINGS = {"system_instruction", "tools", "tool_config"}
"""Settings that a cache holds; beside its name they may not be sent."""
_CACHE_LOST_STATUSES = (400, 403, 404)
"""What the service answers when it does not know a cache, or not for this key."""
_CACHE_TIMEOUT = 60
"""That making a cache, or deleting one, may take."""

Question = dict[str, Any]
"""The arguments of google-genai's generate_content: `model`, `contents`, `config`."""


class Caches(Protocol):
    """What is used of google-genai's AsyncCaches."""

    async def create(self, *, model: str, config: types.CreateCachedContentConfig) -> types.CachedContent: ...

    async def delete(self, *, name: str) -> Any: ...


class Caching:
    """One request's dealings with the cache. Whatever goes wrong with it is a warning, and everything is sent."""

    def __init__(self, caches: Caches, request: LlmRequest) -> None:
        """Deal with the cache of one request.

        Args:
            caches: The service's.
            request: With a `cache_config`, and what the agent's last answer left to remember.
        """
        self._caches = caches
        self._config = request.cache_config or ContextCacheConfig()
        self._previous = request.cache_metadata
        self._prompt_tokens = request.cacheable_contents_token_count

    async def answers(
        self, question: Question, ask: Callable[[Question], AsyncGenerator[LlmResponse, None]]
    ) -> AsyncGenerator[LlmResponse, None]:
        """What `ask` answers, the whole answer with what is to be remembered of the cache.

        Args:
            question: As it would be asked without a cache; not changed.
            ask: Asks the service. Called again, without a cache, if the service does not know the cache any more.
        """
        prefix = _Prefix(question)
        metadata = await self._cache(prefix)
        if metadata.cache_name:
            try:
                async for answer in _with_metadata(ask(prefix.asked_with(metadata)), metadata):
                    yield answer
                return
            except ModelHTTPError as error:
                if error.status not in _CACHE_LOST_STATUSES:
                    raise
                self._warn(f"cache {metadata.cache_name!r} cannot be used, everything is sent", error)
            metadata = prefix.noted(metadata.contents_count)
        async for answer in _with_metadata(ask(question), metadata):
            yield answer

    async def _cache(self, prefix: "_Prefix") -> CacheMetadata:
        """The cache to use, or the print of what could be cached: it is when it is asked for the second time."""
        previous = self._previous
        if previous is None:
            return prefix.noted()
        is_same_prefix = prefix.begins_with(previous)
        is_alive = previous.cache_name is not None and clock.now() < (previous.expire_time or 0)
        if is_same_prefix and is_alive and (previous.invocations_used or 0) <= self._config.cache_intervals:
            return previous
        if is_alive:
            await self._delete(previous.cache_name or "")
        count = max(prefix.count, previous.contents_count) if is_same_prefix else prefix.count
        created = await self._create(prefix, count) if is_same_prefix and self._is_worth_it(prefix, count) else None
        return created or prefix.noted(count)

    def _is_worth_it(self, prefix: "_Prefix", count: int) -> bool:
        tokens, min_tokens = self._prompt_tokens, self._config.min_tokens
        return tokens is not None and tokens >= min_tokens and prefix.is_long_enough(tokens, count)

    async def _create(self, prefix: "_Prefix", count: int) -> CacheMetadata | None:
        config = prefix.to_be_kept(count)
        config.ttl = f"{self._config.ttl_seconds}s"
        config.http_options = self._config.create_http_options
        try:
            async with asyncio.timeout(_CACHE_TIMEOUT):
                cache = await self._caches.create(model=prefix.model, config=config)
        except Exception as error:
            self._warn(f"no cache for model {prefix.model!r}, everything is sent", error)
            return None
        now = clock.now()
        fields = {
            "cache_name": cache.name,
            "expire_time": cache.expire_time.timestamp() if cache.expire_time else now + self._config.ttl_seconds,
            "invocations_used": 1,
            "created_at": now,
        }
        return prefix.noted(count).model_copy(update=fields) if cache.name else None

    async def _delete(self, name: str) -> None:
        try:
            async with asyncio.timeout(_CACHE_TIMEOUT):
                await self._caches.delete(name=name)
        except Exception as error:
            self._warn(f"cache {name!r} is not used any more and could not be deleted", error)

    def _warn(self, problem: str, error: Exception) -> None:
        logger.warning("%s: %s: %s", problem, type(error).__name__, redacted_excerpt(str(error)))


async def _with_metadata(
    answers: AsyncGenerator[LlmResponse, None], metadata: CacheMetadata
) -> AsyncGenerator[LlmResponse, None]:
    async with aclosing(answers):
        async for answer in answers:
            if not answer.partial:
                answer.cache_metadata = metadata
            yield answer


class _Prefix:
    """What of a question can be cached: its instruction, its tools, and what was said before the user's last words."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.model: str = question["model"]
        self._settings: types.GenerateContentConfig = question["config"]
        self.contents: list[types.Content] = question["contents"]
        self.count = _last_user_index(self.contents)
        self._head = self._settings.model_dump_json(include=_CACHED_SETTINGS, exclude_none=True, fallback=str)

    def noted(self, count: int | None = None) -> CacheMetadata:
        """The print of the first `count` contents and what stands before them."""
        count = self.count if count is None else count
        digest = hashlib.sha256(f"{self.model}\n{self._head}".encode())
        for content in self.contents[:count]:
            digest.update(content.model_dump_json(exclude_none=True).encode() + b"\n")
        return CacheMetadata(fingerprint=digest.hexdigest()[:16], contents_count=count)

    def begins_with(self, previous: CacheMetadata) -> bool:
        """True if nothing of what was noted then has changed."""
        count = previous.contents_count
        return count <= len(self.contents) and self.noted(count).fingerprint == previous.fingerprint

    def is_long_enough(self, prompt_tokens: int, count: int) -> bool:
        """True if the service keeps so much. How many of the prompt's tokens are the beginning's is guessed."""
        lengths = [_length(content) for content in self.contents]
        share = (len(self._head) + sum(lengths[:count])) / (len(self._head) + sum(lengths))
        return prompt_tokens * share >= gemini_family(self.model).min_cached_tokens

    def to_be_kept(self, count: int) -> types.CreateCachedContentConfig:
        settings: dict[str, Any] = {name: getattr(self._settings, name) for name in _CACHED_SETTINGS}
        return types.CreateCachedContentConfig(contents=list(self.contents[:count]) or None, **settings)

    def asked_with(self, cache: CacheMetadata) -> Question:
        """The question without what the cache holds."""
        changes = dict.fromkeys(_CACHED_SETTINGS) | {"cached_content": cache.cache_name}
        start = min(cache.contents_count, len(self.contents) - 1)  # the service wants at least one content
        config = self._settings.model_copy(update=changes)
        return self._question | {"contents": self.contents[start:], "config": config}


def _last_user_index(contents: list[types.Content]) -> int:
    """How many contents stand before the user's last ones; a call is not parted from its response."""
    index = len(contents)
    while index and contents[index - 1].role == "user":
        index -= 1
    has_responses = any(part.function_response for content in contents[index:] for part in content.parts or ())
    return index - 1 if has_responses and index else index


def _length(content: types.Content) -> int:
    """Characters, data left out: what a picture counts has nothing to do with its size."""
    return len(content.model_dump_json(exclude_none=True, exclude={"parts": {"__all__": {"inline_data"}}}))
