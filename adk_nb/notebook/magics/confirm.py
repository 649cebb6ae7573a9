"""What `%confirm` does: show the cards of open interrupts, or answer them."""

import re
import shlex
import sys
from contextlib import suppress
from typing import Any, cast

from adk_nb.errors import InputError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.interrupts import ASKED_ANEW, HIDDEN_FIELD, find, read_answer, several_message, with_edits
from adk_nb.notebook.magics.asked import alone
from adk_nb.notebook.magics.grammar import CONFIRM
from adk_nb.notebook.magics.open_list import AnsweredApproval, edited_note, last_answered, listed, none_open
from adk_nb.notebook.magics.pairs import json_or_text, pairs
from adk_nb.notebook.magics.shown import said
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.display import Mode
from adk_nb.notebook.view.interrupt_text import ways
from adk_nb.runtime.interrupts import ALL, Interrupt

_VALUE = re.compile(r"\s*(?P<session>(?:-s|--session)[\s=]+\S+\s+)?(?P<text>(?!-\D).+?)\s*(?P<silent>;?)\s*", re.DOTALL)
"""A line that may be an answer as it stands."""
_OPTION = re.compile(rf"(?:^|\s)(?:{'|'.join(f'--{option.name}' for option in CONFIRM.options)}|-s)(?=[\s=;]|$)")


def parse(line: str, cell: str | None) -> Any:
    """The line of `%confirm`, with `text`: an answer as it stands, maybe behind a number; empty if there is none."""
    found = _VALUE.fullmatch(line)
    text = "" if found is None or _OPTION.search(found["text"]) else found["text"]
    asked = alone(CONFIRM, f"{found['session'] or ''} {found['silent']}" if found and text else line, cell)
    asked.text = text
    if asked.value:
        raise InputError(
            f"%confirm: there is no place for {asked.value}: one approval at a time, or --all; a reason of several "
            "words stands in quotes; see %confirm?"
        )
    return asked


def run(notebook: Notebook, asked: Any, show: Mode) -> Any:
    """Show what is open, or answer it; the reply to the answers.

    Raises:
        InputError: None is open, several are and the line does not say which, it contradicts itself, an edit or a
            value does not fit, or the agent is gone.
    """
    return _Confirm(notebook, asked, show).run()


