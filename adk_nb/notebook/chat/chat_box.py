"""A chat box: a conversation in one output with an input field, or line by line in a terminal."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.chat.desk import schema_of
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.chat.turn_options import notice_of
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel
from adk_nb.notebook.view.interrupt_text import call_of
from adk_nb.notebook.view.run_view import Clicks, TurnInfo
from adk_nb.sessions.session import Session

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
        agent: The agent that answers first.
        session: The name of the session.
        magic: The `%confirm` line of the session; empty for a chat that only Python code reaches.
        send: Sends a typed text.
        height: In pixels.
    """

    def __init__(self, agent: BaseAgent, session: str, magic: str, send: SendText, height: int) -> None:
        self._send = send
        self._magic = magic
        self.one_at_a_time = asyncio.Lock()
        """Held during a turn that the box shows."""
        self.shown = ChatBoxView(agent, session, notice_of(agent), schema_of, height=height, on_ask=self._send_typed)

    def open(self, session: Session | None, clicks: Clicks) -> None:
        """Display the box with the earlier events of `session`."""
        self.shown.open(session, clicks, TurnInfo(magic=self._magic))

    def _send_typed(self, text: str) -> None:
        self.shown.start_in_cell(self._turn(text))

    async def _turn(self, text: str) -> None:
        async with self.one_at_a_time:
            self.shown.set_question(text)
            try:
                await self._send(text, self.shown)
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
    """Ask for each approval of a reply in an input line; returns the reply after the last one."""
    while reply.status == "pending" and (pending := view_of_reply(reply).pending):
        call = call_of(pending[0], view_of_reply(reply).schemas.get(pending[0].id))
        is_approved = _typed(f"approve {call}? [y/N] ").lower() in ("y", "yes")
        reply = reply.answer(ToolConfirmation(confirmed=is_approved, by="a typed line"), pending[0].id)
    return reply


def _typed(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt, OSError):  # an OSError: standard input is closed or captured
        sys.stdout.write("\n")
        return ""
