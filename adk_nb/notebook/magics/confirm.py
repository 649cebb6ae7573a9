"""`%confirm`: show the open interrupts of a session, or answer them."""

import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

from adk_nb.errors import InputError, ToolNotFoundError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.chat.conversation import short_interrupted_notice
from adk_nb.notebook.chat.desk import schema_of
from adk_nb.notebook.chat.interrupts import (
    HIDDEN_FIELD,
    find,
    read_answer,
    several_message,
    with_edits,
)
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.view.call_arguments import call_line
from adk_nb.notebook.view.display import Mode
from adk_nb.notebook.view.interrupt_text import REASK_REASON, commands, list_blocks
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.reply_view import Notices, ReplyView
from adk_nb.runtime import approvals
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt, opened_by

CONFIRM = Grammar(
    "confirm",
    "Show or answer the open interrupts of the session: approvals, questions, credential requests, and results of "
    "long-running tools.",
    examples=[
        "%confirm",
        "%confirm yes",
        '%confirm no "it is too expensive"',
        "%confirm --yes --all",
        '%confirm --edit amount=100 --yes --reason "half, as agreed"',
        "%confirm 2 Oslo",
        "%confirm 3  # a credential: opens a hidden field",
    ],
    arguments=[
        Argument(
            "ID",
            "the interrupt: its number in the list, its id, or its tool; may be left out if it is the only one",
            names="interrupt",
        ),
        Argument("VALUE", "the answer: yes, or no with an optional reason; for a question or a result: text, or JSON"),
    ],
    options=[
        SESSION_OPTION,
        Option("--yes", "approve"),
        Option("--no", "reject; the agent gets the rejection as the result"),
        Option("--reask", "reject because the tool was redefined since; the agent may call it again"),
        Option("--old", "approve, and run the tool as it was defined when it was called"),
        Option("--all", "answer all open approvals"),
        Option("--edit k=v", "change an argument of the call (JSON, else text)", many=True),
        Option("--payload k=v", "data that the tool asks for with the approval (JSON, else text)", many=True),
        Option("--reason TEXT", "the reason; the agent gets it"),
    ],
    twin="chat.interrupts, chat.answer(value, which), chat.answer(True, chat.interrupts), "
    "chat.approve(id, amount=100), chat.reject(id, reason=...)",
    pairs=True,
    surplus_hint="answer one approval at a time, or --all; put a reason of several words in quotes",
)

_VALUE = re.compile(
    r"""\s*(?P<session>(?:-s|--session)[\s=]+(?:'[^']*'|"[^"]*"|[^\s'"])+\s+)?(?P<text>(?!-\D).+?)\s*(?P<silent>;?)\s*""",
    re.DOTALL,
)
"""A line that may be an answer: no option but `--session`."""
_OPTION = re.compile(rf"(?:^|\s)(?:{'|'.join(f'--{option.name}' for option in CONFIRM.options)}|-s)(?=[\s=;]|$)")
_CONFLICTS = {
    "reask": (("edit", "payload", "reason"), "which leaves the call to the agent"),
    "no": (("edit", "payload"), "which runs nothing"),
}
_NO = re.compile(r"(?:no|n)(?:[,:;.]?\s+(.+)|[.!]?)", re.IGNORECASE | re.DOTALL)


def confirm(host: Host, line: str, cell: str | None) -> Any:
    """Show the open interrupts, or answer them and return the reply.

    Raises:
        InputError: No interrupt matches, or several do; options exclude each other; an edit or a value is invalid; or
            the agent was removed.
    """
    match = _VALUE.fullmatch(line)
    value = "" if match is None or _OPTION.search(match["text"]) else match["text"]
    args = CONFIRM.parse(f"{match['session'] or ''} {match['silent']}" if match and value else line, cell)
    if args.value:
        raise InputError(f"%confirm: unexpected {args.value!r}: {CONFIRM.surplus_hint}; see %confirm?")
    return _Confirm(host.notebook, args, host.settings.display, args.session).run(value)


def list_open(notebook: Notebook, session: str | None, show: Mode) -> Output | None:
    """Show the open interrupts of a session, as `%confirm` without an answer does."""
    return _Confirm(notebook, CONFIRM.parse("", None), show, session).show_open()


