"""`LlamaIndexRetrieval`: what a retriever of LlamaIndex finds."""

import functools
from typing import Any

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.retrieval.base_retrieval_tool import BaseRetrievalTool


class LlamaIndexRetrieval(BaseRetrievalTool):
    """Asks anything with a `retrieve(query)` that gives nodes with a `text`; LlamaIndex itself is not needed.

    The model gets `{"passages": [...]}`, the texts in the retriever's order.
    """

    def __init__(self, *, name: str, description: str, retriever: Any) -> None:
        """Take a retriever.

        Raises:
            ConfigurationError: It is none.
        """
        super().__init__(name=name, description=description)
        if not callable(getattr(retriever, "retrieve", None)):
            raise ConfigurationError(f"{retriever!r:.80} retrieves nothing; pass index.as_retriever()")
        self.retriever = retriever

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        nodes = await sync.blocking(functools.partial(self.retriever.retrieve, args["query"]), thread=True)
        return {"passages": [node.text for node in nodes]}
