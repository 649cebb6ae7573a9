"""The checkpoint of a paused graph, as it is stored in an event's agent_state."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import ConfigDict, Field, ValidationError

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.wire import WireModel

CHECKPOINT = "workflow"
"""Key of an event's agent_state: the checkpoint of a paused graph."""


class _Message(WireModel):
    content: types.Content


class _Json(WireModel):
    model_config = ConfigDict(extra="forbid")

    value: Any = Field(alias="json")


_Value = _Message | _Json


class _Run(WireModel):
    """A run of a node that is not over."""

    node: str
    number: int
    input: _Value
    branch: str | None
    answers: dict[str, Any]
    asked: list[str]
    held: dict[str, Any] | None
    let: dict[str, Any] | None
    others: dict[str, int]


class _Checkpoint(WireModel):
    waiting: list[_Run]
    running: list[_Run]
    inner_ended: dict[str, _Value]
    inner_waiting: dict[str, _Run]
    counts: dict[str, int]
    joins: dict[str, dict[str, _Value]]
    branches: dict[str, list[str | None]]
    outputs: dict[str, Any]
    path: str


def checkpoint_in(state: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The checkpoint in an agent_state. None: there is none, or it cannot be read, and nothing waits for it."""
    stored = state.get(CHECKPOINT) if state else None
    if stored is None:
        return None
    try:
        _Checkpoint.model_validate(stored)
    except ValidationError:
        return None
    return cast(dict[str, Any], stored)


def awaited_keys(event: Event) -> list[str]:
    """Call ids, and paths of nodes that wait for text, in a graph's checkpoint."""
    graph = checkpoint_in(event.actions.agent_state)
    return [key for run in graph["waiting"] for key in run["asked"]] if graph else []
