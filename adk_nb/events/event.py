"""One thing that happened in a session."""

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

_ACTS = {"state": "state_delta", "route": "route"}


def _new_id() -> str:
    return clock.new_id()


def _now() -> float:
    return clock.now()


class NodeInfo(WireModel):
    """Which node of a graph an event comes from."""

    model_config = ConfigDict(frozen=True)

    path: str = ""
    """`graph/node@1`: the names from the outermost graph to the node, each with its run after `@` where it has one."""
    output_for: list[str] | None = None
    """Paths of the nodes whose output this event's `output` is, too."""
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

    id: str = Field(default_factory=_new_id)
    """A streamed answer's pieces and the whole answer share one."""
    invocation_id: str = ""
    """The user's message that this belongs to, with all that answers it."""
    author: str = ""
    """`user`, or the name of the agent that spoke."""
    actions: EventActions = Field(default_factory=no_actions)
    output: Any = None
    """What a graph's node gives to the next, as JSON."""
    node_info: NodeInfo = NodeInfo.model_construct()  # built later: an import makes no schema for it
    long_running_tool_ids: set[str] | None = None
    """Ids of the calls in this event whose result comes later, from outside the run."""
    branch: str | None = None
    """`parent.child`: agents on sister branches do not see each other's events. None: everyone sees it."""
    isolation_scope: str | None = None
    """Agents outside this scope do not see the event. None: everyone on its branch does."""
    timestamp: float = Field(default_factory=_now)
    """Seconds since the epoch, UTC."""

    @model_validator(mode="before")
    @classmethod
    def _shorthands(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if not ("message" in given or "state" in given or "route" in given or "node_path" in given):
            return given  # pyright: ignore[reportUnknownVariableType]
        fields: dict[str, Any] = dict(given)  # pyright: ignore[reportUnknownArgumentType]
        if (message := fields.pop("message", None)) is not None:
            if fields.get("content") is not None:
                raise ValueError("an event takes `message` or `content`, not both")
            fields["content"] = as_content(message)
        acts = {into: given for short, into in _ACTS.items() if (given := fields.pop(short, None)) is not None}
        if acts:
            fields["actions"] = _with(EventActions.model_validate(fields.get("actions") or {}), acts)
        if (path := fields.pop("node_path", None)) is not None:
            node = NodeInfo.model_validate(fields.get("node_info") or {})
            fields["node_info"] = NodeInfo.model_validate(node.__dict__ | {"path": path})
        return fields

    def model_post_init(self, context: Any, /) -> None:
        said = {name: value for name, value in self.__dict__.items() if value is not None}
        object.__setattr__(self, "__dict__", said)  # None is not stored: that makes an event a sixth smaller

    @field_serializer("long_running_tool_ids", when_used="json-unless-none")
    def _in_order(self, ids: set[str]) -> list[str]:
        return sorted(ids)  # a set's own order differs from process to process

    @model_serializer(mode="wrap")
    def _whole(self, write: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        if info.exclude_none:
            return write(self)
        whole = self.model_copy()
        object.__setattr__(whole, "__dict__", dict.fromkeys(type(self).model_fields) | self.__dict__)
        return write(whole)

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and _said(self) == _said(other)

    def __repr__(self) -> str:
        told = [f"author={self.author!r}"]
        told += [f"text={self.text[:60]!r}"] if self.text else []
        told += [f"calls={[call.name for call in calls]}"] if (calls := self.get_function_calls()) else []
        told += [f"results={[one.name for one in done]}"] if (done := self.get_function_responses()) else []
        told += [f"state_delta={self.actions.state_delta!r:.80}"] if self.actions.state_delta else []
        told += [f"error_code={self.error_code!r}"] if self.error_code else []
        return f"Event({', '.join(told)})"

    __str__ = __repr__

    @property
    def message(self) -> types.Content | None:
        """The content, under its other name."""
        return self.content

    @property
    def node_name(self) -> str:
        """The graph's node that said this; empty for none, and for what only tells where an agent stands."""
        return "" if self.actions.agent_state or self.actions.end_of_agent else self.node_info.name

    @staticmethod
    def new_id() -> str:
        """A fresh id for an event."""
        return clock.new_id()

    def is_final_response(self) -> bool:
        """True for what a reader waits for: a whole answer, a refusal, or a result that stands as it is.

        Source: google-adk 2.13; unlike there, an event without content (an error, or only a state delta) is no answer:
        readers go on to `event.content.parts`.
        """
        says_nothing = self.content is None or (self.error_code and not self.parts)
        if says_nothing and self.output is None and not self.long_running_tool_ids:
            return False
        if self.actions.skip_summarization or self.long_running_tool_ids:
            return True
        if self.partial:
            return False
        answers = False
        for part in self.parts:
            if part.function_call:
                return False
            answers = answers or part.function_response is not None
        return bool(self.error_code) or not (answers or self.has_trailing_code_execution_result())

    def has_trailing_code_execution_result(self) -> bool:
        """True if the content ends with what a program gave: the model has yet to say what that means."""
        return bool(self.parts) and self.parts[-1].code_execution_result is not None

    def is_answer(self) -> bool:
        """True for a final event that has words to show."""
        return self.is_final_response() and bool(self.text.strip())


for _name, _field in Event.model_fields.items():
    if _field.default is None:
        setattr(Event, _name, None)


def made(*, actions: EventActions, id: str = "", **fields: Any) -> Event:
    """`Event(**fields)` at an eighth of its price, of values that are what the fields say and are not None."""
    always = {"id": id or clock.new_id(), "timestamp": clock.now(), "actions": actions}
    return new_model(Event, _names(tuple(fields)), _blank().__dict__ | always | fields)


@cache
def _names(fields: tuple[str, ...]) -> SharedNames:
    """What is given with these `fields`: one set for all such events, which would take 0.7 kB in each."""
    return SharedNames({"id", "timestamp", "actions", *fields})


@cache
def _blank() -> Event:
    return Event(actions=no_actions())


def _said(event: Event) -> dict[str, Any]:
    """The fields of `event` that are not None, which may be stored all the same if they became so."""
    return {name: value for name, value in event.__dict__.items() if value is not None}


def _with(actions: EventActions, acts: dict[str, Any]) -> EventActions:
    if twice := [name for name in acts if getattr(actions, name)]:
        raise ValueError(f"the event's {twice[0]} is given twice: in `actions`, and by the shorthand for it")
    return EventActions.model_validate(dict(actions) | acts)


def as_content(message: Any, role: str = "user") -> types.Content:
    """Text, a part, a list of parts, or a content, as a content; `role` is put where none is said.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(message, types.Content):
        return message if message.role else message.model_copy(update={"role": role})
    if isinstance(message, str):
        return types.Content(role=role, parts=[types.Part(text=message)])
    if isinstance(message, types.Part):
        return types.Content(role=role, parts=[message])
    if isinstance(message, list) and all(isinstance(part, types.Part) for part in cast(list[Any], message)):
        return types.Content(role=role, parts=cast(list[types.Part], message))
    raise InputError(f"a message is text, a types.Content or a list of types.Part, and not {message!r:.80}")
