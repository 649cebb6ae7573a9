"""`request_input`: the model asks the user a question, and continues with the answer."""

from typing import Any

from adk_nb import types
from adk_nb.events.requests import INPUT_REQUEST
from adk_nb.tools.long_running_tool import LongRunningFunctionTool


def _request_input(message: str, response_schema: dict[str, Any] | None = None) -> None:
    """Ask the user a question, and wait for the answer. Use it for what you need to know before you can go on.

    Args:
        message: The question, as the user is to read it.
        response_schema: JSON Schema of the answer: {"type": "boolean"} for a yes or no, an object for several values.
            Leave it out for an answer in the user's own words.
    """


class _RequestInputTool(LongRunningFunctionTool):
    def __init__(self) -> None:
        super().__init__(_request_input, effect="pure", name="request_input")
        self.name = INPUT_REQUEST  # the only reserved name that a model may call

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        declaration = super()._get_declaration()
        return declaration and declaration.model_copy(update={"name": self.name})


request_input = _RequestInputTool()
"""Lets the model ask the user a question. Its call ends the run. The user answers with the next chat message, or with a
`types.FunctionResponse` that has the id and name of the call. Source of its name and schema: google-adk 2.13."""
