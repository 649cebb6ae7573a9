"""The budget of a run, in US dollars: added up with each model response, checked before the next model call."""

import logging
from contextvars import ContextVar

from adk_nb.errors import MissingExtraError
from adk_nb.events.event import Event
from adk_nb.events.usage import load_prices, price, usages_of
from adk_nb.flow.spec import LlmSpec, agent_event
from adk_nb.models.llm_response import REPLAYED
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

MAX_COST = "MAX_COST"
"""Error code of the event that ends a run at its `max_cost_usd`."""
paying_run: ContextVar[InvocationContext | None] = ContextVar("paying_run", default=None)
"""The run that pays for model calls outside an agent, such as a summarizer's. None: no run pays."""


class Spending:
    """What model calls cost within `with Spending() as spent:`, in whatever runs, tools and metrics they are made."""

    def __init__(self) -> None:
        self.cost_usd: float | None = 0.0
        """US dollars. None: unknown."""
        self.unpriced_model: str | None = None
        """The first model without a known price."""

    def __enter__(self) -> "Spending":
        self._token = _spending.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _spending.reset(self._token)

    def add(self, model: str | None, cost: float | None) -> None:
        """Add the cost of a model call; None: unknown."""
        if cost is None:
            self.cost_usd, self.unpriced_model = None, self.unpriced_model or model or "?"
        elif self.cost_usd is not None:
            self.cost_usd += cost


_spending: ContextVar[Spending | None] = ContextVar("spending", default=None)


def counts_cost(ctx: InvocationContext) -> bool:
    """True if somebody asks what the model calls of this run cost."""
    return ctx.run_config.max_cost_usd is not None or _spending.get() is not None


def add_cost(ctx: InvocationContext, event: Event) -> None:
    """Add the cost of a model response to its run's; `budget_event` ends the run at the next model call."""
    # A replayed response costs nothing.
    usage = None if (event.custom_metadata or {}).get(REPLAYED) else event.usage_metadata
    try:
        cost = price(event.model_version, usage) if usage else 0.0
    except MissingExtraError:
        cost = None
    if spending := _spending.get():
        spending.add(event.model_version, cost)
    if ctx.run_config.max_cost_usd is None:
        return
    if cost is not None:
        counter = ctx.shared.outermost
        counter.cost_usd = (counter.cost_usd or 0.0) + cost
        return
    logger.warning(
        "no price is known for model %r: max_cost_usd=%g does not limit what it costs",
        event.model_version or "",
        ctx.run_config.max_cost_usd,
    )


def budget_event(ctx: InvocationContext, spec: LlmSpec) -> Event | None:
    """End the run if it is over its budget; return the event that says so, else None.

    Raises:
        MissingExtraError: The table of prices is not installed.
    """
    if not is_over_budget(ctx):
        return None
    ctx.end_invocation = True
    cost, limit = ctx.shared.outermost.cost_usd, ctx.run_config.max_cost_usd
    return agent_event(
        ctx,
        spec,
        error_code=MAX_COST,
        error_message=(
            f"the run stopped: it has cost about ${cost:.4f} of its limit of ${limit:g}; "
            "raise max_cost_usd (in a notebook: %chat --max-cost), or send a message to continue"
        ),
    )


def is_over_budget(ctx: InvocationContext) -> bool:
    """True if the run has reached its `max_cost_usd`. Raises as `budget_event`."""
    limit = ctx.run_config.max_cost_usd
    if limit is None:
        return False
    # Even before the first response: without a table of prices, the limit would be silently ignored.
    load_prices()
    counter = ctx.shared.outermost
    if counter.cost_usd is None:
        counter.cost_usd = 0.0
        # A resumed run goes on from what it cost before its interrupt or interruption.
        if ctx.calls_answered or ctx.checkpoints:
            history = history_of(ctx.session)
            for event in history.events[history.last_text_index :]:
                usages = (usage for usage in usages_of(event) if not usage.is_replayed)
                counter.cost_usd += sum(price(usage.model, usage.tokens) or 0.0 for usage in usages)
    return counter.cost_usd >= limit
