"""The panels of a session's records: events, state and artifacts."""

import json
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.notebook.view import results
from adk_nb.notebook.view.event_text import StateTexts
from adk_nb.notebook.view.panels import Data, Follower, Json, Panel, PanelRun, add
from adk_nb.notebook.view.plain_text import LONG, bounded_json
from adk_nb.redaction import redacted


def _log(run: PanelRun, _: str) -> str:
    """Every event, as JSON lines."""
    return "\n".join(json.dumps(_as_json(event, LONG), ensure_ascii=False) for event in run.events)


def _as_json(event: Event, limit: int = 2_000) -> Any:
    dumped = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return bounded_json(redacted(dumped), limit)


_REQUESTS: dict[str, Data] = {
    "event": lambda run, row: [_as_json(event) for event in run.rows.get(row, ())] or None,
    "log": _log,
}
add(Panel(name="events", title="Events", order=10, requests=_REQUESTS))


def _values(run: PanelRun, _: str) -> list[dict[str, Any]]:
    return StateTexts(run.state).editable_entries()


add(Panel(name="state", title="State", order=30, data=_values, exists=lambda run: bool(run.state)))


_FACTS = ("id", "name", "version", "mime", "size")


class _Saved(Follower):
    def __init__(self, run: PanelRun) -> None:
        self._run = run

    def saved(self, name: str, version: int, file: types.Part | None) -> list[Json]:
        """Keep the file for requests; push its name, version, type and size."""
        artifact = results.artifact(name, version, file)
        self._run.artifacts[artifact["id"]] = artifact
        return [{"op": "artifact", "artifact": {fact: artifact[fact] for fact in _FACTS}}]


def _content(run: PanelRun, id: str) -> Any:
    return run.artifacts.get(id)


add(
    Panel(
        name="artifacts",
        title="Artifacts",
        order=60,
        exists=lambda run: bool(run.artifacts),
        requests={"artifact": _content},
        follow=_Saved,
    )
)
