"""Configuration of a context cache: how long a service keeps the prefix of a conversation."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.wire import field_errors


class ContextCacheConfig(BaseModel):
    """Context cache of all agents of an app: App(..., context_cache_config=ContextCacheConfig(ttl_seconds=600)).

    Ignored by models whose service has no cache.

    Raises:
        ConfigurationError: A field is unknown or invalid.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    cache_intervals: int = Field(default=10, ge=1, le=100)
    """Number of invocations that use a cache before it is created again with the newer messages."""
    ttl_seconds: int = Field(default=1800, gt=0)
    """Lifetime of a cache at the service, which charges for storage."""
    min_tokens: int = Field(default=0, ge=0)
    """Minimum length of a prompt to cache."""
    create_http_options: types.HttpOptions | None = None
    """Options of the request that creates a cache, such as a timeout in milliseconds; after it nothing is cached."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigurationError(f"context_cache_config: {field_errors(error, type(self).model_fields)}") from error
