"""A chat box: a conversation in one output with an input field, or line by line in a terminal."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.chat.attachments import MAX_BYTES, SentFile, Uploads, attachables
from adk_nb.notebook.chat.conversation import follow, unfollow
from adk_nb.notebook.chat.desk import schema_of
from adk_nb.notebook.chat.past import typed_text, unused_name, with_text
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.chat.turn_options import TurnOptions, notice_of, turn_options
from adk_nb.notebook.place import cell_id
from adk_nb.notebook.view.answers import Status
from adk_nb.notebook.view.chat_box_view import BoxAsks, ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel
from adk_nb.notebook.view.interrupt_text import call_of
from adk_nb.notebook.view.run_view import TurnInfo
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

HEIGHT = 420
"""Default height of the log in pixels; a longer log is scrolled."""
MIN_HEIGHT = 80


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a box reaches beside its session. The functions may wait for the event loop, so they run in a worker."""

    sessions: Callable[[], list[str]]
    """The names of the sessions, the newest first."""
    turns: Callable[[str], TurnRunner]
    """The turns of the agent in a session of that name."""
    message: Callable[[str, str, Sequence[str | SentFile]], tuple[TurnRunner, str, TurnOptions]]
    """A session, a text, and what is attached -> who sends it, the text to send, and its options.

    Raises a UserError for what is wrong with them.
    """
    variables: Mapping[str, Any]
    """Those that can be attached."""
    opened: Callable[[str], None] = lambda name: None
    """Called with the name of a session that the box shows."""


def check_place(show: Mode, height: int) -> None:
    """Raise an InputError if a box cannot be shown here, or is too low."""
    if height < MIN_HEIGHT:
        raise InputError(f"a chat box of {height} pixels has no room for an answer; give it {MIN_HEIGHT} or more")
    if in_a_kernel() and show not in ("auto", "widget"):
        raise InputError(
            f"a chat box is live, and %config AdkNb.display is {show!r}; write %chat with a text, or set it to 'auto'"
        )


