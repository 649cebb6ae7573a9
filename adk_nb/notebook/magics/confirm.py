"""`%confirm`: show the open interrupts of a session, or answer them."""

import re
import shlex
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, ToolNotFoundError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.interrupted_runs import cut_in_brief
from adk_nb.notebook.interrupts import (
    HIDDEN_FIELD,
    AnswerCheck,
    find,
    read_answer,
    several_message,
    with_edits,
)
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Grammar, Option, Word
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, text
from adk_nb.notebook.paused_agents import schema_of
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.call_shown import call_line
from adk_nb.notebook.view.display import Mode
from adk_nb.notebook.view.interrupt_text import ASKED_ANEW, in_list, ways
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.runtime import approvals
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt, opened_by

CONFIRM = Grammar(
    "confirm",
    "Show what waits for your answer, as cards or as a list, or answer it: approvals, questions, credentials, the "
    "outcome of long-running tools.",
    examples=[
        "%confirm",
        "%confirm yes",
        '%confirm no "it is too expensive"',
        "%confirm --yes --all",
        '%confirm --edit amount=100 --yes --reason "half, as agreed"',
        "%confirm 2 Oslo",
        "%confirm 3  # a credential: a field that does not show it asks for it",
    ],
    words=[
        Word(
            "ID",
            "what is answered: its number in the list, its id, or its tool; may be left out if it is the only one",
            names="interrupt",
        ),
        Word("VALUE", "the answer: yes, or no and maybe a reason; to a question, or as an outcome: text, or JSON"),
    ],
    options=[
        SESSION_OPTION,
        Option("--yes", "approve"),
        Option("--no", "reject; the agent is told"),
        Option("--reask", "reject, as its tool was redefined since: the agent is told, and may call it again"),
        Option("--old", "approve, and run it as its tool was when this was asked"),
        Option("--all", "answer all that are open"),
        Option("--edit k=v", "change an argument first (JSON, else text)", many=True),
        Option("--payload k=v", "what the tool asks for beside a yes (JSON, else text)", many=True),
        Option("--reason TEXT", "why; the agent is told"),
    ],
    twin="chat.interrupts, chat.ask_again(), chat.answer(value, which), chat.approve(id, amount=100), "
    "chat.reject(id, reason=...), chat.submit_credential(), "
    "chat.decide({id: ToolConfirmation(confirmed=True)}, as_asked=True)",
    pairs=True,
    one_word="one approval at a time, or --all; a reason of several words stands in quotes",
)

_VALUE = re.compile(r"\s*(?P<session>(?:-s|--session)[\s=]+\S+\s+)?(?P<text>(?!-\D).+?)\s*(?P<silent>;?)\s*", re.DOTALL)
"""A line that may be an answer as it stands."""
_OPTION = re.compile(rf"(?:^|\s)(?:{'|'.join(f'--{option.name}' for option in CONFIRM.options)}|-s)(?=[\s=;]|$)")
_NO = re.compile(r"(?:no|n)(?:[,:;.]?\s+(.+)|[.!]?)", re.IGNORECASE | re.DOTALL)


def confirm(host: Host, line: str, cell: str | None) -> Any:
    """Show what is open, or answer it; the reply to the answers.

    Raises:
        InputError: None is open, several are and the line does not name one, it contradicts itself, an edit or a value
            does not fit, or the agent is gone.
    """
    match = _VALUE.fullmatch(line)
    value = "" if match is None or _OPTION.search(match["text"]) else match["text"]
    args = CONFIRM.parse(f"{match['session'] or ''} {match['silent']}" if match and value else line, cell)
    if args.value:
        raise InputError(f"%confirm: there is no place for {args.value}: {CONFIRM.one_word}; see %confirm?")
    return _Confirm(host.notebook, args, host.settings.display).run(value)