class _Confirm:
    """A line of `%confirm`, with the open interrupts of its session."""

    def __init__(self, notebook: Notebook, args: Any, show: Mode, session: str | None) -> None:
        self._notebook = notebook
        self._args = args
        self._show: Mode = show
        self._session: str = session or _session_to_answer(notebook)
        self._history = notebook.sessions.history(self._session)
        self._open = self._history.interrupts(kinds=ALL)
        self._magic = notebook.confirm_magic(self._session)

    def run(self, value: str) -> Any:
        """Show or answer interrupts. `value`: the answer of a line without options."""
        args = self._args
        choices = [choice for choice in ("yes", "no", "reask", "old") if getattr(args, choice)]
        if len(choices) > 1:
            raise InputError(f"%confirm: --{choices[0]} and --{choices[1]} exclude each other; choose one")
        if value and not self._open and (yes := _yes_or_no(value)) is not None:
            args.yes, args.no, choices, value = yes, not yes, ["yes"], ""  # a click may have answered it already
        if value:
            return self._answer(value)
        if not choices and (args.edit or args.payload or args.reason or args.all or args.id):
            raise InputError("%confirm: the decision is missing; add --yes or --no")
        if not choices:
            return self.show_open()
        self._check_options()
        edits, payload = values.pairs(args.edit, "%confirm --edit"), values.pairs(args.payload, "%confirm --payload")
        approvals = self._approvals
        if not (self._has_more or args.id or args.reask):  # a click may have made the same decisions
            answered = _last_answered(self._history)
            if answered and all(call.is_like(self._is_yes, edits, payload) for call in answered):
                return text(*map(str, answered))
        requests = [interrupt for interrupt in self._open if interrupt.kind == "credential"]
        if args.no and requests and not (approvals and (args.all or not args.id)):
            open_ = [*approvals, *requests] if args.id else requests
            refused = find(open_, args.id, self._session, "credential request")
            if refused.kind == "credential":
                return self._chat(refused).answer(None, refused.id)
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
                f"agent {interrupt.recipient!r}, which requested this, was removed; define it again, or type "
                "%chat --new"
            )
        return self._notebook.chat(name, self._session, show=self._show)

    # ---- answers

    def _answer(self, line: str) -> Reply:
        first, _, rest = line.partition(" ")
        matches = [
            interrupt for interrupt in self._open if first == str(interrupt.number) or _has_name(interrupt, first)
        ]
        if not self._open or (not matches and len(self._open) > 1):
            find(self._open, first, self._session, hint=f"; type {self._magic} to list the open ones")
        is_value = len(self._open) == 1 and (not matches or (not rest and self._open[0].is_text))
        interrupt = find(self._open, None if is_value else first, self._session)
        value = (line if is_value else rest).strip()
        numbered = f"{self._magic} {interrupt.number}"
        if interrupt.kind == "credential" and value:
            raise InputError(
                "%confirm takes no credential, as the notebook saves what a cell has: delete it from the cell, type "
                f"{numbered}, and paste the credential into the field that opens"
            )
        if interrupt.kind == "credential":
            return self._chat(interrupt).answer(HIDDEN_FIELD, interrupt.id)
        if interrupt.is_approval:
            return self._chat(interrupt).answer(self._read_decision(interrupt, value), interrupt.id)
        if not value:
            raise InputError(f"%confirm: the answer is missing; type {numbered} and the answer")
        typed = value if interrupt.is_text else values.json_or_text(value)
        return self._chat(interrupt).answer(typed, interrupt.id)

    def _read_decision(self, interrupt: Interrupt, value: str) -> ToolConfirmation:
        """Read `yes`, `no` with an optional reason, or the JSON of a ToolConfirmation."""
        if (yes := _yes_or_no(value)) is not None:
            match = _NO.fullmatch(value)
            reason = (match[1] or "").strip("\"'") if match else ""
            return ToolConfirmation(confirmed=yes, reason=reason or None, by="%confirm")
        decision = values.json_or_text(value)
        if isinstance(decision, dict | bool):
            return read_answer(interrupt, decision, "%confirm")
        magic = self._magic if len(self._open) == 1 and not interrupt.in_doubt else f"{self._magic} {interrupt.number}"
        got = f", got {value!r:.60}" if value else ""
        raise InputError(
            f"%confirm: approve or reject {', '.join(interrupt.names)}{got}; type {magic} yes, or {magic} no and a "
            "reason"
        )

    # ---- decisions

    def _check_options(self) -> None:
        args = self._args
        for choice, (options, effect) in _CONFLICTS.items():
            for option in options:
                if getattr(args, choice) and getattr(args, option):
                    raise InputError(f"%confirm: --{option} does not go with --{choice}, {effect}")
        if args.edit and "=" in (args.id or ""):
            raise InputError(f"%confirm: each argument needs its own --edit; add --edit {shlex.quote(args.id)}")

    @property
    def _has_more(self) -> bool:
        return any(interrupt.kind != "task" for interrupt in self._open)

    def _chosen(self) -> list[Interrupt]:
        args, approvals = self._args, self._approvals
        if not approvals and self._has_more:
            raise InputError(
                f"no approval is open in session {self._session!r}; type {self._magic} to see what is open"
            )
        if not approvals:
            answered = [
                str(call) for call in _last_answered(self._history) if not args.id or _has_name(call.approval, args.id)
            ]
            hint = "%trace shows what happened" if args.id else "it may be answered already; see %trace"
            raise InputError(self._none_open("; ".join(answered) or hint))
        if args.all and (ordinary := [approval for approval in approvals if not approval.in_doubt]):
            return ordinary  # a call that may have taken effect already is answered alone
        if args.id is None and len(approvals) > 1:
            raise InputError(f"{several_message(approvals, 'approval')}{'' if args.all else ', or --all'}")
        is_cut = args.reason and " " not in args.reason
        quotes = "; put a reason of several words in quotes" if is_cut else ""
        if args.no and not args.reason and " " in (args.id or ""):
            quotes = f"; a reason is typed after the word: {self._magic} no {args.id}"
        hint = f"; type {self._magic} to list the open ones{quotes}"
        return [find(approvals, args.id, self._session, "approval", hint)]

    def _decide(self, chosen: list[Interrupt], edits: dict[str, Any], payload: dict[str, Any]) -> Reply:
        names = {approval.id: self._recipient(approval) for approval in chosen}
        orphans = [approval for approval in chosen if names[approval.id] is None]
        if orphans and (self._is_yes or orphans[0].kind == "node_approval"):
            _, no = commands(orphans[0], self._magic, self._approvals)
            raise InputError(
                f"agent {orphans[0].recipient!r}, which made this call, was removed; define it again, or reject the "
                f"call with {no}"
            )
        for name in dict.fromkeys(self._notebook.is_edited(approval.id, self._history) for approval in chosen):
            if name and self._is_yes:
                sys.stdout.write(f"{_edited_note(name)}\n")
        reason = REASK_REASON if self._args.reask else self._args.reason
        reply = self._close(orphans, reason) if orphans else None
        decisions: dict[str, dict[str, ToolConfirmation]] = {}
        for approval in chosen:
            if name := names[approval.id]:
                decisions.setdefault(name, {})[approval.id] = ToolConfirmation(
                    confirmed=self._is_yes,
                    args=with_edits(approval, edits),
                    payload=_merged_payload(approval, payload),
                    reason=reason,
                    by="%confirm",
                )
        for name, decided in decisions.items():
            chat = self._notebook.chat(name, self._session, show=self._show)
            reply = turn_runner(chat).answer_now(decided, by="%confirm", as_asked=self._args.old)
        assert reply is not None
        return reply

    def _close(self, rejected: list[Interrupt], reason: str | None) -> Reply:
        """Reject calls of removed agents: the calls are closed, and no model runs."""
        notebook, history = self._notebook, list(self._history.events)
        events = notebook.sessions.reject(rejected, reason, self._session)
        remaining = notebook.sessions.history(self._session).interrupts()
        names = ", ".join(dict.fromkeys(interrupt.recipient for interrupt in rejected))
        notices = Notices()
        notices.add(f"rejected; no agent continues, as {names} was removed")
        view = ReplyView(
            question=None,
            agent=rejected[0].recipient,
            events=events,
            history=history,
            text="",
            status="pending" if remaining else "done",
            interrupts=remaining,
            magic=self._magic,
            notices=notices,
        )
        notebook.variables["_run"] = reply = Reply(view)
        return reply

    # ---- the list

    def show_open(self) -> Output | None:
        """Draw cards of the open interrupts whose agents are defined, and list what to type for the others."""
        if not self._open:
            return text(self._none_open("%trace shows what happened"))
        chats: dict[str, tuple[Any, list[str]]] = {}
        for interrupt in self._open:
            with suppress(UserError):  # its cell has not run yet: the list names it
                if interrupt.has_card and (name := self._recipient(interrupt)):
                    chat = self._notebook.chat(name, self._session, show=self._show)
                    chats.setdefault(name, (chat, []))[1].append(interrupt.id)
        drawn = {id for chat, ids in chats.values() if turn_runner(chat).draw_cards(ids) for id in ids}
        schemas: dict[str, Any] = {}
        notes: dict[str, None] = {}
        redefined: set[str] = set()
        for approval in self._open:
            if approval.kind != "approval":
                continue
            if name := self._notebook.is_edited(approval.id, self._history):
                notes[_edited_note(name)] = None
            with suppress(ToolNotFoundError):  # a cell of the agent's tools has not run yet
                if name := self._recipient(approval):
                    schemas[approval.id] = schema_of(self._notebook.agent(name), approval)
                    chat = self._notebook.chat(name, self._session, show=self._show)
                    if note := turn_runner(chat).desk.note_on_tool(approval, self._history):
                        notes[note] = None
                        redefined.add(approval.id)
        to_list = [interrupt for interrupt in self._open if interrupt.id not in drawn]
        listed = list_blocks(to_list, self._magic, schemas, self._open, redefined)
        for session in self._notebook.waiting_sessions:
            if session != self._session:
                notes[f"session {session!r} waits, too: type {self._notebook.confirm_magic(session)}"] = None
        if listed:
            return Output(*listed).below(*notes)
        return text(*notes) if notes else None

    def _none_open(self, hint: str) -> str:
        """Return the message that no approval is open, with `hint`, or with what is open instead."""
        session = self._notebook.sessions.find(self._session)
        if waiting := self._notebook.waiting_sessions:
            hint += f"; session {waiting[-1]!r} waits: type {self._notebook.confirm_magic(waiting[-1])}"
        if session and self._notebook.sessions.interrupted_runs(session):
            hint = short_interrupted_notice(self._magic)
        return f"no approval is open in session {self._session!r}; {hint}"


