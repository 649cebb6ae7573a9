"""Token usage of an event: its own model answer, and the agents that its tool calls ran in other sessions."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.models.llm_response import REPLAYED
from adk_nb.wire import WireModel

NESTED_USAGE = "nested_usage"
"""Key of an event's custom_metadata: call id -> the model answers behind that call, with their models and usage."""


class Usage(NamedTuple):
    """Token usage of one model answer."""

    model: str | None
    tokens: types.GenerateContentResponseUsageMetadata
    is_replayed: bool = False
    """The answer was replayed from a recording, and cost nothing."""


class _StoredReply(WireModel):
    model: str | None
    usage: types.GenerateContentResponseUsageMetadata
    replayed: bool


@cache
def _nested_replies() -> TypeAdapter[dict[str, list[_StoredReply]]]:
    return TypeAdapter(dict[str, list[_StoredReply]])


def usages_of(event: Event) -> Iterator[Usage]:
    """Yield the usage of the event, then of its tool calls; nothing for a partial event."""
    if event.partial:
        return
    metadata = event.custom_metadata or {}
    if event.usage_metadata is not None:
        yield Usage(event.model_version, event.usage_metadata, bool(metadata.get(REPLAYED)))
    if not (stored := metadata.get(NESTED_USAGE)):
        return
    try:
        nested = _nested_replies().validate_python(stored)
    except ValidationError:
        return  # written by somebody else: it must not make the session unreadable
    for replies in nested.values():
        yield from (Usage(reply.model, reply.usage, reply.replayed) for reply in replies)


def total_usage(event: Event) -> types.GenerateContentResponseUsageMetadata | None:
    """The tokens of the event's own answer and of those behind its calls, in one. None: it has none."""
    usages = [usage.tokens for usage in usages_of(event)]
    if len(usages) <= 1:
        return usages[0] if usages else None
    totals = Counter[str]()
    for usage in usages:
        totals.update({name: value for name, value in usage if type(value) is int})
    return types.GenerateContentResponseUsageMetadata.model_validate(totals)


def usages_to_json(event: Event) -> list[dict[str, Any]]:
    """`usages_of(event)` as JSON: the value of one call under `NESTED_USAGE`."""
    return [
        {
            "model": usage.model,
            "usage": usage.tokens.model_dump(mode="json", by_alias=True, exclude_none=True),
            "replayed": usage.is_replayed,
        }
        for usage in usages_of(event)
    ]
