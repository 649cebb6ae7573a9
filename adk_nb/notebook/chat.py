"""A conversation with an agent, held from cells without await."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self, Unpack

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import AlreadyExistsError, InputError
from adk_nb.evaluation.mapping import agent_map
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.chat_box import HEIGHT, ChatBox, check_place, talk_in_lines
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.error_hints import shorten_interrupt
from adk_nb.notebook.interrupts import HIDDEN_FIELD, find, with_edits
from adk_nb.notebook.past_turns import PastTurn, Rewound, turns_of, typed_text
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.session_state import ChatState
from adk_nb.notebook.turn import TurnRunner
from adk_nb.notebook.turn_options import AskOptions, Confirm, LentTool, turn_options
from adk_nb.notebook.view.display import Show, checked_mode, in_a_kernel
from adk_nb.runners import Runner
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.session_file import check_name
from adk_nb.sessions.state import detached

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
        show: What a cell shows of each turn: `auto`, a live view where a page can show it, and then the reply in its
            place; `static`, only the reply; `off`, or False, nothing but the value that is returned.
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
        self._open_runner: TurnRunner | None = TurnRunner(self, conversation, checked_mode(show))
        self._runner.rerun_in_fork = self._rerun_in_fork

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
        return ChatState(self._read_state, self._write_state)

    def _read_state(self) -> dict[str, Any]:
        session = sync.run(self._conversation.loaded())
        return {key: detached(value) for key, value in session.state.items()} if session else {}

    def _write_state(self, delta: dict[str, Any]) -> None:
        sync.run(self._conversation.append(Event(author="user", actions=EventActions(state_delta=delta))))

    @property
    def interrupts(self) -> list[Interrupt]:
        """The open interrupts of the session, of every kind, by number: answer with `answer`, `approve` or `reject`."""
        return self._runner.interrupts()

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
            attach: Goes with it, one thing or a list: the path of a file; an image, a PDF or text as bytes; a
                figure of matplotlib, a DataFrame, an exception, a `types.Part`, or any value that has a form as text.
            tools: For this turn, beside the agent's own.
            model: Answers for the agent in this turn. None: its own.
            show: What the cell shows of this turn; False: nothing but the value that is returned. None: as the chat's.
            max_cost: US dollars that this turn may cost; then no model is asked again, also after an approval. None: as
                `%config AdkNb.max_cost_usd` says.
            confirm: Approvals of this turn are left open ("ask"), given ("yes") or refused ("no"). None: as
                `%config AdkNb.confirm` says.

        Returns:
            The reply. `status` says whether it is done, waits for an approval, was stopped, or ended with an error.

        Raises:
            UserError: What the author of the notebook has to mend: a missing key, an open approval, a state key
                that is not there, a file that cannot be read.
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
        view = self._runner.view_of(text, turn)
        view.is_background = True
        return sync.start(self._runner.send(text, turn, view))

    def box(self, *, height: int = HEIGHT) -> None:
        """Open a chat box: this conversation in one output, with a field to type into. In a terminal, line by line.

        Args:
            height: Of the log, in pixels, before it is scrolled.

        Raises:
            InputError: It cannot be shown here.
        """
        runner = self._runner
        check_place(runner.show, height)
        if not in_a_kernel():
            return talk_in_lines(self.ask)
        box = ChatBox(
            self.agent,
            self.session_id,
            runner.magic(),
            lambda text, view: runner.send_in_box(text, view, turn_options()),
            height,
        )
        return runner.open_box(box)

    def map(self, data: Any, **options: Any) -> Any:
        """Ask the agent about each row of a table, each in a session of its own, as `evaluation.agent_map`.

        Args:
            data: A frame of pandas or polars, or a list of dicts.
            options: As those of `adk_nb.evaluation.agent_map`: `message`, `schema`, `budget_usd` ...
        """
        service = self._conversation.service
        return agent_map(self.agent, data, session_service=service, app_name="evaluation", **options)

    # ---- interrupts

    def answer(self, value: Any = HIDDEN_FIELD, which: Which | Sequence[Which] = None) -> Reply:
        """Answer open interrupts of any kind, and wait for the reply: `chat.answer(True, chat.interrupts)`.

        Args:
            value: For an approval: True or False, "yes" or "no", a ToolConfirmation, or its JSON. For a question: text
                as it would be typed, or JSON. For the outcome of a long-running tool: JSON. Of both, a dict is the
                whole response, anything else its `result`. For a task: text. For a credential: the address that the
                page led to, a key, a token, `name:password`, an AuthCredential, or JSON; None refuses, and without
                a value it is typed into a field that does not show it.
            which: An interrupt, its number, its id, the name of its tool, or a list of these. None: the only one.

        Raises:
            InputError: None is open, or several and `which` does not say which, or this does not answer it.
        """
        open_ = self.interrupts
        if value is HIDDEN_FIELD:
            open_ = [interrupt for interrupt in open_ if interrupt.kind in CREDENTIALS] or open_
        chosen = [which] if which is None or isinstance(which, Interrupt | str | int) else list(which)
        if not chosen:
            raise InputError("no interrupt to answer: the list is empty, see chat.interrupts")
        ids = [find(open_, item.id if isinstance(item, Interrupt) else item, self.session_id).id for item in chosen]
        return self._answer(dict.fromkeys(ids, value), "chat.answer()")

    def approve(self, id: Which = None, *, payload: Any = None, **edits: Any) -> Reply:
        """Let a call run that waits for approval, and wait for the reply.

        Args:
            id: The interrupt, its number, its id, or the name of the tool. None: the only one.
            payload: What the tool wants to know beside a yes. None: as it was suggested.
            edits: Arguments to change before it runs.

        Raises:
            InputError: None is open, or several and `id` does not say which, or the changed arguments do not fit.
        """
        approval = self._approval(id)
        args = with_edits(approval, edits)
        decision = ToolConfirmation(confirmed=True, args=args, payload=payload)
        return self._answer({approval.id: decision}, "chat.approve()")

    def reject(self, id: Which = None, reason: str | None = None) -> Reply:
        """Refuse a call that waits for approval; the agent is told, with the reason, and goes on.

        Raises:
            InputError: None is open, or several and `id` does not say which.
        """
        refusal = ToolConfirmation(confirmed=False, reason=reason)
        return self._answer({self._approval(id).id: refusal}, "chat.reject()")

    def _approval(self, which: Which) -> Interrupt:
        which = which.id if isinstance(which, Interrupt) else which
        hint = "; a reason is given as reason='...'" if isinstance(which, str) and " " in which.strip() else ""
        approvals = [interrupt for interrupt in self.interrupts if interrupt.is_approval]
        return find(approvals, which, self.session_id, "approval", hint)

    def _answer(self, values: Mapping[str, Any], by: str) -> Reply:
        return self._runner.answer_now(values, by=by)

    # ---- interrupted runs

    def resume(self, *, edited: bool = False) -> Reply:
        """Resume the run that a kernel's end interrupted last, and wait for the reply.

        Calls that have a result are not made again; of one that was begun, and that may not happen twice, the user is
        asked first.

        Args:
            edited: Also if the agent, or a tool of it, was edited since: it goes on as it is now.

        Raises:
            InputError: No run of this session was interrupted.
            PendingError: The agent or a tool was edited, and `edited` does not say that it is to go on.
        """
        return self._runner.resume(edited=edited)

    def drop(self) -> None:
        """Close the interrupted run without resuming it; open calls get the results that are known.

        Raises:
            InputError: No run of this session was interrupted.
        """
        self._runner.refuse_while_busy()
        sync.run(self._conversation.drop())

    # ---- earlier turns; nothing is taken out of the session: what is undone stays in it, with an event that says so

    def rewind(self, to: int | str | Event = 1, *, dry_run: bool = False) -> Rewound:
        """Undo turns of the user's: agents no longer see them, state and files are as before, interrupts are closed.

        Args:
            to: How many, counted from the last; or an event, or the id of one or of a run: its turn, and what came
                after it.
            dry_run: Nothing is done; only say what would be undone.

        Raises:
            InputError: There are not so many, or no such event, or it is undone already.
            SessionBusyError: Another kernel is at work in the session.
        """
        self._runner.refuse_while_busy()
        rewound = sync.run(self._conversation.rewind(to.id if isinstance(to, Event) else to, dry_run=dry_run))
        if not dry_run:
            self._runner.cards.interrupts_undone(rewound.closed)
        return rewound

    def rerun(self, event: int | str | Event = 1) -> Reply:
        """Undo the turn of `event` and what came after it, and send the user's message of that turn again.

        To keep what is there now, do it in a fork: `chat.fork().rerun(event)`.

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
            name: The copy's. None: this one's, with a number behind it.
            at: The last event that is copied, or its id. None: all are.

        Raises:
            InputError: Nothing was said yet, or there is no such event, or there is a session of that name.
        """
        self._runner.refuse_while_busy()
        key = at.id if isinstance(at, Event) else at
        try:
            copied = sync.run(self._conversation.fork(None if name is None else check_name(name), key))
        except AlreadyExistsError as error:
            raise InputError(f"{error}; write chat.fork('another')") from error
        return self._in_session(copied)

    def _in_session(self, session_id: str) -> Self:
        chat = copy(self)
        chat._open_runner = self._runner.for_session(chat, session_id)
        chat._runner.rerun_in_fork = chat._rerun_in_fork
        return chat

    async def _rerun_in_fork(self, event_id: str) -> Reply:
        """`fork().rerun(event_id)` after a click, where nobody can wait; shown in the cell of the click."""
        self._runner.refuse_while_busy()
        await self._conversation.rewind(event_id, dry_run=True)  # no copy is made for what cannot be undone
        name = await self._conversation.fork(None, None)
        runner = self._in_session(name)._runner
        rewound = await runner.conversation.rewind(event_id, dry_run=False)
        view = runner.view_of(typed_text(rewound.message) or None)
        view.resumed = True
        notice = f"Rerun: asked again in session {name!r}, a copy; %session use {name} goes on there"
        view.notices.add(notice, is_chip=True)
        return await runner.send_again(rewound.message, view)

    # ---- the session as a file

    def save(self, file: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Save the session to a file that people can read.

        Args:
            file: An earlier save of this session is written over.
            replace: Anything else too.

        Raises:
            InputError: Nothing was said yet, or the file holds something else.
            StorageError: It cannot be written.
        """
        sync.run(self._conversation.save(file, replace=replace))

    def load(self, file: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Make a session of a file, and go on in it. Keys that other sessions see too stay as they are here.

        Args:
            file: What `save` has written.
            name: The session's here. None: as in the file.

        Raises:
            InputError: The file holds none, the name cannot be one, or there is a session of that name.
            StorageError: It cannot be read.
        """
        self._runner.refuse_while_busy()
        sync.run(self._conversation.load(file, name))

    def close(self) -> None:
        """Stop the turn under way, close toolsets and plugins unless they are a runner's, and free what the chat holds.

        The session stays in its service. A closed chat refuses whatever is called on it.
        """
        if self._open_runner is None:
            return
        runner, self._open_runner = self._open_runner, None
        runner.close()
        sync.run(runner.conversation.close())


def turn_runner(chat: Chat) -> TurnRunner:
    """The runner of a chat's turns, for magics, cells and chat boxes.

    Raises:
        InputError: The chat is closed.
    """
    return chat._runner  # pyright: ignore[reportPrivateUsage]
