"""Time and ids. Nothing else in the package reads the clock, so that tests can replace these functions."""

import os
import time

_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
"""Hex digit -> the digit with the two variant bits of RFC 9562 set."""


def now() -> float:
    """Seconds since the epoch, UTC."""
    return time.time()


def ticks() -> float:
    """Monotonic seconds, comparable between processes of this machine until it restarts."""
    return time.monotonic()


def new_id() -> str:
    """A fresh random id, a UUID in its usual spelling.

    Source: RFC 9562, section 5.4 (version 4). Built here because `str(uuid.uuid4())` takes three times as long.
    """
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"
