"""A session's state as text, and the changes of each event."""

from collections.abc import Mapping
from typing import Any

from adk_nb.events.event_actions import DELETED
from adk_nb.notebook.view.plain_text import LONG, json_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import redacted
from adk_nb.sessions.state import State


class ShownState:
    """Every key with its value as text, kept up to date delta by delta."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._texts = {key: _text(key, value) for key, value in state.items()}
        self._masked = {key for key, value in state.items() if _is_masked(key, value)}

    def change(self, delta: Mapping[str, Any]) -> list[Json]:
        """Take `delta` in.

        Returns:
            `{"key", "kind", "old", "new"}` for each key that is not what it was; kind `+` added, `~` changed,
            `-` removed; values as bounded text, None where there is none.
        """
        changes: list[Json] = []
        for key, value in delta.items():
            old = self._texts.get(key)
            new = None if value == DELETED else _text(key, value)
            if new == old:
                continue
            self._masked.discard(key)
            if new is None:
                del self._texts[key]
            else:
                self._texts[key] = new
                self._masked |= {key} if _is_masked(key, value) else set()
            kind = "+" if old is None else "-" if new is None else "~"
            changes.append({"key": one_line(key, 100), "kind": kind, "old": _bounded(old), "new": _bounded(new)})
        return changes

    def entries(self) -> list[Json]:
        """`{"key", "value"}` for every key, in the order they came."""
        return [{"key": one_line(key, 100), "value": shortened(text)} for key, text in self._texts.items()]

    def whole(self) -> list[Json]:
        """`{"key", "json"}` for every key that can be changed as text: nothing in its value is masked, or too long."""
        editable = {key: text for key, text in self._texts.items() if key not in self._masked and len(text) <= LONG}
        return [{"key": one_line(key, 100), "json": text} for key, text in editable.items()]

    def end_turn(self) -> None:
        """Forget what lasts for one turn only."""
        for key in [key for key in self._texts if key.startswith(State.TEMP_PREFIX)]:
            del self._texts[key]


def change_text(change: Json) -> str:
    """A change in words: `city = "Oslo"`, `calls: 1 → 2`, `draft removed`."""
    key, old, new = change["key"], change["old"], change["new"]
    if change["kind"] == "-":
        return f"{key} removed"
    return f"{key} = {new}" if change["kind"] == "+" else f"{key}: {old} → {new}"


def _text(key: str, value: Any) -> str:
    return json_text(value, name=key.rpartition(":")[2])


def _is_masked(key: str, value: Any) -> bool:
    return redacted(value, key.rpartition(":")[2]) != value


def _bounded(text: str | None) -> str | None:
    return None if text is None else shortened(text)
