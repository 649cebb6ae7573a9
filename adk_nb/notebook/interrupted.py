"""A turn that Ctrl-C stopped or an error ended: where in the notebook, in as many lines as it takes."""

import logging
import re
import traceback
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar, cast

from IPython.core.getipython import get_ipython

from adk_nb import cells, sync
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.view.plain_text import one_line, shortened

T = TypeVar("T")
logger = logging.getLogger(__name__)
_LONG = 500
"""Characters of a message that are looked at."""
_SHORT = 120
"""Characters of a first clause."""
_CLAUSE_END = re.compile(r"[;:] | \(")


def waited_for(turn: Coroutine[Any, Any, T]) -> T:
    """What comes of `turn`; a Ctrl-C meanwhile is told in brief."""
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
    """Where a Ctrl-C hit a tool, outermost first; nothing if it came while the model was being waited for."""
    while trace and trace.tb_frame.f_globals.get("__name__", "").startswith("adk_nb."):
        trace = trace.tb_next
    return [f"  in {at.name}(), line {at.lineno}: {at.line}" for at in traceback.extract_tb(trace) if at.line]


def in_a_cell(wrong: BaseException) -> str:
    """Where in the notebook's own code an error comes from, in brackets; empty if it does not."""
    if cell := cells.in_a_cell(wrong):
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
