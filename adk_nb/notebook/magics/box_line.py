"""What `%chat` without a text does: a chat box in a page, line by line in a terminal."""

import asyncio
from dataclasses import replace
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.chat_box import HEIGHT, ChatBox, check_place, talk_in_lines
from adk_nb.notebook.magics.chat import Said, addressed, say, tell_of_new_session
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import in_a_kernel


def open_box(notebook: Notebook, asked: Any, said: Said) -> None:
    """Open a chat box for the session that is the current one now; `_run` is its last reply.

    Args:
        notebook: Whose agents answer.
        asked: The line.
        said: What each message has in common.

    Raises:
        UserError: The line does not fit, an agent is not there, or nobody could see the box.
    """
    _refuse_what_is_for_one_turn(asked)
    height = asked.height or HEIGHT
    check_place(said.show, height)
    chat, _ = addressed(notebook, replace(said, text="", raw=True))
    said = replace(said, session=chat.session_id, fresh=False)
    if not in_a_kernel():
        return talk_in_lines(lambda text: say(notebook, replace(said, text=text)))

    async def in_the_box(text: str, shown: ChatBoxView) -> Reply:
        chat, told = await asyncio.to_thread(addressed, notebook, replace(said, text=text))
        return await chat.say_in(shown, **told, confirm=said.confirm, by=said.policy)

    tell_of_new_session(notebook, said)
    chat.open_in(ChatBox(chat.agent, chat.session_id, chat.magic(), in_the_box, height))
    return None


def _refuse_what_is_for_one_turn(asked: Any) -> None:
    for name in ("quiet", "static", "attach", "error", "tools", "model", "max-cost", "record", "replay"):
        if getattr(asked, name.replace("-", "_")):
            raise InputError(f"{asked.mark} --{name} goes with a text; without one a chat box is opened")
    if asked.capture:
        raise InputError(f"{asked.mark}: a chat box has no one reply to keep as {asked.capture!r}; `_run` is its last")