def _session_to_answer(notebook: Notebook) -> str:
    """The current session; if nothing waits or was just answered there, that of the only agent that waits.

    That becomes the current one.
    """
    history = notebook.sessions.history()
    if not (history.interrupts(kinds=ALL) or _last_answered(history)):  # a repeated line answers nothing else
        waiting = notebook.waiting_sessions
        if len(waiting) == 1 and waiting[0] in map(notebook.session_of, notebook.root_names):
            notebook.sessions.use(waiting[0])
    return notebook.sessions.current


def _has_name(interrupt: Interrupt, name: str) -> bool:
    return name in (interrupt.id, *interrupt.names, *interrupt.answer_ids)


def _yes_or_no(value: str) -> bool | None:
    """Read a line as a decision; None: it is another answer."""
    if value.lower() in ("yes", "y"):  # only alone: "yes, if it is under 50" must not approve
        return True
    return False if _NO.fullmatch(value) else None


def _edited_note(agent: str) -> str:
    return f"{agent} was edited since this was requested; it continues with its new definition"


def _merged_payload(approval: Interrupt, payload: dict[str, Any]) -> Any:
    """Return the suggested payload with the keys of the line; raise an InputError for an unknown key."""
    requested: Any = approval.payload
    if approval.kind == "node_approval":
        requested = cast(dict[str, Any], requested).get("payload") if isinstance(requested, dict) else None
    suggested = cast(dict[str, Any], requested) if isinstance(requested, dict) else {}
    for key in payload:
        if requested is None or (suggested and key not in suggested):
            keys = f"asks for {', '.join(suggested)}" if suggested else "asks for no data; type yes or no alone"
            raise InputError(f"%confirm --payload {key}=...: {', '.join(approval.names)} {keys}")
    return {**suggested, **payload} if payload else None


