"""The context cache: its configuration, and its metadata, carried from answer to answer."""

from pydantic import ConfigDict, Field, model_validator

from adk_nb import clock, types
from adk_nb.wire import SettingsModel, WireModel


class ContextCacheConfig(SettingsModel):
    """Context cache of all agents of an app: App(..., context_cache_config=ContextCacheConfig(ttl_seconds=600)).

    Ignored by models whose service has no cache.

    Raises:
        ConfigurationError: A field is unknown or invalid.
    """

    model_config = ConfigDict(defer_build=True)

    cache_intervals: int = Field(default=10, ge=1, le=100)
    """Number of invocations that use a cache before it is created again with the newer messages."""
    ttl_seconds: int = Field(default=1800, gt=0)
    """Lifetime of a cache at the service, which charges for storage."""
    min_tokens: int = Field(default=0, ge=0)
    """Minimum length of the agent's previous prompt, as the service counted it."""
    create_http_options: types.HttpOptions | None = None
    """Options of the request that creates a cache, such as a timeout in milliseconds; if it fails, none is used."""


_EXPIRY_MARGIN = 120.0


class CacheMetadata(WireModel):
    """A cache at the service, or, without `cache_name`, the fingerprint of a cacheable prefix.

    Source: google-adk 2.13, whose names and whose two-minute margin these are.
    """

    model_config = ConfigDict(frozen=True)

    cache_name: str | None = None
    """The service's name of the cache: `cachedContents/456`."""
    expire_time: float | None = None
    """Seconds since the epoch, UTC."""
    fingerprint: str
    """Hash of the instruction, the tools and the first `contents_count` contents."""
    invocations_used: int | None = Field(default=None, ge=0)
    """Number of invocations that have used it."""
    contents_count: int = Field(ge=0)
    """Number of contents in the cached or cacheable prefix."""
    created_at: float | None = None
    """Seconds since the epoch, UTC."""

    @model_validator(mode="after")
    def _check_complete(self) -> "CacheMetadata":
        if len({field is None for field in (self.cache_name, self.expire_time, self.invocations_used)}) > 1:
            raise ValueError("cache_name, expire_time and invocations_used belong together: give all three, or none")
        return self

    @property
    def expire_soon(self) -> bool:
        """True in the last two minutes of the cache, and after; False if there is none."""
        return self.expire_time is not None and clock.now() > self.expire_time - _EXPIRY_MARGIN
