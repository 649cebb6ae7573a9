"""Where time and ids come from. Nothing else in the package reads the clock, so tests freeze its functions."""

import os
import time

_FREE = ~((0xF << 76) | (0x3 << 62))
_VERSION_4 = (0x4 << 76) | (0x2 << 62)


def now() -> float:
    """Seconds since the epoch, UTC."""
    return time.time()


def ticks() -> float:
    """Seconds since some moment, the same for all processes of this machine until it restarts; nobody sets it."""
    return time.monotonic()


def new_id() -> str:
    """A fresh random id, a UUID in its usual spelling.

    Source: RFC 9562, section 5.4 (version 4). Spelled here because `uuid.uuid4` takes three times as long.
    """
    digits = f"{int.from_bytes(os.urandom(16)) & _FREE | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
