"""A plugin that keeps a long conversation short for the model."""

from collections.abc import Callable, Sequence

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.context import CallbackContext


class ContextFilterPlugin(BasePlugin):
    """Sends the model only the newest turns, or what a function of yours keeps. The session keeps everything.

    A turn is what the user said, however many messages, and all that answers it: a call is never parted from its
    result.

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
        """Say how much is kept.

        Args:
            num_invocations_to_keep: How many turns, the present one included. None: all.
            custom_filter: Given what is left, oldest first, a copy of its own; returns what is sent.
            name: No other plugin of the same runner has it.
            remove_amount: Turns are left out by this many at once: between, what is sent begins alike, and a model's
                service can go on from what it has in its cache.
        """
        super().__init__(name)
        if num_invocations_to_keep is not None and num_invocations_to_keep < 1:
            raise ConfigurationError(
                f"num_invocations_to_keep={num_invocations_to_keep} leaves nothing to answer; "
                "keep 1 or more, or write None for all"
            )
        if remove_amount < 1:
            raise ConfigurationError(f"remove_amount={remove_amount} removes nothing; write 1 or more")
        self._keep = num_invocations_to_keep
        self._filter = custom_filter
        self._remove = remove_amount

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        kept = llm_request.contents
        if self._keep is not None:
            begins = _beginnings(kept)
            over = max(0, len(begins) - self._keep)
            if out := over - over % self._remove:
                kept = kept[begins[out] :]
        llm_request.contents = self._filter(kept) if self._filter else kept


def _beginnings(contents: Sequence[types.Content]) -> list[int]:
    """Where the user began to speak; a tool's results are a user's content too, and no beginning."""
    speaks = [
        content.role == "user" and not any(part.function_response for part in content.parts or [])
        for content in contents
    ]
    return [index for index, one in enumerate(speaks) if one and not (index and speaks[index - 1])]
