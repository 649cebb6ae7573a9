"""`set_model_response`: returns the final answer, for models that cannot combine tools and an output schema."""

from typing import Any

from pydantic import ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import Shape, error_text

NAME = "set_model_response"
"""Source: google-adk 2.13."""

INSTRUCTION = (
    f"You have other tools, but your final answer has to be given with the tool {NAME}, in the form it asks for. "
    f"Use the other tools as you need them, and then always call {NAME} with your final answer instead of writing it."
)
"""Instruction for the model, beside the tool."""


class SetModelResponseTool(BaseTool):
    """Takes the final answer as arguments. A valid answer ends the turn, an invalid one goes back to the model."""

    def __init__(self, output_schema: Any) -> None:
        """`output_schema`: a schema, or a parsed Shape."""
        super().__init__(name=NAME, description="Gives your final answer. Call it once, at the end.")
        self.effect = "pure"
        self._output = output_schema if isinstance(output_schema, Shape) else Shape(output_schema)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._output.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Validate the answer."""
        try:
            answer = self._output.read_arguments(args)
        except (ValidationError, ConfigurationError) as error:
            return {"error": f"the answer does not fit: {error_text(error)}. Call {NAME} again with one that fits."}
        tool_context.actions.set_model_response = answer
        return answer
