"""`built_in_code_execution`: among an agent's tools, it lets the model's own service run the code the model writes."""

from typing import Any, Protocol, cast

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool


class _Coder(Protocol):
    """What is read of the agent that has the tool."""

    @property
    def name(self) -> str: ...
    @property
    def canonical_model(self) -> BaseLlm: ...
    @property
    def code_executor(self) -> object | None: ...


class BuiltInCodeExecutionTool(BaseTool):
    """The same as `code_executor=BuiltInCodeExecutor()`. An agent's own `code_executor` stands above it."""

    def __init__(self) -> None:
        super().__init__(name="code_execution", description="Runs code.")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return {"error": "code_execution is not called: write the code, and it is run"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Offer the service's code execution.

        Raises:
            ConfigurationError: The service has none, and the agent has no code executor.
        """
        agent = cast(_Coder, tool_context.get_invocation_context().agent)
        if agent.code_executor:
            return
        if not agent.canonical_model.capabilities.code_execution:
            raise ConfigurationError(
                f"agent {agent.name!r}: the service of model {agent.canonical_model.model!r} runs no code; "
                "write code_executor=KernelCodeExecutor(), or UnsafeLocalCodeExecutor()"
            )
        before: list[Any] = [*(cast(Any, llm_request.config).tools or [])]
        llm_request.config.tools = [*before, types.Tool(code_execution=types.ToolCodeExecution())]


built_in_code_execution = BuiltInCodeExecutionTool()
