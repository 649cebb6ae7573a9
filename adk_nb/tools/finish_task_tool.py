"""`finish_task`: an agent that was given a task hands back what came of it."""

from typing import Any

from pydantic import ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import Shape, in_words

NAME = "finish_task"
DONE = "Task completed."
"""Its result. Source of both: google-adk 2.13."""
_RESULT = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
_TOLD = (
    f"You were given a task. Do all of it, with the tools you have, before you call {NAME}; if it is not clear, ask "
    f"the user, who answers you. When all of it is done, call {NAME} with what came of it: alone, and without words "
    "beside the call."
)


class FinishTaskTool(BaseTool):
    """Takes what came of a task as arguments, and ends the work of its agent. Wrong ones go back to the model."""

    def __init__(self, output: Shape | None = None, output_key: str | None = None) -> None:
        """Args:
        output: What came of it has this shape. None: it is a text, `result`.
        output_key: Where in the state that is kept, too.
        """
        super().__init__(name=NAME, description="Hands back what came of your task, once all of it is done.")
        self.effect = "pure"
        self._output = output
        self._output_key = output_key

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self._output.parameters if self._output else _RESULT
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if _has_company(tool_context):
            return {"error": f"{NAME} is called alone, when all else is done: nothing was handed back. Call it again."}
        try:
            value = self._read(args)
        except (ValidationError, ConfigurationError) as error:
            return {"error": f"nothing was handed back: {in_words(error)}. Call {NAME} again with what fits."}
        tool_context.finished, tool_context.output = True, value if self._output else {"result": value}
        if self._output_key:
            tool_context.state[self._output_key] = value
        return DONE

    def _read(self, args: dict[str, Any]) -> Any:
        if self._output:
            return self._output.read_arguments(args)
        if not isinstance(args.get("result"), str):
            raise ConfigurationError(f"'result' is a text, and not {args.get('result')!r:.100}")
        return args["result"]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions([_TOLD])


def _has_company(tool_context: ToolContext) -> bool:
    """True if other calls were made in the same step."""
    session = tool_context.get_invocation_context().session
    made = history_of(session).calls.newest(tool_context.function_call_id)
    return made is not None and len(made.event.get_function_calls()) > 1
