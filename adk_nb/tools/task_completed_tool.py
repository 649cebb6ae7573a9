"""`task_completed`: in a live sequence an agent hands over to the next one."""

from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

NAME = "task_completed"
"""Source of name and result: google-adk 2.13."""
_INSTRUCTION = (
    f"When you have done for the user what your instructions say, call {NAME}: the next agent then takes over. "
    "Say nothing else together with that call."
)


def _task_completed() -> str:
    """Signals that your part of the conversation is complete."""
    return "Task completion signaled."


class TaskCompletedTool(FunctionTool):
    """Added to the tools of an agent in a live sequence."""

    def __init__(self) -> None:
        super().__init__(_task_completed, effect="pure", name=NAME)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and tell the model when to call it."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_INSTRUCTION])
