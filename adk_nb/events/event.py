"""Event: one entry of a session's history."""

from functools import cache
from typing import Any, ClassVar, cast

from pydantic import (
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
    model_validator,
)

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.events.event_actions import EventActions, no_actions
from adk_nb.models.llm_response import LlmResponse
from adk_nb.wire import SharedNames, WireModel, new_model, shares_field_names

_ACTION_SHORTHANDS = {"state": "state_delta", "route": "route"}


class NodeInfo(WireModel):
    """The graph node that emitted an event."""

    model_config = ConfigDict(frozen=True)

    path: str = ""
    """`graph/node@1`: names from the outermost graph to the node; `@` precedes a node's run number, if it has one."""
    output_for: list[str] | None = None
    """Paths of the nodes that also have this event's `output` as their output."""
    message_as_output: bool | None = None
    """True: the event's content is the node's output."""

    @property
    def name(self) -> str:
        """The node's own name."""
        return self.path.rpartition("/")[2].partition("@")[0]


@shares_field_names
class Event(LlmResponse):
    """One entry of a session's history. Written once, appended once, never changed after.

    `Event(message="Hello", state={"seen": True}, route="yes", node_path="graph/ask")` is short for a content, a state
    delta, a route and a node info.
    """

    shorthands: ClassVar[frozenset[str]] = frozenset({"message", "state", "route", "node_path"})

    id: str = Field(default_factory=lambda: clock.new_id())  # looked up at each call: tests replace the clock
    """The partial events of a streamed answer and its final event share one id."""
    invocation_id: str = ""
    """Id of the run: shared by the user's message and by every event that answers it."""
    author: str = ""
    """`user`, or the name of the agent."""
    actions: EventActions = Field(default_factory=no_actions)
    output: Any = None
    """Output of a graph node, as JSON: the input of the next node."""
    node_info: NodeInfo = NodeInfo.model_construct()  # no validation: importing builds no schema
    long_running_tool_ids: set[str] | None = None
    """Ids of the calls in this event whose result comes later, from outside the run."""
    branch: str | None = None
    """`parent.child`: agents on sibling branches do not see each other's events. None: all agents see it."""
    isolation_scope: str | None = None
    """Agents outside this scope do not see the event. None: all agents on its branch see it."""
    timestamp: float = Field(default_factory=lambda: clock.now())
    """Seconds since the epoch, UTC."""

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if not ("message" in data or "state" in data or "route" in data or "node_path" in data):
            return data  # pyright: ignore[reportUnknownVariableType]
        fields: dict[str, Any] = dict(data)  # pyright: ignore[reportUnknownArgumentType]
        if (message := fields.pop("message", None)) is not None:
            if fields.get("content") is not None:
                raise ValueError("an event takes `message` or `content`, not both")
            fields["content"] = as_content(message)
        values = {field: fields.pop(name, None) for name, field in _ACTION_SHORTHANDS.items()}
        if shorthands := {field: value for field, value in values.items() if value is not None}:
            actions = EventActions.model_validate(fields.get("actions") or {})
            if duplicates := [field for field in shorthands if getattr(actions, field)]:
                raise ValueError(f"the event's {duplicates[0]} is passed twice: in `actions`, and by its shorthand")
            fields["actions"] = EventActions.model_validate(dict(actions) | shorthands)
        if (path := fields.pop("node_path", None)) is not None:
            node = NodeInfo.model_validate(fields.get("node_info") or {})
            fields["node_info"] = NodeInfo.model_validate(node.__dict__ | {"path": path})
        return fields

    def model_post_init(self, context: Any, /) -> None:
        """Drop fields that are None, which the class has as defaults: an event takes a sixth less memory."""
        fields = {name: value for name, value in self.__dict__.items() if value is not None}
        object.__setattr__(self, "__dict__", fields)

    @field_serializer("long_running_tool_ids", when_used="json-unless-none")
    def _sort_ids(self, ids: set[str]) -> list[str]:
        return sorted(ids)  # a set's own order differs from process to process

    @model_serializer(mode="wrap")
    def _serialize_every_field(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        if info.exclude_none:
            return write(self)
        # `model_post_init` has dropped the fields that are None; a reader of JSON expects them.
        complete = self.model_copy()
        object.__setattr__(complete, "__dict__", dict.fromkeys(type(self).model_fields) | self.__dict__)
        return write(complete)

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and _set_fields(self) == _set_fields(other)

    def __repr__(self) -> str:
        fields = [f"author={self.author!r}"]
        fields += [f"text={self.text[:60]!r}"] if self.text else []
        fields += [f"calls={[call.name for call in calls]}"] if (calls := self.get_function_calls()) else []
        results = [response.name for response in self.get_function_responses()]
        fields += [f"results={results}"] if results else []
        fields += [f"state_delta={self.actions.state_delta!r:.80}"] if self.actions.state_delta else []
        fields += [f"error_code={self.error_code!r}"] if self.error_code else []
        return f"Event({', '.join(fields)})"

    __str__ = __repr__

    @property
    def message(self) -> types.Content | None:
        """The content, as google-adk's `Event.message` names it."""
        return self.content

    @property
    def node_name(self) -> str:
        """Name of the graph node that emitted this; empty outside a graph, and for a checkpoint."""
        return "" if self.actions.agent_state or self.actions.end_of_agent else self.node_info.name

    @staticmethod
    def new_id() -> str:
        """A fresh id for an event."""
        return clock.new_id()

    def is_final_response(self) -> bool:
        """True for a complete answer, a refusal, or a tool result that the model does not summarize.

        Source: google-adk 2.13; unlike there, an event without content (an error, or only a state delta) is not final,
        because callers read `event.content.parts` of a final event.
        """
        is_empty = self.content is None or (self.error_code and not self.parts)
        if is_empty and self.output is None and not self.long_running_tool_ids:
            return False
        if self.actions.skip_summarization or self.long_running_tool_ids:
            return True
        if self.partial:
            return False
        has_response = False
        for part in self.parts:
            if part.function_call:
                return False
            has_response = has_response or part.function_response is not None
        return bool(self.error_code) or not (has_response or self.has_trailing_code_execution_result())

    def has_trailing_code_execution_result(self) -> bool:
        """True if the content ends with the result of executed code: the model has yet to interpret it."""
        return bool(self.parts) and self.parts[-1].code_execution_result is not None

    def is_answer(self) -> bool:
        """True for a final event with text to display."""
        return self.is_final_response() and bool(self.text.strip())


for _name, _field in Event.model_fields.items():
    if _field.default is None:
        setattr(Event, _name, None)


def new_event(*, actions: EventActions, id: str = "", **fields: Any) -> Event:
    """Build an `Event` without validation, eight times faster: values have the types of the fields and are not None."""
    common = {"id": id or clock.new_id(), "timestamp": clock.now(), "actions": actions}
    return new_model(Event, _shared_names(tuple(fields)), _default_event().__dict__ | common | fields)


@cache
def _shared_names(fields: tuple[str, ...]) -> SharedNames:
    """The set of field names of an event with these `fields`, shared by all such events: it takes 0.7 kB."""
    return SharedNames({"id", "timestamp", "actions", *fields})


@cache
def _default_event() -> Event:
    return Event(actions=no_actions())


def _set_fields(event: Event) -> dict[str, Any]:
    """The fields of `event` that are not None; a field that was set to None later is still in its dict."""
    return {name: value for name, value in event.__dict__.items() if value is not None}


def as_content(message: Any, role: str = "user") -> types.Content:
    """Convert a message to a content: text, a part, a list of parts, or a content.

    Args:
        message: The message.
        role: Role of a content that has none.

    Raises:
        InputError: `message` has another type.
    """
    if isinstance(message, types.Content):
        return message if message.role else message.model_copy(update={"role": role})
    if isinstance(message, str):
        return types.Content(role=role, parts=[types.Part(text=message)])
    if isinstance(message, types.Part):
        return types.Content(role=role, parts=[message])
    if isinstance(message, list) and all(isinstance(part, types.Part) for part in cast(list[Any], message)):
        return types.Content(role=role, parts=cast(list[types.Part], message))
    raise InputError(f"a message must be text, a types.Content or a list of types.Part, got {message!r:.80}")
