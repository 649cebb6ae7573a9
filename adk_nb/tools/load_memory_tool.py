"""`load_memory`: the model looks up what the user's earlier conversations said."""

from typing import Any

from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

_TOLD = (
    "You have a memory of earlier conversations with this user. When a question needs something from them, "
    "call load_memory with a query; it finds what has most of the query's words."
)


async def _load_memory(query: str, tool_context: ToolContext) -> dict[str, Any]:
    """Looks up what was said in earlier conversations with this user. The query is words to look for."""
    found = await tool_context.search_memory(query)
    return {
        "memories": [{"author": one.author, "timestamp": one.timestamp, "text": one.text} for one in found.memories]
    }


class LoadMemoryTool(FunctionTool):
    """Searches the runner's memory service when the model asks for it.

    The model gets `{"memories": [{"author", "timestamp", "text"}, ...]}`, the best first.
    """

    def __init__(self) -> None:
        super().__init__(_load_memory, effect="pure", name="load_memory")

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_TOLD])


load_memory = load_memory_tool = LoadMemoryTool()
