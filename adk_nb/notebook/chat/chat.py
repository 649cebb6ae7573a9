"""`Chat`: a conversation with an agent, for cells without await."""

import asyncio
import os
from collections.abc import Sequence
from copy import copy
from typing import Any, Self, Unpack

from IPython.core.getipython import get_ipython

from adk_nb import evaluation, sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import AlreadyExistsError, InputError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.chat.attachments import SentFile, parts_of_name
from adk_nb.notebook.chat.chat_box import HEIGHT, ChatBox, Reach, chat_in_terminal, check_place
from adk_nb.notebook.chat.conversation import ChatState, Conversation, drop, tell_undone
from adk_nb.notebook.chat.error_hints import shorten_interrupt
from adk_nb.notebook.chat.interrupts import HIDDEN_FIELD, find, in_doubt_message, with_edits
from adk_nb.notebook.chat.past import PastTurn, Rewound, turns_of, typed_text
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.chat.turn_options import AskOptions, Confirm, LentTool, TurnOptions, turn_options
from adk_nb.notebook.view.display import Show, checked_mode, in_a_kernel
from adk_nb.notebook.view.plain_text import quoted
from adk_nb.runners import Runner
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt
from adk_nb.sessions import session_file
from adk_nb.sessions.base_session_service import BaseSessionService

Which = Interrupt | str | int | None
"""An interrupt, its id, its number, or the name of its tool. None: the only one."""


