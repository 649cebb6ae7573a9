"""OpenAPI documents, under ADK's import path."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "OpenAPIToolset": "adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_toolset",
        "RestApiTool": "adk_nb.tools.openapi_tool.rest_api_tool",
    },
)
