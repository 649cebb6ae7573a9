"""`%config AdkNb.notebook_code`: whether agents may ask to run code in this kernel."""

from dataclasses import dataclass
from typing import Any, Literal

Code = Literal["ask", "never"]
"""A card for each piece of code; or the agent has no tool that runs code."""


@dataclass
class _Policy:
    code: Code = "ask"


now = _Policy()
"""What holds in this process."""


def set_code(settings: Any, name: str, old: Any) -> None:
    """Take the setting over."""
    now.code = settings.notebook_code
