"""The protocols of an agent as the flow reads it. LlmAgent implements them; the flow does not import LlmAgent."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.code_execution import CodeExecutionInput, CodeExecutionResult
from adk_nb.runtime.context import CallbackContext, ReadonlyContext
from adk_nb.runtime.hooks import Hook
from adk_nb.runtime.invocation_context import InvocationContext, RunnableAgent
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.shape import Shape


class Planner(Protocol):
    """A planner, as the flow uses it. See `planners.BasePlanner`."""

    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None:
        """Appended to the system instruction. None: nothing."""
        ...

    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None:
        """The parts that replace those of the response. None: unchanged."""
        ...

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Edit the request, for instance its thinking config."""
        ...


class CodeExecutor(Protocol):
    """A code executor, as the flow uses it. See `code_executors.BaseCodeExecutor`."""

    @property
    def optimize_data_file(self) -> bool:
        """Pass CSV files of the user to the executor, and explore them first."""
        ...

    @property
    def stateful(self) -> bool:
        """Variables survive from one execution to the next."""
        ...

    @property
    def error_retry_attempts(self) -> int:
        """Failed executions per turn before code is ignored."""
        ...

    @property
    def code_block_delimiters(self) -> Sequence[tuple[str, str]]:
        """Start and end marks of a code block; models are sent the first pair."""
        ...

    @property
    def execution_result_delimiters(self) -> tuple[str, str]:
        """Start and end mark of a result as text."""
        ...

    @property
    def runs_in_model(self) -> bool:
        """The model's service runs the code."""
        ...

    async def execute_code_async(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """Run the code. Failures are part of the result."""
        ...

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Edit the request, for instance to declare the code execution of the service."""
        ...


class GlobalInstruction(Protocol):
    """An agent with a `global_instruction` for its whole tree."""

    async def canonical_global_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """The instruction; True if it is literal, without state injection."""
        ...


class LlmSpec(Protocol):
    """An LLM agent as the flow reads it. See `LlmAgent` for the fields."""

    @property
    def name(self) -> str:
        """Unique in the tree of agents."""
        ...

    @property
    def mode(self) -> str | None:
        """See `LlmAgent.mode`: "task", "single_turn" or None."""
        ...

    @property
    def disable_transfer(self) -> bool:
        """Ignore transfers that tools ask for."""
        ...

    @property
    def description(self) -> str:
        """Sent to models as part of the identity."""
        ...

    @property
    def generate_content_config(self) -> types.GenerateContentConfig | None:
        """Settings of every request; the run may override some."""
        ...

    @property
    def max_iterations(self) -> int | None:
        """Model calls per turn. None: no limit."""
        ...

    @property
    def tool_errors(self) -> str:
        """With "return" the model gets the error, with "raise" it ends the run."""
        ...

    @property
    def canonical_model(self) -> BaseLlm:
        """The model of `run_async`, inherited from the parent if unset."""
        ...

    @property
    def canonical_live_model(self) -> BaseLlm:
        """The model of `run_live`."""
        ...

    @property
    def static_instruction(self) -> Any:
        """Text or contents that never change, first in the system instruction."""
        ...

    @property
    def instructed_by(self) -> Sequence[GlobalInstruction]:
        """The agents whose global instruction applies, outermost first."""
        ...

    @property
    def identity(self) -> bool:
        """Add name and description to the system instruction."""
        ...

    @property
    def include_contents(self) -> Literal["default", "none"]:
        """With "none" the model sees only the current turn."""
        ...

    @property
    def output_shape(self) -> Shape | None:
        """The validator of `output_schema`. None: text."""
        ...

    @property
    def output_key(self) -> str | None:
        """State key that gets the final answer."""
        ...

    @property
    def on_output_error(self) -> Literal["event", "raise", "raw", "retry"]:
        """The reaction to an answer that does not fit the schema."""
        ...

    @property
    def planner(self) -> Planner | None:
        """None: no planning."""
        ...

    @property
    def toolsets(self) -> Sequence[BaseToolset]:
        """The toolsets among the tools, for authentication."""
        ...

    @property
    def code_executor(self) -> CodeExecutor | None:
        """None: code blocks are text."""
        ...

    def in_tree(self, name: str, /) -> RunnableAgent | None:
        """The agent of that name in the tree."""
        ...

    def hooks(self, name: str, /) -> Sequence[Hook]:
        """The callbacks of that kind, such as "before_model", in order."""
        ...

    async def canonical_tools(self, ctx: ReadonlyContext, /) -> Sequence[BaseTool]:
        """The tools, with toolsets expanded."""
        ...

    async def canonical_instruction(self, ctx: ReadonlyContext, /) -> tuple[str, bool]:
        """The instruction; True if it is literal, without state injection."""
        ...


def hooks_of(ctx: InvocationContext, spec: LlmSpec, name: str) -> list[Hook]:
    """The hooks of one name, in order: those of plugins, then the agent's callbacks."""
    return [*ctx.plugin_manager.hooks(name), *spec.hooks(name)]


def agent_event(ctx: InvocationContext, spec: LlmSpec, **fields: Any) -> Event:
    """An event of the agent in its current run."""
    return Event(author=spec.name, invocation_id=ctx.invocation_id, branch=ctx.branch, **fields)
