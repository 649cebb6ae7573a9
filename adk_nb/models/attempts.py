"""Failed attempts to call a model, recorded in the event of its answer."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from adk_nb.errors import ModelError
from adk_nb.wire import WireModel


class Attempt(WireModel):
    """A failed attempt, followed by another, of the same or the next model."""

    model: str
    """Name of the model that was called."""
    error: str
    """`HTTP 503`, `no connection`, or the type of the error."""
    waited: float = 0.0
    """Seconds until the next attempt."""
    next_model: str | None = None
    """The model of the next attempt; None: the same."""


on_wait: ContextVar[Callable[[Attempt], None] | None] = ContextVar("adk_nb_on_wait", default=None)
"""Called in the run, with each failed attempt, when the wait after it begins."""


@contextmanager
def note_attempts(attempts: Sequence[Attempt]) -> Generator[None, None, None]:
    """Add the number of attempts to the message of a ModelError, and the attempts as its `attempts`."""
    try:
        yield
    except ModelError as error:
        if attempts and not error.attempts:
            error.attempts = tuple(attempts)
            waited = sum(attempt.waited for attempt in attempts)
            error.args = (f"{error} (asked {len(attempts) + 1} times, waiting {waited:.1f} s in between)",)
        raise
