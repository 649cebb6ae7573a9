"""A chat box: a conversation in one output with an input field, or line by line in a terminal."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from adk_nb import sync
from adk_nb.errors import InputError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.chat.desk import schema_of
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.chat.turn_options import notice_of, turn_options
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel
from adk_nb.notebook.view.interrupt_text import call_of
from adk_nb.notebook.view.run_view import TurnInfo

logger = logging.getLogger(__name__)

HEIGHT = 420
"""Default height of the log in pixels; a longer log is scrolled."""
MIN_HEIGHT = 80
SendText = Callable[[str, ChatBoxView], Coroutine[Any, Any, Reply]]
"""Sends a typed text, and shows the turn in the box."""


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
        send: Sends a typed text. None: to the chat of `runner`.
    """

    def __init__(self, runner: TurnRunner, session: str, *, height: int = HEIGHT, send: SendText | None = None) -> None:
        self._runner = runner
        self._send = send
        self.one_at_a_time = asyncio.Lock()
        """Held during a turn that the box shows."""
        agent = runner.conversation.agent

        def send_typed(text: str) -> None:
            self.shown.start_in_cell(self._turn(text))

        self.shown = ChatBoxView(agent, session, notice_of(agent), schema_of, height=height, on_ask=send_typed)

    def open(self) -> None:
        """Display the box with the earlier events of the session, and the cards of what is open in the chat.

        Raises:
            InputError: A turn is under way, or the chat is closed.
        """
        self._runner.refuse_while_busy()
        sync.run(self.show())

    async def show(self) -> None:
        """As `open`, without the wait, and also while a turn is under way."""
        conversation, desk = self._runner.conversation, self._runner.desk
        clicks = self._runner.clicks_on(self.shown)
        self.shown.open(await conversation.loaded(), clicks, TurnInfo(magic=conversation.notebook.magic()))
        on_cards = filter(desk.is_on_card, await desk.interrupts())
        if keys := [interrupt.id for interrupt in on_cards]:
            await desk.draw(keys, self.shown, clicks)

    async def _turn(self, text: str) -> None:
        async with self.one_at_a_time:
            self.shown.set_question(text)
            try:
                if self._send:
                    await self._send(text, self.shown)
                else:
                    await self._runner.send_in_box(text, self.shown, turn_options())
            except UserError as error:
                self.shown.question_refused(str(error))
            except Exception as error:
                logger.exception("a text typed into a chat box could not be sent")
                self.shown.question_refused(f"{type(error).__name__}: {error}")


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
