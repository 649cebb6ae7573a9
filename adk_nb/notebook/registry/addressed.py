"""Whom the notebook spoke to in a run, as its events tell: a later kernel has to find the same agent again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adk_nb.events.event import Event
from adk_nb.runtime.history import History

_SPOKEN_TO = "spoken_to"
_DEFINED_AS = "defined_as"
_VERSION = "agent_version"
_VERSIONS = "agent_versions"


@dataclass(frozen=True)
class Addressed:
    """Who was spoken to; empty if that is not known."""

    name: str = ""
    digest: str = ""
    """Of its cells then."""


def told_of(name: str, digest: str, versions: Mapping[str, int]) -> dict[str, Any]:
    """What is noted on the events of a run of the agent of that name; `versions`: its own, and of those under it."""
    told: dict[str, Any] = {_SPOKEN_TO: name}
    if digest:
        told |= {_DEFINED_AS: digest, _VERSION: versions[name]}
    return told | ({_VERSIONS: dict(versions)} if len(versions) > 1 else {})


def spoken_to(id: str, history: History) -> Addressed:
    """Who was spoken to when the call `id` was made, or asked."""
    return _in(next((record.event for record in history.calls.all(id)), None))


def last_spoken_to(history: History) -> str:
    """Who was spoken to last; empty if that is not known."""
    return next((found.name for event in history.newest() if (found := _in(event)).name), "")


def of_run(invocation_id: str, history: History) -> Addressed:
    """Who was spoken to in a run."""
    began = history.began(invocation_id)
    return _in(None if began is None else history.events[began])


def _in(event: Event | None) -> Addressed:
    told: dict[str, Any] = (event.custom_metadata if event else None) or {}
    name, digest = told.get(_SPOKEN_TO), told.get(_DEFINED_AS)
    return Addressed(name if isinstance(name, str) else "", digest if isinstance(digest, str) else "")
