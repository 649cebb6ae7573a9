"""What `%chat` and `%confirm` do: one turn, and the approvals that come up in it."""

import json
import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from adk_nb.errors import InputError, PendingError, closest
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.templates import read
from adk_nb.notebook.chat import Chat, Decisions
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.runtime.approvals import Pending, pending
from adk_nb.tools.function_tool import FunctionTool

Confirm = Literal["ask", "yes", "no"]
_MOST_ROUNDS = 32
"""Of approvals that are answered by themselves in one turn."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """One line or cell of `%chat`."""

    text: str
    agent: str | None = None
    session: str | None = None
    fresh: bool = False
    raw: bool = False
    capture: str | None = None
    """The variable that gets the reply."""
    confirm: Confirm = "ask"
    show: Mode = "auto"


def say(notebook: Notebook, said: Said) -> Reply:
    """One turn. The reply is in `_run` too.

    Raises:
        UserError: What the author has to mend. Nothing was sent if the line itself is wrong.
    """
    name = said.agent or notebook.agent_for_text()
    text = said.text.strip()
    if not said.raw:
        text = "".join(str(one) for one in read(text, notebook.variables, keys=False).pieces)
    if said.capture:
        _check_capture(notebook, said.capture)
    notebook.chat(name, said.session)
    if said.fresh:
        notebook.sessions.start_fresh(said.session)
    chat = notebook.chat(name, said.session, show=said.show)
    notebook.last_asked = name
    reply = chat.ask(text)
    return keep(notebook, _settled(chat, reply, said.confirm), said.capture)


def answer(
    notebook: Notebook,
    *,
    session: str | None,
    which: str | None,
    every: bool,
    yes: bool,
    edits: dict[str, Any],
    reason: str | None,
    show: Mode,
) -> Reply:
    """Answer open approvals.

    Raises:
        InputError: None is open, several are and it is not said which, or an edit fits no argument.
    """
    waiting = pending(notebook.sessions.events(session))
    chosen = waiting if every and waiting else [_one(waiting, which, session or notebook.sessions.current)]
    decisions: dict[str, Decisions] = {}
    for one in chosen:
        args = _edited(notebook, one, edits)
        decided = ToolConfirmation(confirmed=yes, args=args if yes else None, reason=reason)
        decisions.setdefault(notebook.name_of(one.author), {})[one.id] = decided
    reply: Reply | None = None
    for agent, decided in decisions.items():
        reply = notebook.chat(agent, session, show=show).decide(decided)
    if reply is None:
        raise InputError("no approval was chosen")
    return keep(notebook, reply, None)


def keep(notebook: Notebook, reply: Reply, capture: str | None) -> Reply:
    """Remember the reply as the variable it was asked for; `_run` holds it already."""
    if capture:
        notebook.variables[capture] = reply
    return reply


def json_or_text(text: str) -> Any:
    """`text` as JSON, if it is that."""
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except ValueError:
        return text


def _settled(chat: Chat, reply: Reply, confirm: Confirm) -> Reply:
    for _ in range(_MOST_ROUNDS):
        if confirm == "ask" or reply.status != "pending":
            return reply
        reply = chat.decide({one.id: ToolConfirmation(confirmed=confirm == "yes") for one in reply.pending})
    return reply


def _one(waiting: Sequence[Pending], which: str | None, session: str) -> Pending:
    if not waiting:
        raise InputError(f"no approval is open in session {session!r}; it was answered already, or none was asked for")
    if which is None:
        if len(waiting) > 1:
            told = ", ".join(f"{number} ({one.call.name})" for number, one in enumerate(waiting, 1))
            raise PendingError(f"{len(waiting)} approvals are open; say which, {told}, or --all")
        return waiting[0]
    if which.isdecimal() and 1 <= int(which) <= len(waiting):
        return waiting[int(which) - 1]
    found = [one for one in waiting if which in (one.id, one.call.id, one.call.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise PendingError(f"{len(found)} approvals of {which} are open; give the number that %confirm shows")
    raise InputError(f"no approval {which!r} is open; type %confirm to see those that are")


def _edited(notebook: Notebook, waiting: Pending, edits: dict[str, Any]) -> dict[str, Any] | None:
    if not edits:
        return None
    args = dict(waiting.call.args or {})
    tool = notebook.tool(waiting.call.name or "")
    known = set(args)
    if isinstance(tool, FunctionTool):
        known |= {one.alias or "" for one in tool.signature.arguments.model_fields.values()}
    for name in edits:
        if name not in known:
            near = closest(name, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known)) or 'none'}"
            raise InputError(f"{waiting.call.name}() has no argument {name!r}; {hint}")
    return args | edits


def _check_capture(notebook: Notebook, name: str) -> None:
    if keyword.iskeyword(name) or name in notebook.agent_names or name in notebook.tool_names:
        raise InputError(f"the reply cannot be kept as {name!r}: the name is taken; write another one before <<")
