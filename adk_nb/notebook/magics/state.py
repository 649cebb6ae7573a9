"""What `%state` does: show, set and delete keys of a session's state."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.magics import reports
from adk_nb.notebook.magics.pairs import pairs
from adk_nb.notebook.magics.shown import said
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.session_state import check_key


def show_or_change(notebook: Notebook, asked: Any) -> Any:
    """Do what the line of `%state` asks for.

    Raises:
        InputError: A key cannot be one.
        StateKeyError: A key is not there.
    """
    words: list[str] = asked.key
    written = pairs([one for one in words if "=" in one], "%state")
    read = [one for one in words if "=" not in one]
    if (written or getattr(asked, "del")) and read:
        raise InputError(f"%state: {read[0]!r} has no value; write {read[0]}=value")
    if written or getattr(asked, "del"):
        return _changed(notebook, written, getattr(asked, "del") or [], asked.session)
    if asked.diff:
        return reports.state_changes(notebook, asked.session)
    now = notebook.sessions.state(asked.session)
    for key in read:
        if key not in now:
            raise notebook.sessions.no_key(key, now, asked.session)
    if asked.json:
        return reports.as_json({key: now[key] for key in read or now})
    if len(read) == 1:
        return now[read[0]]
    return reports.state(notebook, asked.session, read)


def _changed(notebook: Notebook, written: dict[str, Any], deleted: list[str], session: str | None) -> Any:
    for key in written:
        check_key(key, "%state")
    before = notebook.sessions.state(session)
    if deleted:
        notebook.sessions.delete(deleted, session)
    if written:
        notebook.sessions.write(written, session)
    lines = [f"{key} is deleted" for key in deleted]
    for key, value in written.items():
        was = f"{reports.short(before[key])} -> " if key in before else ""
        lines.append(f"{key}: {was}{reports.short(value)}")
    return said(*lines)