class _AnsweredApproval(NamedTuple):
    """An approval request and the decision on it."""

    approval: Interrupt
    decision: ToolConfirmation

    @property
    def _args(self) -> dict[str, Any]:
        return (self.approval.call.args or {}) if self.decision.args is None else self.decision.args

    def is_like(self, yes: bool, edits: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
        """Return True if approving or rejecting with these changes is the same decision."""
        content: Any = self.decision.payload
        old_payload = cast(dict[str, Any], content) if isinstance(content, dict) else {}
        return (
            self.decision.confirmed is yes
            and all(self._args.get(name) == value for name, value in edits.items())
            and all(old_payload.get(name) == value for name, value in payload.items())
        )

    def __str__(self) -> str:
        verb = "approved" if self.decision.confirmed else "rejected"
        by = f" by {one_line(self.decision.by, 100)}" if self.decision.by else ""
        return f"{call_line(self.approval.call.name or '', self._args)} was already {verb}{by}"


def _last_answered(history: History) -> list[_AnsweredApproval]:
    """Return the approvals that the last turn answered; none if it answered none, or was undone."""
    turns = history.turns
    requests: dict[str, Interrupt] = {}
    answered: list[_AnsweredApproval] = []
    for event in turns[-1].events if turns and not turns[-1].undone else ():
        for approval in opened_by(event):
            requests |= dict.fromkeys((approval.id, approval.call.id or ""), approval)
        responses = event.get_function_responses() if event.author == "user" else ()
        answered = [
            _AnsweredApproval(requests[response.id], approvals.read_answer(response.response or {}))
            for response in responses
            if response.name == approvals.REQUEST and response.id in requests
        ] or answered
    return answered
