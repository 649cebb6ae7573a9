from adk_nb.graph_compose.builder import GraphCompose
from adk_nb.graph_compose.configs import (
    create_agent_tool,
    create_function_tool,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
    create_sub_agent_reference,
    createAgentTool,
    createFunctionTool,
    createHttpTool,
    createLlmAgent,
    createLoopAgent,
    createParallelAgent,
    createSequentialAgent,
    createSubAgentReference,
)
from adk_nb.graph_compose.running import WorkflowHandle, WorkflowResult
from adk_nb.graph_compose.tools import ask_a_person

__all__ = [
    "GraphCompose",
    "WorkflowHandle",
    "WorkflowResult",
    "ask_a_person",
    "createAgentTool",
    "createFunctionTool",
    "createHttpTool",
    "createLlmAgent",
    "createLoopAgent",
    "createParallelAgent",
    "createSequentialAgent",
    "createSubAgentReference",
    "create_agent_tool",
    "create_function_tool",
    "create_http_tool",
    "create_llm_agent",
    "create_loop_agent",
    "create_parallel_agent",
    "create_sequential_agent",
    "create_sub_agent_reference",
]
