"""What `%chat` and `%confirm` do: one turn, and the approvals that come up in it."""

import keyword
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from IPython.core.getipython import get_ipython
from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import types
from adk_nb.errors import InputError, PendingError, SessionNotFoundError, UserError, closest
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook import attachments, questions
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.templates import Place, read
from adk_nb.notebook.cells.user_variables import user_variables
from adk_nb.notebook.chat import Chat
from adk_nb.notebook.chat_box import decided_in_lines
from adk_nb.notebook.decisions import ASKED_ANEW, Confirm, Decisions, edited_words, how_to_answer
from adk_nb.notebook.last_error import last_error
from adk_nb.notebook.magics import reports
from adk_nb.notebook.magics.answered_approvals import AnsweredApproval, last_answered
from adk_nb.notebook.magics.pairs import pairs
from adk_nb.notebook.magics.shown import said as shown_lines
from adk_nb.notebook.note import Note
from adk_nb.notebook.one_turn import one_turn
from adk_nb.notebook.place import is_being_tested
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, Interrupt


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
    reply = chat.ask_with_policy(text, one_turn(**told), said.confirm, said.policy)
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
    events: list[Event] = []
    if not said.fresh:
        with suppress(SessionNotFoundError):  # it begins with this line
            events = notebook.sessions.events(said.session)
    asks = questions.who_asks(events)
    return notebook.who_hears(*asks, events) if asks else None


def confirm(notebook: Notebook, asked: Any, show: Mode) -> Any:
    """What a line of `%confirm` asks for: the list of what is open, or the reply to its answers.

    Raises:
        InputError: None is open, several are and it is not said which, the line contradicts itself, an edit fits no
            argument, or who asked is gone.
    """
    said = [word for word in ("yes", "no", "reask", "old") if getattr(asked, word)]
    if len(said) > 1:
        raise InputError(f"%confirm: --{said[0]} and --{said[1]} cannot both be; choose one")
    if asked.reask:
        _refuse_with_reask(asked)
        asked.no, asked.reason = True, ASKED_ANEW
    asked.yes = asked.yes or asked.old
    if not said:
        if asked.edit or asked.payload or asked.reason or asked.all or asked.id:
            raise InputError("%confirm: is it a yes or a no? add --yes or --no")
        drawn = _draw_cards(notebook, asked.session, show)
        return reports.approvals(notebook, asked.session, drawn)
    session = asked.session or notebook.sessions.current
    if answered := _answered_likewise(notebook, asked):
        return shown_lines(*map(str, answered))
    node = None if asked.id else questions.node_approval(notebook.sessions.events(asked.session))
    decided = _on_node(notebook, node, asked, session, show) if node else _on_calls(notebook, asked, session, show)
    return keep(notebook, decided, None)


def _answered_likewise(notebook: Notebook, asked: Any) -> list[AnsweredApproval]:
    """The approvals that were just answered as this line does, by a click for example; empty if anything is open."""
    events = notebook.sessions.events(asked.session)
    if open_interrupts(events, APPROVALS) or reports.waits_otherwise(notebook, asked.session):
        return []
    if asked.id or asked.reask:
        return []
    edits, payload = _edits(asked), pairs(asked.payload or [], "%confirm --payload")
    answered = last_answered(events)
    return answered if all(one.is_like(asked.yes, edits, payload) for one in answered) else []


def _refuse_with_reask(asked: Any) -> None:
    for option in ("edit", "payload", "reason"):
        if getattr(asked, option):
            raise InputError(f"%confirm: --{option} does not go with --reask, which leaves the call to the agent")


def _draw_cards(notebook: Notebook, session: str | None, show: Mode) -> set[str]:
    """Draw the cards of the open requests whose agents are defined; the ids of those drawn."""
    events = notebook.sessions.events(session)
    asked: dict[str, list[str]] = {}
    for one in (
        *open_interrupts(events, APPROVALS),
        *open_interrupts(events, CREDENTIALS),
        *questions.open_questions(events),
    ):
        heard_by = _heard_by(one) if one.kind == "approval" else one.agent
        with suppress(UserError):  # a cell that is still to be run: the list below names it
            if name := notebook.who_hears(one.id, heard_by, events):
                notebook.chat(name, session, show=show)
                asked.setdefault(name, []).append(one.id)
    drawn = [ids for name, ids in asked.items() if notebook.chat(name, session, show=show).ask_again(*ids)]
    return {id for ids in drawn for id in ids}


def _on_calls(notebook: Notebook, asked: Any, session: str, show: Mode) -> Reply:
    edits = _edits(asked)
    events = notebook.sessions.events(asked.session)
    waiting = open_interrupts(events, APPROVALS)
    magic = notebook.confirm_magic(session)
    if not waiting and reports.waits_otherwise(notebook, asked.session):
        raise InputError(f"what waits in session {session!r} is no approval; type {magic} to see how it is answered")
    if not waiting:
        answered = "; ".join(map(str, last_answered(events))) or "it was answered already, or none was asked for"
        raise InputError(reports.none_open(notebook, session, f"; {answered}"))
    chosen = waiting if asked.all else [_one(waiting, asked.id, magic, asked.reason)]
    unheard = [one for one in chosen if notebook.who_hears(one.id, _heard_by(one), events) is None]
    if unheard and asked.yes:
        raise InputError(_gone(unheard[0], how_to_answer(magic, unheard[0].number if len(waiting) > 1 else None)[1]))
    _say_who_was_edited(notebook, chosen if asked.yes else [], events)
    reply = _refused_unheard(notebook, unheard, asked.reason, session) if unheard else None
    for agent, decisions in _by_agent(notebook, chosen, events, asked, edits).items():
        reply = notebook.chat(agent, session, show=show).decide(decisions, as_asked=asked.old)
    if reply is None:
        raise InputError("no approval was chosen")
    return reply


