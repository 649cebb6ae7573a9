"""What an agent's last answer tells of its cache goes along with its next request."""

from dataclasses import dataclass

from adk_nb.models.cache_metadata import CacheMetadata
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.invocation_context import InvocationContext


@dataclass
class _Known:
    """The newest of what an agent's events tell, kept up to date as events are appended."""

    seen: int = 0
    cache: CacheMetadata | None = None
    invocation_id: str = ""
    """Of the event that told of the cache."""
    tokens: int | None = None


def remember_cache(ctx: InvocationContext, agent: str, request: LlmRequest) -> None:
    """Say to `request` how long it may be cached, and what is known of the agent's cache."""
    session = ctx.session
    known = session.views.get(("cache", agent))
    if known is None or known.seen > len(session.events):
        known = session.views["cache", agent] = _Known()
    _look(known, ctx, agent)
    request.cache_config = ctx.context_cache_config
    request.cacheable_contents_token_count = known.tokens
    request.cache_metadata = _in_this_invocation(known, ctx)


def _look(known: _Known, ctx: InvocationContext, agent: str) -> None:
    for event in ctx.session.events[known.seen :]:
        if event.author == agent:
            if event.cache_metadata:
                known.cache, known.invocation_id = event.cache_metadata, event.invocation_id
            if event.usage_metadata and event.usage_metadata.prompt_token_count is not None:
                known.tokens = event.usage_metadata.prompt_token_count
    known.seen = len(ctx.session.events)


def _in_this_invocation(known: _Known, ctx: InvocationContext) -> CacheMetadata | None:
    """The cache; in another invocation than the last it has served one more."""
    cache = known.cache
    if cache is None or cache.invocations_used is None or known.invocation_id == ctx.invocation_id:
        return cache
    return cache.model_copy(update={"invocations_used": cache.invocations_used + 1})
