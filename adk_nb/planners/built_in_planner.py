"""Planning by a model that thinks before it answers."""

import logging
from collections.abc import Sequence

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.planners.base_planner import BasePlanner
from adk_nb.runtime.context import CallbackContext, ReadonlyContext

logger = logging.getLogger(__name__)


class BuiltInPlanner(BasePlanner):
    """Enables and configures the thinking of the model's service."""

    def __init__(self, *, thinking_config: types.ThinkingConfig) -> None:
        """`thinking_config` takes precedence over the one in the agent's `generate_content_config`."""
        self.thinking_config = thinking_config

    def apply_thinking_config(self, llm_request: LlmRequest) -> None:
        """Set the thinking configuration; replacing a different one logs a warning. ADK's name."""
        current = llm_request.config.thinking_config
        if current is not None and current != self.thinking_config:
            logger.warning(
                "the planner's thinking_config replaces the one in generate_content_config; set it in one of them"
            )
        llm_request.config.thinking_config = self.thinking_config

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Set the thinking configuration."""
        self.apply_thinking_config(llm_request)

    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None:
        """None: the model plans by itself."""
        return None

    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None:
        """None: the answer is stored unchanged."""
        return None
