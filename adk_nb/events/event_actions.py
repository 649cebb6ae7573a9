"""What an event does, beside what it says."""

from typing import Any, cast

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.wire import SharedNames, WireModel, new_model, shares_field_names

DELETED: dict[str, bool] = {"__adk_deleted__": True}
"""In a state delta: the key is removed. `None` would set it to None."""


class EventCompaction(WireModel):
    """One content in the place of all events from one time to another, both included."""

    start_timestamp: float
    """Seconds since the epoch, UTC."""
    end_timestamp: float
    """Seconds since the epoch, UTC."""
    compacted_content: types.Content


class UiWidget(WireModel):
    """Something a user interface draws."""

    id: str
    provider: str
    """Who knows how to draw it: `mcp`."""
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON that the provider reads."""


@shares_field_names
class EventActions(WireModel):
    """Side effects, carried as data: nothing happens until the event is appended to its session."""

    skip_summarization: bool | None = None
    """True: the tool results stand as they are, the model is not asked again."""
    state_delta: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Keys to set; values are JSON. A prefix says how far a key reaches: `app:`, `user:`, `temp:`."""
    artifact_delta: dict[str, int] = Field(default_factory=dict[str, int])
    """File name -> the version just saved."""
    transfer_to_agent: str | None = None
    """Name of the agent that answers next."""
    transfer_reason: str | None = None
    """Why, in the words of the agent that hands over."""
    escalate: bool | None = None
    """True: leave the enclosing loop."""
    rewind_before_invocation_id: str | None = None
    """Set: this event undoes that invocation and all that came after it."""
    requested_tool_confirmations: dict[str, ToolConfirmation] = Field(default_factory=dict[str, ToolConfirmation])
    """Function call id -> what a human is asked before that call may run."""
    requested_auth_configs: dict[str, AuthConfig] = Field(default_factory=dict[str, AuthConfig])
    """Function call id -> the credential without which that call cannot run; without secrets once it is an event's."""

    compaction: EventCompaction | None = None
    """Set: this event stands for those of a stretch of time."""
    end_of_agent: bool | None = None
    """True: the agent has done its work. A loop's agent says so once a round."""
    agent_state: dict[str, Any] | None = None
    """Where the agent stands, as JSON, so that a stopped run can go on from there."""
    route: bool | int | str | list[bool | int | str] | None = None
    """Which of a graph node's ways to go: the edges of this name, or of these."""
    render_ui_widgets: list[UiWidget] | None = None
    """What a user interface shows beside the words."""
    set_model_response: Any = None
    """The JSON answer of an agent that has an output schema and tools."""

    @model_serializer(mode="wrap")
    def _whole(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return write(new_model(type(self), self.__pydantic_fields_set__, _DEFAULTS | self.__dict__))

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and _fields(self) == _fields(other)

    __hash__ = None

    def merge(self, later: "EventActions") -> None:
        """Take in the actions of another tool of the same step: dicts united in depth (the later wins), flags or-ed."""
        for name, value in later.__dict__.items():
            if value is None or value == {}:
                continue
            mine: Any = getattr(self, name)
            if isinstance(mine, dict):
                _unite(cast(dict[str, Any], mine), value)
            elif not (mine is True and value is False):
                setattr(self, name, value)
        if "set_model_response" in later.__pydantic_fields_set__:  # an answer is whole, and may be empty
            self.set_model_response = later.set_model_response


class _DictField:
    """The default of a field that holds a dict: one of its own for each record, made when it is first looked at."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, actions: EventActions | None, owner: object) -> dict[str, Any]:
        if actions is None:
            raise AttributeError(self._name)  # else pydantic takes this for a subclass's default
        return vars(actions).setdefault(self._name, {})


_DEFAULTS: dict[str, Any] = {
    name: {} if field.default_factory else None for name, field in EventActions.model_fields.items()
}
_NO_NAMES = SharedNames()

for _name, _default in _DEFAULTS.items():
    setattr(EventActions, _name, None if _default is None else _DictField(_name))


def no_actions() -> EventActions:
    """`EventActions()` without anything in memory: many are made, most stay empty."""
    return new_model(EventActions, _NO_NAMES, {})


def _fields(actions: EventActions) -> dict[str, Any]:
    """The fields that are not empty, which may be stored all the same."""
    return {name: value for name, value in actions.__dict__.items() if value is not None and value != {}}


def _unite(mine: dict[str, Any], later: dict[str, Any]) -> None:
    for key, value in later.items():
        before = mine.get(key)
        if isinstance(before, dict) and isinstance(value, dict) and DELETED not in (before, value):
            mine[key] = dict(cast(dict[str, Any], before))  # the inner one is someone's live value
            _unite(mine[key], cast(dict[str, Any], value))
        else:
            mine[key] = value
