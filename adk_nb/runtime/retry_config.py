"""The retry policy of a graph node."""

import random
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.errors import ConfigurationError
from adk_nb.wire import field_errors


class RetryConfig(BaseModel):
    """The retry policy of a graph node: number of attempts, and exponential backoff with jitter."""

    model_config = ConfigDict(extra="forbid")

    max_attempts: int = Field(default=5, ge=1)
    """Including the first attempt."""
    initial_delay: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt."""
    max_delay: float = Field(default=60.0, ge=0)
    """Seconds; upper limit of each delay."""
    backoff_factor: float = Field(default=2.0, ge=1)
    """Factor from one delay to the next."""
    jitter: float = Field(default=1.0, ge=0)
    """Seconds; a random value up to this is added to each delay."""
    exceptions: list[Any] | None = None
    """Exception classes, or their names, to retry. None: all."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigurationError(f"RetryConfig: {field_errors(error, type(self).model_fields)}") from error

    def is_retryable(self, error: BaseException) -> bool:
        """True if `exceptions` includes `error`."""
        if not isinstance(error, Exception):
            return False
        names = {error_class.__name__ for error_class in type(error).__mro__}
        return self.exceptions is None or any(
            isinstance(error, error_class) if isinstance(error_class, type) else error_class in names
            for error_class in self.exceptions
        )

    def delay_after(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait after a failed attempt. None: do not retry. `attempt`: number of the failed one, from 1."""
        if attempt >= self.max_attempts or not self.is_retryable(error):
            return None
        try:
            delay = self.initial_delay * self.backoff_factor ** (attempt - 1)
        except OverflowError:
            return self.max_delay
        return min(delay + random.uniform(0, self.jitter), self.max_delay)
