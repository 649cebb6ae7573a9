"""A conversation you can hold from a cell, without await."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, Unpack

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService
from adk_nb.errors import PendingError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.memory.base_memory_service import BaseMemoryService
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.chat_box import HEIGHT, ChatBox, check_place, talk_in_lines
from adk_nb.notebook.conversation import Conversation
from adk_nb.notebook.error_hints import shown_in_brief, waited_for
from adk_nb.notebook.going_back import GoesBack
from adk_nb.notebook.interrupts import HIDDEN_FIELD, find, with_edits
from adk_nb.notebook.is_kept import IsKept
from adk_nb.notebook.paused_agents import Versions
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.turn import MOST_ROUNDS, Decisions, TurnRunner, by_policy, check_decisions, settled
from adk_nb.notebook.turn_options import (
    AskOptions,
    Confirm,
    LentTool,
    TurnOptions,
    check_policy,
    notice_of,
    turn_options,
)
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, Show, checked_mode, in_a_kernel
from adk_nb.runners import Runner
from adk_nb.runtime.interrupts import ALL, CREDENTIALS, Interrupt
from adk_nb.runtime.trace import Traces
from adk_nb.sessions.base_session_service import BaseSessionService

T = TypeVar("T")


class Chat(GoesBack, IsKept):
    """One user, one session, one agent.

    Args:
        agent: Who answers, or an app with an agent and plugins, or a runner, in whose services the conversation is
            kept. Assigning `chat.agent` replaces the agent; the session stays.
        session: Its id; made when first needed.
        user_id: Whose session it is.
        app_name: The app it belongs to. None: the app's own, or `notebook`.
        session_service: Where it is kept. None: in this process's memory, for this chat alone.
        artifact_service: Where its files are kept. None: as for the session.
        memory_service: Where its memories are kept. None: as for the session.
        credential_service: Where the user's credentials are kept. None: as for the session.
        show: What a cell shows of each turn: `auto`, a live view where a page can show it, and then the reply in its
            place; `static`, only the reply; `off`, or False, nothing but the value that is returned.
    """

    policy: ClassVar[Confirm] = "ask"
    """What every chat does about approvals in a turn that does not say: `%config AdkNb.confirm`."""

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
        self._conversation = Conversation(
            agent,
            session_id=session,
            user_id=user_id,
            app_name=app_name,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
            credential_service=credential_service,
        )
        self.show: Mode = checked_mode(show)
        self.on_reply: Callable[[Reply], None] | None = None
        """Called with the reply of each turn, also of one that a click on a card let go on."""
        self.magic: Callable[[], str] = str
        """Returns the `%confirm` that reaches this session, empty if only Python has this chat."""
        self.about: Callable[[], dict[str, Any]] = dict
        """Returns what is noted on the events of a turn that begins."""
        self.versions: Versions | None = None
        """What keeps tools as they were."""
        self.traces = Traces()
        self._talk = TurnRunner(self, self._conversation)

    def __repr__(self) -> str:
        return f"Chat(agent={self.agent.name!r}, session={self.session_id!r})"

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._conversation.session_id

    @property
    def sticky(self) -> bool:
        """Who has taken the conversation over keeps it. False: `agent` answers, unless a task is talked over."""
        return self._conversation.sticky

    @sticky.setter
    def sticky(self, value: bool) -> None:
        self._conversation.sticky = value

    @property
    def agent(self) -> BaseAgent:
        """Who answers."""
        return self._conversation.agent

    @agent.setter
    def agent(self, agent: BaseAgent) -> None:
        self._conversation.agent = agent

    def has_asked(self, id: str) -> bool:
        """True if what waits under `id` is the question of a team, which goes on here as it was then."""
        return self._talk.teams.of([id]) is not None

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
        """Say `text` and wait for what comes of it. Sync tools run in this thread; Ctrl-C stops the run.

        Args:
            text: The message.
            attach: What goes with it, one thing or a list: the path of a file; an image, a PDF or text as bytes; a
                figure of matplotlib, a DataFrame, an exception, a `types.Part`, or any value that has a form as text.
            tools: What the agent may call in this turn beside its own tools.
            model: What answers for the agent in this turn. None: its own.
            show: What the cell shows of this turn; False: nothing but the value that is returned. None: as the chat's.
            max_cost: US dollars that this turn may cost; then no model is asked again, also after an approval. None: as
                `%config AdkNb.max_cost_usd` says.
            confirm: What happens to calls that wait for approval in this turn; left open ("ask"), they wait on. None:
                what `%config AdkNb.confirm` says.

        Returns:
            The reply. `status` says whether it is done, waits for an approval, was stopped, or ended with an error.

        Raises:
            UserError: What the author of the notebook has to mend: a missing key, an open approval, a state key
                that is not there, a file that cannot be read.
        """
        by = f"chat.ask(confirm={confirm!r})" if confirm else "%config AdkNb.confirm"
        check_policy(confirm or self.policy)
        turn = turn_options(attach=attach, tools=tools, model=model, show=show, max_cost=max_cost)
        return self.ask_with_policy(text, turn, confirm or self.policy, by)

    def ask_with_policy(self, text: str, turn: TurnOptions, confirm: Confirm, by: str) -> Reply:
        """`ask`, in one view also after the approvals that `confirm` answers. `by`: who set that, for the log."""
        shown = self._talk.on_show(text, turn)
        shown.answers_approvals = confirm != "ask"
        try:
            reply = waited_for(self._talk.words(text, turn, shown))
        except PendingError:
            self._show_open_cards()
            raise

        def decide(decisions: Decisions) -> Reply:
            nonlocal reply
            shown.resumed = True
            later = waited_for(self._talk.answer(decisions, shown))
            reply = Reply(later.view.after(reply.view), self)
            return reply

        return settled(reply, decide, confirm, by)

    async def aask(self, text: str, **options: Unpack[AskOptions]) -> Reply:
        """`ask` for a cell that awaits."""
        try:
            return await sync.arun(self._talk.words(text, turn_options(**options)))
        except asyncio.CancelledError as stopped:
            shown_in_brief(stopped, [])
            raise

    def start(self, text: str, **options: Unpack[AskOptions]) -> "sync.Started[Reply]":
        """`ask` in the background: a handle with `.result()`, `.cancel()` and `.done()`."""
        turn = turn_options(**options)
        shown = self._talk.on_show(text, turn)
        shown.is_background = True
        return sync.start(self._talk.words(text, turn, shown))

    def box(self, *, height: int = HEIGHT) -> None:
        """Open a chat box: this conversation in one output, with a field to type into. In a terminal, line by line.

        Args:
            height: Of what was said, in pixels, before it is scrolled.

        Raises:
            InputError: It cannot be shown here.
        """
        check_place(self.show, height)
        if not in_a_kernel():
            return talk_in_lines(self.ask)
        box = ChatBox(self.agent, self.session_id, self.magic(), lambda text, shown: self.say_in(shown, text), height)
        return self.open_in(box)

    def open_in(self, box: ChatBox) -> None:
        """Open a box for this session; what waits in it for an answer in this chat is asked there too."""
        box.open(sync.run(self._conversation.loaded()), self._talk.clicks_on(box.shown))
        if waiting := [interrupt.id for interrupt in self._with_cards()]:
            sync.run(self._talk.ask_again(waiting, box.shown))

    async def say_in(
        self,
        box: ChatBoxView,
        text: str,
        *,
        confirm: Confirm | None = None,
        by: str = "",
        **options: Unpack[AskOptions],
    ) -> Reply:
        """`ask`, shown in a box. `by`: where `confirm` is said, for the log."""
        confirm, by = (confirm, by) if confirm else (self.policy, "%config AdkNb.confirm")
        box.answered_by(self.agent, notice_of(self.agent))
        reply = await self._talk.words(text, turn_options(**options), box)
        for _ in range(MOST_ROUNDS):
            if not (decisions := by_policy(reply, confirm, by)):
                break
            reply = await self._talk.answer(decisions, box)
        return reply

    def answer(
        self, value: Any = HIDDEN_FIELD, which: str | int | None = None, *, id: str | int | None = None
    ) -> Reply:
        """Answer an open interrupt of any kind, and wait for what follows.

        Args:
            value: For an approval: True or False, "yes" or "no", a ToolConfirmation, or its JSON. For a question: text
                as it would be typed, or JSON. For the outcome of a long-running tool: JSON. Of both, a dict is the
                whole response, anything else its `result`. For a task: text. For a credential: the address that the
                page led to, a key, a token, `name:password`, an AuthCredential, or JSON; None refuses.
            which: Its number, its id, or the name of the tool. None: the only one.
            id: The same as `which`.

        Raises:
            InputError: None is open, or several and `which` does not say which, or this is no answer to it.
        """
        interrupt = find(self.interrupts, id if which is None else which, self.session_id)
        return self._answer({interrupt.id: value}, "chat.answer()")

    def approve(self, id: str | int | None = None, *, payload: Any = None, **edits: Any) -> Reply:
        """Let a call run that waits for approval, and wait for what follows.

        Args:
            id: Its number, its id, or the name of the tool. None: the only one.
            payload: What the tool wants to know beside a yes. None: as it was suggested.
            edits: Arguments to change before it runs.

        Raises:
            InputError: None is open, or several and `id` does not say which, or the changed arguments do not fit.
        """
        approval = self._approval(id)
        args = with_edits(approval, edits)
        return self._answer(
            {approval.id: ToolConfirmation(confirmed=True, args=args, payload=payload)}, "chat.approve()"
        )

    def reject(self, id: str | int | None = None, reason: str | None = None) -> Reply:
        """Refuse a call that waits for approval; the agent is told, with the reason, and goes on.

        Raises:
            InputError: None is open, or several and `id` does not say which.
        """
        refusal = ToolConfirmation(confirmed=False, reason=reason)
        return self._answer({self._approval(id).id: refusal}, "chat.reject()")

    def _approval(self, which: str | int | None) -> Interrupt:
        hint = "; a reason is given as reason='...'" if isinstance(which, str) and " " in which.strip() else ""
        approvals = [interrupt for interrupt in self.interrupts if interrupt.is_approval]
        return find(approvals, which, self.session_id, "approval", hint)

    def decide(self, decisions: Decisions, *, as_asked: bool = False) -> Reply:
        """Answer several approvals at once, and wait for what follows.

        Args:
            decisions: By the ids of the approvals.
            as_asked: The tools run as they were when they were asked for, though their cells were run again since.

        Raises:
            InputError: One of them is not open, its changed arguments do not fit its tool, or that was redefined.
        """
        check_decisions(decisions)
        return self._answer(decisions, "chat.decide()", as_asked=as_asked)

    def submit_credential(self, value: Any = HIDDEN_FIELD, *, id: str | int | None = None) -> Reply:
        """Give a tool the credential that it waits for, and wait for what follows.

        Args:
            value: As for `answer`. By default it is typed into a field that does not show it.
            id: Its number, its id, or the name of the tool. None: the only one.

        Raises:
            InputError: None is open, or several and `id` does not say which, or it is no answer to the request.
        """
        requests = [interrupt for interrupt in self.interrupts if interrupt.kind in CREDENTIALS]
        return self._answer({find(requests, id, self.session_id, "credential request").id: value}, "")

    def _answer(self, values: Mapping[str, Any], by: str, *, as_asked: bool = False) -> Reply:
        self._talk.refuse_while_busy()
        answers = self._talk.check(values, by=by, as_asked=as_asked)
        return waited_for(self._talk.answer(answers, self._talk.on_show(None), as_asked=as_asked))

    def resume(self, *, edited: bool = False) -> Reply:
        """Let the run go on that was cut last, by a kernel that died, and wait for what comes of it.

        Calls that have a result are not made again; of one that was begun, and that may not happen twice, a person is
        asked first.

        Args:
            edited: Also if the agent, or a tool of it, was edited since: it goes on as it is now.

        Raises:
            InputError: No run of this session was cut.
            PendingError: The agent or a tool was edited, and `edited` does not say that it is to go on.
        """
        self._talk.refuse_while_busy()
        run, _ = sync.run(self._conversation.last_cut(edited=edited, magic=self.magic()))
        return waited_for(self._talk.resume(run.id, self._talk.on_show(None)))

    def drop(self) -> None:
        """Leave the run as it is that was cut last: what is known of its open calls is told, and nothing goes on.

        Raises:
            InputError: No run of this session was cut.
        """
        self._talk.refuse_while_busy()
        sync.run(self._conversation.leave())

    def redefined(self, waiting: Sequence[Interrupt]) -> Collection[str]:
        """Ids of the approvals whose tools were redefined since they were asked for."""
        return self._talk.redefined(waiting)

    def tools_changed(self) -> None:
        """Let the cards of open approvals say whether their tools are as they were when they were asked for."""
        self._talk.tools_changed()

    def ask_again(self, *ids: str) -> bool:
        """Show the cards of open interrupts in this cell; one answer counts for all views.

        Args:
            ids: Only of these. None: of all that are open.

        Returns:
            True if cards are shown: where no page can, none are.
        """
        open_ = [interrupt.id for interrupt in self.interrupts if interrupt.has_card]
        left = [key for key in open_ if key in ids or not ids]
        return bool(left) and sync.run(self._talk.ask_again(left, self._talk.on_show(None)))

    def _with_cards(self) -> list[Interrupt]:
        """The open interrupts that are answered on cards in this chat."""
        return [
            interrupt
            for interrupt in self.interrupts
            if interrupt.has_card and (interrupt.kind != "approval" or self._talk.can_answer(interrupt))
        ]

    def _show_open_cards(self) -> None:
        """The cell that was run again has lost its cards."""
        if waiting := [interrupt.id for interrupt in self._with_cards() if not interrupt.is_question]:
            self.ask_again(*waiting)

    @property
    def interrupts(self) -> list[Interrupt]:
        """What the session waits for, of every kind, by number; `kind` is "task" where a task waits for your words."""
        session = sync.run(self._conversation.loaded())
        with self._conversation.history(session.events if session else ()) as history:
            return history.interrupts(kinds=ALL)

    @property
    def pending(self) -> list[Interrupt]:
        """The approvals among `interrupts`."""
        return [interrupt for interrupt in self.interrupts if interrupt.kind == "approval"]

    @property
    def events(self) -> list[Event]:
        """The session so far, oldest first."""
        session = sync.run(self._conversation.loaded())
        return list(session.events) if session else []

    def run_on_loop(self, coro: Coroutine[Any, Any, T]) -> T:
        """Run `coro` on the loop that runs the agents: where clients and locks for async tools have to be made."""
        return sync.run(coro)

    def stop(self) -> None:
        """Stop the turn that is under way, if one is; its reply says `cancelled`."""
        self._talk.stop()
