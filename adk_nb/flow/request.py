"""Instruction, history and tools become one request to a model."""

from collections.abc import Sequence

from adk_nb import types
from adk_nb.flow.contents import contents_for
from adk_nb.flow.spec import LlmSpec
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import Context, ReadonlyContext
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.base_tool import BaseTool

_NO_SETTINGS = types.GenerateContentConfig()


async def build_request(
    ctx: InvocationContext, spec: LlmSpec, tools: Sequence[BaseTool], context: Context
) -> LlmRequest:
    """The request for the next model call of `spec`. `context` is what its tools are handed to prepare it.

    System instruction: the agent's own, then who it is; joined by blank lines.

    Raises:
        StateKeyError: The instruction names a state key that is not there.
    """
    settings = spec.generate_content_config or _NO_SETTINGS
    request = LlmRequest(model=spec.canonical_model.model, config=settings.model_copy())
    told = await spec.instruction_for(ReadonlyContext(ctx))
    request.append_instructions([told, _identity(spec)] if told else [_identity(spec)])
    request.append_tools([tool for tool in tools if _only_declares(tool)])
    request.contents = contents_for(ctx.session, spec.name, ctx.branch)
    for tool in tools:
        if not _only_declares(tool):
            await tool.process_llm_request(tool_context=context, llm_request=request)
    # A callback may edit what it is given; the session's own is not to change.
    if spec.hooks("before_model") or ctx.plugins.hooks("before_model"):
        request.contents = [content.model_copy(deep=True) for content in request.contents]
        request.config = request.config.model_copy(deep=True)
    return request


def _only_declares(tool: BaseTool) -> bool:
    """True if all that `tool` does to a request is to be declared in it: those are declared together."""
    return type(tool).process_llm_request is BaseTool.process_llm_request


def _identity(spec: LlmSpec) -> str:
    said = f'You are an agent. Your internal name is "{spec.name}".'
    return f'{said} The description about you is "{spec.description}".' if spec.description else said