class _Confirm:
    """One line."""

    def __init__(self, notebook: Notebook, asked: Any, show: Mode) -> None:
        self._notebook = notebook
        self._asked = asked
        self._show: Mode = show
        self._history = notebook.sessions.history(asked.session)
        self._open = self._history.interrupts(kinds=ALL)
        self._has_more = any(interrupt.kind != "task" for interrupt in self._open)
        self._session: str = asked.session or notebook.sessions.current
        self._magic = notebook.confirm_magic(self._session)

    def run(self) -> Any:
        asked = self._asked
        words = [word for word in ("yes", "no", "reask", "old") if getattr(asked, word)]
        if len(words) > 1:
            raise InputError(f"%confirm: --{words[0]} and --{words[1]} cannot both be; choose one")
        if asked.text:
            return self._answer_value(asked.text)
        if not words and (asked.edit or asked.payload or asked.reason or asked.all or asked.id):
            raise InputError("%confirm: is it a yes or a no? add --yes or --no")
        if not words:
            return listed(self._notebook, asked.session, self._draw_cards())
        if asked.reask:
            _refuse_with_reask(asked)
            asked.reason = ASKED_ANEW
        self._yes = asked.yes or asked.old
        if answered := self._answered_likewise():
            return said(*map(str, answered))
        return self._decide()

    # -- a value

    def _answer_value(self, text: str) -> Reply:
        first, _, rest = text.partition(" ")
        named = [one for one in self._open if first in (str(one.number), one.id, *one.names, *one.answer_ids)]
        if not self._open or (not named and len(self._open) > 1):
            find(self._open, first, self._session, hint=f"; type {self._magic} to see those that are")
        is_value = len(self._open) == 1 and (not named or (not rest and self._open[0].is_text))
        interrupt = self._open[0] if is_value else find(named, None, self._session)
        value = (text if is_value else rest).strip()
        if interrupt.kind == "credential":
            return self._take_credential(interrupt, value)
        if not value:
            raise InputError(self._no_value(interrupt))
        if interrupt.is_approval:
            return self._chat(interrupt).answer(read_answer(interrupt, value, "%confirm"), interrupt.id)
        typed = value if interrupt.is_text else json_or_text(value)
        return self._chat(interrupt).answer(typed, interrupt.id)

    def _take_credential(self, interrupt: Interrupt, value: str) -> Reply:
        if value:
            raise InputError(
                f"a credential is not typed into a cell, which keeps it: take it out of there, and type "
                f"{self._magic} {interrupt.number} alone; a field that does not show it asks for it"
            )
        return self._chat(interrupt).submit_credential(HIDDEN_FIELD, id=interrupt.id)

    def _no_value(self, interrupt: Interrupt) -> str:
        if interrupt.is_approval:
            return "%confirm: is it a yes or a no? add --yes or --no"
        return f"%confirm: what is the answer? write {self._magic} {interrupt.number} and the answer behind it"

    def _chat(self, interrupt: Interrupt) -> Any:
        name = self._agent_name(interrupt)
        if name is None:
            raise InputError(
                f"agent {interrupt.recipient!r}, which asked this, is not there any more; define it again, or start "
                "over with %chat --new"
            )
        return self._notebook.chat(name, self._session, show=self._show)

    def _agent_name(self, interrupt: Interrupt) -> str | None:
        return self._notebook.who_hears(interrupt.id, interrupt.recipient, self._history)

    # -- a yes or a no

    def _decide(self) -> Reply:
        asked = self._asked
        edits = _edits(asked)
        credentials = [one for one in self._open if one.kind == "credential"]
        approvals = [one for one in self._open if one.is_approval]
        refused = asked.no and bool(credentials) and not (asked.all and approvals)
        if refused and (asked.id or not approvals):
            among = [*approvals, *credentials] if asked.id else credentials
            chosen = find(among, asked.id, self._session, "credential request")
            if chosen.kind == "credential":
                return self._chat(chosen).submit_credential(None, id=chosen.id)
        chosen = self._chosen(approvals)
        return self._answer_all(chosen, approvals, edits)

    def _chosen(self, approvals: list[Interrupt]) -> list[Interrupt]:
        asked = self._asked
        if not approvals and self._has_more:
            raise InputError(
                f"what waits in session {self._session!r} is no approval; type {self._magic} to see how it is answered"
            )
        if not approvals:
            answered = "; ".join(map(str, last_answered(self._history)))
            why = answered or "it was answered already, or none was asked for"
            raise InputError(none_open(self._notebook, self._session, f"; {why}"))
        if asked.all:
            return approvals
        if asked.id is None and len(approvals) > 1:
            raise InputError(f"{several_message(approvals, 'approval')}, or --all")
        quoted = asked.reason and " " not in asked.reason
        why = "; a reason of several words stands in quotes" if quoted else ""
        hint = f"; type {self._magic} to see those that are{why}"
        return [find(approvals, asked.id, self._session, "approval", hint)]

    def _answer_all(self, chosen: list[Interrupt], approvals: list[Interrupt], edits: dict[str, Any]) -> Reply:
        names = {one.id: self._agent_name(one) for one in chosen}
        gone = [one for one in chosen if names[one.id] is None]
        if gone and (self._yes or gone[0].kind == "node_approval"):
            no = ways(gone[0], self._magic, approvals)[1]
            raise InputError(
                f"agent {gone[0].recipient!r}, which asked for this, is gone; define it again, or refuse the call with "
                f"{no}"
            )
        for name in dict.fromkeys(self._notebook.is_edited(one.id, self._history) for one in chosen):
            if name and self._yes:
                sys.stdout.write(f"{edited_note(name)}\n")
        reply = self._refuse_for(gone) if gone else None
        decisions: dict[str, dict[str, ToolConfirmation]] = {}
        for one in chosen:
            if name := names[one.id]:
                decisions.setdefault(name, {})[one.id] = self._decision(one, edits)
        for name, decided in decisions.items():
            chat = self._notebook.chat(name, self._session, show=self._show)
            reply = chat.decide(decided, as_asked=self._asked.old)
        assert reply is not None
        return reply

    def _decision(self, approval: Interrupt, edits: dict[str, Any]) -> ToolConfirmation:
        payload = _payload(approval, pairs(self._asked.payload or [], "%confirm --payload"))
        reason, args = self._asked.reason, with_edits(approval, edits)
        return ToolConfirmation(confirmed=self._yes, args=args, payload=payload, reason=reason, by="%confirm")

    def _refuse_for(self, refused: list[Interrupt]) -> Reply:
        """Refuse calls of agents that are gone: the calls are settled, and no model is asked."""
        notebook, before = self._notebook, list(self._history.events)
        events = notebook.sessions.settle(refused, self._asked.reason, self._session)
        left = notebook.sessions.history(self._session).interrupts()
        names = ", ".join(dict.fromkeys(one.recipient for one in refused))
        reply = Reply(
            question=None,
            agent=refused[0].recipient,
            events=events,
            history=before,
            text="",
            status="pending" if left else "done",
            interrupts=left,
            magic=self._magic,
            notice=f"refused; nobody goes on from it, as {names} is gone",
        )
        notebook.variables["_run"] = reply
        return reply

    def _answered_likewise(self) -> "list[AnsweredApproval]":
        """The approvals that were just answered as this line does, by a click for example; none if anything is open."""
        asked = self._asked
        if self._has_more or asked.id or asked.reask:
            return []
        edits, payload = _edits(asked), pairs(asked.payload or [], "%confirm --payload")
        answered = last_answered(self._history)
        return answered if all(one.is_like(self._yes, edits, payload) for one in answered) else []

    # -- cards

    def _draw_cards(self) -> set[str]:
        """Draw the cards of the open interrupts whose agents are defined; the ids of those drawn."""
        drawn: set[str] = set()
        by_name: dict[str, list[str]] = {}
        for interrupt in self._open:
            with suppress(UserError):  # a cell that is still to be run: the list below names it
                if interrupt.has_card and (name := self._agent_name(interrupt)):
                    self._notebook.chat(name, self._session, show=self._show)
                    by_name.setdefault(name, []).append(interrupt.id)
        for name, ids in by_name.items():
            if self._notebook.chat(name, self._session, show=self._show).ask_again(*ids):
                drawn.update(ids)
        return drawn


