"""The tool behind a service's `hitlRequest`: a person is asked, and the run waits for the answer."""

from typing import Any

from adk_nb.models.http_messages import ASK_A_PERSON
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool


class AskAPersonTool(BaseTool):
    """Not told to models: a service does not call it, it sends a `hitlRequest`."""

    effect = "pure"

    def __init__(self) -> None:
        super().__init__(name="ask_a_person", description="Asks a person.", is_long_running=True)
        self.name = ASK_A_PERSON  # one of the reserved names

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        llm_request.tools_dict[self.name] = self


ask_a_person = AskAPersonTool()
"""For `LlmAgent(model=HttpLlm(...), tools=[ask_a_person])`; the agents of a workflow have it."""
