"""`%state`: show, set and delete keys of a session's state."""

from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.conversation import check_key
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, as_json, short, table, text
from adk_nb.notebook.view.event_text import change_text
from adk_nb.notebook.view.rows import rows_of
from adk_nb.notebook.view.view_state import Json

STATE = Grammar(
    "state",
    "Show or change the state of the session.",
    examples=["%state", '%state budget=400 user:name="Ada" places=["Oslo", "Rome"]', "%state --del budget"],
    arguments=[
        Argument("KEY", "key=value sets a value (JSON, else text); a key alone shows it", many=True, names="state")
    ],
    options=[
        SESSION_OPTION,
        Option("--del KEY", "delete a key", many=True, names="state"),
        Option("--json", "show the state as JSON"),
        Option("--diff", "show the changes by each event"),
    ],
    twin='chat.state["budget"] = 400',
    pairs=True,
)


def state(host: Host, line: str, cell: str | None) -> Any:
    """Show or change the state of a session.

    Raises:
        InputError: A key is invalid, or has no value in a line that sets others.
        StateKeyError: There is no such key.
    """
    args = STATE.parse(line, cell)
    values_by_key = values.pairs([token for token in args.key if "=" in token], "%state")
    keys = [token for token in args.key if "=" not in token]
    deleted: list[str] = getattr(args, "del")
    if values_by_key or deleted:
        if keys:
            raise InputError(f"%state: {keys[0]!r} has no value; type {keys[0]}=value")
        return _change(host.notebook, values_by_key, deleted, args.session)
    name = args.session or host.notebook.sessions.current
    return _changes(host.notebook, args.session, name) if args.diff else _show(host.notebook, keys, args, name)


def _show(notebook: Notebook, keys: list[str], args: Any, name: str) -> Any:
    state = notebook.sessions.state(args.session)
    for key in keys:
        if key not in state:
            raise notebook.sessions.unknown_key(key, state, args.session)
    if args.json:
        return as_json({key: state[key] for key in keys or state})
    if len(keys) == 1:
        return state[keys[0]]
    if not state:
        return text(f"the state of session {name!r} is empty; to set a key, type: %state key=value")
    return table("state", ["key", "value"], [[key, short(state[key])] for key in sorted(keys or state)])


def _change(notebook: Notebook, values_by_key: dict[str, Any], deleted: list[str], session: str | None) -> Output:
    for key in values_by_key:
        check_key(key, "%state")
    old = notebook.sessions.state(session)
    if deleted:
        notebook.sessions.delete(deleted, session)
    if values_by_key:
        notebook.sessions.write(values_by_key, session)
    lines = [f"{key} is deleted" for key in deleted]
    for key, value in values_by_key.items():
        lines.append(f"{key}: {f'{short(old[key])} → ' if key in old else ''}{short(value)}")
    return text(*lines)


def _changes(notebook: Notebook, session: str | None, name: str) -> Output:
    """Return the changes by each event, oldest first, with the numbers of %trace."""
    changes: list[list[str]] = []
    for number, row in enumerate(rows_of(notebook.sessions.events(session)), 1):
        of_event: list[Json] = row["changes"] or []
        author = "you" if row["author"] == "user" else row["author"]
        changes += [[str(number), author, change_text(change)] for change in of_event]
    if not changes:
        return text(f"the state of session {name!r} was never changed; to set a key, type: %state key=value")
    return table("changes of the state", ["event", "author", "change"], changes)
