"""What every code executor has: how code is told apart from words, how often it may fail, and one method."""

from abc import ABC, abstractmethod
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.code import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import wrong_fields


class BaseCodeExecutor(BaseModel, ABC):
    """Runs the first block of code in each answer of an agent, and hands what it gave back to the model.

    Raises:
        ConfigurationError: A setting is unknown or wrong.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    optimize_data_file: bool = False
    """True: CSV files in messages are given to the code as files; the model is told what is in them, not all of it."""
    stateful: bool = False
    """True: all code of one session shares what it defines."""
    error_retry_attempts: int = Field(default=2, ge=0)
    """After so many failures in a row, code is not run any more in this turn."""
    code_block_delimiters: list[tuple[str, str]] = Field(
        default=[("```tool_code\n", "\n```"), ("```python\n", "\n```")], min_length=1
    )
    """What stands around code in an answer; the model is told, and shown, the first pair."""
    execution_result_delimiters: tuple[str, str] = ("```tool_output\n", "\n```")
    """What stands around a result when it is shown to the model."""
    timeout_seconds: float | None = None
    """The longest that one block may run. None: any time."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(
                f"{type(self).__name__}: {wrong_fields(error, type(self).model_fields)}"
            ) from error

    @property
    def runs_in_model(self) -> bool:
        """True if the model's own service runs the code, and nothing is to be done here."""
        return False

    @abstractmethod
    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code, and wait for it. Code that fails is a result, not an error."""

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """`execute_code` off the event loop: in a worker thread, which a cancelled run leaves to end by itself.

        This is what agents call. Override it where the code can be stopped.
        """
        return await sync.blocking(lambda: self.execute_code(invocation_context, code_execution_input), thread=True)

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Tell the model that it can run code. By default: how to write it."""
        before, after = self.code_block_delimiters[0]
        llm_request.append_instructions(
            [
                "You can run Python. Put the code into your answer like this, and end the answer there:\n\n"
                f'{before}print("hello"){after}\n\n'
                "Only the first such block is run. What it prints is the next message. Call no tool to run code."
            ]
        )

    async def close(self) -> None:
        """End what this executor keeps running. It can be used again; what was defined is gone."""
