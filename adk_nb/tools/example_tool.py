"""`ExampleTool` shows the model examples of good answers."""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.examples.base_example_provider import BaseExampleProvider
from adk_nb.examples.example import Example
from adk_nb.models.llm_request import LlmRequest
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.shape import error_text

_INSTRUCTION = "These are examples of what users say, and of what you say and do then. Follow them."


class ExampleTool(BaseTool):
    """Adds examples to the system instruction. The model neither sees nor calls it."""

    def __init__(self, examples: Sequence[Example] | BaseExampleProvider) -> None:
        """Take examples, which may be dicts, or a provider that selects examples for the user's text.

        Raises:
            ConfigurationError: They are not examples.
        """
        super().__init__(name="example_tool", description="Tells examples.")
        try:
            self.examples = (
                examples
                if isinstance(examples, BaseExampleProvider)
                else TypeAdapter(list[Example]).validate_python(examples)
            )
        except ValidationError as error:
            raise ConfigurationError(
                f"ExampleTool: {error_text(error)}; write ExampleTool([Example(input=..., output=[...])])"
            ) from error

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return an error: a model never calls this tool."""
        return {"error": f"{self.name} is not called: the examples are in your instruction"}

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Append the examples to the system instruction."""
        if isinstance(self.examples, BaseExampleProvider):
            content = tool_context.user_content
            query = " ".join(part.text for part in (content and content.parts) or () if part.text)
            examples = self.examples.get_examples(query) if query else []
        else:
            examples = self.examples
        if examples:
            blocks = [f"EXAMPLE {number}:\n{_transcript(example)}" for number, example in enumerate(examples, 1)]
            llm_request.append_instructions(["\n\n".join([_INSTRUCTION, *blocks])])


def _transcript(example: Example) -> str:
    """The example as a dialogue, with a role line whenever the speaker changes."""
    lines, speaker = list[str](), ""
    for content in (example.input.model_copy(update={"role": "user"}), *example.output):
        role = "model" if content.role == "model" else "user"
        if role != speaker:
            lines.append(f"[{role}]")
        speaker = role
        lines += [line for part in content.parts or () if (line := _line(part))]
    return "\n".join(lines)


def _line(part: types.Part) -> str | None:
    if call := part.function_call:
        args = ", ".join(f"{name}={value!r}" for name, value in (call.args or {}).items())
        return f"(calls) {call.name}({args})"
    if response := part.function_response:
        return f"(result of {response.name}) {json.dumps(response.response, ensure_ascii=False)}"
    return part.text