class Chat:
    """One user, one session, one agent.

    Args:
        agent: The agent that answers, or an app with an agent and plugins, or a runner, whose services keep the
            conversation. Assigning `chat.agent` replaces the agent; the session stays.
        session: Its id; made when first needed.
        user_id: The session's owner.
        app_name: The app of the session. None: the app's own, or `notebook`.
        session_service: Keeps the session. None: this process's memory, for this chat alone.
        artifact_service: Keeps its files. None: as for the session.
        memory_service: Keeps its memories. None: as for the session.
        credential_service: Keeps the user's credentials. None: as for the session.
        show: What a cell shows of each turn: `auto`, a live view if a page can show one, later replaced by the reply;
            `static`, only the reply; `off`, or False, nothing; the reply is only returned.
    """

    def __init__(
        self,
        agent: BaseAgent | App | Runner,
        *,
        session: str = "main",
        user_id: str = "user",
        app_name: str | None = None,
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
        memory_service: BaseMemoryService | None = None,
        credential_service: BaseCredentialService | None = None,
        show: Show = "auto",
    ) -> None:
        conversation = Conversation(
            agent,
            session_id=session,
            user_id=user_id,
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
            credential_service=credential_service,
        )
        runner = TurnRunner(self, conversation, checked_mode(show), self._rerun_in_fork)
        self._open_runner: TurnRunner | None = runner

    def __repr__(self) -> str:
        if self._open_runner is None:
            return "Chat(closed)"
        return f"Chat(agent={self.agent.name!r}, session={self.session_id!r})"

    @property
    def _runner(self) -> TurnRunner:
        if self._open_runner is None:
            raise InputError("this chat is closed; make another one: Chat(agent)")
        return self._open_runner

    @property
    def _conversation(self) -> Conversation:
        return self._runner.conversation

    # ---- the session

    @property
    def agent(self) -> BaseAgent:
        """The agent that answers."""
        return self._conversation.agent

    @agent.setter
    def agent(self, agent: BaseAgent) -> None:
        self._conversation.agent = agent

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._conversation.session_id

    @property
    def events(self) -> list[Event]:
        """The session so far, oldest first."""
        session = sync.run(self._conversation.loaded())
        return list(session.events) if session else []

    @property
    def turns(self) -> list[PastTurn]:
        """The user's messages with all that followed each, oldest first; undone turns too."""
        with self._conversation.history(self.events) as history:
            return turns_of(history)

    @property
    def state(self) -> ChatState:
        """The session's state; a write becomes an event of its own."""
        return ChatState(lambda: self._conversation)

    @property
    def interrupts(self) -> list[Interrupt]:
        """The open interrupts of the session, of every kind, by number: answer with `answer`, `approve` or `reject`."""
        return sync.run(self._runner.desk.interrupts())

    # ---- messages

    def ask(
        self,
        text: str,
        *,
        attach: Any = None,
        tools: Sequence[LentTool] = (),
        model: str | BaseLlm | None = None,
        show: Show | None = None,
        max_cost: float | None = None,
        confirm: Confirm | None = None,
    ) -> Reply:
        """Send `text` and wait for the reply. Sync tools run in this thread; Ctrl-C stops the run.

        Args:
            text: The message.
            attach: One attachment or a list: the path of a file; an image, a PDF or text as bytes; a figure of
                matplotlib, a DataFrame, an exception, a `types.Part`, or any value that can be written as text.
            tools: More tools for this turn.
            model: The model of this turn. None: the agent's own.
            show: As `show` of the chat, for this turn. None: as the chat.
            max_cost: Limit of the cost of this turn in US dollars, above which no model is called, also after an
                approval. None: `%config AdkNb.max_cost_usd`.
            confirm: Approvals of this turn are left open ("ask"), given ("yes") or refused ("no"). None:
                `%config AdkNb.confirm`.

        Returns:
            The reply; its `status` is `done`, `pending`, `cancelled` or `error`.

        Raises:
            UserError: Something to correct in the notebook: a missing key, an open approval, a missing state key, a
                file that cannot be read.
        """
        turn = turn_options(attach=attach, tools=tools, model=model, show=show, max_cost=max_cost, confirm=confirm)
        return self._runner.ask(text, turn)

    async def aask(self, text: str, **options: Unpack[AskOptions]) -> Reply:
        """`ask` for a cell that awaits: it takes, returns and raises the same. Cancelling the task stops the run."""
        try:
            return await sync.arun(self._runner.send(text, turn_options(**options)))
        except asyncio.CancelledError as error:
            shorten_interrupt(error, [])
            raise

    def start(self, text: str, **options: Unpack[AskOptions]) -> "sync.Started[Reply]":
        """`ask` in the background: a handle with `.result()`, `.cancel()` and `.done()`."""
        turn = turn_options(**options)
        view = self._runner.view_of(text, turn)  # in the thread of the cell
        return sync.start(self._runner.send(text, turn, view, is_background=True))

    def box(self, *, height: int = HEIGHT) -> None:
        """Open a chat box: this conversation in one output, with a field to type into. In a terminal, line by line.

        Args:
            height: Of the log in pixels; a longer log is scrolled.

        Raises:
            InputError: It cannot be shown here.
        """
        runner = self._runner
        check_place(runner.show, height)
        if not in_a_kernel():
            return chat_in_terminal(self.ask)
        return ChatBox(runner, self.session_id, height=height, reach=self._reach()).open()

    def _reach(self) -> Reach:
        conversation, chats = self._conversation, dict[str, Self]()
        variables = getattr(get_ipython(), "user_ns", {})

        def turns(session: str) -> TurnRunner:
            if session == conversation.session_id:
                return self._runner
            return chats.setdefault(session, self._in_session(session))._runner

        def message(session: str, text: str, attached: Sequence[str | SentFile]) -> tuple[TurnRunner, str, TurnOptions]:
            parts = [part for name in attached for part in parts_of_name(name, variables)]
            return turns(session), text, turn_options(attach=parts or None)

        return Reach(
            sessions=lambda: sync.run(conversation.session_ids()), turns=turns, message=message, variables=variables
        )

    def map(self, data: Any, **options: Any) -> Any:
        """Ask the agent about each row of a table, each in a session of its own, as `evaluation.agent_map`.

        Args:
            data: A frame of pandas or polars, or a list of dicts.
            options: As those of `adk_nb.evaluation.agent_map`: `message`, `schema`, `budget_usd` ...
        """
        service = self._conversation.service
        return evaluation.agent_map(self.agent, data, session_service=service, app_name="evaluation", **options)

    # ---- interrupts

    def answer(self, value: Any = HIDDEN_FIELD, which: Which | Sequence[Which] = None) -> Reply:
        """Answer open interrupts of any kind, and wait for the reply: `chat.answer(True, chat.interrupts)`.

        Args:
            value: For an approval: True or False, "yes" or "no", a ToolConfirmation, or its JSON. For a question: text
                as it is typed, or JSON. For the outcome of a long-running tool: JSON. For both of these a dict is the
                whole response, any other value its `result`. For a task: text. For a credential: the address that the
                page led to, a key, a token, `name:password`, an AuthCredential, or JSON; None refuses; without a value
                a hidden field opens.
            which: An interrupt, its number, its id, the name of its tool, or a list of these. None: the only one.

        Raises:
            InputError: None is open, several are open and `which` names none, or the value does not fit.
        """
        open_ = self.interrupts
        if value is HIDDEN_FIELD:
            open_ = [interrupt for interrupt in open_ if interrupt.kind in CREDENTIALS] or open_
        chosen = [which] if which is None or isinstance(which, Interrupt | str | int) else list(which)
        if not chosen:
            raise InputError("no interrupt to answer: the list is empty, see chat.interrupts")
        found = [find(open_, item.id if isinstance(item, Interrupt) else item, self.session_id) for item in chosen]
        if chosen != [which] and (doubt := next((one for one in found if one.in_doubt), None)):
            raise InputError(in_doubt_message(doubt))  # a list is an answer for whatever is open
        return self._runner.answer_now(dict.fromkeys([one.id for one in found], value), by="chat.answer()")

    def approve(self, id: Which = None, *, payload: Any = None, **edits: Any) -> Reply:
        """Approve a pending call, and wait for the reply.

        Args:
            id: The interrupt, its number, its id, or the name of the tool. None: the only one.
            payload: Data that the tool requests with the approval. None: as suggested by the tool.
            edits: Arguments to change before it runs.

        Raises:
            InputError: None is open, several are open and `id` names none, or the changed arguments do not fit.
        """
        approval = self._approval(id)
        args = with_edits(approval, edits)
        decision = ToolConfirmation(confirmed=True, args=args, payload=payload)
        return self._runner.answer_now({approval.id: decision}, by="chat.approve()")

    def reject(self, id: Which = None, reason: str | None = None) -> Reply:
        """Reject a pending call, and wait for the reply; the agent gets the rejection and the reason.

        Raises:
            InputError: None is open, or several are open and `id` names none.
        """
        refusal = ToolConfirmation(confirmed=False, reason=reason)
        return self._runner.answer_now({self._approval(id).id: refusal}, by="chat.reject()")

    def _approval(self, which: Which) -> Interrupt:
        which = which.id if isinstance(which, Interrupt) else which
        hint = "; a reason is given as reason='...'" if isinstance(which, str) and " " in which.strip() else ""
        approvals = [interrupt for interrupt in self.interrupts if interrupt.is_approval]
        return find(approvals, which, self.session_id, "approval", hint)

    # ---- interrupted runs

    def resume(self, *, edited: bool = False) -> Reply:
        """Resume the latest run that the end of a kernel interrupted, and wait for the reply.

        Calls that have a result are not repeated. Before a call is repeated that had begun and must not happen twice,
        the user is asked.

        Args:
            edited: Resume with the current definitions even if the agent or a tool was edited since.

        Raises:
            InputError: No run of this session was interrupted.
            PendingError: The agent or a tool was edited since, and `edited` is False.
        """
        return self._runner.resume(edited=edited)

    def drop(self) -> None:
        """Close the interrupted run without resuming it; open calls get the results that are known.

        Raises:
            InputError: No run of this session was interrupted.
        """
        self._runner.refuse_while_busy()
        run, session = sync.run(self._conversation.last_interrupted_run())
        sync.run(drop(self._conversation.service, session, run))

    # ---- earlier turns; a rewind removes no events: it appends an event that marks them as undone

    def rewind(self, to: int | str | Event = 1, *, dry_run: bool = False) -> Rewound:
        """Undo turns: agents no longer see them, state and artifacts are as before, their interrupts are closed.

        Args:
            to: The number of turns, counted from the last; or an event, or the id of an event or a run, whose turn is
                undone with all later ones.
            dry_run: Change nothing; only return what would be undone.

        Raises:
            InputError: There are fewer turns, no such event, or it is undone already.
            SessionBusyError: Another kernel runs a turn in the session.
        """
        self._runner.refuse_while_busy()
        rewound = sync.run(self._conversation.rewind(to.id if isinstance(to, Event) else to, dry_run=dry_run))
        if not dry_run:
            self._runner.desk.undone(rewound.closed)
            sync.run(tell_undone(self._conversation.service, self._conversation.key))
        return rewound

    def rerun(self, event: int | str | Event = 1) -> Reply:
        """Undo the turn of `event` and all later turns, and send its message again.

        To keep those turns, rerun in a fork: `chat.fork().rerun(event)`.

        Args:
            event: As `to` of `rewind`; 1 is the last turn.

        Raises:
            InputError: There is no such event, or it is undone already.
            UserError: As `ask`.
        """
        return self._runner.repeat(self.rewind(event).message)

    def fork(self, name: str | None = None, *, at: str | Event | None = None) -> Self:
        """A chat with the same agent in a copy of the session; this one stays as it is.

        Args:
            name: The name of the copy. None: this session's name and a number.
            at: The last event to copy, or its id. None: all events.

        Raises:
            InputError: The session has no events yet, there is no such event, or a session of that name exists.
        """
        self._runner.refuse_while_busy()
        key = at.id if isinstance(at, Event) else at
        try:
            copied = sync.run(self._conversation.fork(None if name is None else session_file.check_name(name), key))
        except AlreadyExistsError as error:
            raise InputError(f"{error}; write chat.fork('another')") from error
        return self._in_session(copied)

    def _in_session(self, session_id: str) -> Self:
        chat, old = copy(self), self._runner
        runner = TurnRunner(chat, old.conversation.in_session(session_id), old.show, chat._rerun_in_fork)
        runner.traces, runner.max_cost = old.traces, old.max_cost
        chat._open_runner = runner
        return chat

    async def _rerun_in_fork(self, event_id: str) -> Reply:
        """`fork().rerun(event_id)` after a click, on the event loop; displayed in the cell of the click."""
        self._runner.refuse_while_busy()
        await self._conversation.rewind(event_id, dry_run=True)  # raises before a copy is made
        name = await self._conversation.fork(None, None)
        runner = self._in_session(name)._runner
        rewound = await runner.conversation.rewind(event_id, dry_run=False)
        view = runner.view_of(typed_text(rewound.message) or None)
        notice = f"Rerun: asked again in session {name!r}, a copy; %session use {quoted(name)} goes on there"
        view.notices.add(notice, is_chip=True)
        return await runner.send_again(rewound.message, view, resumed=True)

    # ---- the session as a file

    def save(self, file: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the session to a file that people can read.

        Args:
            file: The path; an earlier save of this session is overwritten.
            replace: Overwrite any other file, too.

        Raises:
            InputError: The session has no events yet, or the file holds something else.
            StorageError: It cannot be written.
        """
        if (session := sync.run(self._conversation.loaded())) is None:
            raise InputError(f"session {self.session_id!r} has no messages yet; there is nothing to save")
        session_file.write(session, file, replace=replace)

    def load(self, file: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Create a session from a file, and continue in it. State keys shared with other sessions keep their values.

        Args:
            file: The path of a file written by `save`.
            name: The name of the new session. None: as in the file.

        Raises:
            InputError: The file holds no session, the name is invalid, or a session of that name exists.
            StorageError: It cannot be read.
        """
        self._runner.refuse_while_busy()
        loaded, conversation = session_file.read(file), self._conversation
        name = session_file.check_name(name or loaded.name)
        try:
            sync.run(loaded.put(conversation.service, **conversation.key_of(name)))
        except AlreadyExistsError as error:
            raise InputError(f"{error}; write chat.load(..., name='another')") from error
        conversation.session_id = name

    def close(self) -> None:
        """Stop the turn under way, and close toolsets and plugins unless a runner was given.

        The session stays in its service. A closed chat raises an InputError for every call.
        """
        if self._open_runner is None:
            return
        runner, self._open_runner = self._open_runner, None
        runner.close()
        if runner.conversation.owns_runner:
            sync.run(runner.conversation.runner.close())


def turn_runner(chat: Chat) -> TurnRunner:
    """The runner of a chat's turns, for magics, cells and chat boxes.

    Raises:
        InputError: The chat is closed.
    """
    return chat._runner  # pyright: ignore[reportPrivateUsage]
