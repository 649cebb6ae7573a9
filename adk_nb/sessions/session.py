"""A session: its events and state, and what of them JSON cannot hold."""

import sys
from collections.abc import Generator, Hashable
from typing import Any, Self

from pydantic import Field

from adk_nb.events.event import Event
from adk_nb.wire import WireModel, json_problem


class OwnResult:
    """An object that can be awaited, and is its own result."""

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield  # never reached: it makes this a generator, as `await` needs


class Session(WireModel, OwnResult):
    """One conversation of a user with an app. Can be awaited, and is its own result."""

    id: str
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The sum of the events' state deltas, with the `app:` and `user:` keys of the session's app and user.

    Change it through an event: a value written here directly is not stored.
    """
    events: list[Event] = Field(default_factory=list[Event])
    """Oldest first."""
    last_update_time: float = 0.0
    """Seconds since the epoch, UTC."""
    views: dict[Hashable, Any] = Field(default_factory=dict[Hashable, Any], exclude=True, repr=False)
    """Read models of `events` that are updated by each turn's new events only, by key."""
    initial_state: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    """The session's own keys that it was created with, as no event has them. None: its service does not say."""
    revision: Any = Field(default=None, exclude=True, repr=False)
    """The service's mark of the version of the session that this copy has."""
    lease: Any = Field(default=None, exclude=True, repr=False)
    """The `journal.Lease` of the run that works on this copy; appends to the copy are written under it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Session) and all(getattr(self, name) == getattr(other, name) for name in _COMPARED)


_COMPARED = [name for name, field in Session.model_fields.items() if not field.exclude]


class NoSession:
    """A missing session: false, and None when awaited."""

    def __bool__(self) -> bool:
        return False

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield  # as in `OwnResult`

    def __repr__(self) -> str:
        return "NoSession()"


class ListSessionsResponse(WireModel, OwnResult):
    """A list of sessions without events, least recently used first. Can be awaited, and is its own result."""

    sessions: list[Session] = Field(default_factory=list[Session])


_FREE_FORM = ("agent_state", "artifact_delta", "route", "set_model_response")
"""Actions with values that a user or a model chose, or with unbounded integers."""


def unstorable(event: Event) -> str | None:
    """Describe the value in `event` that would not come back equal from JSON, with its place; None if there is none."""
    return problem_in(event, free_values(event))


def problem_in(event: Event, values: dict[str, Any]) -> str | None:
    """As `unstorable`, of an event whose `free_values` are known."""
    problem = next((f"{name} holds {odd}" for name, value in values.items() if (odd := json_problem(value))), None)
    timestamp: Any = event.timestamp
    is_time = isinstance(timestamp, float | int) and abs(timestamp) <= sys.float_info.max
    return problem or (None if is_time else f"its timestamp is {timestamp!s:.80}")


def free_values(event: Event) -> dict[str, Any]:
    """Place in `event` -> a value there that a user or a model chose."""
    values: dict[str, Any] = {"output": event.output, "custom_metadata": event.custom_metadata}
    actions = event.actions.__dict__  # reading the attribute of an empty field would create its dict
    # Checked apart: pydantic would write NaN as null, and a tuple as a list.
    values |= {name: value for name in _FREE_FORM if (value := actions.get(name))}
    if confirmations := actions.get("requested_tool_confirmations"):
        values["a payload"] = [confirmation.payload for confirmation in confirmations.values()]
    if widgets := actions.get("render_ui_widgets"):
        values["a widget"] = [widget.payload for widget in widgets]
    for number, part in enumerate(event.parts):
        if part.function_call:
            values[f"part {number}, the arguments of {part.function_call.name!r}"] = part.function_call.args
        if part.function_response:
            values[f"part {number}, the result of {part.function_response.name!r}"] = part.function_response.response
        if part.part_metadata:
            values[f"part {number}, part_metadata"] = part.part_metadata
    return values
