"""An eval case as google-adk stores it: the user's messages, and the calls and answers that are expected.

Source of the fields: google-adk 2.13, `google.adk.evaluation.eval_case`.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from adk_nb import types


class EvalBaseModel(BaseModel):
    """Reads snake_case and camelCase; an unknown field is an error, as in google-adk."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", arbitrary_types_allowed=True
    )


class RubricContent(EvalBaseModel):
    """The text of a rubric."""

    text_property: str | None = None


class Rubric(EvalBaseModel):
    """A property that a judge looks for."""

    rubric_id: str
    rubric_content: RubricContent
    description: str | None = None
    type: str | None = None


class IntermediateData(EvalBaseModel):
    """Tool calls, results and texts of a turn before its final answer, oldest first."""

    tool_uses: list[types.FunctionCall] = Field(default_factory=list[types.FunctionCall])
    tool_responses: list[types.FunctionResponse] = Field(default_factory=list[types.FunctionResponse])
    intermediate_responses: list[tuple[str, list[types.Part]]] = Field(
        default_factory=list[tuple[str, list[types.Part]]]
    )
    """Agent and parts."""


class InvocationEvent(EvalBaseModel):
    """An event of a turn."""

    model_config = ConfigDict(extra="ignore")  # the eval editor of `adk web` adds fields of its own

    author: str
    content: types.Content | None = None
    grounding_metadata: types.GroundingMetadata | None = None
    usage_metadata: types.GenerateContentResponseUsageMetadata | None = None
    model_version: str | None = None


class InvocationEvents(EvalBaseModel):
    """Events of a turn, oldest first."""

    invocation_events: list[InvocationEvent] = Field(default_factory=list[InvocationEvent])


class Invocation(EvalBaseModel):
    """A turn: a message of the user, and what the agent answered or should answer."""

    invocation_id: str = ""
    user_content: types.Content
    final_response: types.Content | None = None
    intermediate_data: IntermediateData | InvocationEvents | None = None
    creation_timestamp: float = 0.0
    """Seconds since the epoch, UTC."""
    duration: float | None = None
    """Seconds; None: not measured."""
    model_duration: float | None = None
    tool_duration: float | None = None
    rubrics: list[Rubric] | None = None
    app_details: Any = None


class SessionInput(EvalBaseModel):
    """The session in which a case begins."""

    model_config = ConfigDict(extra="allow")

    app_name: str = ""
    user_id: str = ""
    session_id: str | None = None
    state: dict[str, Any] = Field(default_factory=dict[str, Any])


class EvalCase(EvalBaseModel):
    """A case: a conversation, or a scenario for a simulated user."""

    model_config = ConfigDict(extra="allow")

    eval_id: str
    conversation: list[Invocation] | None = None
    conversation_scenario: Any = None
    session_input: SessionInput | None = None
    creation_timestamp: float = 0.0
    rubrics: list[Rubric] | None = None
    final_session_state: dict[str, Any] | None = Field(default_factory=dict[str, Any])

    @model_validator(mode="after")
    def _check_conversation(self) -> Self:
        if (self.conversation is None) == (self.conversation_scenario is None):
            raise ValueError(f"eval case {self.eval_id!r} needs either conversation or conversation_scenario")
        return self


def get_all_tool_calls(intermediate_data: IntermediateData | InvocationEvents | None) -> list[types.FunctionCall]:
    """The tool calls of a turn, oldest first."""
    if isinstance(intermediate_data, InvocationEvents):
        contents = [event.content for event in intermediate_data.invocation_events if event.content]
        return [part.function_call for content in contents for part in content.parts or () if part.function_call]
    return list(intermediate_data.tool_uses) if intermediate_data else []


def content_text(content: types.Content | None) -> str:
    """The texts of a content, a line each. Source: google-adk 2.13, which scores this."""
    return "\n".join(part.text for part in (content.parts if content else None) or () if part.text)
