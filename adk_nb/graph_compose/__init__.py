"""Workflows of agents that are HTTP services, in the notation of Graph Compose."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "GraphCompose": "adk_nb.graph_compose.builder",
        "WorkflowHandle": "adk_nb.graph_compose.running",
        "WorkflowResult": "adk_nb.graph_compose.running",
        "ask_a_person": "adk_nb.graph_compose.tools",
        "createAgentTool": "adk_nb.graph_compose.configs",
        "createFunctionTool": "adk_nb.graph_compose.configs",
        "createHttpTool": "adk_nb.graph_compose.configs",
        "createLlmAgent": "adk_nb.graph_compose.configs",
        "createLoopAgent": "adk_nb.graph_compose.configs",
        "createParallelAgent": "adk_nb.graph_compose.configs",
        "createSequentialAgent": "adk_nb.graph_compose.configs",
        "createSubAgentReference": "adk_nb.graph_compose.configs",
        "create_agent_tool": "adk_nb.graph_compose.configs",
        "create_function_tool": "adk_nb.graph_compose.configs",
        "create_http_tool": "adk_nb.graph_compose.configs",
        "create_llm_agent": "adk_nb.graph_compose.configs",
        "create_loop_agent": "adk_nb.graph_compose.configs",
        "create_parallel_agent": "adk_nb.graph_compose.configs",
        "create_sequential_agent": "adk_nb.graph_compose.configs",
        "create_sub_agent_reference": "adk_nb.graph_compose.configs",
    },
)
