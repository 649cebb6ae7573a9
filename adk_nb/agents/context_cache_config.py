"""ADK's path to ContextCacheConfig."""

from adk_nb.models.context_cache_config import ContextCacheConfig

__all__ = ["ContextCacheConfig"]
