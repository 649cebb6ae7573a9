"""Where this shell runs; nothing of the runtime is loaded to find out."""

import os
from typing import Any


def is_being_tested(shell: Any) -> bool:
    """True under nbval, nbclient and nbconvert, where nobody looks: they run a kernel that cannot ask for input."""
    kernel = getattr(shell, "kernel", None)
    return "PYTEST_VERSION" in os.environ or not getattr(kernel, "_allow_stdin", True)
