"""The error that the notebook showed last, as text that a model can read: its cell, and where in cells it came from."""

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from adk_nb import locations
from adk_nb.errors import InputError, UserError
from adk_nb.redaction import hidden

_MOST = 8_000
"""Characters of a cell."""
_last: tuple[BaseException, str] | None = None
_of_question: BaseException | None = None
"""An error of a line that asked about the last error."""


def note(result: Any) -> None:
    """After each cell: remember its error, and the cell. `result` is IPython's ExecutionResult."""
    global _last
    error = result.error_before_exec or result.error_in_exec
    cell: str = getattr(result.info, "raw_cell", None) or ""
    if isinstance(error, Exception) and error is not _of_question:
        _last = (error, cell)


@contextmanager
def asking_about_it() -> Generator[None]:
    """Errors raised within this do not become the last error: the line can be mended and run again."""
    global _of_question
    try:
        yield
    except Exception as error:
        _of_question = error
        raise


def forget() -> None:
    """Forget the last error."""
    global _last, _of_question
    _last = _of_question = None


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
    texts: list[str] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause and id(cause) not in seen:
        seen.add(id(cause))
        texts.insert(0, "".join([*_frames(cause), *traceback.format_exception_only(cause)]).rstrip())
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return hidden("\n\nwhich led to:\n\n".join(texts))


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
    places = [locations.cell_of(frame) for frame, _ in walked]
    first = next((at for at, place in enumerate(places) if place), 0)
    return list(zip(places, traceback.StackSummary.extract(iter(walked)), strict=True))[first:]
