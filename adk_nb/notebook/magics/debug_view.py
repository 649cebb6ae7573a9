"""`Runner.run_debug` in a cell: the live view and the reply that `%chat` shows."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.events.event import Event
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.view.display import Mode, in_a_kernel
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runners import Runner
from adk_nb.runtime import DebugView
from adk_nb.runtime.invocation_context import InvocationContext

_MAX_ERROR = 500
"""Characters of an error in its traceback; the view shows all."""


class _LastError(BasePlugin):
    def __init__(self) -> None:
        super().__init__("adk_nb_last_error")
        self.error: Exception | None = None

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        self.error = error


def debug_view(mode: Callable[[], Mode]) -> DebugView:
    """The view to register in `runtime.debug_view`. `mode`: returns the notebook's display mode."""

    def view(runner: Runner, messages: Sequence[str], user_id: str, session_id: str) -> Awaitable[list[Event]] | None:
        shows = in_a_kernel() and mode() != "off"
        return _run(runner, messages, user_id, session_id, mode()) if shows else None

    return view


async def _run(runner: Runner, messages: Sequence[str], user_id: str, session_id: str, mode: Mode) -> list[Event]:
    chat, last = Chat(runner, session=session_id, user_id=user_id, show=mode), _LastError()
    turn_runner(chat).conversation.plugins.register_plugin(last)
    events: list[Event] = []
    for message in messages:
        reply = await chat.aask(message)
        display(reply)
        if error := last.error:
            raise _with_short_traceback(error)
        events += [event for event in reply.events if event.author != "user"]
    return events


def _with_short_traceback(error: Exception) -> Exception:
    """Give `error` a traceback of one line: the view has shown where it comes from."""
    line = f"{type(error).__name__}: {one_line(str(error), _MAX_ERROR)}"
    cast(Any, error)._render_traceback_ = lambda: [line]
    return error
