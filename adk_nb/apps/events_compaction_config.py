"""Configuration of event compaction."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.apps.base_events_summarizer import BaseEventsSummarizer
from adk_nb.errors import ConfigurationError
from adk_nb.wire import field_errors

_PAIRS = (("compaction_interval", "overlap_size"), ("token_threshold", "event_retention_size"))


class EventsCompactionConfig(BaseModel):
    """Keeps long conversations short: EventsCompactionConfig(compaction_interval=5, overlap_size=1).

    A summary replaces the older events in requests to models; the session keeps the events. Set one pair of numbers, or
    both; the token threshold is then checked first.

    Raises:
        ConfigurationError: A field is unknown or invalid, or one of a pair is missing.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    summarizer: BaseEventsSummarizer | None = None
    """None: use the model of the app's root agent."""
    compaction_interval: int | None = Field(default=None, gt=0)
    """Number of new invocations (a user's message with all answers) to summarize at a time, after a run."""
    overlap_size: int | None = Field(default=None, ge=0)
    """Number of earlier invocations to include in a summary again, for continuity."""
    token_threshold: int | None = Field(default=None, gt=0)
    """Number of prompt tokens that triggers a compaction, checked after a run and before each model call."""
    event_retention_size: int | None = Field(default=None, ge=0)
    """Number of newest events to keep then; more if a call would be separated from its response."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            errors = field_errors(error, type(self).model_fields)
            raise ConfigurationError(f"events_compaction_config: {errors}") from error
        missing = [pair for pair in _PAIRS if (getattr(self, pair[0]) is None) != (getattr(self, pair[1]) is None)]
        if missing:
            raise ConfigurationError(f"{missing[0][0]!r} and {missing[0][1]!r} belong together; give both")
        if self.compaction_interval is None and self.token_threshold is None:
            raise ConfigurationError(
                "an events_compaction_config says when to sum up; give compaction_interval and overlap_size, "
                "or token_threshold and event_retention_size"
            )
