"""Tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    cloud={
        "APIHubToolset": "OpenAPIToolset(spec_str=...) of adk_nb.tools.openapi_tool",
        "ApiRegistry": "McpToolset(connection_params=...)",
        "DiscoveryEngineSearchTool": "VertexAiSearchTool(data_store_id=...)",
        "VertexAiLoadProfilesTool": "load_memory",
    },
)
