"""The last error of the notebook as text for a model: the cell, and the traceback through cells."""

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from adk_nb import locations
from adk_nb.errors import InputError, UserError
from adk_nb.redaction import hidden

_MAX_CELL = 8_000
"""Characters of a cell."""
_last: tuple[BaseException, str] | None = None
"""The last error, and the source of its cell."""
_ignored: BaseException | None = None
"""An error of a line that asks about the last error, as `%chat --error`."""


def note(result: Any) -> None:
    """Remember the error of a cell that has ended, if there is one. `result`: IPython's ExecutionResult."""
    global _last
    error = result.error_before_exec or result.error_in_exec
    cell: str = getattr(result.info, "raw_cell", None) or ""
    if isinstance(error, Exception) and error is not _ignored:
        _last = (error, cell)


@contextmanager
def not_recorded() -> Generator[None]:
    """Within this, an error does not become the last error, so that a corrected line still finds the one before."""
    global _ignored
    try:
        yield
    except Exception as error:
        _ignored = error
        raise


def forget() -> None:
    """Forget the last error."""
    global _last, _ignored
    _last = _ignored = None


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
    shown = cell if len(cell) <= _MAX_CELL else cell[:_MAX_CELL] + "\n(and more)"
    return f"The cell:\n{hidden(shown).strip()}\n\nIts error:\n{describe(error)}"


def describe(error: BaseException) -> str:
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
    """The traceback of an error from the first cell on, outermost call first."""
    if isinstance(error, UserError):
        return []
    lines = [
        f"  {place or frame.filename.rpartition('/')[2]} line {frame.lineno}, in {frame.name}: {frame.line}\n"
        for place, frame in _places(error.__traceback__)
    ]
    return ["Traceback, the last call last:\n", *lines] if lines else []


def _places(trace: TracebackType | None) -> list[tuple[str | None, traceback.FrameSummary]]:
    """The frames from the first cell on, each with its cell; all frames if none is in a cell."""
    frames = list(traceback.walk_tb(trace))
    places = [locations.cell_of(frame) for frame, _ in frames]
    first = next((index for index, place in enumerate(places) if place), 0)
    return list(zip(places, traceback.StackSummary.extract(iter(frames)), strict=True))[first:]
