"""Code execution by the model's own service."""

from adk_nb import types
from adk_nb.code_executors.base_code_executor import BaseCodeExecutor
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest, tools_of
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext


class BuiltInCodeExecutor(BaseCodeExecutor):
    """Enables the service's code execution, as Gemini has it. Code and result are parts of the answer."""

    @property
    def runs_in_model(self) -> bool:
        """Always True."""
        return True

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Raises ConfigurationError: the service runs the code."""
        raise ConfigurationError(
            "BuiltInCodeExecutor leaves the code to the model's service; to run it here, use KernelCodeExecutor()"
        )

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Enable the service's code execution in the request."""
        tools = tools_of(llm_request)
        if not any(isinstance(tool, types.Tool) and tool.code_execution for tool in tools):
            llm_request.config.tools = [*tools, types.Tool(code_execution=types.ToolCodeExecution())]
