"""What was meant by an address of a server that was written without its scheme, or with a mistyped one."""

import re

_PLACE = re.compile(r"(?:[\w.-]+:\d{2,5}|localhost|(?:\d+\.){3}\d+)(?:/.*)?")


def as_address(text: str) -> str | None:
    """With `http://` before it; None if `text` looks like no address."""
    scheme, _, rest = text.rpartition("://")
    return f"http{'s' * scheme.endswith('s')}://{rest}" if _PLACE.fullmatch(rest) else None
