"""What was decided about a tool call that needs a human's word."""

from typing import Any

from pydantic import field_validator

from adk_nb.wire import WireModel, json_problem


class ToolConfirmation(WireModel):
    """A request for approval, and later its answer."""

    hint: str = ""
    """What the person is asked."""
    confirmed: bool = False
    payload: Any = None
    """JSON the tool asked for beside yes or no. What is no JSON is refused: the question outlives its process."""
    args: dict[str, Any] | None = None
    """The arguments to run with instead of the model's. None: as the model asked."""
    reason: str | None = None
    """Why it was rejected; told to the model."""
    by: str | None = None
    """The way it was answered, as whoever answered says: `a click`, `%confirm`, `chat.approve()`, `%chat --yes`,
    `%config AdkNb.confirm`. None: a function response. When, is the time of its event; who, the session's user."""

    @field_validator("payload")
    @classmethod
    def _is_json(cls, payload: Any) -> Any:
        if odd := json_problem(payload):
            raise ValueError(f"the payload of a confirmation is JSON, and cannot hold {odd}")
        return payload
