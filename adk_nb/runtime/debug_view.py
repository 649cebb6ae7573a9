"""Where a notebook registers the view that `Runner.run_debug` shows its runs in."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

DebugView = Callable[[Any, Sequence[str], str, str], Awaitable[list[Any]] | None]
"""Given the runner, the messages, the user id and the session id: the run, which returns its events, in a view. None:
there is no view here."""

registered: DebugView | None = None
