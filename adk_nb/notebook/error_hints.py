"""A turn that Ctrl-C stopped or an error ended: where in the notebook, in a line, and what to type next."""

import logging
import re
import traceback
from collections.abc import Coroutine
from itertools import takewhile
from types import TracebackType
from typing import Any, TypeVar, cast

from IPython.core.getipython import get_ipython

from adk_nb import locations, sync
from adk_nb.errors import ModelHTTPError, ModelNotFoundError, closest
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.plain_text import one_line, shortened
from adk_nb.runtime.history import History, Turn

T = TypeVar("T")
logger = logging.getLogger(__name__)
_LONG = 500
"""Characters of a message that are looked at."""
_SHORT = 120
"""Characters of a first clause."""
_BUSY = (429, 500, 503, 529)
"""HTTP statuses of a busy model; 529 is Anthropic's."""
_CLAUSE_END = re.compile(r"[;:] | \(")


def waited_for(turn: Coroutine[Any, Any, T]) -> T:
    """The result of `turn`; a Ctrl-C meanwhile raises with one line."""
    try:
        return sync.run(turn)
    except KeyboardInterrupt as stopped:
        shown_in_brief(stopped, outside_this_package(stopped.__traceback__))
        raise


def shown_in_brief(stopped: BaseException, where: list[str]) -> None:
    """Spare the reader IPython's own traceback, which takes half a second to render and tells of our code."""
    lines = [f"{type(stopped).__name__}: the run was stopped", *where]
    cast(Any, stopped)._render_traceback_ = lambda: lines


def told_in_short(wrong: BaseException) -> None:
    """Give `wrong`, which a view has shown whole, one short line in place of a traceback."""
    line = f"{type(wrong).__name__}: {first_clause(str(wrong))}"
    cast(Any, wrong)._render_traceback_ = lambda: [line]


def first_clause(message: str) -> str:
    """The first clause of an error's message."""
    return shortened(_CLAUSE_END.split(one_line(message, _LONG), maxsplit=1)[0], _SHORT)


def outside_this_package(trace: TracebackType | None) -> list[str]:
    """The frames of a tool that a Ctrl-C hit, outermost first; empty if it came during a model call."""
    while trace and trace.tb_frame.f_globals.get("__name__", "").startswith("adk_nb."):
        trace = trace.tb_next
    return [f"  in {at.name}(), line {at.lineno}: {at.line}" for at in traceback.extract_tb(trace) if at.line]


def in_a_cell(wrong: BaseException) -> str:
    """The cell and line of the notebook's code that raised, in brackets; empty if none did."""
    if cell := locations.cell_location(wrong):
        return f" ({cell})"
    mine = [
        (frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(wrong.__traceback__)
        if frame.f_globals.get("__name__") == "__main__"
    ]
    return f" (in {mine[-1][0]}(), line {mine[-1][1]})" if mine else ""


def told_in_a_script(reply: Reply) -> Reply:
    """`reply`; where no shell will show that the turn failed, the log says so: `text` alone does not."""
    if reply.status == "error" and get_ipython() is None:
        logger.error("the turn of agent %r failed, see its reply.error: %s", reply.agent, reply.error)
    return reply


def what_next(error: Exception, magic: str) -> str:
    """The end of its sentence; empty where there is nothing to say. `magic`: as for `how_to_answer`."""
    if not isinstance(error, ModelHTTPError):
        return ""
    if error.status == 404 and (near := closest(error.model, _known(), cutoff=0.75)) not in (None, error.model):
        return f"; did you mean {near!r}?"
    if error.status in _BUSY:
        another = "%chat --model NAME" if magic else "chat.ask(..., model=NAME)"
        return f"; to ask another model: {another}"
    return ""


def take_back(history: History, magic: str) -> str:
    """The command that takes back the message of the turn that failed last; empty if there is none.

    Args:
        history: Of the session, that turn's included.
        magic: As for `how_to_answer`.
    """
    turns = [turn for turn in history.turns if not turn.undone]
    if not turns:
        return ""
    failed = 1 + sum(1 for _ in takewhile(_is_unanswered, reversed(turns[:-1])))
    count = str(failed) if failed > 1 else ""
    undo = (
        " ".join(filter(None, (magic.replace("%confirm", "%rewind", 1), count))) if magic else f"chat.rewind({count})"
    )
    if failed > 1:
        return f"the last {failed} messages stay in the conversation; to remove them: {undo}"
    again = f"{undo} --rerun" if magic else "chat.rerun()"
    return f"your message stays in the conversation; to remove it: {undo}; to send it again: {again}"


def _is_unanswered(turn: Turn) -> bool:
    return all(event.author == "user" or event.error_code for event in turn.events)


def _known() -> list[str]:
    try:
        LLMRegistry.check("")
    except ModelNotFoundError as error:  # it names those that there are
        return error.known
    return []