class ChatBox:
    """One box; a text that is typed while a turn runs is sent after it.

    Args:
        runner: Of the chat whose agent answers first.
        session: The name of the session.
        height: In pixels.
        reach: Other sessions, and what can be attached. None: only texts can be sent, to the chat of `runner`.
    """

    def __init__(self, runner: TurnRunner, session: str, *, height: int = HEIGHT, reach: Reach | None = None) -> None:
        self._runner = runner
        self._session = session
        self._reach = reach
        self._free = asyncio.Event()
        """Set unless a cell answers in the session."""
        self._free.set()
        self._cell = "" if reach is None else cell_id()
        self._is_answering = False
        self._uploads = Uploads()
        self.one_at_a_time = asyncio.Lock()
        """Held during a turn that the box shows."""
        agent = runner.conversation.agent
        self.shown = ChatBoxView(agent, session, notice_of(agent), self._schema_of, height=height, asks=self._asks())

    def _schema_of(self, agent: BaseAgent, interrupt: Interrupt) -> dict[str, Any] | None:
        return schema_of(agent, interrupt) or self._runner.desk.schema_of_card(interrupt)

    def _asks(self) -> BoxAsks:
        def started(work: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
            return lambda *args: self.shown.start_in_cell(work(*args))

        if self._reach is None:
            return BoxAsks(send=started(self._turn))
        return BoxAsks(
            send=lambda text, attached: self.shown.start_in_cell(self._turn(text, self._uploads.take(attached))),
            file=self._uploads.add,
            again=started(self._again),
            switch=started(self._switch),
            attachables=started(self._list_attachables),
            most=MAX_BYTES,
        )

    def open(self) -> None:
        """Display the box with the earlier events of the session, and the cards of what is open in the chat.

        Raises:
            InputError: A turn is under way, or the chat is closed.
        """
        self._runner.refuse_while_busy()
        sync.run(self.show())

    async def show(self) -> None:
        """As `open`, without the wait, and also while a turn is under way."""
        names = await self._names()
        conversation = self._runner.conversation
        clicks, turn = self._runner.clicks_on(self.shown), TurnInfo(magic=conversation.notebook.magic())
        self.shown.open(await conversation.loaded(), clicks, turn, names)
        follow(conversation, self)
        await self._draw_cards()

    async def _draw_cards(self) -> None:
        desk = self._runner.desk
        on_cards = filter(desk.is_on_card, await desk.interrupts())
        if keys := [interrupt.id for interrupt in on_cards]:
            await desk.draw(keys, self.shown, self._runner.clicks_on(self.shown))

    def remove(self) -> None:
        """Take the box out of its cell."""
        unfollow(self)
        self.shown.remove()

    # ---- what is typed

    async def _turn(self, text: str, attached: Sequence[str | SentFile] = ()) -> None:
        async def send() -> None:
            runner, sent, options = self._runner, text, turn_options()
            if self._reach:
                prepare = partial(self._reach.message, self._session, text, attached)
                runner, sent, options = await sync.blocking(prepare, thread=True)
            await runner.send_in_box(sent, self.shown, options)

        await self._after_others(text, send)

    async def _again(self, event_id: str, text: str | None) -> None:
        """Go on in a copy of the session that ends before a message, and send it again; or send `text` in its place."""

        async def send() -> None:
            assert self._reach
            conversation, old = self._runner.conversation, self._session
            self._runner.refuse_while_busy()
            await conversation.rewind(event_id, dry_run=True)  # raises before a copy is made
            folder, slash, _ = old.rpartition("/")
            new = f"{folder}{slash}{await conversation.fork(None, None)}"
            runner = await sync.blocking(partial(self._reach.turns, new), thread=True)
            rewound = await runner.conversation.rewind(event_id, dry_run=False)
            message = rewound.message if text is None else with_text(rewound.message, text)
            await self._move_to(new, runner, before=event_id)
            self.shown.add_note(f"goes on in session {new!r}, a copy that ends here; {old!r} is as it was")
            self.shown.set_question(typed_text(message))
            self.shown.set_agent(runner.conversation.agent, notice_of(runner.conversation.agent))
            await runner.send_again(message, self.shown)

        await self._after_others(text or "", send)

    async def _after_others(self, text: str, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send a text when no other turn runs in the session; a reason why it cannot be sent is shown."""
        async with self.one_at_a_time:
            while not self._free.is_set():
                self.shown.wait_for(self.shown.elsewhere)
                await self._free.wait()
            self.shown.wait_for("")
            self.shown.set_question(text)
            self._is_answering = True
            try:
                await send()
            except UserError as error:
                self.shown.question_refused(str(error))
            except Exception as error:
                logger.exception("a text typed into a chat box could not be sent")
                self.shown.question_refused(f"{type(error).__name__}: {error}")
            finally:
                self._is_answering = False

    # ---- other sessions

    async def _names(self) -> list[str]:
        if self._reach is None:
            return []
        names = await sync.blocking(self._reach.sessions, thread=True)
        return list(dict.fromkeys([self._session, *names]))

    async def _switch(self, name: str) -> None:
        """Show another session; empty: a new one."""
        assert self._reach
        if self._is_answering or not self._free.is_set():
            self.shown.show_notice("an answer is under way; wait for it, or stop it")
            return
        async with self.one_at_a_time:
            names = await self._names()
            if name and name not in names:
                return
            try:
                name = name or unused_name("main", {*names, "main"})
                await self._move_to(name, await sync.blocking(partial(self._reach.turns, name), thread=True))
            except UserError as error:
                self.shown.show_notice(str(error))

    async def _move_to(self, name: str, runner: TurnRunner, before: str | None = None) -> None:
        assert self._reach
        self._session, self._runner = name, runner
        self._reach.opened(name)
        conversation = runner.conversation
        clicks, turn = runner.clicks_on(self.shown), TurnInfo(magic=conversation.notebook.magic())
        self.shown.move_to(name, await conversation.loaded(), clicks, turn, await self._names(), before)
        follow(conversation, self)
        await self._draw_cards()

    async def _list_attachables(self, key: str) -> None:
        assert self._reach
        self.shown.show_attachables(key, await sync.blocking(partial(attachables, self._reach.variables), thread=True))

    # ---- turns that others began

    @property
    def cell(self) -> str:
        """The id of the cell that has opened it."""
        return self._cell

    @property
    def view(self) -> ChatBoxView:
        """As `shown`, for those that tell it of turns."""
        return self.shown

    def turn_begins(self, place: str, session: Session | None, stop: Callable[[], None]) -> None:
        """Show the turn of a cell."""
        self._free.clear()
        self.shown.turn_begins(place, session, stop)

    def turn_event(self, event: Event) -> None:
        """Show an event of it."""
        self.shown.turn_event(event)

    def turn_ends(self, status: Status, error: str | None) -> None:
        """Show how it has ended, and what it asks for."""
        self.shown.turn_ends(status, error)
        self._free.set()
        if status == "pending":
            self.shown.start_in_cell(self._draw_cards())

    def turns_undone(self, session: Session | None) -> None:
        """Take them out of the box; a turn that runs has begun after them."""
        if not self._is_answering and self._free.is_set():
            self.shown.turns_undone(session)


def chat_in_terminal(ask: Callable[[str], Reply]) -> None:
    """Read lines until an empty one, send each with `ask`, and print the replies."""
    sys.stdout.write("an empty line ends the conversation\n")
    while text := _typed("you > "):
        try:
            reply = ask_for_approvals(ask(text))
        except UserError as error:
            sys.stdout.write(f"{error}\n")
        except KeyboardInterrupt:
            sys.stdout.write("stopped\n")
        else:
            if not view_of_reply(reply).is_displayed():
                sys.stdout.write(f"{reply}\n")


def ask_for_approvals(reply: Reply) -> Reply:
    """Ask for each approval of a reply in an input line; returns the reply after the last one.

    Where nothing can be typed, or Ctrl-C is, the approval stays open.
    """
    while reply.status == "pending" and (pending := view_of_reply(reply).pending):
        call = call_of(pending[0], view_of_reply(reply).schemas.get(pending[0].id))
        if (typed := _typed(f"approve {call}? [y/N] ")) is None:
            break
        is_approved = typed.lower() in ("y", "yes")
        reply = reply.answer(ToolConfirmation(confirmed=is_approved, by="a typed line"), pending[0].id)
    return reply


def _typed(prompt: str) -> str | None:
    """Return the line that is typed; None if none can be, or Ctrl-C is."""
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt, OSError):  # an OSError: standard input is closed or captured
        sys.stdout.write("\n")
        return None
