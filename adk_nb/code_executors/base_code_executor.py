"""The base class of code executors: delimiters of code, limits on retries and time, and the method to run code."""

from abc import ABC, abstractmethod

from pydantic import ConfigDict, Field

from adk_nb import sync
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import SettingsModel

USER_REACH = "with your permissions: it can reach your files and the network"


class BaseCodeExecutor(SettingsModel, ABC):
    """Runs the first code block in each answer of an agent, and returns the result to the model.

    Raises:
        ConfigurationError: A setting is unknown or invalid.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)

    optimize_data_file: bool = False
    """True: pass CSV files in messages to the code as files; the model gets a summary instead of the content."""
    stateful: bool = False
    """True: all code of a session shares its variables."""
    error_retry_attempts: int = Field(default=2, ge=0)
    """Number of consecutive failures after which the turn runs no more code."""
    code_block_delimiters: list[tuple[str, str]] = Field(
        default=[("```tool_code\n", "\n```"), ("```python\n", "\n```")], min_length=1
    )
    """Delimiters of code in an answer; the first pair is part of the instruction to the model."""
    execution_result_delimiters: tuple[str, str] = ("```tool_output\n", "\n```")
    """Delimiters of a result for the model."""
    timeout_seconds: float | None = None
    """Time limit of one block in seconds. None: no limit."""

    @property
    def runs_in_model(self) -> bool:
        """True if the model's own service runs the code."""
        return False

    @property
    def reach(self) -> str:
        """The reach of its code, for the approver of a script."""
        return USER_REACH

    @abstractmethod
    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code and wait for it. Failing code is a result, not an error."""

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """`execute_code` in a worker thread, off the event loop; a cancelled run does not stop it.

        Agents call this. Override it where the code can be stopped.
        """
        return await sync.blocking(lambda: self.execute_code(invocation_context, code_execution_input), thread=True)

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Tell the model that it can run code. The default explains how to write it."""
        start, end = self.code_block_delimiters[0]
        llm_request.append_instructions(
            [
                "You can run Python. Put the code into your answer like this, and end the answer there:\n\n"
                f'{start}print("hello"){end}\n\n'
                "Only the first such block is run. What it prints is the next message. Call no tool to run code."
            ]
        )

    async def close(self) -> None:
        """Stop processes of this executor. It can be used again, without earlier variables."""
