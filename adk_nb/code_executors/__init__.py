"""Executors of model-written code, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    cloud={
        "AgentEngineSandboxCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
        "GkeCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
        "VertexAiCodeExecutor": "KernelCodeExecutor(), or BuiltInCodeExecutor() with Gemini",
    },
)
