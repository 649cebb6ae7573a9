"""ADK's path to ContextCacheConfig."""

from adk_nb.models.cache_metadata import ContextCacheConfig

__all__ = ["ContextCacheConfig"]
