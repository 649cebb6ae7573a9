"""The side effects that an event carries."""

from typing import Any, cast

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.wire import SharedNames, WireModel, new_model, shares_field_names

DELETED: dict[str, bool] = {"__adk_deleted__": True}
"""In a state delta: remove the key. `None` sets the key to None."""

ESCALATED = "escalated"
"""Metadata key of the event that ends an agent, and the sequences around it, after one of its tools has escalated."""


class EventCompaction(WireModel):
    """A summary that replaces the events of a span of time, both ends included."""

    start_timestamp: float
    """Seconds since the epoch, UTC."""
    end_timestamp: float
    """Seconds since the epoch, UTC."""
    compacted_content: types.Content


class UiWidget(WireModel):
    """A widget for a user interface to draw."""

    id: str
    provider: str
    """Name of the renderer: `mcp`."""
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])
    """JSON for the renderer."""


@shares_field_names
class EventActions(WireModel):
    """Side effects, carried as data: nothing happens until the event is appended to its session."""

    skip_summarization: bool | None = None
    """True: the tool results are the final answer, the model is not called again."""
    state_delta: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Keys to set; values are JSON. A prefix sets the scope of a key: `app:`, `user:`, `temp:`."""
    artifact_delta: dict[str, int] = Field(default_factory=dict[str, int])
    """File name -> the version just saved."""
    transfer_to_agent: str | None = None
    """Name of the agent that takes over the conversation."""
    transfer_reason: str | None = None
    """The agent's reason for the transfer."""
    escalate: bool | None = None
    """True: leave the enclosing loop."""
    rewind_before_invocation_id: str | None = None
    """Set: this event undoes that invocation and every later one."""
    requested_tool_confirmations: dict[str, ToolConfirmation] = Field(default_factory=dict[str, ToolConfirmation])
    """Function call id -> the question to the approver of that call."""
    requested_auth_configs: dict[str, AuthConfig] = Field(default_factory=dict[str, AuthConfig])
    """Function call id -> the credential that the call needs. Secrets are removed when the event is emitted."""
    compaction: EventCompaction | None = None
    """Set: this event summarizes the events of a span of time."""
    end_of_agent: bool | None = None
    """True: the agent has finished. The agent of a loop sets it once a round."""
    agent_state: dict[str, Any] | None = None
    """Checkpoint of the agent, as JSON: an interrupted run resumes from it."""
    route: bool | int | str | list[bool | int | str] | None = None
    """Names of the graph edges to follow from the node."""
    render_ui_widgets: list[UiWidget] | None = None
    """Widgets that a user interface shows beside the text."""
    set_model_response: Any = None
    """The JSON answer of an agent that has an output schema and tools."""

    @model_serializer(mode="wrap")
    def _serialize_every_field(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Unread dicts are not in `__dict__`: without the defaults they would be missing in the JSON.
        return write(new_model(type(self), self.__pydantic_fields_set__, _DEFAULTS | self.__dict__))

    def __eq__(self, value: Any) -> bool:
        return type(self) is type(value) and _set_fields(self) == _set_fields(value)

    __hash__ = None

    def is_placeholder_for(self, call_id: str | None) -> bool:
        """True if the event's result of that call only stands in for it, until an approval or a credential is given."""
        fields = self.__dict__  # reading the attribute of an empty field would create its dict
        return call_id in fields.get("requested_tool_confirmations", ()) or call_id in fields.get(
            "requested_auth_configs", ()
        )

    def merge(self, later: "EventActions") -> None:
        """Merge the actions of another tool call of the same step: dicts in depth (the later wins), flags by `or`."""
        for name, value in later.__dict__.items():
            if value is None or value == {}:
                continue
            current: Any = getattr(self, name)
            if isinstance(current, dict):
                _merge_dicts(cast(dict[str, Any], current), value)
            elif name == "render_ui_widgets":
                setattr(self, name, [*(current or ()), *value])
            # Parallel calls end in any order: one that escalates must win.
            elif not (current is True and value is False):
                setattr(self, name, value)
        if "set_model_response" in later.__pydantic_fields_set__:  # replaced as a whole; may be empty
            self.set_model_response = later.set_model_response


class _DictField:
    """Default of a dict field: a dict for each instance, created when it is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, actions: EventActions | None, owner: object) -> dict[str, Any]:
        if actions is None:
            raise AttributeError(self._name)  # else pydantic uses this descriptor as the default of a subclass
        return vars(actions).setdefault(self._name, {})


_DEFAULTS: dict[str, Any] = {
    name: {} if field.default_factory else None for name, field in EventActions.model_fields.items()
}
_NO_NAMES = SharedNames()

for _name, _default in _DEFAULTS.items():
    setattr(EventActions, _name, None if _default is None else _DictField(_name))


def no_actions() -> EventActions:
    """`EventActions()` without any dict in memory: most events have no actions."""
    return new_model(EventActions, _NO_NAMES, {})


def _set_fields(actions: EventActions) -> dict[str, Any]:
    """The fields that are not empty; an empty dict is in `__dict__` once it was read."""
    return {name: value for name, value in actions.__dict__.items() if value is not None and value != {}}


def _merge_dicts(target: dict[str, Any], later: dict[str, Any]) -> None:
    for key, value in later.items():
        old = target.get(key)
        # DELETED is a dict, too, and is never merged.
        if isinstance(old, dict) and isinstance(value, dict) and DELETED not in (old, value):
            target[key] = dict(
                cast(dict[str, Any], old)
            )  # a copy: the nested dict may be a value that its tool still uses
            _merge_dicts(target[key], cast(dict[str, Any], value))
        else:
            target[key] = value
