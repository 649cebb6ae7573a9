"""When an app's conversations are summed up, and by what."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.apps.base_events_summarizer import BaseEventsSummarizer
from adk_nb.errors import ConfigurationError
from adk_nb.wire import wrong_fields

_PAIRS = (("compaction_interval", "overlap_size"), ("token_threshold", "event_retention_size"))


class EventsCompactionConfig(BaseModel):
    """Long conversations are kept short: EventsCompactionConfig(compaction_interval=5, overlap_size=1).

    A summary takes the place of the older events in what models are sent; the events stay in the session. Give one pair
    of numbers, or both; a prompt that is too long is then looked at first.

    Raises:
        ConfigurationError: A field is unknown or wrong, or one of a pair is missing.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    summarizer: BaseEventsSummarizer | None = None
    """None: the model of the app's root agent."""
    compaction_interval: int | None = Field(default=None, gt=0)
    """After a run: how many new invocations (a user's message, with all that answers it) are summed up at a time."""
    overlap_size: int | None = Field(default=None, ge=0)
    """How many invocations before the new ones are summed up once more, so that summaries hang together."""
    token_threshold: int | None = Field(default=None, gt=0)
    """After a run and before each model call: a prompt of so many tokens is shortened."""
    event_retention_size: int | None = Field(default=None, ge=0)
    """How many of the newest events are then kept as they are; more, where a call and its response would be parted."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            told = wrong_fields(error, type(self).model_fields)
            raise ConfigurationError(f"events_compaction_config: {told}") from error
        missing = [pair for pair in _PAIRS if (getattr(self, pair[0]) is None) != (getattr(self, pair[1]) is None)]
        if missing:
            raise ConfigurationError(f"{missing[0][0]!r} and {missing[0][1]!r} belong together; give both")
        if self.compaction_interval is None and self.token_threshold is None:
            raise ConfigurationError(
                "an events_compaction_config says when to sum up; give compaction_interval and overlap_size, "
                "or token_threshold and event_retention_size"
            )
