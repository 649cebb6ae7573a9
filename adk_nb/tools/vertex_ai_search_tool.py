"""`VertexAiSearchTool`: Vertex AI searches your own documents."""

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.service_tool import ServiceTool


class VertexAiSearchTool(ServiceTool):
    """Grounds answers in the documents of a data store, or of a search engine over several.

    Needs no connection to construct. Override `setting` for a search that depends on the user.
    """

    requirement = "a Gemini model of Vertex AI (GOOGLE_GENAI_USE_VERTEXAI=true)"

    def __init__(
        self,
        *,
        data_store_id: str | None = None,
        data_store_specs: list[types.VertexAISearchDataStoreSpec] | None = None,
        search_engine_id: str | None = None,
        filter: str | None = None,
        max_results: int | None = None,
    ) -> None:
        """Pass exactly one of the two ids.

        Args:
            data_store_id: `projects/P/locations/L/collections/C/dataStores/D`.
            data_store_specs: Data stores of an engine to search. None: all.
            search_engine_id: `projects/P/locations/L/collections/C/engines/E`.
            filter: Filter expression of Vertex AI Search.
            max_results: Number of documents, at most 10.

        Raises:
            ConfigurationError: Neither or both ids are given; or specs of stores without an engine.
        """
        super().__init__("vertex_ai_search")
        if bool(data_store_id) == bool(search_engine_id):
            both = "both" if data_store_id else "neither"
            raise ConfigurationError(
                f"VertexAiSearchTool takes one of data_store_id and search_engine_id, and got {both}; "
                "write VertexAiSearchTool(data_store_id='projects/.../dataStores/...')"
            )
        if data_store_specs and not search_engine_id:
            raise ConfigurationError("data_store_specs are stores of a search engine; pass search_engine_id with them")
        self.data_store_id = data_store_id
        self.data_store_specs = data_store_specs
        self.search_engine_id = search_engine_id
        self.filter = filter
        self.max_results = max_results

    def setting(self, tool_context: ToolContext) -> types.Tool:
        """The field `retrieval`."""
        search = types.VertexAISearch(
            datastore=self.data_store_id,
            data_store_specs=self.data_store_specs,
            engine=self.search_engine_id,
            filter=self.filter,
            max_results=self.max_results,
        )
        return types.Tool(retrieval=types.Retrieval(vertex_ai_search=search))
