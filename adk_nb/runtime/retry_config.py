"""How often a node of a graph that failed is run again."""

import random
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.errors import ConfigurationError
from adk_nb.wire import wrong_fields


class RetryConfig(BaseModel):
    """How often a node that failed is run again, and when."""

    model_config = ConfigDict(extra="forbid")

    max_attempts: int = Field(default=5, ge=1)
    """With the first one."""
    initial_delay: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt."""
    max_delay: float = Field(default=60.0, ge=0)
    """Seconds, the longest wait."""
    backoff_factor: float = Field(default=2.0, ge=1)
    """Each wait is so many times the last one."""
    jitter: float = Field(default=1.0, ge=0)
    """Up to so many seconds are added to each wait, by chance."""
    exceptions: list[Any] | None = None
    """Classes of errors, or their names. None: every error may pass by itself."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(f"RetryConfig: {wrong_fields(error, type(self).model_fields)}") from error

    def passes(self, error: BaseException) -> bool:
        """Whether a node that raised `error` is run again."""
        if not isinstance(error, Exception):
            return False
        names = {one.__name__ for one in type(error).__mro__}
        return self.exceptions is None or any(
            isinstance(error, one) if isinstance(one, type) else one in names for one in self.exceptions
        )

    def after(self, error: BaseException, attempt: int) -> float | None:
        """Seconds from a failing attempt to the next. None: it was the last. `attempt`: from 1."""
        if attempt >= self.max_attempts or not self.passes(error):
            return None
        try:
            grown = self.initial_delay * self.backoff_factor ** (attempt - 1)
        except OverflowError:
            return self.max_delay
        return min(grown + random.uniform(0, self.jitter), self.max_delay)
