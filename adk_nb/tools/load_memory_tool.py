"""`load_memory`: the model searches the user's earlier conversations."""

from typing import Any

from adk_nb.memory.memory_entry import MemoryEntry
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

_INSTRUCTION = (
    "You have a memory of earlier conversations with this user. When a question needs something from them, "
    "call load_memory with a query; it finds what has most of the query's words."
)


async def _load_memory(query: str, tool_context: ToolContext) -> dict[str, Any]:
    """Looks up what was said in earlier conversations with this user. The query is words to look for."""
    response = await tool_context.search_memory(query)
    return {"result": {"memories": [_as_json(memory) for memory in response.memories]}}


class LoadMemoryTool(FunctionTool):
    """Searches the runner's memory service.

    The result is `{"result": {"memories": [...]}}`: entries as JSON, the best match first, with the text of their
    contents.
    """

    def __init__(self) -> None:
        super().__init__(_load_memory, effect="pure", name="load_memory")

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and tell the model when to use it."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_INSTRUCTION])


def _as_json(memory: MemoryEntry) -> dict[str, Any]:
    dumped = memory.model_dump(mode="json", by_alias=False, exclude_none=True, exclude={"content"})
    parts = [{"text": part.text} for part in memory.content.parts or () if part.text and not part.thought]
    return {"content": {"parts": parts, "role": memory.content.role or "user"}, **dumped}


load_memory = load_memory_tool = LoadMemoryTool()