class _Confirm:
    """One line."""

    def __init__(self, notebook: Notebook, args: Any, show: Mode) -> None:
        self._notebook = notebook
        self._args = args
        self._show: Mode = show
        self._history = notebook.sessions.history(args.session)
        self._open = self._history.interrupts(kinds=ALL)
        self._session: str = args.session or notebook.sessions.current
        self._magic = notebook.confirm_magic(self._session)

    def run(self, value: str) -> Any:
        args = self._args
        choices = [choice for choice in ("yes", "no", "reask", "old") if getattr(args, choice)]
        if len(choices) > 1:
            raise InputError(f"%confirm: --{choices[0]} and --{choices[1]} cannot both be; choose one")
        if value and not self._open and (yes := _yes_or_no(value)) is not None:
            args.yes, args.no, choices, value = yes, not yes, ["yes"], ""  # it may be answered already, by a click
        if value:
            return self._answer(value)
        if not choices and (args.edit or args.payload or args.reason or args.all or args.id):
            raise InputError("%confirm: is it a yes or a no? add --yes or --no")
        if not choices:
            return self._list(self._draw_cards())
        edits = self._edits()
        if answered := self._same_answers(edits):
            return text(*map(str, answered))
        return self._decide(edits)

    @property
    def _is_yes(self) -> bool:
        return bool(self._args.yes or self._args.old)

    @property
    def _reason(self) -> str | None:
        return ASKED_ANEW if self._args.reask else self._args.reason

    def _chat(self, interrupt: Interrupt) -> Any:
        name = self._agent_name(interrupt)
        if name is None:
            raise InputError(
                f"agent {interrupt.recipient!r}, which asked this, is not there any more; define it again, or start "
                "over with %chat --new"
            )
        return self._notebook.chat(name, self._session, show=self._show)

    def _agent_name(self, interrupt: Interrupt) -> str | None:
        return self._notebook.recipient_of(interrupt.id, interrupt.recipient, self._history)

    # ---- a value

    def _answer(self, line: str) -> Reply:
        first, _, rest = line.partition(" ")
        named = [one for one in self._open if first in (str(one.number), one.id, *one.names, *one.answer_ids)]
        if not self._open or (not named and len(self._open) > 1):
            find(self._open, first, self._session, hint=f"; type {self._magic} to see those that are")
        is_value = len(self._open) == 1 and (not named or (not rest and self._open[0].is_text))
        interrupt = self._open[0] if is_value else find(named, None, self._session)
        value = (line if is_value else rest).strip()
        numbered = f"{self._magic} {interrupt.number}"
        if interrupt.kind == "credential":
            if value:
                raise InputError(
                    "a credential is not typed into a cell, which keeps it: take it out of there, and type "
                    f"{numbered} alone; a field that does not show it asks for it"
                )
            return self._chat(interrupt).submit_credential(HIDDEN_FIELD, id=interrupt.id)
        if interrupt.is_approval:
            return self._chat(interrupt).answer(self._decision_in(interrupt, value), interrupt.id)
        if not value:
            raise InputError(f"%confirm: what is the answer? write {numbered} and the answer behind it")
        typed = value if interrupt.is_text else values.json_or_text(value)
        return self._chat(interrupt).answer(typed, interrupt.id)

    def _decision_in(self, interrupt: Interrupt, value: str) -> ToolConfirmation:
        """`yes`, `no`, which may have a reason behind it, or the JSON of a ToolConfirmation."""
        if (yes := _yes_or_no(value)) is not None:
            match = _NO.fullmatch(value)
            reason = (match[1] or "").strip("\"'") if match else ""
            return ToolConfirmation(confirmed=yes, reason=reason or None, by="%confirm")
        decided = values.json_or_text(value)
        if isinstance(decided, dict | bool):
            return read_answer(interrupt, decided, "%confirm")
        magic = self._magic if len(self._open) == 1 else f"{self._magic} {interrupt.number}"
        names = ", ".join(interrupt.names)
        raise InputError(
            f"%confirm: {value!r:.60} is neither yes nor no to {names}; type {magic} yes, or {magic} no and a reason"
            if value
            else f"%confirm: yes or no to {names}? type {magic} yes, or {magic} no and a reason"
        )

    # ---- a yes or a no

    def _edits(self) -> dict[str, Any]:
        """The changed arguments; raises an InputError if the line contradicts itself."""
        args = self._args
        for option in ("edit", "payload", "reason") if args.reask else ():
            if getattr(args, option):
                raise InputError(f"%confirm: --{option} does not go with --reask, which leaves the call to the agent")
        if args.no and args.edit:
            raise InputError(
                "%confirm: --edit changes a call that is to run, so it does not go with --no; leave it out"
            )
        if args.no and args.payload:
            raise InputError(
                "%confirm: --payload tells a tool that is to go on, so it does not go with --no; leave it out"
            )
        if args.edit and "=" in (args.id or ""):
            raise InputError(f"%confirm: each change takes an --edit of its own; write --edit {shlex.quote(args.id)}")
        return values.pairs(args.edit or [], "%confirm --edit")

    def _payload(self) -> dict[str, Any]:
        return values.pairs(self._args.payload or [], "%confirm --payload")

    def _decide(self, edits: dict[str, Any]) -> Reply:
        args = self._args
        credentials = [interrupt for interrupt in self._open if interrupt.kind == "credential"]
        approvals = [interrupt for interrupt in self._open if interrupt.is_approval]
        refuses = args.no and bool(credentials) and not (args.all and approvals)
        if refuses and (args.id or not approvals):
            among = [*approvals, *credentials] if args.id else credentials
            chosen = find(among, args.id, self._session, "credential request")
            if chosen.kind == "credential":
                return self._chat(chosen).submit_credential(None, id=chosen.id)
        return self._answer_all(self._chosen(approvals), approvals, edits)

    def _chosen(self, approvals: list[Interrupt]) -> list[Interrupt]:
        args = self._args
        if not approvals and self._has_more:
            raise InputError(
                f"what waits in session {self._session!r} is no approval; type {self._magic} to see how it is answered"
            )
        if not approvals:
            answered = [approval for approval in _last_answered(self._history) if approval.goes_by(args.id)]
            nothing = (
                "it was answered already, or none was asked for" if args.id is None else "nothing is to be answered"
            )
            raise InputError(self._none_open(f"; {'; '.join(map(str, answered)) or nothing}"))
        if args.all:
            return approvals
        if args.id is None and len(approvals) > 1:
            raise InputError(f"{several_message(approvals, 'approval')}, or --all")
        is_cut = args.reason and " " not in args.reason
        why = "; a reason of several words stands in quotes" if is_cut else ""
        hint = f"; type {self._magic} to see those that are{why}"
        return [find(approvals, args.id, self._session, "approval", hint)]

    def _answer_all(self, chosen: list[Interrupt], approvals: list[Interrupt], edits: dict[str, Any]) -> Reply:
        names = {approval.id: self._agent_name(approval) for approval in chosen}
        gone = [approval for approval in chosen if names[approval.id] is None]
        if gone and (self._is_yes or gone[0].kind == "node_approval"):
            _, no = ways(gone[0], self._magic, approvals)
            raise InputError(
                f"agent {gone[0].recipient!r}, which asked for this, is gone; define it again, or refuse the call with "
                f"{no}"
            )
        for name in dict.fromkeys(self._notebook.is_edited(approval.id, self._history) for approval in chosen):
            if name and self._is_yes:
                sys.stdout.write(f"{_edited_note(name)}\n")
        reply = self._refuse(gone) if gone else None
        decisions: dict[str, dict[str, ToolConfirmation]] = {}
        for approval in chosen:
            if name := names[approval.id]:
                decisions.setdefault(name, {})[approval.id] = self._decision(approval, edits)
        for name, decided in decisions.items():
            chat = self._notebook.chat(name, self._session, show=self._show)
            reply = chat.decide(decided, as_asked=self._args.old)
        assert reply is not None
        return reply

    def _decision(self, approval: Interrupt, edits: dict[str, Any]) -> ToolConfirmation:
        payload, reason = _payload_of(approval, self._payload()), self._reason
        args = with_edits(approval, edits)
        return ToolConfirmation(confirmed=self._is_yes, args=args, payload=payload, reason=reason, by="%confirm")

    def _refuse(self, refused: list[Interrupt]) -> Reply:
        """Refuse calls of agents that are gone: the calls are closed, and no model is asked."""
        notebook, before = self._notebook, list(self._history.events)
        events = notebook.sessions.reject(refused, self._reason, self._session)
        left = notebook.sessions.history(self._session).interrupts()
        names = ", ".join(dict.fromkeys(interrupt.recipient for interrupt in refused))
        view = ReplyView(
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
        reply = Reply(view)
        notebook.variables["_run"] = reply
        return reply

    def _same_answers(self, edits: dict[str, Any]) -> "list[_AnsweredApproval]":
        """Approvals that were just answered as this line does, by a click for example; none if anything is open."""
        if self._has_more or self._args.id or self._args.reask:
            return []
        payload, answered = self._payload(), _last_answered(self._history)
        return answered if all(approval.is_like(self._is_yes, edits, payload) for approval in answered) else []

    @property
    def _has_more(self) -> bool:
        return any(interrupt.kind != "task" for interrupt in self._open)

    # ---- what is open

    def _draw_cards(self) -> set[str]:
        """Draw the cards of the open interrupts whose agents are defined; the ids of those drawn."""
        drawn: set[str] = set()
        by_name: dict[str, list[str]] = {}
        for interrupt in self._open:
            with suppress(UserError):  # a cell that is still to be run: the list names it
                if interrupt.has_card and (name := self._agent_name(interrupt)):
                    self._notebook.chat(name, self._session, show=self._show)
                    by_name.setdefault(name, []).append(interrupt.id)
        for name, ids in by_name.items():
            if self._notebook.chat(name, self._session, show=self._show).ask_again(*ids):
                drawn.update(ids)
        return drawn

    def _list(self, drawn: Collection[str]) -> Output | None:
        """The open interrupts and what to type for each. `drawn`: ids of those that a card shows already."""
        if not self._open:
            return text(self._none_open("; %trace shows what happened"))
        agents = {interrupt.id: self._agent(interrupt) for interrupt in self._open if interrupt.kind == "approval"}
        schemas: dict[str, Any] = {}
        notes: dict[str, None] = {}
        for approval in self._open:
            if approval.id not in agents:
                continue
            agent = agents[approval.id]
            schemas[approval.id] = schema_of(agent, approval) if agent else None
            if name := self._notebook.is_edited(approval.id, self._history):
                notes[_edited_note(name)] = None
            if agent and (note := self._check(agent).redefined_note(approval)):
                notes[note] = None
        listed = in_list([one for one in self._open if one.id not in drawn], self._magic, schemas, self._open)
        if listed:
            return Output(*listed).below(*notes)
        return text(*notes) if notes else None

    def _check(self, agent: BaseAgent) -> AnswerCheck:
        versions = self._notebook.earlier
        return AnswerCheck(history=self._history, agent_of=lambda _: agent, magic=self._magic, versions=versions)

    def _agent(self, interrupt: Interrupt) -> BaseAgent | None:
        """The agent that receives the answer. None: it is not defined, or a cell of its tools was not run yet."""
        name = self._agent_name(interrupt)
        with suppress(ToolNotFoundError):
            return self._notebook.agent(name) if name else None
        return None

    def _none_open(self, why: str = "") -> str:
        """That no approval is open: `why`, or where a run was cut, what to type."""
        session = self._notebook.sessions.find(self._session)
        if session and self._notebook.sessions.interrupted_runs(session):
            why = f"; {cut_in_brief(self._magic)}"
        return f"no approval is open in session {self._session!r}{why}"


def _yes_or_no(value: str) -> bool | None:
    """The decision that a line is; None: it is something else."""
    if value.lower() in ("yes", "y"):  # nothing behind it: "yes, if it is under 50" approves nothing
        return True
    return False if _NO.fullmatch(value) else None


def _edited_note(agent: str) -> str:
    return f"{agent} was edited since this was asked; it goes on as it is now"


def _payload_of(approval: Interrupt, given: dict[str, Any]) -> Any:
    asks: Any = approval.payload
    if approval.kind == "node_approval":
        asks = cast(dict[str, Any], asks).get("payload") if isinstance(asks, dict) else None
    suggested = cast(dict[str, Any], asks) if isinstance(asks, dict) else {}
    for key in given:
        if asks is None or (suggested and key not in suggested):
            wants = f"to know {', '.join(suggested)}" if suggested else "nothing but a yes or a no"
            raise InputError(f"%confirm --payload {key}=...: {', '.join(approval.names)} wants {wants}")
    return {**suggested, **given} if given else None


class _AnsweredApproval:
    """A call, and the decision on it."""

    def __init__(self, approval: Interrupt, decision: ToolConfirmation) -> None:
        self._approval, self._decision = approval, decision
        self._args = (approval.call.args or {}) if decision.args is None else decision.args

    def goes_by(self, name: str | None) -> bool:
        """True if `name` is its id, its tool or None."""
        return name in (None, self._approval.id, *self._approval.names, *self._approval.answer_ids)

    def is_like(self, yes: bool, edits: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """True if a yes or a no with these changes would have been the same decision."""
        decided: Any = self._decision.payload
        sent = cast(dict[str, Any], decided) if isinstance(decided, dict) else {}
        return (
            self._decision.confirmed is yes
            and all(self._args.get(name) == value for name, value in edits.items())
            and all(sent.get(name) == value for name, value in payload.items())
        )

    def __str__(self) -> str:
        verb = "approved" if self._decision.confirmed else "rejected"
        by = f" by {one_line(self._decision.by, 100)}" if self._decision.by else ""
        return f"{call_line(self._approval.call.name or '', self._args)} was {verb} already{by}"


def _last_answered(history: History) -> list[_AnsweredApproval]:
    """The approvals that the last message of the session answered; empty if it was no such message, or is undone."""
    turns = history.turns
    asked: dict[str, Interrupt] = {}
    answered: list[_AnsweredApproval] = []
    for event in turns[-1].events if turns and not turns[-1].undone else ():
        for approval in opened_by(event):
            asked |= dict.fromkeys((approval.id, approval.call.id or ""), approval)
        responses = [
            (asked[response.id], response.response or {})
            for response in event.get_function_responses()
            if response.name == approvals.REQUEST and event.author == "user" and response.id in asked
        ]
        if responses:
            answered = [_AnsweredApproval(approval, approvals.read_answer(answer)) for approval, answer in responses]
    return answered
