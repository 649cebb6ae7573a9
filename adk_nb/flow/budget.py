"""What a run may cost: counted as its models answer, and looked at before one of them is asked again."""

import logging

from adk_nb.events.event import Event
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.prices import load, price
from adk_nb.models.signals import REPLAYED
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

MAX_COST = "MAX_COST"
"""Error code of the event that ends a run which has cost what it may."""


def pay(ctx: InvocationContext, answer: Event) -> None:
    """Add what an answer costs to what the run has cost; once it is too much, the run ends before the next question."""
    counted = ctx.shared.whole or ctx.shared
    cost = _cost(answer)
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
    load()
    counted, limit = ctx.shared.whole or ctx.shared, ctx.run_config.max_cost_usd
    if counted.cost_usd is None:
        counted.cost_usd = _cost_before(ctx)
    if limit is None or counted.cost_usd < limit:
        return None
    ctx.end_invocation = True
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        error_code=MAX_COST,
        error_message=(
            f"this run has cost about ${counted.cost_usd:.4f}, and may cost ${limit:g}; no model was asked again; "
            "raise max_cost_usd (in a notebook %chat --max-cost), or say what is to be done next"
        ),
    )


def _cost_before(ctx: InvocationContext) -> float:
    """What the run has cost before it paused, or was cut, if it goes on; nothing, if it begins."""
    total = 0.0
    for event in reversed(ctx.session.events) if ctx.calls_answered or ctx.standing else ():
        if event.author == "user" and event.text:
            break
        total += _cost(event) or 0.0
    return total


def _cost(answer: Event) -> float | None:
    """US dollars. None: nobody knows."""
    usage = answer.usage_metadata
    if usage is None or (answer.custom_metadata or {}).get(REPLAYED):
        return 0.0
    return price(answer.model_version, usage)
