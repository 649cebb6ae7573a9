"""Workflows of agents that are services behind HTTP, written as Graph Compose writes them. Names load on first use."""

from adk_nb.lazy import face

_CONFIGS = "adk_nb.graph_compose.configs"
__getattr__, __dir__ = face(
    __name__,
    {
        "GraphCompose": "adk_nb.graph_compose.builder",
        "WorkflowHandle": "adk_nb.graph_compose.running",
        "WorkflowResult": "adk_nb.graph_compose.running",
        "ask_a_person": "adk_nb.graph_compose.asking",
        "createAgentTool": _CONFIGS,
        "createHttpTool": _CONFIGS,
        "createLlmAgent": _CONFIGS,
        "createLoopAgent": _CONFIGS,
        "createParallelAgent": _CONFIGS,
        "createSequentialAgent": _CONFIGS,
        "createSubAgentReference": _CONFIGS,
        "create_agent_tool": _CONFIGS,
        "create_http_tool": _CONFIGS,
        "create_llm_agent": _CONFIGS,
        "create_loop_agent": _CONFIGS,
        "create_parallel_agent": _CONFIGS,
        "create_sequential_agent": _CONFIGS,
        "create_sub_agent_reference": _CONFIGS,
    },
)
