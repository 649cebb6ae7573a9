"""What the magics that look at a session show: its state and events."""

import json
import shutil
from collections.abc import Sequence
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb.errors import InputError
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.render import table
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import Json


def state(notebook: Notebook, session: str | None, keys: Sequence[str] = ()) -> Shown:
    """A session's state, or these keys of it, sorted by key."""
    now = notebook.sessions.state(session)
    if not now:
        return said(
            f"the state of session {session or notebook.sessions.current!r} is empty; %state key=value sets a key"
        )
    return in_a_table(["key", "value"], [[key, short(now[key])] for key in sorted(keys or now)])


def state_changes(notebook: Notebook, session: str | None) -> Shown:
    """What each event changed, oldest first; events have the numbers that %trace shows."""
    changed: list[list[str]] = []
    for number, row in enumerate(rows_of(notebook.sessions.events(session)), 1):
        changes: list[Json] = row["changes"] or []
        changed += [[str(number), row["author"], change_text(change)] for change in changes]
    if not changed:
        return said(f"nothing has changed the state of session {session or notebook.sessions.current!r} yet")
    return in_a_table(["event", "author", "change"], changed)


def last_reply(notebook: Notebook) -> Reply:
    """What `_run` holds.

    Raises:
        InputError: Nothing was asked yet.
    """
    last = notebook.variables.get("_run")
    if not isinstance(last, Reply):
        raise InputError("%trace --last: nothing was asked yet; type %chat first")
    return last


def as_json(value: Any, *, indent: int | None = 2) -> Shown:
    """`value` as JSON text."""
    return said(json.dumps(value, indent=indent, ensure_ascii=False, default=str))


def in_a_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Shown:
    """Rows under their headers, as wide as there is room."""
    return Shown(table(headers, rows, width=page_width()))


def in_a_whole_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Shown:
    """The same, of which nothing is cut: where there is no room, the last column stands below the one before it."""
    shown, width = table(headers, rows), page_width()
    if width is not None and any(len(line) > width for line in shown["text/plain"].splitlines()):
        below = [pair for *row, last in rows for pair in (row, ["", f"-> {last}"] if last else None) if pair]
        shown["text/plain"] = table(headers[:-1], below)["text/plain"]
    return Shown(shown)


def page_width() -> int | None:
    """Characters of a terminal's line; None in a kernel: what it saves is the same on every machine."""
    kinds = [one.__name__ for one in type(get_ipython()).__mro__]
    return shutil.get_terminal_size().columns if "TerminalInteractiveShell" in kinds else None


def short(value: Any) -> str:
    """`value` as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
