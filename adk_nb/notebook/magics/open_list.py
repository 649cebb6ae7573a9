"""The open interrupts of a session as text, and the approvals that its last message has answered."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import ToolNotFoundError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.interrupted_runs import cut_in_brief
from adk_nb.notebook.interrupts import AnswerCheck
from adk_nb.notebook.magics.shown import Shown, said
from adk_nb.notebook.paused_agents import schema_of
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.view.call_shown import call_line
from adk_nb.notebook.view.interrupt_text import in_list
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.runtime import approvals
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt, opened_by


def listed(notebook: Notebook, session: str | None, drawn: Collection[str] = ()) -> Shown | None:
    """The open interrupts and what to type for each. `drawn`: ids of those that a card shows already."""
    history = notebook.sessions.history(session)
    name = session or notebook.sessions.current
    open_, magic = history.interrupts(kinds=ALL), notebook.confirm_magic(name)
    if not open_:
        return said(none_open(notebook, name))
    waiting = [(one, _agent(notebook, one, history)) for one in open_ if one.kind == "approval"]
    schemas = {approval.id: schema_of(agent, approval) if agent else None for approval, agent in waiting}
    shown = in_list([one for one in open_ if one.id not in drawn], magic, schemas, open_)
    notes: dict[str, None] = {}
    for approval, agent in waiting:
        if name := notebook.is_edited(approval.id, history):
            notes[edited_note(name)] = None
        if agent and (note := _check(notebook, history, magic, agent).redefined_note(approval)):
            notes[note] = None
    if not shown:
        return said(*notes) if notes else None
    return Shown(shown).below(*notes)


def _check(notebook: Notebook, history: History, magic: str, agent: BaseAgent) -> AnswerCheck:
    return AnswerCheck(history=history, agent_of=lambda _: agent, magic=magic, versions=notebook.earlier)


def _agent(notebook: Notebook, approval: Interrupt, history: History) -> BaseAgent | None:
    """The agent that receives the answer. None: it is not defined, or a cell of its tools was not run yet."""
    name = notebook.who_hears(approval.id, approval.recipient, history)
    with suppress(ToolNotFoundError):
        return notebook.agent(name) if name else None
    return None


def none_open(notebook: Notebook, session: str, why: str = "") -> str:
    """That no approval is open: `why`, or where a run was cut, what to type."""
    found = notebook.sessions.find(session)
    if found and notebook.sessions.cut(found):
        why = f"; {cut_in_brief(notebook.confirm_magic(session))}"
    return f"no approval is open in session {session!r}{why}"


def edited_note(agent: str) -> str:
    """That an agent was edited while an approval of it was open."""
    return f"{agent} was edited since this was asked; it goes on as it is now"


class AnsweredApproval:
    """A call, and the decision on it."""

    def __init__(self, approval: Interrupt, decision: ToolConfirmation) -> None:
        self._approval, self._decision = approval, decision
        self._args = (approval.call.args or {}) if decision.args is None else decision.args

    def is_like(self, yes: bool, edits: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """True if a yes or a no with these changes would have been the same decision."""
        decided: Any = self._decision.payload
        sent = cast(dict[str, Any], decided) if isinstance(decided, dict) else {}
        return (
            self._decision.confirmed is bool(yes)
            and all(self._args.get(name) == value for name, value in edits.items())
            and all(sent.get(name) == value for name, value in payload.items())
        )

    def __str__(self) -> str:
        verb = "approved" if self._decision.confirmed else "rejected"
        by = f" by {one_line(self._decision.by, 100)}" if self._decision.by else ""
        return f"{call_line(self._approval.call.name or '', self._args)} was {verb} already{by}"


def last_answered(history: History) -> list[AnsweredApproval]:
    """The approvals that the last message of the session answered; empty if it was no such message, or is undone."""
    turns = history.turns
    asked: dict[str, Interrupt] = {}
    answered: list[AnsweredApproval] = []
    for event in turns[-1].events if turns and not turns[-1].undone else ():
        for approval in opened_by(event):
            asked |= dict.fromkeys((approval.id, approval.call.id or ""), approval)
        responses = [
            one for one in event.get_function_responses() if one.name == approvals.REQUEST and event.author == "user"
        ]
        if found := [(asked[one.id], one.response) for one in responses if one.id and one.id in asked]:
            answered = [
                AnsweredApproval(approval, approvals.read_answer(response or {})) for approval, response in found
            ]
    return answered