def _refuse_with_reask(asked: Any) -> None:
    for option in ("edit", "payload", "reason"):
        if getattr(asked, option):
            raise InputError(f"%confirm: --{option} does not go with --reask, which leaves the call to the agent")


def _edits(asked: Any) -> dict[str, Any]:
    if asked.no and asked.edit:
        raise InputError("%confirm: --edit changes a call that is to run, so it does not go with --no; leave it out")
    if asked.no and asked.payload:
        raise InputError("%confirm: --payload tells a tool that is to go on, so it does not go with --no; leave it out")
    if asked.edit and "=" in (asked.id or ""):
        raise InputError(f"%confirm: each change takes an --edit of its own; write --edit {shlex.quote(asked.id)}")
    return pairs(asked.edit or [], "%confirm --edit")


def _payload(approval: Interrupt, given: dict[str, Any]) -> Any:
    asks: Any = approval.payload
    if approval.kind == "node_approval":
        asks = cast(dict[str, Any], asks).get("payload") if isinstance(asks, dict) else None
    suggested = cast(dict[str, Any], asks) if isinstance(asks, dict) else {}
    for key in given:
        if asks is None or (suggested and key not in suggested):
            wants = f"to know {', '.join(suggested)}" if suggested else "nothing but a yes or a no"
            raise InputError(f"%confirm --payload {key}=...: {', '.join(approval.names)} wants {wants}")
    return {**suggested, **given} if given else None
