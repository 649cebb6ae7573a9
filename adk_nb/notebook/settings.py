"""What every turn and every cell of this process goes by, unless it says otherwise; `%config AdkNb` sets it."""

from dataclasses import dataclass
from typing import Literal

Confirm = Literal["ask", "yes", "no"]
"""Approvals are left open, given, or refused."""


@dataclass
class Settings:
    """Ordinary values where nothing was set."""

    max_iterations: int | None = None
    """Model calls in a turn of an agent whose cell does not say. None: as `LlmAgent` has it."""
    max_cost_usd: float | None = None
    """US dollars that a turn may cost, as `RunConfig` has it. None: no limit."""
    timeout: float | None = None
    """Seconds for a turn. None: no limit."""
    confirm: Confirm = "ask"
    """Approvals in a turn that does not say."""
    show_thoughts: bool = True
    """What models think is shown with what they say."""
    interp_max_chars: int = 4_000
    """Characters of one value that is put into a text."""


now = Settings()
"""Those of this process."""
