"""`task_completed`: in a live conversation an agent says that its part is done, and the next one takes its turn."""

from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

NAME = "task_completed"
"""Source of name and answer: google-adk 2.13."""
_TOLD = (
    f"When you have done for the user what your instructions say, call {NAME}: the next agent then takes over. "
    "Say nothing else together with that call."
)


def _task_completed() -> str:
    """Signals that your part of the conversation is complete."""
    return "Task completion signaled."


class TaskCompletedTool(FunctionTool):
    """What an agent in a live sequence gets beside its own tools."""

    def __init__(self) -> None:
        super().__init__(_task_completed, effect="pure", name=NAME)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_TOLD])
