"""Metadata of a context cache, carried from answer to answer."""

from pydantic import ConfigDict, Field, model_validator

from adk_nb import clock
from adk_nb.wire import WireModel

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
