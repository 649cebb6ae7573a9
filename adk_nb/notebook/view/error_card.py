"""Cards of errors: one sentence, the cell and line, the traceback from there on, and what can be done."""

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

FAILED = "failed"
"""In the row of an error that stands whole beside it."""
_MAX_TRACEBACK = 8_000
"""Characters; the end is kept, which says what happened."""
_PLACE = re.compile(r"\s*\((In\[\d+\] line \d+)\)$")


class ErrorCards:
    """The error cards of one run.

    Args:
        push: Takes ops of its view.
    """

    def __init__(self, push: Callable[[list[Json]], None]) -> None:
        self._push = push
        self._error: BaseException | None = None
        self._failures: dict[str, Json] = {}
        """By call id."""
        self._busy_count = 0
        self._is_busy = False

    def failed(self, error: BaseException) -> None:
        """As `RunView.failed`."""
        self._error = error

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], error: Exception) -> None:
        """As `RunView.tool_failed`."""
        if place := cells.cell_location(error):
            arguments = [argument._asdict() for argument in shown_call(tool, args).arguments]
            failure = {"tool": tool, "arguments": arguments, "where": place, "traceback": cell_traceback(error)}
            self._failures[call_id] = failure

    def waits(self, model: str, error: str, seconds: float) -> None:
        """As `RunView.waits`: a card without buttons, until `goes_on`."""
        self.goes_on()
        self._busy_count, self._is_busy = self._busy_count + 1, True
        card: Json = {"id": f"wait{self._busy_count}", "kind": "wait", "state": "asked", "note": "", "seconds": seconds}
        card |= {"title": f"{one_line(model, 100)} is busy", "hint": one_line(error, 100)}
        self._push([{"op": "card", "card": card}])

    def goes_on(self) -> None:
        """The busy model has answered, or was given up."""
        if self._is_busy:
            self._is_busy = False
            self._push([{"op": "card", "card": {"id": f"wait{self._busy_count}", "state": "over"}}])

    def add_failures(self, ops: list[Json], responses: Sequence[types.FunctionResponse]) -> None:
        """Add cell and traceback to the rows of failed calls; `ops` show `responses`, in their order."""
        if not self._failures:
            return
        rows = iter([fields for op in ops if (fields := op.get("row", op)).get("ok") is False])
        for response in responses:
            row = next(rows, None) if result_text(response)[1] is False else None
            if row is not None and (failure := self._failures.pop(response.id or "", None)):
                row["failure"] = {**failure, "sent": shortened(json_text(response.response))}

    def ended(self, agent: str, error: str, last: str) -> None:
        """The run of `agent` ended with an error; `last`: the id of its last event, empty if there is none."""
        exception, self._error = self._error, None
        ways = ("retry", "drop") if last else ()
        self._push([{"op": "patch", "id": f"{last}/error", "text": FAILED}])
        self._push([{"op": "card", "card": error_card(f"error/{last}", agent, error, exception, ways)}])


def error_card(key: str, agent: str, error: str, exception: BaseException | None, ways: Sequence[str]) -> Json:
    """The card of a turn of `agent` that ended with an error. `ways`: of `retry` and `drop`, what can be done."""
    sentence = in_words(error)
    place = _PLACE.search(sentence)
    return {
        "id": key,
        "kind": "error",
        "agent": agent,
        "title": hidden(cleaned(sentence[: place.start()] if place else sentence)),
        "where": place[1] if place else "",
        "traceback": cell_traceback(exception) if exception else "",
        "ways": list(ways),
        "state": "asked",
        "note": "",
    }


def cell_traceback(error: BaseException) -> str:
    """The traceback from the first line of a cell on, where there is one, with cells named as in the notebook."""
    start = _first_cell(error.__traceback__)
    text = "".join(traceback.TracebackException(type(error), error, start, compact=True).format())
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if cell := cells.cell_of(frame):
            text = text.replace(f'File "{frame.f_code.co_filename}", line ', f"{cell} line ")
    text = hidden(cleaned(text).rstrip())
    return text if len(text) <= _MAX_TRACEBACK else f"…{text[-_MAX_TRACEBACK:]}"


def _first_cell(trace: TracebackType | None) -> TracebackType | None:
    frame = trace
    while frame and cells.cell_of(frame.tb_frame) is None:
        frame = frame.tb_next
    return frame or trace
