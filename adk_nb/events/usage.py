"""Tokens that the models of an event used: of its own answer, and of agents that a tool ran apart from the session."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.models.signals import REPLAYED

NESTED_USAGE = "nested_usage"
"""Key of an event's custom_metadata: call id -> the model answers behind that call, each with its model and usage."""


class Usage(NamedTuple):
    """Tokens of one model answer."""

    model: str | None
    tokens: types.GenerateContentResponseUsageMetadata
    is_replayed: bool = False
    """It came from a recording, and cost nothing."""


def usages_of(event: Event) -> Iterator[Usage]:
    """The event's own usage, then that behind its calls; none of a partial event."""
    if event.partial:
        return
    about = event.custom_metadata or {}
    if event.usage_metadata is not None:
        yield Usage(event.model_version, event.usage_metadata, bool(about.get(REPLAYED)))
    for answers in about.get(NESTED_USAGE, {}).values():
        for answer in answers:
            tokens = types.GenerateContentResponseUsageMetadata.model_validate(answer["usage"])
            yield Usage(answer["model"], tokens, answer["replayed"])


def as_json(event: Event) -> list[dict[str, Any]]:
    """What `usages_of` gives, as it is kept under `NESTED_USAGE`."""
    return [
        {
            "model": usage.model,
            "usage": usage.tokens.model_dump(mode="json", by_alias=True, exclude_none=True),
            "replayed": usage.is_replayed,
        }
        for usage in usages_of(event)
    ]
