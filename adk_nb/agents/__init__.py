"""Agents, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "Agent": "adk_nb.agents.llm_agent",
        "BaseAgent": "adk_nb.agents.base_agent",
        "CallbackContext": "adk_nb.runtime.context",
        "Context": "adk_nb.runtime.context",
        "InvocationContext": "adk_nb.runtime.invocation_context",
        "LiveRequest": "adk_nb.runtime.live_request_queue",
        "LiveRequestQueue": "adk_nb.runtime.live_request_queue",
        "LlmAgent": "adk_nb.agents.llm_agent",
        "LoopAgent": "adk_nb.agents.loop_agent",
        "McpInstructionProvider": "adk_nb.agents.mcp_instruction_provider",
        "ParallelAgent": "adk_nb.agents.parallel_agent",
        "RunConfig": "adk_nb.runtime.run_config",
        "SequentialAgent": "adk_nb.agents.sequential_agent",
        "StreamingMode": "adk_nb.runtime.run_config",
    },
)
