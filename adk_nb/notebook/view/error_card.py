"""What went wrong, for a card: one sentence, where in the notebook, the traceback from there on, and what to do."""

import re
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from adk_nb import cells, types
from adk_nb.notebook.view.call_shown import shown_call
from adk_nb.notebook.view.event_words import in_words, result_text
from adk_nb.notebook.view.plain_text import cleaned, json_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import hidden

_MOST = 8_000
"""Characters of a traceback; the end is kept, which says what happened."""
FAILED = "failed"
"""In the row of an error that stands whole beside it."""
_WHERE = re.compile(r"\s*\((In\[\d+\] line \d+)\)$")


def card(key: str, agent: str, error: str, wrong: BaseException | None, ways: Sequence[str]) -> Json:
    """The card of a turn that ended with an error.

    Args:
        key: Its id.
        agent: Who was asked.
        error: What happened, in words.
        wrong: What was raised; None: nothing was.
        ways: What can be done: `retry`, `drop`.
    """
    sentence, where = split(in_words(error))
    return {
        "id": key,
        "kind": "error",
        "agent": agent,
        "title": hidden(cleaned(sentence)),
        "where": where,
        "traceback": traced(wrong) if wrong else "",
        "ways": list(ways),
        "state": "asked",
        "note": "",
    }


def split(error: str) -> tuple[str, str]:
    """The words of an error, and the cell and line that stand in brackets behind them; empty if none do."""
    found = _WHERE.search(error)
    return (error[: found.start()], found[1]) if found else (error, "")


def traced(wrong: BaseException) -> str:
    """The traceback as the notebook's author needs it: from the first line of a cell on, where there is one."""
    told = traceback.TracebackException(type(wrong), wrong, _from_the_cell(wrong.__traceback__), compact=True)
    text = hidden(cleaned(_by_cells("".join(told.format()), wrong)).rstrip())
    return text if len(text) <= _MOST else f"…{text[-_MOST:]}"


def _by_cells(text: str, wrong: BaseException) -> str:
    """`text` of a traceback with its cells called as the notebook calls them."""
    for frame, _ in traceback.walk_tb(wrong.__traceback__):
        if cell := cells.cell_of(frame):
            text = text.replace(f'File "{frame.f_code.co_filename}", line ', f"{cell} line ")
    return text


def _from_the_cell(trace: TracebackType | None) -> TracebackType | None:
    at = trace
    while at and cells.cell_of(at.tb_frame) is None:
        at = at.tb_next
    return at or trace


def busy(key: str, model: str, error: str, seconds: float) -> Json:
    """The card of a model that is asked again after so long; it asks for nothing, and goes when the answer comes."""
    said = {"title": f"{one_line(model, 100)} is busy", "hint": one_line(error, 100), "seconds": seconds}
    return {"id": key, "kind": "wait", **said, "state": "asked", "note": ""}


def failure(tool: str, args: dict[str, Any], wrong: Exception) -> Json | None:
    """What a call's row tells of its tool that raised; None: not in a cell."""
    if not (where := cells.in_a_cell(wrong)):
        return None
    arguments = [one._asdict() for one in shown_call(tool, args).arguments]
    return {"tool": tool, "arguments": arguments, "where": where, "sent": "", "traceback": traced(wrong)}


class Trouble:
    """What goes wrong in one run, told to its view. `push`: takes ops."""

    def __init__(self, push: Callable[[list[Json]], None]) -> None:
        self._push = push
        self._wrong: BaseException | None = None
        self._tools: dict[str, Json] = {}
        """Call id -> where and how its tool raised."""
        self._waits = 0
        """How often a model was busy."""
        self._is_waiting = False

    def failed(self, wrong: BaseException) -> None:
        """As `RunView.failed`."""
        self._wrong = wrong

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], wrong: Exception) -> None:
        """As `RunView.tool_failed`."""
        if told := failure(tool, args, wrong):
            self._tools[call_id] = told

    def waits(self, model: str, error: str, seconds: float) -> None:
        """As `RunView.waits`."""
        self.goes_on()
        self._waits, self._is_waiting = self._waits + 1, True
        self._push([{"op": "card", "card": busy(f"wait{self._waits}", model, error, seconds)}])

    def goes_on(self) -> None:
        """The model that was busy has answered, or was given up."""
        if self._is_waiting:
            self._is_waiting = False
            self._push([{"op": "card", "card": {"id": f"wait{self._waits}", "state": "over"}}])

    def put_in(self, ops: list[Json], responses: Sequence[types.FunctionResponse]) -> None:
        """Put what is known into the rows of failed calls; `ops` show `responses`, in their order."""
        if not self._tools:
            return
        rows = iter([fields for op in ops if (fields := op.get("row", op)).get("ok") is False])
        for told in responses:
            row = next(rows, None) if result_text(told)[1] is False else None
            if row is not None and (found := self._tools.pop(told.id or "", None)):
                row["failure"] = {**found, "sent": shortened(json_text(told.response))}

    def ended(self, agent: str, error: str, last: str) -> None:
        """The run of `agent` ended with an error; `last`: the id of its last event, empty if nothing was said."""
        wrong, self._wrong = self._wrong, None
        ways = ("retry", "drop") if last else ()
        self._push([{"op": "patch", "id": f"{last}/error", "text": FAILED}])
        self._push([{"op": "card", "card": card(f"error/{last}", agent, error, wrong, ways)}])
