"""What a run may cost: counted as its models answer, and looked at before one of them is asked again."""

import logging

from adk_nb.events.event import Event
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.prices import load, price
from adk_nb.models.signals import REPLAYED
from adk_nb.runtime.invocation_context import InvocationContext, Shared

logger = logging.getLogger(__name__)

MAX_COST = "MAX_COST"
"""Error code of the event that ends a run which has cost what it may."""


def pay(ctx: InvocationContext, answer: Event) -> None:
    """Add what an answer costs to what the run has cost; once it is too much, the run ends before the next question."""
    usage = answer.usage_metadata
    if usage is None or (answer.custom_metadata or {}).get(REPLAYED):
        return
    counted, cost = _counted(ctx), price(answer.model_version, usage)
    if cost is not None:
        counted.cost_usd += cost
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
    load()
    limit, cost = ctx.run_config.max_cost_usd, _counted(ctx).cost_usd
    if limit is None or cost < limit:
        return None
    ctx.end_invocation = True
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        error_code=MAX_COST,
        error_message=(
            f"this run has cost about ${cost:.4f}, and may cost ${limit:g} (max_cost_usd); no model was asked again; "
            "raise the limit, or say what is to be done next"
        ),
    )


def _counted(ctx: InvocationContext) -> Shared:
    return ctx.shared.whole or ctx.shared
