"""How long a service may keep the beginning of a conversation, so that it need not be read again."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.wire import field_errors


class ContextCacheConfig(BaseModel):
    """For all agents of an app: App(..., context_cache_config=ContextCacheConfig(ttl_seconds=600)).

    Models whose service keeps nothing do not heed it.

    Raises:
        ConfigurationError: A field is unknown or wrong.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)

    cache_intervals: int = Field(default=10, ge=1, le=100)
    """In how many invocations one cache is used, before it is made anew with what was said since."""
    ttl_seconds: int = Field(default=1800, gt=0)
    """How long the service keeps a cache. Its storage is paid for."""
    min_tokens: int = Field(default=0, ge=0)
    """A prompt shorter than this is not cached."""
    create_http_options: types.HttpOptions | None = None
    """For the request that makes a cache, such as a timeout in milliseconds; too late is as good as failed."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(f"context_cache_config: {field_errors(error, type(self).model_fields)}") from error
