"""Prices of model answers, from the installed table of genai-prices; nothing is fetched."""

import json
import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, cast

from adk_nb import clock, types
from adk_nb.lazy import require

INSTALL_HINT = "%pip install genai-prices tells what answers cost"
_LOCAL = re.compile(r":(latest|[\d.]+[bm])\b")
"""A tag of Ollama: the model runs locally, whoever made it."""


def load() -> Any:
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
    load()
    if not model or _LOCAL.search(model):
        return None
    return _price(model.removeprefix("models/"), usage.model_dump_json(by_alias=True, exclude_none=True))


@cache
def table() -> str:
    """Version and date of the price table.

    Raises:
        MissingExtraError: The table is not installed.
    """
    version = load().__version__
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
    prices = load()
    response = {"usageMetadata": json.loads(usage_json)}
    try:
        usage = prices.extract_usage(response, provider_id="google").usage
        # The prefix of `vendor/model` is the provider; otherwise genai-prices finds it by the model's name.
        return float(prices.calc_price(usage, model, provider_id="litellm" if "/" in model else None).total_price)
    except (LookupError, ValueError):  # unknown model, or a count that its price needs is missing
        return None
