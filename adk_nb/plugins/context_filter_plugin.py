"""A plugin that limits the conversation sent to the model."""

from collections.abc import Callable

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext


class ContextFilterPlugin(BasePlugin):
    """Sends only the newest turns to the model, or what a custom filter keeps. The session is unchanged.

    A turn is one or more consecutive messages of the user with all answers to them, so calls stay with their results.

    Raises:
        ConfigurationError: A number is less than 1.
    """

    def __init__(
        self,
        num_invocations_to_keep: int | None = None,
        custom_filter: Callable[[list[types.Content]], list[types.Content]] | None = None,
        name: str = "context_filter_plugin",
        remove_amount: int = 1,
    ) -> None:
        """Configure the filter.

        Args:
            num_invocations_to_keep: Number of turns, including the current one. None: all.
            custom_filter: Gets the remaining contents, oldest first, as a list of its own; returns the contents to
                send.
            name: Unique among the plugins of a runner.
            remove_amount: Number of turns to drop at once. In between requests start with the same contents, so that
                the service's prompt cache applies.
        """
        super().__init__(name)
        if num_invocations_to_keep is not None and num_invocations_to_keep < 1:
            raise ConfigurationError(
                f"num_invocations_to_keep={num_invocations_to_keep} would remove the message to answer; "
                "keep 1 or more, or write None for all"
            )
        if remove_amount < 1:
            raise ConfigurationError(f"remove_amount={remove_amount} would remove nothing; write 1 or more")
        self._keep = num_invocations_to_keep
        self._filter = custom_filter
        self._remove = remove_amount

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Filter the contents of the request."""
        contents = llm_request.contents
        if self._keep is not None:
            # Tool results have the role `user`, too, but do not count.
            is_text = [
                content.role == "user" and not any(part.function_response for part in content.parts or [])
                for content in contents
            ]
            turn_starts = [n for n, is_user in enumerate(is_text) if is_user and not (n and is_text[n - 1])]
            excess = max(0, len(turn_starts) - self._keep)
            if dropped := excess - excess % self._remove:  # whole batches only
                contents = contents[turn_starts[dropped] :]
        llm_request.contents = self._filter(contents) if self._filter else contents
