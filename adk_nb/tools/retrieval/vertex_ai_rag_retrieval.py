"""`VertexAiRagRetrieval`: a name of ADK's for a client of Google Cloud, so that modules that name it load."""

from typing import Any, NoReturn

from adk_nb.errors import CloudServiceError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.retrieval.base_retrieval_tool import BaseRetrievalTool


class VertexAiRagRetrieval(BaseRetrievalTool):
    """Takes what ADK's takes. An agent that has it says at its first request what to use instead."""

    def __init__(self, *, name: str, description: str, **options: Any) -> None:
        """`options`: ADK's, such as `rag_corpora`."""
        super().__init__(name=name, description=description)
        self.options = options

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Refuse: there is no service to ask.

        Raises:
            CloudServiceError: Always.
        """
        self._refuse()

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Refuse, as for a request.

        Raises:
            CloudServiceError: Always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise CloudServiceError(
            f"the tool {self.name!r} is a VertexAiRagRetrieval, a client of Google Cloud, which adk_nb lacks; use "
            f"FilesRetrieval(name={self.name!r}, description=..., input_dir=...)"
        )
