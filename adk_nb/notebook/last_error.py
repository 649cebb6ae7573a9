"""The error that the notebook showed last, as text that a model can read: its cell, and where in cells it came from."""

import traceback
from types import TracebackType
from typing import Any

from adk_nb import cells
from adk_nb.errors import InputError, UserError
from adk_nb.redaction import hidden

_MOST = 8_000
"""Characters of a cell."""
_ASKING = ("adk_nb.notebook.magics.chat", "chat")
"""Who asks about an error: what fails on its own line is not what is asked about."""
_last: tuple[BaseException, str] | None = None


def note(result: Any) -> None:
    """After each cell: remember its error, and the cell. `result` is IPython's ExecutionResult."""
    global _last
    error = result.error_before_exec or result.error_in_exec
    cell: str = getattr(result.info, "raw_cell", None) or ""
    if isinstance(error, Exception) and not ("--error" in cell and _is_of_a_question(error.__traceback__)):
        _last = (error, cell)


def forget() -> None:
    """There was none."""
    global _last
    _last = None


def last_error() -> str:
    """The last error with its cell, without secrets.

    Raises:
        InputError: No cell has failed.
    """
    if _last is None:
        raise InputError(
            "no cell has failed since adk_nb was loaded, so there is no error to attach; leave out --error"
        )
    error, cell = _last
    shown = cell if len(cell) <= _MOST else cell[:_MOST] + "\n(and more)"
    return f"The cell:\n{hidden(shown).strip()}\n\nIts error:\n{described(error)}"


def described(error: BaseException) -> str:
    """An error, its causes and the lines of the notebook that led to it, without secrets and without paths."""
    told: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one and id(one) not in seen:
        seen.add(id(one))
        told.insert(0, "".join([*_frames(one), *traceback.format_exception_only(one)]).rstrip())
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return hidden("\n\nwhich led to:\n\n".join(told))


def _frames(error: BaseException) -> list[str]:
    """The way to an error through cells and the functions they call, outermost first."""
    if isinstance(error, UserError):
        return []
    lines = [
        f"  {place or frame.filename.rpartition('/')[2]} line {frame.lineno}, in {frame.name}: {frame.line}\n"
        for place, frame in _places(error.__traceback__)
    ]
    return ["Traceback, the last call last:\n", *lines] if lines else []


def _places(trace: TracebackType | None) -> list[tuple[str | None, traceback.FrameSummary]]:
    """Those from the first line of a cell on; all where there is none."""
    walked = list(traceback.walk_tb(trace))
    places = [cells.cell_of(frame) for frame, _ in walked]
    first = next((at for at, place in enumerate(places) if place), 0)
    return list(zip(places, traceback.StackSummary.extract(iter(walked)), strict=True))[first:]


def _is_of_a_question(trace: TracebackType | None) -> bool:
    frames = (frame for frame, _ in traceback.walk_tb(trace))
    return any((frame.f_globals.get("__name__"), frame.f_code.co_qualname) == _ASKING for frame in frames)
