"""A chat box: a conversation in one output that one types into; where no page shows one, line by line."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, UserError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.paused_agents import schema_of
from adk_nb.notebook.reply import Reply, view_of_reply
from adk_nb.notebook.turn_options import notice_of
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import Mode, in_a_kernel
from adk_nb.notebook.view.interrupt_text import call_of
from adk_nb.notebook.view.run_view import Clicks
from adk_nb.sessions.session import Session

logger = logging.getLogger(__name__)

HEIGHT = 420
"""Pixels of the log, before it is scrolled."""
LOWEST = 80
Says = Callable[[str, ChatBoxView], Coroutine[Any, Any, Reply]]
"""Says what was typed, and shows in the box what comes of it."""


def check_place(show: Mode, height: int) -> None:
    """Refuse a box that nobody could see.

    Raises:
        InputError: It cannot be shown here, or is too low.
    """
    if height < LOWEST:
        raise InputError(f"a chat box of {height} pixels has no room for an answer; give it {LOWEST} or more")
    if in_a_kernel() and show not in ("auto", "widget"):
        raise InputError(
            f"a chat box is live, and %config AdkNb.display is {show!r}; write %chat with a text, or set it to 'auto'"
        )


class ChatBox:
    """One box; what is typed while a turn runs waits for its end.

    Args:
        agent: Who is asked first.
        session: The name of the session.
        magic: The `%confirm` that reaches it; empty: only Python has the chat.
        say: Says what was typed.
        height: In pixels.
    """

    def __init__(self, agent: BaseAgent, session: str, magic: str, say: Says, height: int) -> None:
        self._say = say
        self.one_at_a_time = asyncio.Lock()
        """Held during a turn that the box shows."""
        self.shown = ChatBoxView(agent, session, notice_of(agent), schema_of, height=height, on_ask=self._asked)
        self.shown.magic = magic

    def open(self, session: Session | None, clicks: Clicks) -> None:
        """Display it, with what was said in `session` before."""
        self.shown.open(session, clicks)

    def _asked(self, text: str) -> None:
        self.shown.start_in_cell(self._turn(text))

    async def _turn(self, text: str) -> None:
        async with self.one_at_a_time:
            self.shown.set_question(text)
            try:
                await self._say(text, self.shown)
            except UserError as wrong:
                self.shown.question_refused(str(wrong))
            except Exception as wrong:
                logger.exception("a chat box could not say what was typed")
                self.shown.question_refused(f"{type(wrong).__name__}: {wrong}")


def talk_in_lines(ask: Callable[[str], Reply]) -> None:
    """Ask for line after line, until an empty one, and print each reply. `ask`: sends a line."""
    sys.stdout.write("an empty line ends the conversation\n")
    while text := _typed("you > "):
        try:
            reply = decided_in_lines(ask(text))
        except UserError as wrong:
            sys.stdout.write(f"{wrong}\n")
        except KeyboardInterrupt:
            sys.stdout.write("stopped\n")
        else:
            if not view_of_reply(reply).is_displayed():
                sys.stdout.write(f"{reply}\n")


def decided_in_lines(reply: Reply) -> Reply:
    """The reply that is there once each approval was asked for in a line."""
    while reply.status == "pending" and view_of_reply(reply).pending:
        approval = view_of_reply(reply).pending[0]
        yes = _typed(f"approve {call_of(approval, view_of_reply(reply).schemas.get(approval.id))}? [y/N] ").lower() in (
            "y",
            "yes",
        )
        reply = reply.answer(ToolConfirmation(confirmed=yes, by="a typed line"), approval.id)
    return reply


def _typed(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt, OSError):  # an OSError: nobody is there to type
        sys.stdout.write("\n")
        return ""
