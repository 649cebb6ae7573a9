"""What a model's answer costs, by the table of genai-prices that is installed: nothing is fetched."""

import json
import re
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, cast

from adk_nb import clock, types
from adk_nb.lazy import require

HOW = "%pip install genai-prices tells what answers cost"
_LOCAL = re.compile(r":(latest|[\d.]+[bm])\b")
"""A tag of Ollama's: the model is on one's own machine, whoever made it."""


def load() -> Any:
    """The package with the table, which takes a third of a second to read. Raises MissingExtraError without it."""
    return require("genai_prices", package="genai-prices")


def price(model: str | None, usage: types.GenerateContentResponseUsageMetadata) -> float | None:
    """US dollars for one answer; None: the table does not know the model.

    Args:
        model: As its service names it.
        usage: As Gemini counts: cached tokens are among those of the prompt, thoughts beside those of the answer.

    Raises:
        MissingExtraError: The table is not installed.
    """
    load()
    if not model or _LOCAL.search(model):
        return None
    return _price(model.removeprefix("models/"), usage.model_dump_json(by_alias=True, exclude_none=True))


@cache
def table() -> str:
    """Which table it is, and of when.

    Raises:
        MissingExtraError: As `price`.
    """
    version = load().__version__
    known: Any = require("genai_prices.data_snapshot", package="genai-prices").get_snapshot()
    priced = [one for provider in known.providers for model in provider.models for one in _several(model.prices)]
    begins = (getattr(one.constraint, "start_date", None) for one in priced)
    today = datetime.fromtimestamp(clock.now(), UTC).date()
    newest = max((one for one in begins if one and one <= today), default=None)
    return f"prices of genai-prices {version}" + (f", with changes up to {newest}" if newest else "")


def _several(prices: Any) -> list[Any]:
    return cast(list[Any], prices) if isinstance(prices, list) else []


@lru_cache(maxsize=10_000)
def _price(model: str, counted: str) -> float | None:
    """As `price`; a session is added up again after each of its turns."""
    prices = load()
    told = {"usageMetadata": json.loads(counted)}
    try:
        usage = prices.extract_usage(told, provider_id="google").usage
        # Of `vendor/model`, the vendor is whoever is named; else it is known by the name of the model.
        return float(prices.calc_price(usage, model, provider_id="litellm" if "/" in model else None).total_price)
    except (LookupError, ValueError):  # no such model; or nobody told a count that its price needs
        return None
