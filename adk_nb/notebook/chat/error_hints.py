"""The short message of a turn that Ctrl-C or an error ended: where in the notebook, and what to type next."""

import logging
import re
import traceback
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from IPython.core.getipython import get_ipython

from adk_nb import locations, sync
from adk_nb.errors import ModelHTTPError, ModelNotFoundError, closest
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.view.plain_text import one_line, shortened
from adk_nb.runtime.history import History

T = TypeVar("T")
logger = logging.getLogger(__name__)
_LONG = 500
"""Characters of a message that are searched for the end of its first clause."""
_SHORT = 120
"""Characters of a first clause."""
_BUSY = (429, 500, 503, 529)
"""HTTP statuses of a busy model; 529 is Anthropic's."""
_CLAUSE_END = re.compile(r"[;:] | \(")
_SUBJECT = re.compile(r"(?:[^\s:;]+ ){0,2}[^\s:;]+: ")
"""What a message is about, as `node 'draft': `."""


def run_to_end(turn: Coroutine[Any, Any, T]) -> T:
    """The result of `turn`. Ctrl-C stops it, and raises with a short traceback."""
    try:
        return sync.run(turn)
    except KeyboardInterrupt as interrupt:
        # The frames of the tool in which it came, outermost first; none if it came during a model call.
        trace = interrupt.__traceback__
        while trace and trace.tb_frame.f_globals.get("__name__", "").startswith("adk_nb."):
            trace = trace.tb_next
        frames = [f"  in {at.name}(), line {at.lineno}: {at.line}" for at in traceback.extract_tb(trace) if at.line]
        shorten_interrupt(interrupt, frames)
        raise


def shorten_interrupt(interrupt: BaseException, details: list[str]) -> None:
    """Replace IPython's traceback, which takes half a second to render and shows this package's code."""
    lines = [f"{type(interrupt).__name__}: the run was stopped", *details]
    cast(Any, interrupt)._render_traceback_ = lambda: lines


def shorten_traceback(error: BaseException) -> None:
    """Give an error that a view has shown in full one short line in place of a traceback."""
    line = f"{type(error).__name__}: {first_clause(str(error))}"
    cast(Any, error)._render_traceback_ = lambda: [line]


def first_clause(message: str) -> str:
    """The first clause of an error's message, with what it is about."""
    line = one_line(message, _LONG)
    subject = _SUBJECT.match(line)
    end = _CLAUSE_END.search(line, subject.end() if subject else 0)
    return shortened(line[: end.start()] if end else line, _SHORT)


def location_suffix(error: BaseException) -> str:
    """The cell and line of the notebook's code that raised, in brackets; empty if none did."""
    if cell := locations.cell_location(error):
        return f" ({cell})"
    in_main = [
        (frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__") == "__main__"
    ]
    return f" (in {in_main[-1][0]}(), line {in_main[-1][1]})" if in_main else ""


def log_failure(reply: Reply) -> Reply:
    """Log a failed turn in a script, where nothing displays the reply and its `text` is empty; returns `reply`."""
    if reply.status == "error" and get_ipython() is None:
        logger.error("the turn of agent %r failed, see its reply.error: %s", reply.agent, reply.error)
    return reply


def model_error_hint(error: Exception, magic: str) -> str:
    """What to try after an error of a model, to append to its message; empty for other errors.

    Args:
        error: The error that ended the turn.
        magic: The `%confirm` line of the session; empty for a chat that only Python code reaches.
    """
    if not isinstance(error, ModelHTTPError):
        return ""
    if error.status == 404:
        names: list[str] = []
        try:
            LLMRegistry.check("")
        except ModelNotFoundError as unnamed:  # the error for no name has all names
            names = unnamed.known
        if (near := closest(error.model, names, cutoff=0.75)) not in (None, error.model):
            return f"; did you mean {near!r}?"
    if error.status in _BUSY:
        another = "%chat --model NAME" if magic else "chat.ask(..., model=NAME)"
        return f"; to ask another model: {another}"
    return ""


def undo_hint(history: History, magic: str) -> str:
    """The commands that remove the messages of the latest failed turns, or send the message again; empty without turns.

    Args:
        history: Of the session, the failed turn included.
        magic: As for `model_error_hint`.
    """
    turns = [turn for turn in history.turns if not turn.undone]
    if not turns:
        return ""
    failed = 1
    for turn in reversed(turns[:-1]):
        if not all(event.author == "user" or event.error_code for event in turn.events):
            break
        failed += 1
    count = str(failed) if failed > 1 else ""
    undo = f"{magic.replace('%confirm', '%rewind', 1)} {count}".rstrip() if magic else f"chat.rewind({count})"
    if failed > 1:
        return f"the last {failed} messages stay in the conversation; to remove them: {undo}"
    again = f"{undo} --rerun" if magic else "chat.rerun()"
    return f"your message stays in the conversation; to remove it: {undo}; to send it again: {again}"
