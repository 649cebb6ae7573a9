"""`finish_task` and `task_completed`: a task agent hands back its result, a live agent hands over to the next."""

from typing import Any

from pydantic import ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext, call_state
from adk_nb.runtime.history import history_of
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.shape import Shape, error_text

NAME = "finish_task"
DONE = "Task completed."
"""The tool's result. Source of its name and result: google-adk 2.13."""
_RESULT_SCHEMA = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
_INSTRUCTION = (
    f"You were given a task. Do all of it, with the tools you have, before you call {NAME}; if it is not clear, ask "
    f"the user, who answers you. When all of it is done, call {NAME} with what came of it: alone, and without words "
    "beside the call."
)


class FinishTaskTool(BaseTool):
    """Takes the result of a task as arguments, and ends its agent's run. Invalid arguments go back to the model."""

    def __init__(self, output: Shape | None = None, output_key: str | None = None) -> None:
        """Set the task's result.

        Args:
            output: Schema of the result. None: a text, `result`.
            output_key: State key that stores the result, too.
        """
        super().__init__(name=NAME, description="Hands back what came of your task, once all of it is done.")
        self.effect = "pure"
        self._output = output
        self._output_key = output_key

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self._output.parameters if self._output else _RESULT_SCHEMA
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Validate and store the result."""
        session = tool_context.get_invocation_context().session
        record = history_of(session).calls.newest(tool_context.function_call_id)
        if record is not None and len(record.event.get_function_calls()) > 1:
            return {"error": f"{NAME} is called alone, when all else is done: nothing was handed back. Call it again."}
        try:
            value = self._parse(args)
        except (ValidationError, ConfigurationError) as error:
            return {"error": f"nothing was handed back: {error_text(error)}. Call {NAME} again with what fits."}
        call_state(tool_context).task_output = (value if self._output else {"result": value},)
        if self._output_key:
            tool_context.state[self._output_key] = value
        return DONE

    def _parse(self, args: dict[str, Any]) -> Any:
        if self._output:
            return self._output.read_arguments(args)
        if not isinstance(args.get("result"), str):
            raise ConfigurationError(f"'result' must be text, got {args.get('result')!r:.100}")
        return args["result"]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and tell the model when to call it."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_INSTRUCTION])


TASK_COMPLETED = "task_completed"
"""Name of the tool of a live agent. Source of its name and result: google-adk 2.13."""
_HAND_OVER = (
    f"When you have done for the user what your instructions say, call {TASK_COMPLETED}: the next agent then takes "
    "over. Say nothing else together with that call."
)


def _task_completed() -> str:
    """Signals that your part of the conversation is complete."""
    return "Task completion signaled."


class TaskCompletedTool(FunctionTool):
    """Added to the tools of an agent in a live sequence."""

    def __init__(self) -> None:
        super().__init__(_task_completed, effect="pure", name=TASK_COMPLETED)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool, and tell the model when to call it."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_HAND_OVER])
