"""Executors of model-written code, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseCodeExecutor": "adk_nb.code_executors.base_code_executor",
        "BuiltInCodeExecutor": "adk_nb.code_executors.built_in_code_executor",
        "CodeExecutorContext": "adk_nb.runtime.code_execution",
        "ContainerCodeExecutor": "adk_nb.code_executors.container_code_executor",
        "KernelCodeExecutor": "adk_nb.code_executors.kernel_code_executor",
        "UnsafeLocalCodeExecutor": "adk_nb.code_executors.unsafe_local_code_executor",
    },
    cloud={
        "AgentEngineSandboxCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
        "GkeCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
        "VertexAiCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
    },
)
