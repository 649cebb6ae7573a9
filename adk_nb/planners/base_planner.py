"""What every planner does: it says how to plan, and reads what came of it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import CallbackContext, ReadonlyContext


class BasePlanner(ABC):
    """How an agent is told to think before it acts. Subclass it to bring your own."""

    @abstractmethod
    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None:
        """What is said about planning, at the end of the system instruction. None: nothing."""

    @abstractmethod
    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None:
        """The parts of a whole answer as they are to be kept. None: as they are.

        Args:
            callback_context: What is written to its state lands on the answer's event.
            response_parts: The model's; not to be changed.
        """

    def process_llm_request(self, llm_request: LlmRequest) -> None:  # noqa: B027  # most have nothing to add
        """Prepare a request beyond its instruction. The contents' list is the request's own, the contents are not."""
