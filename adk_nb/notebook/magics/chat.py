"""What `%chat` does: one turn."""

import keyword
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import types
from adk_nb.errors import InputError, SessionNotFoundError, closest
from adk_nb.notebook import attachments
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.chat_box import decided_in_lines
from adk_nb.notebook.last_error import last_error
from adk_nb.notebook.magics.shown import said as shown_lines
from adk_nb.notebook.place import Note, is_being_tested
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.registry.templates import Place, read
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.turn_options import Confirm, turn_options
from adk_nb.notebook.variables import user_variables
from adk_nb.notebook.view.display import Mode


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
    policy: str = ""
    """Where that is said, for the log."""
    in_lines: bool = False
    """Each approval that is left open is asked for in a line to type, where one can be typed."""
    show: Mode = "auto"
    attach: Sequence[str] = ()
    """Variables and files."""
    error: bool = False
    """The last error of the notebook goes with it."""
    tools: Sequence[str] = ()
    """More tools, in this turn."""
    model: str | None = None
    """Another model, in this turn."""
    cell: int | None = None
    """n of `In[n]`."""
    max_cost: float | None = None
    """US dollars that this turn may cost."""
    supposed_name: str = ""
    """The first word of the text, if it looks like the name of an agent that is not there."""
    first_line: int = 0
    """The line of the cell on which the text begins; 0: that is not known."""


def say(notebook: Notebook, said: Said) -> Reply:
    """One turn. The reply is in `_run` too.

    Raises:
        UserError: What the author has to mend. Nothing was sent if the line itself is wrong.
    """
    if said.capture:
        _check_capture(notebook, said.capture)
    tell_of_addressee(notebook, said)
    chat, told = addressed(notebook, said)
    tell_of_new_session(notebook, said)
    text = told.pop("text")
    reply = chat.ask_with_policy(text, turn_options(**told), said.confirm, said.policy)
    if said.in_lines and not is_being_tested(get_ipython()):
        reply = decided_in_lines(reply)
    keep(notebook, reply, said.capture)
    return reply


def addressed(notebook: Notebook, said: Said) -> tuple[Chat, dict[str, Any]]:
    """The chat that a line is for, and what `Chat.ask` is to be told. Raises as `say`."""
    name = _addressed(notebook, said.agent) or _who_asks(notebook, said) or notebook.agent_for_text()
    text, attached = _read(notebook, said)
    model = said.model and (notebook.model_named(said.model) or said.model)
    tools = notebook.tools_named(said.tools)
    told = {"text": text, "attach": attached or None, "tools": tools, "model": model, "max_cost": said.max_cost}
    notebook.chat(name, said.session)
    if said.fresh:
        if notebook.has_own_sessions(name):
            raise InputError(f"--new begins a session of the notebook, and {name} has its own; write -s and a new name")
        notebook.sessions.start_fresh(said.session)
    chat = notebook.chat(name, said.session, show=said.show)
    notebook.last_asked = name
    if name in notebook.agent_names:
        chat.sticky = said.agent is None
    return chat, told


def tell_of_addressee(notebook: Notebook, said: Said) -> None:
    """Say who gets a line, and why, if its first word looks like a name of somebody else."""
    if not said.supposed_name or _who_asks(notebook, said):  # what answers a question begins with any word
        return
    name = notebook.agent_for_text()
    if notebook.root == name:
        why = "the root agent"
    else:
        why = "the only agent" if len(notebook.agent_names) == 1 else "the agent that was asked last"
    told = f"{name} is asked, {why}: no agent is named {said.supposed_name!r}; %agents lists them"
    display(shown_lines(told))


def tell_of_new_session(notebook: Notebook, said: Said) -> None:
    """Say that the session which a line names begins with it: the name may be mistyped."""
    known = ["main", *notebook.sessions.names, notebook.sessions.current]
    if said.session is None or said.fresh or said.session in known or notebook.has_own_sessions(said.agent or ""):
        return
    near, line = closest(said.session, known), f"a new session {said.session!r}"
    display(shown_lines(Note(f"note: {line}; did you mean {near!r}?") if near else line))


def _read(notebook: Notebook, said: Said) -> tuple[str, list[types.Part]]:
    """The words of a message with variables put in, and what goes with them."""
    text, attached = said.text, list[types.Part]()
    if not said.raw:
        place = Place(said.cell, said.first_line)
        found = read(text, notebook.variables, keys=False, place=place)
        for note in found.notes:
            display(shown_lines(Note(f"note: {note}")))
        text, attached = "".join(str(one) for one in found.pieces), list(found.attached)
    for word in said.attach:
        attached += _attached(notebook, word)
    if said.error:
        attached += attachments.text_part("the last error", last_error())
    return text.strip(), attached


def _attached(notebook: Notebook, word: str) -> list[types.Part]:
    """What a variable holds, or a file; a variable of that name counts first."""
    held = notebook.variables.get(word)
    if held is None and word not in notebook.variables:
        if not os.path.exists(os.path.expanduser(word)):
            raise _nothing_of_that_name(notebook, word)
        return attachments.parts_of(word)
    if isinstance(held, str) and not (len(held) < 1_000 and Path(held).is_file()):
        return attachments.text_part(word, held)
    return attachments.parts_of(held, name=word)


def _nothing_of_that_name(notebook: Notebook, word: str) -> InputError:
    path = Path(os.path.expanduser(word))
    beside = [str(path.with_name(one.name)) for one in path.parent.glob("*")] if os.path.isdir(path.parent) else []
    near = closest(word, [*user_variables(notebook.variables), *beside])
    hint = f"did you mean {near!r}?" if near else f"files are looked for in {Path.cwd()}"
    return InputError(f"%chat --attach: there is no variable and no file {word!r}; {hint}")


def _addressed(notebook: Notebook, word: str | None) -> str | None:
    """The name by which who is called `word` can be asked: that, or the variable of an agent that calls itself so."""
    return notebook.name_of(word) or word if word and word not in notebook.addressees else word


def _who_asks(notebook: Notebook, said: Said) -> str | None:
    """The agent that a line without a name answers, if one has asked something."""
    if said.fresh:
        return None
    with suppress(SessionNotFoundError):  # it begins with this line
        history = notebook.sessions.history(said.session)
        questions = (interrupt for interrupt in history.interrupts() if interrupt.is_question)
        if oldest := next(questions, None):
            return notebook.who_hears(oldest.id, oldest.recipient, history)
    return None


def keep(notebook: Notebook, reply: Reply, capture: str | None) -> Reply:
    """Remember the reply as the variable it was asked for; `_run` holds it already."""
    if capture:
        notebook.variables[capture] = reply
    return reply


def _check_capture(notebook: Notebook, name: str) -> None:
    if keyword.iskeyword(name) or name in notebook.addressees or name in notebook.tool_names:
        raise InputError(f"the reply cannot be kept as {name!r}: the name is taken; write another one before <<")