def _on_node(notebook: Notebook, node: Interrupt, asked: Any, session: str, show: Mode) -> Reply:
    if asked.edit or asked.payload:
        raise InputError("%confirm: what a node of a graph is given cannot be changed; say --yes or --no alone")
    events = notebook.sessions.events(session)
    if (name := notebook.who_hears(node.id, node.agent, events)) is None:
        raise InputError(f"agent {node.agent!r}, which asked this, is not there any more; start over with %chat --new")
    chat = notebook.chat(name, session, show=show)
    return chat.approve(node.id) if asked.yes else chat.reject(node.id, asked.reason)


def _say_who_was_edited(notebook: Notebook, approved: list[Interrupt], events: Sequence[Event]) -> None:
    for name in dict.fromkeys(notebook.is_edited(one.id, events) for one in approved):
        if name:
            sys.stdout.write(edited_words(name) + "\n")


def _edits(asked: Any) -> dict[str, Any]:
    if asked.no and asked.edit:
        raise InputError("%confirm: --edit changes a call that is to run, so it does not go with --no; leave it out")
    if asked.no and asked.payload:
        raise InputError("%confirm: --payload tells a tool that is to go on, so it does not go with --no; leave it out")
    if asked.edit and "=" in (asked.id or ""):
        raise InputError(f"%confirm: each change takes an --edit of its own; write --edit {shlex.quote(asked.id)}")
    return pairs(asked.edit or [], "%confirm --edit")


def _by_agent(
    notebook: Notebook, chosen: list[Interrupt], events: Sequence[Event], asked: Any, edits: dict[str, Any]
) -> dict[str, Decisions]:
    """What was decided, by the name under which its agent can be asked."""
    made: dict[str, Decisions] = {}
    for one in chosen:
        if name := notebook.who_hears(one.id, _heard_by(one), events):
            args = {**(one.call.args or {}), **edits} if edits else None
            payload = _payload(one, pairs(asked.payload or [], "%confirm --payload"))
            decided = ToolConfirmation(
                confirmed=asked.yes, args=args, payload=payload, reason=asked.reason, by="%confirm"
            )
            made.setdefault(name, {})[one.id] = decided
    return made


def _payload(one: Interrupt, given: dict[str, Any]) -> Any:
    asks: Any = one.payload
    suggested = cast(dict[str, Any], asks) if isinstance(asks, dict) else {}
    for key in given:
        if asks is None or (suggested and key not in suggested):
            wants = f"to know {', '.join(suggested)}" if suggested else "nothing but a yes or a no"
            raise InputError(f"%confirm --payload {key}=...: {one.call.name} wants {wants}")
    return {**suggested, **given} if given else None


def _heard_by(one: Interrupt) -> str:
    return one.recipient


def _gone(one: Interrupt, no: str) -> str:
    return f"agent {_heard_by(one)!r}, which asked for this, is gone; define it again, or refuse the call with {no}"


def _refused_unheard(notebook: Notebook, refused: list[Interrupt], reason: str | None, session: str) -> Reply:
    """A no to calls of agents that are gone: the calls are settled, and no model is asked to go on."""
    before = notebook.sessions.events(session)
    events = notebook.sessions.settle(refused, reason, session)
    names = ", ".join(dict.fromkeys(map(_heard_by, refused)))
    left = open_interrupts([*before, *events], APPROVALS)
    reply = Reply(
        question=None,
        agent=_heard_by(refused[0]),
        events=events,
        history=before,
        text="",
        status="pending" if left else "done",
        pending=left,
        answer_with=how_to_answer(notebook.confirm_magic(session), left[0].number if len(left) > 1 else None),
        notice=f"refused; nobody goes on from it, as {names} is gone",
    )
    notebook.variables["_run"] = reply
    return reply


def keep(notebook: Notebook, reply: Reply, capture: str | None) -> Reply:
    """Remember the reply as the variable it was asked for; `_run` holds it already."""
    if capture:
        notebook.variables[capture] = reply
    return reply


def _one(waiting: Sequence[Interrupt], which: str | None, magic: str, reason: str | None) -> Interrupt:
    if which is None:
        if len(waiting) > 1:
            told = ", ".join(f"{one.number} ({one.call.name})" for one in waiting)
            raise PendingError(f"{len(waiting)} approvals are open; say which, {told}, or --all")
        return waiting[0]
    found = [one for one in waiting if which in (str(one.number), one.call.name, *one.answer_ids)]
    if len(found) == 1:
        return found[0]
    if found:
        raise PendingError(f"{len(found)} approvals of {which} are open; give the number that {magic} shows")
    why = "; a reason of several words stands in quotes" if reason and " " not in reason else ""
    raise InputError(f"no approval {which!r} is open; type {magic} to see those that are{why}")


def _check_capture(notebook: Notebook, name: str) -> None:
    if keyword.iskeyword(name) or name in notebook.addressees or name in notebook.tool_names:
        raise InputError(f"the reply cannot be kept as {name!r}: the name is taken; write another one before <<")
