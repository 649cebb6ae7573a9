"""The base class of planners: an instruction for the model, and processing of its answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import CallbackContext, ReadonlyContext


class BasePlanner(ABC):
    """Planning for an agent's model. Subclass it to bring your own."""

    @abstractmethod
    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None:
        """The instruction appended to the system instruction. None: no instruction."""

    @abstractmethod
    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None:
        """The parts of a complete answer to store. None: unchanged.

        Args:
            callback_context: State writes are stored in the answer's event.
            response_parts: The model's parts; must not be changed.
        """

    def process_llm_request(self, llm_request: LlmRequest) -> None:  # noqa: B027  # most have nothing to add
        """Prepare a request beyond its instruction. May change the list of contents, but not the contents."""
