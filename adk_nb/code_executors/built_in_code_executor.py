"""Code that the model's own service runs."""

from typing import Any, cast

from adk_nb import types
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext


class BuiltInCodeExecutor(BaseCodeExecutor):
    """Offers the model its service's own code execution: Gemini's. Code and result come as parts of the answer."""

    @property
    def runs_in_model(self) -> bool:
        return True

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        raise ConfigurationError(
            "BuiltInCodeExecutor leaves the code to the model's service; to run it here, use KernelCodeExecutor()"
        )

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        before: list[Any] = [*(cast(Any, llm_request.config).tools or [])]
        if not any(isinstance(one, types.Tool) and one.code_execution for one in before):
            llm_request.config.tools = [*before, types.Tool(code_execution=types.ToolCodeExecution())]
