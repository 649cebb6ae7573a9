"""What the magics that look at a session show: its state, events and open approvals."""

import json
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from IPython.core.getipython import get_ipython

from adk_nb.errors import InputError, ToolNotFoundError
from adk_nb.events.event import Event
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cut_runs import cut_in_brief
from adk_nb.notebook.decisions import edited_words, redefined, redefined_words, schema_of
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view import input_words
from adk_nb.notebook.view.credential_words import way
from adk_nb.notebook.view.render import Bundle, table, to_be_answered, to_be_approved, to_be_let_in
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import Json
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, INPUTS, Interrupt


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


def approvals(notebook: Notebook, session: str | None, drawn: Collection[str] = ()) -> Shown | None:
    """Each open approval, then what to open and to type for each tool that waits to be let in, and what to
    type for what else waits. `drawn`: ids of requests that a card shows already.
    """
    events = notebook.sessions.events(session)
    open_approvals, left = (
        open_interrupts(events, APPROVALS),
        [one for one in open_interrupts(events, INPUTS) if one.id not in drawn],
    )
    waiting = [one for one in open_approvals if one.id not in drawn]
    asked = [one for one in open_interrupts(events, CREDENTIALS) if one.id not in drawn]
    if not (waiting or asked or left or drawn):
        return said(none_open(notebook, session or notebook.sessions.current))
    shown = _approvals(notebook, waiting, events) if waiting else None
    shown = to_be_let_in(asked, way("%confirm"), below=shown) if asked else shown
    magic = notebook.confirm_magic(session or notebook.sessions.current)
    whole = to_be_answered(left, input_words.ways(magic), below=shown) if left else shown or {}
    edited = edited_since(notebook, open_approvals, events, magic)
    if not whole:
        return said(*edited) if edited else None
    return Shown(whole).below(*edited)


def none_open(notebook: Notebook, session: str, why: str = "") -> str:
    """That no approval is open: `why`, or where a run was cut, what to type."""
    found = notebook.sessions.find(session)
    if found and notebook.sessions.cut(found):
        why = f"; {cut_in_brief(notebook.confirm_magic(session))}"
    return f"no approval is open in session {session!r}{why}"


def edited_since(notebook: Notebook, waiting: Sequence[Interrupt], events: Sequence[Event], magic: str) -> list[str]:
    """What was edited since approvals were asked, a line each, and what comes of it."""
    told: dict[str, None] = {}
    for one in waiting:
        if name := notebook.is_edited(one.id, events):
            told[edited_words(name)] = None
        heard_by = notebook.who_hears(one.id, one.recipient, events)
        with suppress(ToolNotFoundError):  # its cell was not run yet
            if heard_by and redefined(one, notebook.agent(heard_by), events):
                which = one.number if len(waiting) > 1 else None
                told[redefined_words(one, magic, which, notebook.earlier.label)] = None
    return list(told)


def waits_otherwise(notebook: Notebook, session: str | None) -> bool:
    """Whether something waits that is no approval."""
    events = notebook.sessions.events(session)
    return bool(open_interrupts(events, CREDENTIALS) or open_interrupts(events, INPUTS))


def _approvals(notebook: Notebook, waiting: Sequence[Interrupt], events: Sequence[Event]) -> Bundle:
    schemas: dict[str, dict[str, Any] | None] = {}
    for one in waiting:
        heard_by = notebook.who_hears(one.id, one.recipient, events)
        with suppress(ToolNotFoundError):  # its cell was not run yet
            schemas[one.id] = schema_of(notebook.agent(heard_by), one) if heard_by else None
    return to_be_approved(waiting, schemas)


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
