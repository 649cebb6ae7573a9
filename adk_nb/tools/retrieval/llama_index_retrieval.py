"""`LlamaIndexRetrieval` queries a retriever of LlamaIndex."""

import functools
from typing import Any

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.retrieval.base_retrieval_tool import BaseRetrievalTool


class LlamaIndexRetrieval(BaseRetrievalTool):
    """Queries an object whose `retrieve(query)` returns nodes with a `text`; LlamaIndex need not be installed.

    The model gets `{"passages": [...]}`, the texts in the retriever's order.
    """

    def __init__(self, *, name: str, description: str, retriever: Any) -> None:
        """Wrap a retriever.

        Raises:
            ConfigurationError: It has no method `retrieve`.
        """
        super().__init__(name=name, description=description)
        if not callable(getattr(retriever, "retrieve", None)):
            raise ConfigurationError(f"{retriever!r:.80} has no method retrieve; pass index.as_retriever()")
        self.retriever = retriever

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Query the retriever."""
        if message := self.check(args):
            return {"error": message}
        nodes = await sync.blocking(functools.partial(self.retriever.retrieve, args["query"]), thread=True)
        return {"passages": [node.text for node in nodes]}
