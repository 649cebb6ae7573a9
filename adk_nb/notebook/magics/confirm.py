"""`%confirm`: show the open interrupts of a session, or answer them."""

import re
import shlex
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, ToolNotFoundError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.chat import turn_runner
from adk_nb.notebook.interrupted_runs import short_interrupted_notice
from adk_nb.notebook.interrupts import (
    HIDDEN_FIELD,
    AnswerCheck,
    find,
    read_answer,
    several_message,
    with_edits,
)
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, text
from adk_nb.notebook.paused_agents import schema_of
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.call_shown import call_line
from adk_nb.notebook.view.display import Mode
from adk_nb.notebook.view.interrupt_text import ASKED_ANEW, in_list, ways
from adk_nb.notebook.view.notices import Notices
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
    arguments=[
        Argument(
            "ID",
            "what is answered: its number in the list, its id, or its tool; may be left out if it is the only one",
            names="interrupt",
        ),
        Argument("VALUE", "the answer: yes, or no and maybe a reason; to a question, or as an outcome: text, or JSON"),
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
    twin="chat.interrupts, chat.answer(value, which), chat.answer(True, chat.interrupts), "
    "chat.approve(id, amount=100), chat.reject(id, reason=...)",
    pairs=True,
    surplus_hint="one approval at a time, or --all; a reason of several words stands in quotes",
)

_VALUE = re.compile(
    r"""\s*(?P<session>(?:-s|--session)[\s=]+(?:'[^']*'|"[^"]*"|[^\s'"]+)\s+)?(?P<text>(?!-\D).+?)\s*(?P<silent>;?)\s*""",
    re.DOTALL,
)
"""A line that may be an answer as it stands."""
_OPTION = re.compile(rf"(?:^|\s)(?:{'|'.join(f'--{option.name}' for option in CONFIRM.options)}|-s)(?=[\s=;]|$)")
_CONFLICTS = {
    "reask": (("edit", "payload", "reason"), "which leaves the call to the agent"),
    "no": (("edit", "payload"), "after which nothing runs"),
}
_NO = re.compile(r"(?:no|n)(?:[,:;.]?\s+(.+)|[.!]?)", re.IGNORECASE | re.DOTALL)


