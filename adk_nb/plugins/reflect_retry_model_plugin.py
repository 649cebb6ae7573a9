"""A plugin that lets the model try again after an answer that could not be used, a limited number of times."""

from collections.abc import Sequence
from typing import Any

from adk_nb import clock, types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.plugins.reflect_retry_tool_plugin import REFLECT_AND_RETRY_RESPONSE_TYPE, FailureCounts, TrackingScope
from adk_nb.runtime.context import CallbackContext
from adk_nb.tools.function_tool import FunctionTool

NAME = "handle_model_error"
"""Name of the call that this plugin makes; google-adk puts `adk_` before it, which is reserved here."""
_RESERVED_CALL = "RESERVED_TOOL_CALL"


class ReflectAndRetryModelPlugin(BasePlugin):
    """Replaces an answer that failed by a call whose result advises the model, up to a number of consecutive failures.

    Only answers with an error and a listed `finish_reason` count; another answer resets the count. Errors of the
    connection are retried by the model itself.

    Raises:
        ConfigurationError: `max_retries` is negative, or a reason is no FinishReason.
    """

    def __init__(
        self,
        name: str = "reflect_retry_model_plugin",
        max_retries: int = 3,
        throw_exception_if_retry_exceeded: bool = True,
        tracking_scope: TrackingScope = TrackingScope.INVOCATION,
        on_model_errors: Sequence[types.FinishReason] | None = None,
    ) -> None:
        """Configure the retries.

        Args:
            name: Unique among the plugins of a runner.
            max_retries: Consecutive failures that the model may correct; 0 for none.
            throw_exception_if_retry_exceeded: One more failure ends the run with a PluginError. False: with the answer
                that failed.
            tracking_scope: Scope of counting.
            on_model_errors: Reasons that count. None: MALFORMED_FUNCTION_CALL alone.
        """
        super().__init__(name)
        if max_retries < 0:
            raise ConfigurationError(f"max_retries={max_retries} must not be negative; write 0 for no retries")
        reasons = [types.FinishReason.MALFORMED_FUNCTION_CALL] if on_model_errors is None else list(on_model_errors)
        for reason in reasons:
            if not isinstance(reason, types.FinishReason):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigurationError(f"on_model_errors has {reason!r}; write members of types.FinishReason")
        self.max_retries = max_retries
        self.throw_exception_if_retry_exceeded = throw_exception_if_retry_exceeded
        self.scope = tracking_scope
        self.on_model_errors = reasons
        self._failures = FailureCounts()
        self._tool = FunctionTool(self.handle_model_error)

    def handle_model_error(
        self,
        response_type: str,
        retry_count: int,
        error_type: str | None = None,
        error_details: str | None = None,
        finish_reason: str | None = None,
    ) -> dict[str, str]:
        """Advise the model. This plugin calls it; a model must not."""
        return {
            "reflection_guidance": (
                f"Your last answer could not be used ({error_details or error_type}); this is failure {retry_count}, "
                f"and after {self.max_retries} in a row the task is given up. Do not send the same again. If you meant "
                "to call a tool, call one that is declared, with arguments that fit its declaration, as valid JSON; "
                "or answer in text."
            )
        }

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Make the call runnable, without declaring it to the model."""
        llm_request.tools_dict[NAME] = self._tool

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Replace an answer that failed, or reset the count."""
        if llm_response.partial:
            return None
        scope = self.scope.key(callback_context.invocation_id)
        agent: Any = callback_context.get_invocation_context().agent
        model = str(getattr(getattr(agent, "canonical_model", None), "model", "") or callback_context.agent_name)
        is_reserved = any(call.name == NAME for call in llm_response.get_function_calls())
        if not is_reserved and not (llm_response.error_code and llm_response.finish_reason in self.on_model_errors):
            self._failures.reset(scope, model)
            return None
        error_type, details = llm_response.error_code, llm_response.error_message
        if is_reserved:
            error_type, details = _RESERVED_CALL, f"you called {NAME}, which you must not"
        failures = self._failures.add(scope, model)
        if failures > self.max_retries:
            if self.throw_exception_if_retry_exceeded:
                raise RuntimeError(
                    f"the model failed {failures} times in a row, the last time with {error_type}: {details}"
                )
            return LlmResponse(error_code=error_type, error_message=details) if is_reserved else None
        reason = llm_response.finish_reason
        call = types.FunctionCall(
            id=f"{NAME}_{clock.new_id()}",
            name=NAME,
            args={
                "response_type": REFLECT_AND_RETRY_RESPONSE_TYPE,
                "error_type": error_type,
                "error_details": details,
                "finish_reason": reason.value if reason else None,
                "retry_count": failures,
            },
        )
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
