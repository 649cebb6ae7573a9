"""The runtime of agents; and the view of a notebook for `Runner.run_debug`, kept here as `%load_ext` has to be fast."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

DebugView = Callable[[Any, Sequence[str], str, str], Awaitable[list[Any]] | None]
"""`(runner, messages, user_id, session_id)` -> a coroutine that runs them in a view and returns the events. None: no
view is possible here."""

debug_view: DebugView | None = None
"""Set by `%load_ext adk_nb`. None: `run_debug` prints text."""
