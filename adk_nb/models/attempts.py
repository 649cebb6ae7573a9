"""What was tried in vain before a model answered, or did not: told in the one event of its answer."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from adk_nb.errors import ModelError
from adk_nb.wire import WireModel


class Attempt(WireModel):
    """A question that got no answer, after which it was asked again, or another model was."""

    model: str
    """The one that was asked."""
    error: str
    """`HTTP 503`, `no connection`, or the kind of error that there was without an answer."""
    waited: float = 0.0
    """Seconds until it was asked again, or until another model was."""
    next_model: str | None = None
    """The other model that was asked then; None: the same."""


on_wait: ContextVar[Callable[[Attempt], None] | None] = ContextVar("adk_nb_on_wait", default=None)
"""Is called, in the run that waits, with each attempt as the wait after it begins."""


@contextmanager
def note_attempts(tried: Sequence[Attempt]) -> Generator[None, None, None]:
    """A ModelError that ends all attempts also says how many there were, and carries them as `attempts`."""
    try:
        yield
    except ModelError as error:
        if tried and not error.attempts:
            error.attempts = tuple(tried)
            waited = sum(one.waited for one in tried)
            error.args = (f"{error} (asked {len(tried) + 1} times, waiting {waited:.1f} s in between)",)
        raise
