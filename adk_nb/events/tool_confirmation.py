"""The approval of a tool call."""

from typing import Any

from pydantic import field_validator

from adk_nb.wire import WireModel, json_problem


class ToolConfirmation(WireModel):
    """A request for approval, and later its answer."""

    hint: str = ""
    """The question to the approver."""
    confirmed: bool = False
    payload: Any = None
    """JSON that the tool requests beside yes or no. Other values are refused: a request is stored with its session."""
    documents: dict[str, str] | None = None
    """Texts that the approver must see whole, by title: the source of a script that is to run."""
    in_doubt: bool | None = None
    """True: an earlier attempt of this call may have taken effect, and the question is whether to make it again."""
    action: str | None = None
    """Of a request: the word on the button that approves, as `Run`."""
    for_turn: bool | None = None
    """Of a request, True: a yes may hold for all calls of the tool in the rest of the turn. Of an answer: it does."""
    earlier: dict[str, Any] | None = None
    """Of a request: `call`, the id of an equal call that has run in this turn, and `result`, its result; or `call` and
    `waits`, true, of one that waits for its own approval."""
    args: dict[str, Any] | None = None
    """Arguments that replace the model's. None: the model's arguments."""
    reason: str | None = None
    """Reason of a rejection, for the model."""
    by: str | None = None
    """How it was answered: `a click`, `%confirm`, `chat.approve()`, `%chat --yes`, `%config AdkNb.confirm`. None: by a
    function response. The time of the answer is its event's; the approver is the session's user."""

    @field_validator("payload")
    @classmethod
    def _is_json(cls, payload: Any) -> Any:
        if odd := json_problem(payload):
            raise ValueError(f"the payload of a confirmation must be JSON, got {odd}")
        return payload
