"""Defaults of all turns and cells of this process, which `%config AdkNb` sets."""

from dataclasses import dataclass
from typing import Literal

Confirm = Literal["ask", "yes", "no"]
"""Approvals are left open, given, or refused."""


@dataclass
class Settings:
    """The settings; the defaults hold without the extension."""

    max_iterations: int | None = None
    """Model calls in a turn, for agents whose cell sets no limit. None: the default of `LlmAgent`."""
    max_cost_usd: float | None = None
    """US dollars for a turn, as in `RunConfig`. None: no limit."""
    timeout: float | None = None
    """Seconds for a turn. None: no limit."""
    confirm: Confirm = "ask"
    """The approval policy of turns that set none."""
    show_thoughts: bool = True
    """Show the thoughts of models with their answers."""
    interp_max_chars: int = 4_000
    """Characters of a variable's value in an instruction or a message."""
    client_apps: frozenset[str] = frozenset()
    """Apps whose clients may use the tools of the notebook itself; `%serve --with-notebook` sets it."""


now = Settings()
"""The settings of this process."""
