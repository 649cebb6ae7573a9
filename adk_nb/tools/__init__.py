"""Tools, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "AgentTool": "adk_nb.tools.agent_tool",
        "AuthenticatedFunctionTool": "adk_nb.tools.authenticated_function_tool",
        "BaseTool": "adk_nb.tools.base_tool",
        "BaseToolset": "adk_nb.tools.base_toolset",
        "ExampleTool": "adk_nb.tools.example_tool",
        "FunctionTool": "adk_nb.tools.function_tool",
        "LongRunningFunctionTool": "adk_nb.tools.long_running_tool",
        "MCPToolset": "adk_nb.tools.mcp_tool.mcp_toolset",
        "McpToolset": "adk_nb.tools.mcp_tool.mcp_toolset",
        "StaticToolset": "adk_nb.tools.base_toolset",
        "ToolContext": "adk_nb.runtime.context",
        "TransferToAgentTool": "adk_nb.tools.transfer_to_agent_tool",
        "VertexAiSearchTool": "adk_nb.tools.vertex_ai_search_tool",
        "built_in_code_execution": "adk_nb.tools.built_in_code_execution_tool",
        "enterprise_web_search": "adk_nb.tools.enterprise_search_tool",
        "exit_loop": "adk_nb.tools.exit_loop_tool",
        "get_user_choice": "adk_nb.tools.get_user_choice_tool",
        "google_maps_grounding": "adk_nb.tools.google_maps_grounding_tool",
        "google_search": "adk_nb.tools.google_search_tool",
        "load_artifacts": "adk_nb.tools.load_artifacts_tool",
        "load_memory": "adk_nb.tools.load_memory_tool",
        "preload_memory": "adk_nb.tools.preload_memory_tool",
        "register_search_backend": "adk_nb.tools.google_search_tool",
        "request_input": "adk_nb.tools.request_input_tool",
        "tool": "adk_nb.tools.tool_decorator",
        "transfer_to_agent": "adk_nb.tools.transfer_to_agent_tool",
        "url_context": "adk_nb.tools.url_context_tool",
    },
    cloud={
        "APIHubToolset": "OpenAPIToolset(spec_str=...) of adk_nb.tools.openapi_tool",
        "ApiRegistry": "McpToolset(connection_params=...)",
        "DiscoveryEngineSearchTool": "VertexAiSearchTool(data_store_id=...)",
        "VertexAiLoadProfilesTool": "load_memory",
    },
)
