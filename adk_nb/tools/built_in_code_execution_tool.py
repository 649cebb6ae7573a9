"""`built_in_code_execution` lets the model's service run the code that the model writes."""

from typing import Any

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest, tools_of
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.service_tool import requested_model


class BuiltInCodeExecutionTool(BaseTool):
    """Equivalent to `code_executor=BuiltInCodeExecutor()`. An agent's own `code_executor` takes precedence."""

    def __init__(self) -> None:
        super().__init__(name="code_execution", description="Runs code.")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return an error: a model never calls this tool."""
        return {"error": "code_execution is not called: write the code, and it is run"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Enable the service's code execution.

        Raises:
            ConfigurationError: The service has none, and the agent has no code executor.
        """
        if getattr(tool_context.get_invocation_context().agent, "code_executor", None):
            return
        model = requested_model(tool_context, llm_request)
        if not model.capabilities.code_execution:
            raise ConfigurationError(
                f"agent {tool_context.agent_name!r}: the service of model {model.model!r} runs no code; "
                "write code_executor=KernelCodeExecutor(), or UnsafeLocalCodeExecutor()"
            )
        code_execution = types.Tool(code_execution=types.ToolCodeExecution())
        llm_request.config.tools = [*tools_of(llm_request), code_execution]


built_in_code_execution = BuiltInCodeExecutionTool()
