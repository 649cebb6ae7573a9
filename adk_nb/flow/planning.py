"""What a planner adds to a request, and makes of an answer."""

from collections.abc import Sequence
from typing import Protocol

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.runtime.context import CallbackContext, Context, ReadonlyContext


class Plans(Protocol):
    """What the flow needs of a planner."""

    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None: ...
    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None: ...
    def process_llm_request(self, llm_request: LlmRequest) -> None: ...


def ask_to_plan(planner: Plans, request: LlmRequest, context: ReadonlyContext) -> None:
    """Prepare a request for planning, its instruction last."""
    planner.process_llm_request(request)
    if told := planner.build_planning_instruction(context, request):
        request.append_instructions([told])


def as_planned(planner: Plans, response: LlmResponse, context: Context) -> LlmResponse:
    """A whole answer as its planner reads it: the response itself, or a copy."""
    content = response.content
    if not content or not content.parts:
        return response
    parts = planner.process_planning_response(context, content.parts)
    return response.model_copy(update={"content": content.model_copy(update={"parts": parts})}) if parts else response
