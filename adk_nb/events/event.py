"""One thing that happened in a session."""

from typing import Any, cast

from pydantic import Field, model_validator

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.events.event_actions import EventActions
from adk_nb.models.llm_response import LlmResponse


def _new_id() -> str:
    return clock.new_id()


def _now() -> float:
    return clock.now()


class Event(LlmResponse):
    """One entry of a session's history. Written once, appended once, never changed after.

    `Event(message="Hello", state={"seen": True})` is short for a content and a state delta.
    """

    id: str = Field(default_factory=_new_id)
    """A streamed answer's pieces and the whole answer share one."""
    invocation_id: str = ""
    """The user's message that this belongs to, with all that answers it."""
    author: str = ""
    """`user`, or the name of the agent that spoke."""
    actions: EventActions = Field(default_factory=EventActions)
    long_running_tool_ids: set[str] | None = None
    """Ids of the calls in this event whose result comes later, from outside the run."""
    branch: str | None = None
    """`parent.child`: agents on sister branches do not see each other's events. None: everyone sees it."""
    timestamp: float = Field(default_factory=_now)
    """Seconds since the epoch, UTC."""

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not ("message" in given or "state" in given):
            return given  # pyright: ignore[reportUnknownVariableType]
        fields: dict[str, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
        if "message" in fields:
            if fields.get("content") is not None:
                raise ValueError("an event takes `message` or `content`, not both")
            fields["content"] = as_content(fields.pop("message"))
        if "state" in fields:
            if fields.get("actions") is not None:
                raise ValueError("an event takes `state` or `actions`, not both")
            fields["actions"] = EventActions(state_delta=fields.pop("state"))
        return fields

    def __repr__(self) -> str:
        told = [f"author={self.author!r}"]
        told += [f"text={self.text[:60]!r}"] if self.text else []
        told += [f"calls={[call.name for call in calls]}"] if (calls := self.get_function_calls()) else []
        told += [f"results={[one.name for one in done]}"] if (done := self.get_function_responses()) else []
        told += [f"state_delta={self.actions.state_delta!r:.80}"] if self.actions.state_delta else []
        told += [f"error_code={self.error_code!r}"] if self.error_code else []
        return f"Event({', '.join(told)})"

    __str__ = __repr__

    def is_final_response(self) -> bool:
        """True for what a reader waits for: a whole answer, a refusal, or a result that stands as it is.

        Source: google-adk 2.13; unlike there, an event that says nothing (only a state delta) is not an answer.
        """
        if self.content is None and not (self.error_code or self.long_running_tool_ids):
            return False
        if self.actions.skip_summarization or self.long_running_tool_ids:
            return True
        if self.partial or self.get_function_calls():
            return False
        return bool(self.error_code) or not self.get_function_responses()

    def is_answer(self) -> bool:
        """True for a final event that has words to show."""
        return self.is_final_response() and bool(self.text.strip())


def as_content(message: Any, role: str = "user") -> types.Content:
    """Text, a list of parts, or a content, as a content; `role` is put where none is said.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(message, types.Content):
        return message if message.role else message.model_copy(update={"role": role})
    if isinstance(message, str):
        return types.Content(role=role, parts=[types.Part(text=message)])
    if isinstance(message, list) and all(isinstance(part, types.Part) for part in cast(list[Any], message)):
        return types.Content(role=role, parts=cast(list[types.Part], message))
    raise InputError(f"a message is text, a types.Content or a list of types.Part, and not {message!r:.80}")
