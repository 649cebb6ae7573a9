"""One turn over a model's live door, the only one where a model can call functions from code that it runs itself."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.flow.live.conversation import run_live
from adk_nb.flow.spec import LlmSpec
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.live_request_queue import LiveRequestQueue


async def run_live_turn(ctx: InvocationContext, spec: LlmSpec) -> AsyncGenerator[Event, None]:
    """`RunConfig.support_cfc`: the conversation so far is told, and the model answers, with calls in between.

    Yields:
        As `run_live`, in words unless the run says otherwise, until the model has said all.

    Raises:
        NotImplementedError: The model has no live door.
    """
    config = ctx.run_config
    modalities = config.response_modalities or [types.Modality.TEXT]
    live = replace(
        ctx,
        live_request_queue=LiveRequestQueue(),
        run_config=config.model_copy(update={"response_modalities": modalities}),
    )
    ctx.count_llm_call()
    async with aclosing(run_live(live, spec)) as events:
        async for event in events:
            yield event
            if event.turn_complete:
                return
