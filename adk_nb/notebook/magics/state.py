"""`%state`: show, set and delete keys of a session's state."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, as_json, short, table, text
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.session_state import check_key
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.state_changes import change_text
from adk_nb.notebook.view.view_state import Json

STATE = Grammar(
    "state",
    "Show or change the state of the session.",
    examples=["%state", '%state budget=400 user:name="Ada" places=["Oslo", "Rome"]', "%state --del budget"],
    arguments=[Argument("KEY", "key=value sets it (JSON, else text); a key alone shows it", many=True, names="state")],
    options=[
        SESSION_OPTION,
        Option("--del KEY", "delete it", many=True, names="state"),
        Option("--json", "all of it as JSON"),
        Option("--diff", "what each event changed"),
    ],
    twin='chat.state["budget"] = 400',
    pairs=True,
)


def state(host: Host, line: str, cell: str | None) -> Any:
    """Show or change the state of a session.

    Raises:
        InputError: A key cannot be one.
        StateKeyError: There is no such key.
    """
    args = STATE.parse(line, cell)
    words: list[str] = args.key
    written = values.pairs([word for word in words if "=" in word], "%state")
    keys = [word for word in words if "=" not in word]
    deleted: list[str] = getattr(args, "del") or []
    if written or deleted:
        if keys:
            raise InputError(f"%state: {keys[0]!r} has no value; write {keys[0]}=value")
        return _change(host.notebook, written, deleted, args.session)
    if args.diff:
        return _changes(host.notebook, args.session)
    return _show(host.notebook, keys, args)


def _show(notebook: Notebook, keys: list[str], args: Any) -> Any:
    sessions = notebook.sessions
    now = sessions.state(args.session)
    for key in keys:
        if key not in now:
            raise sessions.unknown_key(key, now, args.session)
    if args.json:
        return as_json({key: now[key] for key in keys or now})
    if len(keys) == 1:
        return now[keys[0]]
    if not now:
        name = args.session or sessions.current
        return text(f"the state of session {name!r} is empty; %state key=value sets a key")
    return table(["key", "value"], [[key, short(now[key])] for key in sorted(keys or now)])


def _change(notebook: Notebook, written: dict[str, Any], deleted: list[str], session: str | None) -> Output:
    for key in written:
        check_key(key, "%state")
    before = notebook.sessions.state(session)
    if deleted:
        notebook.sessions.delete(deleted, session)
    if written:
        notebook.sessions.write(written, session)
    lines = [f"{key} is deleted" for key in deleted]
    for key, value in written.items():
        old = f"{short(before[key])} → " if key in before else ""
        lines.append(f"{key}: {old}{short(value)}")
    return text(*lines)


def _changes(notebook: Notebook, session: str | None) -> Output:
    """What each event changed, oldest first; events have the numbers that %trace shows."""
    changed: list[list[str]] = []
    for number, row in enumerate(rows_of(notebook.sessions.events(session)), 1):
        changes: list[Json] = row["changes"] or []
        changed += [[str(number), row["author"], change_text(change)] for change in changes]
    if not changed:
        name = session or notebook.sessions.current
        return text(f"nothing has changed the state of session {name!r} yet; %state key=value sets a key")
    return table(["event", "author", "change"], changed)
