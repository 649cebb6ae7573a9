"""Token usage and cost of an event: its own model answer, and the agents that its tool calls ran in other sessions."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from adk_nb import clock, types
from adk_nb.events.event import Event
from adk_nb.lazy import require
from adk_nb.models.llm_response import REPLAYED
from adk_nb.wire import WireModel

INSTALL_HINT = "%pip install genai-prices tells what answers cost"
_LOCAL = re.compile(r":(latest|[\d.]+[bm])\b")
"""A tag of Ollama: the model runs locally, whoever made it."""


def load_prices() -> Any:
    """Import the price table, which takes a third of a second. Raises MissingExtraError if it is not installed."""
    return require("genai_prices", package="genai-prices")


def price(model: str | None, usage: types.GenerateContentResponseUsageMetadata) -> float | None:
    """Price of an answer in US dollars; None: the table does not have the model.

    Args:
        model: The service's name of the model.
        usage: As Gemini counts: the prompt includes cached tokens, the answer excludes thoughts.

    Raises:
        MissingExtraError: The table is not installed.
    """
    load_prices()
    if not model or _LOCAL.search(model):
        return None
    return _price(model.removeprefix("models/"), usage.model_dump_json(by_alias=True, exclude_none=True))


@cache
def price_table() -> str:
    """Version and date of the price table.

    Raises:
        MissingExtraError: The table is not installed.
    """
    version = load_prices().__version__
    snapshot: Any = require("genai_prices.data_snapshot", package="genai-prices").get_snapshot()
    prices = [price for provider in snapshot.providers for model in provider.models for price in _as_list(model.prices)]
    start_dates = (getattr(price.constraint, "start_date", None) for price in prices)
    today = datetime.fromtimestamp(clock.now(), UTC).date()
    newest = max((date for date in start_dates if date and date <= today), default=None)
    return f"prices of genai-prices {version}" + (f", with changes up to {newest}" if newest else "")


def _as_list(prices: Any) -> list[Any]:
    return cast(list[Any], prices) if isinstance(prices, list) else []


@lru_cache(maxsize=10_000)
def _price(model: str, usage_json: str) -> float | None:
    """As `price`; cached, since a session is summed up again after each turn."""
    prices = load_prices()
    response = {"usageMetadata": json.loads(usage_json)}
    try:
        usage = prices.extract_usage(response, provider_id="google").usage
        # The prefix of `vendor/model` is the provider; otherwise genai-prices finds it by the model's name.
        return float(prices.calc_price(usage, model, provider_id="litellm" if "/" in model else None).total_price)
    except (LookupError, ValueError):  # unknown model, or a count that its price needs is missing
        return None


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
