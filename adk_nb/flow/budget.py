"""What a run may cost: counted as its models answer, and looked at before one of them is asked again."""

import logging
from contextvars import ContextVar

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.usage import usages_of
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.prices import load, price
from adk_nb.models.signals import REPLAYED
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

MAX_COST = "MAX_COST"
"""Error code of the event that ends a run which has cost what it may."""


counting: ContextVar[InvocationContext | None] = ContextVar("counting", default=None)
"""The run that a question counts for which is no agent's: of a summariser. None: of no run."""


def pay(ctx: InvocationContext, answer: Event) -> None:
    """Add what an answer costs to what the run has cost; once it is too much, the run ends before the next question."""
    counted = ctx.shared.root or ctx.shared
    cost = price(answer.model_version, usage) if (usage := _paid(answer)) else 0.0
    if cost is not None:
        counted.cost_usd = (counted.cost_usd or 0.0) + cost
        return
    logger.warning(
        "no price is known for model %r: max_cost_usd=%g does not limit what it costs",
        answer.model_version or "",
        ctx.run_config.max_cost_usd,
    )


def used_up(ctx: InvocationContext, spec: LlmSpec) -> Event | None:
    """The event that ends the whole run, if it has cost what it may.

    Raises:
        MissingExtraError: There is no table of prices, so nobody could tell.
    """
    if not is_used_up(ctx):
        return None
    ctx.end_invocation = True
    cost, limit = (ctx.shared.root or ctx.shared).cost_usd, ctx.run_config.max_cost_usd
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        error_code=MAX_COST,
        error_message=(
            f"this run has cost about ${cost:.4f}, and may cost ${limit:g}; no model was asked again; "
            "raise max_cost_usd (in a notebook %chat --max-cost), or say what is to be done next"
        ),
    )


def is_used_up(ctx: InvocationContext) -> bool:
    """True if the run has cost what it may; raises as `used_up`."""
    limit = ctx.run_config.max_cost_usd
    if limit is None:
        return False
    load()
    counted = ctx.shared.root or ctx.shared
    if counted.cost_usd is None:
        counted.cost_usd = _cost_before(ctx)
    return counted.cost_usd >= limit


def _cost_before(ctx: InvocationContext) -> float:
    """What the run has cost before it paused, or was cut, if it goes on; nothing, if it begins."""
    total = 0.0
    if not (ctx.calls_answered or ctx.checkpoints):
        return total
    history = history_of(ctx.session)
    for event in history.events[history.last_text_at :]:
        total += sum(price(one.model, one.tokens) or 0.0 for one in usages_of(event) if not one.is_replayed)
    return total


def _paid(answer: Event) -> types.GenerateContentResponseUsageMetadata | None:
    return None if (answer.custom_metadata or {}).get(REPLAYED) else answer.usage_metadata
