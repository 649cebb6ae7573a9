"""Graphs, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "AgentNode": "adk_nb.workflow.agent_node",
        "BaseNode": "adk_nb.workflow.base_node",
        "DEFAULT_ROUTE": "adk_nb.workflow.graph",
        "END": "adk_nb.workflow.graph",
        "Edge": "adk_nb.workflow.graph",
        "FunctionNode": "adk_nb.workflow.function_node",
        "JoinNode": "adk_nb.workflow.base_node",
        "Node": "adk_nb.workflow.base_node",
        "NodeTimeoutError": "adk_nb.errors",
        "RetryConfig": "adk_nb.runtime.run_config",
        "START": "adk_nb.workflow.graph",
        "ToolNode": "adk_nb.workflow.tool_node",
        "Workflow": "adk_nb.workflow.workflow",
        "build_node": "adk_nb.workflow.node_like",
        "node": "adk_nb.workflow.node_like",
    },
)