def confirm(host: Host, line: str, cell: str | None) -> Any:
    """Show the open interrupts, or answer them; the reply to the answers.

    Raises:
        InputError: None is open, several are and the line does not name one, it contradicts itself, an edit or a value
            does not fit, or the agent is gone.
    """
    match = _VALUE.fullmatch(line)
    value = "" if match is None or _OPTION.search(match["text"]) else match["text"]
    args = CONFIRM.parse(f"{match['session'] or ''} {match['silent']}" if match and value else line, cell)
    if args.value:
        raise InputError(f"%confirm: there is no place for {args.value}: {CONFIRM.surplus_hint}; see %confirm?")
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
        self._check_options()
        edits, payload = values.pairs(args.edit, "%confirm --edit"), values.pairs(args.payload, "%confirm --payload")
        if answered := self._same_answers(edits, payload):
            return text(*answered)
        if credential := self._refused_credential():
            return self._chat(credential).answer(None, credential.id)
        return self._decide(self._chosen(), edits, payload)

    @property
    def _is_yes(self) -> bool:
        return bool(self._args.yes or self._args.old)

    @property
    def _approvals(self) -> list[Interrupt]:
        return [interrupt for interrupt in self._open if interrupt.is_approval]

    def _recipient(self, interrupt: Interrupt) -> str | None:
        return self._notebook.recipient_of(interrupt.id, interrupt.recipient, self._history)

    def _chat(self, interrupt: Interrupt) -> Any:
        name = self._recipient(interrupt)
        if name is None:
            raise InputError(
                f"agent {interrupt.recipient!r}, which asked this, is gone; define it again, or start over with "
                "%chat --new"
            )
        return self._notebook.chat(name, self._session, show=self._show)

    # ---- a value

    def _answer(self, line: str) -> Reply:
        first, _, rest = line.partition(" ")
        named = [open_ for open_ in self._open if first == str(open_.number) or _goes_by(open_, first)]
        if not self._open or (not named and len(self._open) > 1):
            find(self._open, first, self._session, hint=f"; type {self._magic} to see those that are")
        is_value = len(self._open) == 1 and (not named or (not rest and self._open[0].is_text))
        interrupt = self._open[0] if is_value else find(named, None, self._session)
        value = (line if is_value else rest).strip()
        numbered = f"{self._magic} {interrupt.number}"
        if interrupt.kind == "credential" and value:
            raise InputError(
                "a credential is not typed into a cell, which keeps it: take it out of there, and type "
                f"{numbered} alone; a field that does not show it asks for it"
            )
        if interrupt.kind == "credential":
            return self._chat(interrupt).answer(HIDDEN_FIELD, interrupt.id)
        if interrupt.is_approval:
            return self._chat(interrupt).answer(self._read_decision(interrupt, value), interrupt.id)
        if not value:
            raise InputError(f"%confirm: what is the answer? write {numbered} and the answer behind it")
        typed = value if interrupt.is_text else values.json_or_text(value)
        return self._chat(interrupt).answer(typed, interrupt.id)

    def _read_decision(self, interrupt: Interrupt, value: str) -> ToolConfirmation:
        """Read `yes`, `no`, which may have a reason behind it, or the JSON of a ToolConfirmation."""
        if (yes := _yes_or_no(value)) is not None:
            match = _NO.fullmatch(value)
            reason = (match[1] or "").strip("\"'") if match else ""
            return ToolConfirmation(confirmed=yes, reason=reason or None, by="%confirm")
        decision = values.json_or_text(value)
        if isinstance(decision, dict | bool):
            return read_answer(interrupt, decision, "%confirm")
        magic = self._magic if len(self._open) == 1 else f"{self._magic} {interrupt.number}"
        problem = f"{value!r:.60} is neither yes nor no to" if value else "yes or no to"
        raise InputError(
            f"%confirm: {problem} {', '.join(interrupt.names)}; type {magic} yes, or {magic} no and a reason"
        )

    # ---- a yes or a no

    def _check_options(self) -> None:
        args = self._args
        for choice, (options, why) in _CONFLICTS.items():
            for option in options:
                if getattr(args, choice) and getattr(args, option):
                    raise InputError(f"%confirm: --{option} does not go with --{choice}, {why}")
        if args.edit and "=" in (args.id or ""):
            raise InputError(f"%confirm: each change takes an --edit of its own; write --edit {shlex.quote(args.id)}")

    def _same_answers(self, edits: dict[str, Any], payload: dict[str, Any]) -> list[str]:
        """Approvals that were just answered as this line does, by a click for example; none if anything is open."""
        if self._has_more or self._args.id or self._args.reask:
            return []
        answered = _last_answered(self._history)
        return (
            [str(call) for call in answered]
            if all(call.is_like(self._is_yes, edits, payload) for call in answered)
            else []
        )

    @property
    def _has_more(self) -> bool:
        return any(interrupt.kind != "task" for interrupt in self._open)

    def _refused_credential(self) -> Interrupt | None:
        """The credential request that a `--no` refuses."""
        args, approvals = self._args, self._approvals
        requests = [interrupt for interrupt in self._open if interrupt.kind == "credential"]
        if not (args.no and requests) or (approvals and (args.all or not args.id)):
            return None
        chosen = find([*approvals, *requests] if args.id else requests, args.id, self._session, "credential request")
        return chosen if chosen.kind == "credential" else None

    def _chosen(self) -> list[Interrupt]:
        args, approvals = self._args, self._approvals
        if not approvals and self._has_more:
            raise InputError(
                f"what waits in session {self._session!r} is no approval; type {self._magic} to see how it is answered"
            )
        if not approvals:
            answered = [
                str(call) for call in _last_answered(self._history) if not args.id or _goes_by(call.approval, args.id)
            ]
            nothing = "nothing is to be answered" if args.id else "it was answered already, or none was asked for"
            raise InputError(self._none_open("; ".join(answered) or nothing))
        if args.all:
            return approvals
        if args.id is None and len(approvals) > 1:
            raise InputError(f"{several_message(approvals, 'approval')}, or --all")
        is_cut = args.reason and " " not in args.reason
        quotes = "; a reason of several words stands in quotes" if is_cut else ""
        hint = f"; type {self._magic} to see those that are{quotes}"
        return [find(approvals, args.id, self._session, "approval", hint)]

    def _decide(self, chosen: list[Interrupt], edits: dict[str, Any], payload: dict[str, Any]) -> Reply:
        names = {approval.id: self._recipient(approval) for approval in chosen}
        gone = [approval for approval in chosen if names[approval.id] is None]
        if gone and (self._is_yes or gone[0].kind == "node_approval"):
            _, no = ways(gone[0], self._magic, self._approvals)
            raise InputError(
                f"agent {gone[0].recipient!r}, which asked for this, is gone; define it again, or refuse the call with "
                f"{no}"
            )
        for name in dict.fromkeys(self._notebook.is_edited(approval.id, self._history) for approval in chosen):
            if name and self._is_yes:
                sys.stdout.write(f"{_edited_note(name)}\n")
        reason = ASKED_ANEW if self._args.reask else self._args.reason
        reply = self._refuse(gone, reason) if gone else None
        decisions: dict[str, dict[str, ToolConfirmation]] = {}
        for approval in chosen:
            if name := names[approval.id]:
                decisions.setdefault(name, {})[approval.id] = ToolConfirmation(
                    confirmed=self._is_yes,
                    args=with_edits(approval, edits),
                    payload=_whole_payload(approval, payload),
                    reason=reason,
                    by="%confirm",
                )
        for name, decided in decisions.items():
            chat = self._notebook.chat(name, self._session, show=self._show)
            reply = turn_runner(chat).answer_now(decided, by="%confirm", as_asked=self._args.old)
        assert reply is not None
        return reply

    def _refuse(self, refused: list[Interrupt], reason: str | None) -> Reply:
        """Refuse calls of agents that are gone: the calls are closed, and no model is asked."""
        notebook, before = self._notebook, list(self._history.events)
        events = notebook.sessions.reject(refused, reason, self._session)
        left = notebook.sessions.history(self._session).interrupts()
        names = ", ".join(dict.fromkeys(interrupt.recipient for interrupt in refused))
        notices = Notices()
        notices.add(f"refused; nobody goes on from it, as {names} is gone")
        view = ReplyView(
            question=None,
            agent=refused[0].recipient,
            events=events,
            history=before,
            text="",
            status="pending" if left else "done",
            interrupts=left,
            magic=self._magic,
            notices=notices,
        )
        notebook.variables["_run"] = reply = Reply(view)
        return reply

    # ---- what is open

    def _draw_cards(self) -> set[str]:
        """Draw the cards of the open interrupts whose agents are defined; the ids of those drawn."""
        chats: dict[str, tuple[Any, list[str]]] = {}
        for interrupt in self._open:
            with suppress(UserError):  # a cell that is still to be run: the list names it
                if interrupt.has_card and (name := self._recipient(interrupt)):
                    chat = self._notebook.chat(name, self._session, show=self._show)
                    chats.setdefault(name, (chat, []))[1].append(interrupt.id)
        return {id for chat, ids in chats.values() if turn_runner(chat).draw_cards(ids) for id in ids}

    def _list(self, drawn: Collection[str]) -> Output | None:
        """List the open interrupts and what to type for each. `drawn`: ids of those that a card shows already."""
        if not self._open:
            return text(self._none_open("%trace shows what happened"))
        schemas: dict[str, Any] = {}
        notes: dict[str, None] = {}
        redefined: set[str] = set()
        for approval in self._open:
            if approval.kind != "approval":
                continue
            if name := self._notebook.is_edited(approval.id, self._history):
                notes[_edited_note(name)] = None
            with suppress(ToolNotFoundError):  # a cell of its agent's tools was not run yet
                if name := self._recipient(approval):
                    agent = self._notebook.agent(name)
                    schemas[approval.id] = schema_of(agent, approval)
                    if note := self._check(agent).redefined_note(approval):
                        notes[note] = None
                        redefined.add(approval.id)
        to_list = [interrupt for interrupt in self._open if interrupt.id not in drawn]
        listed = in_list(to_list, self._magic, schemas, self._open, redefined)
        if listed:
            return Output(*listed).below(*notes)
        return text(*notes) if notes else None

    def _check(self, agent: BaseAgent) -> AnswerCheck:
        versions = self._notebook.earlier
        return AnswerCheck(history=self._history, agent_of=lambda _: agent, magic=self._magic, versions=versions)

    def _none_open(self, hint: str) -> str:
        """That no approval is open, with `hint`, or with what to type where a run was interrupted."""
        session = self._notebook.sessions.find(self._session)
        if session and self._notebook.sessions.interrupted_runs(session):
            hint = short_interrupted_notice(self._magic)
        return f"no approval is open in session {self._session!r}; {hint}"


