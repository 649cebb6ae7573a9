"""Instruction, history and tools become one request to a model."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from adk_nb import types
from adk_nb.flow.context_cache import remember_cache
from adk_nb.flow.history.contents import contents_before, read_contents
from adk_nb.flow.history.lent import Lent
from adk_nb.flow.instructing import instruct
from adk_nb.flow.planning import ask_to_plan
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.run_config import RunConfig
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.set_model_response_tool import INSTRUCTION, SetModelResponseTool
from adk_nb.tools.shape import Shape
from adk_nb.wire import copy_model

_no_settings = cache(types.GenerateContentConfig)
"""Made when first needed, for the sake of imports."""
_empty = cache(LlmRequest)


async def build_request(
    ctx: InvocationContext, spec: LlmSpec, tools: Sequence[BaseTool], context: Context
) -> LlmRequest:
    """The request for the next model call of `spec`. `context` is what its tools are handed to prepare it.

    Contents: the data of its static instruction, then the history; before what the user said last, what is told for
    this call alone.

    Raises:
        StateKeyError: An instruction names a state key that is not there.
        ConfigurationError: An instruction is not one.
    """
    request = copy_model(  # what is in it needs no checking
        _empty(),
        model=spec.canonical_model.model,
        config=_settings(spec, ctx.run_config),
        contents=[],
        tools_dict={},
        session_state=ctx.session.state,
    )
    instruction = await instruct(ctx, spec, request)
    static = request.contents
    if spec.output_shape:
        _ask_for(spec.output_shape, request, tools)
    request.append_tools([tool for tool in tools if _only_declares(tool)])
    if ctx.compaction:
        await ctx.compaction.before_model(ctx, spec.name)
    await _converse(ctx, spec, request, instruction)
    if ctx.context_cache_config:
        remember_cache(ctx, spec.name, request)
    for tool in tools:
        if not _only_declares(tool):
            await tool.process_llm_request(tool_context=context, llm_request=request)
    request.contents[:0] = static
    # A callback may edit what it is given; the session's own is not to change.
    if spec.hooks("before_model") or ctx.plugin_manager.hooks("before_model"):
        request.contents = Lent(request.contents)
        request.config = request.config.model_copy(deep=True)
    return request


def _settings(spec: LlmSpec, run: RunConfig) -> types.GenerateContentConfig:
    """A copy of the agent's settings, and over them what the run says of every request."""
    own = spec.generate_content_config or _no_settings()
    changed: dict[str, Any] = {}
    if run.labels:
        changed["labels"] = (own.labels or {}) | run.labels
    if run.service_tier:
        changed["service_tier"] = types.ServiceTier(run.service_tier)
    if options := run.http_options:
        before = own.http_options or types.HttpOptions()
        said = {name: getattr(options, name) for name in options.model_fields_set}
        said["headers"] = (before.headers or {}) | (options.headers or {})
        changed["http_options"] = before.model_copy(update=said)
    return copy_model(own, **changed)


def _ask_for(output: Shape, request: LlmRequest, tools: Sequence[BaseTool]) -> None:
    if any(isinstance(tool, SetModelResponseTool) for tool in tools):
        request.append_instructions([INSTRUCTION])
    else:
        request.set_output_schema(output.schema)


async def _converse(
    ctx: InvocationContext, spec: LlmSpec, request: LlmRequest, instruction: types.Content | None
) -> None:
    """The history that the agent sees, and what is told for this call alone."""
    this_turn, run = spec.include_contents == "none", ctx.run_config
    thoughts = run.include_thoughts_from_other_agents and not this_turn
    request.contents = await read_contents(
        ctx.session, spec.name, ctx.branch, ctx.isolation_scope, this_turn=this_turn, thoughts=thoughts
    )
    if ctx.delegated_input:
        request.contents[:0] = _led_here(ctx, spec.name, thoughts=thoughts)
    if spec.planner:
        ask_to_plan(spec.planner, request, ReadonlyContext(ctx))
    if run.model_input_context:
        _put_before_message(ctx.user_content, request, run.model_input_context)
    if instruction:
        request.insert_before_question([instruction])


def _led_here(ctx: InvocationContext, agent: str, *, thoughts: bool) -> list[types.Content]:
    """What an agent was called with, and before it what led to the call as far as it may see that."""
    said = [ctx.delegated_input] if ctx.delegated_input else []
    if caller := ctx.caller:
        seen = contents_before(
            ctx.session, ctx.caller_event_count, agent, ctx.branch, caller.isolation_scope, thoughts=thoughts
        )
        return [*_led_here(caller, agent, thoughts=thoughts), *seen, *said]
    return said


def _put_before_message(message: types.Content | None, request: LlmRequest, contents: list[types.Content]) -> None:
    for at in range(len(request.contents) - 1, -1, -1):
        if request.contents[at] == message:
            request.contents[at:at] = contents
            return
    request.insert_before_question(contents)


def _only_declares(tool: BaseTool) -> bool:
    """True if all that `tool` does to a request is to be declared in it: those are declared together."""
    return type(tool).process_llm_request is BaseTool.process_llm_request
