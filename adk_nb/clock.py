"""Where time and ids come from. Nothing else in the package reads the clock, so tests freeze two functions."""

import time
import uuid


def now() -> float:
    """Seconds since the epoch, UTC."""
    return time.time()


def new_id() -> str:
    """A fresh random id, a UUID in its usual spelling."""
    return str(uuid.uuid4())