def _goes_by(interrupt: Interrupt, name: str) -> bool:
    return name in (interrupt.id, *interrupt.names, *interrupt.answer_ids)


def _yes_or_no(value: str) -> bool | None:
    """The decision that a line is; None: it is something else."""
    if value.lower() in ("yes", "y"):  # nothing behind it: "yes, if it is under 50" approves nothing
        return True
    return False if _NO.fullmatch(value) else None


def _edited_note(agent: str) -> str:
    return f"{agent} was edited since this was asked; it goes on as it is now"


def _whole_payload(approval: Interrupt, payload: dict[str, Any]) -> Any:
    """The suggested payload with the keys of the line; raises an InputError for a key that is not in it."""
    asks: Any = approval.payload
    if approval.kind == "node_approval":
        asks = cast(dict[str, Any], asks).get("payload") if isinstance(asks, dict) else None
    suggested = cast(dict[str, Any], asks) if isinstance(asks, dict) else {}
    for key in payload:
        if asks is None or (suggested and key not in suggested):
            wants = f"to know {', '.join(suggested)}" if suggested else "nothing but a yes or a no"
            raise InputError(f"%confirm --payload {key}=...: {', '.join(approval.names)} wants {wants}")
    return {**suggested, **payload} if payload else None


class _AnsweredApproval(NamedTuple):
    approval: Interrupt
    decision: ToolConfirmation

    @property
    def _args(self) -> dict[str, Any]:
        return (self.approval.call.args or {}) if self.decision.args is None else self.decision.args

    def is_like(self, yes: bool, edits: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """Return True if a yes or a no with these changes would have been the same decision."""
        decided: Any = self.decision.payload
        sent = cast(dict[str, Any], decided) if isinstance(decided, dict) else {}
        return (
            self.decision.confirmed is yes
            and all(self._args.get(name) == value for name, value in edits.items())
            and all(sent.get(name) == value for name, value in payload.items())
        )

    def __str__(self) -> str:
        verb = "approved" if self.decision.confirmed else "rejected"
        by = f" by {one_line(self.decision.by, 100)}" if self.decision.by else ""
        return f"{call_line(self.approval.call.name or '', self._args)} was {verb} already{by}"


def _last_answered(history: History) -> list[_AnsweredApproval]:
    """The approvals that the last message of the session answered; empty if it was no such message, or is undone."""
    turns = history.turns
    asked: dict[str, Interrupt] = {}
    answered: list[_AnsweredApproval] = []
    for event in turns[-1].events if turns and not turns[-1].undone else ():
        for approval in opened_by(event):
            asked |= dict.fromkeys((approval.id, approval.call.id or ""), approval)
        responses = event.get_function_responses() if event.author == "user" else ()
        answered = [
            _AnsweredApproval(asked[response.id], approvals.read_answer(response.response or {}))
            for response in responses
            if response.name == approvals.REQUEST and response.id in asked
        ] or answered
    return answered
