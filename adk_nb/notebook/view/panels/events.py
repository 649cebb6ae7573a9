"""The panel of events: rows come by themselves, the events behind a row and the whole log on request."""

import json
from typing import Any

from adk_nb.events.event import Event
from adk_nb.notebook.view.panel import Panel, PanelRun, add
from adk_nb.notebook.view.plain_text import LONG, bounded_json
from adk_nb.redaction import redacted


def _of_row(run: PanelRun, row: str) -> list[Any] | None:
    return [_as_json(event) for event in run.rows.get(row, ())] or None


def _log(run: PanelRun, _: str) -> str:
    """Every event, as JSON lines."""
    return "\n".join(json.dumps(_as_json(event, LONG), ensure_ascii=False) for event in run.events)


def _as_json(event: Event, limit: int = 2_000) -> Any:
    dumped = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return bounded_json(redacted(dumped), limit)


add(Panel(name="events", title="Events", order=10, requests={"event": _of_row, "log": _log}))
