"""What the panels of a live view show of a run, worked out when a page asks for it and not before."""

import json
from collections.abc import Callable
from typing import Any

from adk_nb.events.event import Event
from adk_nb.notebook.view.panels.prompt import Prompt, Said, Words, prompt_sent
from adk_nb.notebook.view.panels.waterfall import bars
from adk_nb.notebook.view.plain_text import LONG, shortened, with_escapes
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import redacted
from adk_nb.runtime.trace import Trace, TracedRequest

PANELS = ["event", "waterfall", "prompt", "log"]
"""What a run of this kernel can always tell."""
_MOST_SAID = 300
"""Parts of a history that are sent to a page; the newest."""


class RunPanels:
    """The events of one run, each with the rows that tell of it, and what was noted while it ran."""

    def __init__(self, trace: Callable[[], Trace], state: Callable[[], list[Json]]) -> None:
        self._trace = trace
        self._state = state
        self._events: dict[str, Event] = {}
        self._told_by: dict[str, list[str]] = {}
        """Row -> ids of the events that it tells of."""
        self._artifacts: dict[str, Json] = {}

    def feed(self, event: Event, ops: list[Json]) -> None:
        """One more whole event, and the ops that show it."""
        self._events[event.id] = event
        for op in ops:
            row = op["row"]["id"] if op["op"] == "append" else op["id"] if op["op"] == "patch" else None
            if row is not None and event.id not in (told := self._told_by.setdefault(row, [])):
                told.append(event.id)

    def without_content(self, op: Json) -> Json:
        """An `artifact` op as every page hears it; what is in the file is told when it is looked at."""
        whole = op["artifact"]
        self._artifacts[whole["id"]] = whole
        return {**op, "artifact": {name: whole[name] for name in ("id", "name", "version", "mime", "size")}}

    def told(self, what: str, id: str) -> Json | None:
        """The op that answers a page, None if there is nothing to tell; costs the time of what is asked alone.

        Args:
            what: `artifact` (whole, as `rich_results.artifact`), `event` (all events that a row tells of), `waterfall`,
                `prompts` (a line for each model call), `prompt` (one, whole), `log` (every event as JSON lines) or
                `state`.
            id: Of the artifact; of the row; the number of the model call, counted from 0; else empty.
        """
        data = self._data(what, id)
        return None if data is None else {"op": "panel", "name": what, "id": id, "data": data}

    def _data(self, what: str, id: str) -> Any:
        events = list(self._events.values())
        if what == "event":
            return [_as_json(self._events[one]) for one in self._told_by.get(id, ())] or None
        if what == "waterfall":
            return bars(events, self._trace())
        if what == "prompts":
            return [_heading(one) for one in self._trace().requests]
        if what == "prompt":
            return self._prompt(id)
        if what == "log":
            return "\n".join(json.dumps(_as_json(event, LONG), ensure_ascii=False) for event in events)
        return self._state() if what == "state" else self._artifacts.get(id) if what == "artifact" else None

    def _prompt(self, id: str) -> Prompt | None:
        requests = self._trace().requests
        if not id.isdecimal() or int(id) >= len(requests):
            return None
        prompt = prompt_sent(requests[int(id)], self._trace())
        prompt["system"] = _bounded(prompt["system"])
        for said in (*prompt["history"], *prompt["answer"]):
            said["text"] = _bounded(said["text"])
        if (left_out := len(prompt["history"]) - _MOST_SAID) > 0:
            note = Said(role="", kind="", text=[Words(text=f"{left_out} earlier parts", source="")])
            prompt["history"] = [note, *prompt["history"][left_out:]]
        for part in ("raw", "settings", "tools"):
            prompt[part] = _shortened(prompt[part], LONG)
        return prompt


def _heading(sent: TracedRequest) -> Json:
    """A line for one model call, without looking at what was said in it."""
    usage = sent.response.usage_metadata if sent.response else None
    tokens = (usage.total_token_count if usage else None) or 0
    ms = None if sent.ended is None else round((sent.ended - sent.began) * 1000, 1)
    return {"agent": sent.agent, "model": sent.model, "event": sent.event_id, "ms": ms, "tokens": tokens}


def _bounded(words: list[Words]) -> list[Words]:
    return [Words(text=shortened(one["text"], LONG), source=one["source"]) for one in words]


def _as_json(event: Event, limit: int = 2_000) -> Any:
    told = event.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    return _shortened(redacted(told), limit)


def _shortened(value: Any, limit: int) -> Any:
    """JSON whose strings are at most so long (a picture is no text to read), with escapes for what cannot be seen."""
    if isinstance(value, str):
        return shortened(with_escapes(value[: limit + LONG]), limit)
    if isinstance(value, dict):
        return {with_escapes(str(key)): _shortened(each, limit) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [_shortened(each, limit) for each in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
