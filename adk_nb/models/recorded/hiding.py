"""What of a conversation is not written into a recording: secrets, e-mail addresses, and what its author says."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, cast

from adk_nb.errors import InputError
from adk_nb.redaction import REDACTED, redacted

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})\b", re.IGNORECASE)
_RESERVED_DOMAINS = re.compile(r"(?:.*\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)", re.IGNORECASE)
"""Domains that are kept for documents and tests. Source: RFC 2606."""


class Hiding:
    """Replaces keys and tokens by `[redacted]`, and e-mail addresses by others that nobody has.

    The same address always becomes the same one, and that one stays as it is: a tool that is handed it when the answer
    is replayed does what it did with the real one.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """`patterns`: regular expressions for what else becomes `[redacted]`.

        Raises:
            InputError: One is none.
        """
        self.patterns = tuple(patterns)
        try:
            self._patterns = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise InputError(
                f"{error.pattern!r} is no regular expression: {error.msg}; write one such as r'\\d{{9,}}'"
            ) from None

    def hidden(self, value: Any) -> Any:
        """`value` (JSON) without them; the keys of objects stay."""
        return self._walk(redacted(value))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._walk(item) for key, item in cast(dict[str, Any], value).items()}
        if isinstance(value, list):
            return [self._walk(item) for item in cast(list[Any], value)]
        if not isinstance(value, str):
            return value
        for pattern in self._patterns:
            value = pattern.sub(REDACTED, value)
        return _EMAIL.sub(_anonymous_address, value) if "@" in value else value


def _anonymous_address(match: re.Match[str]) -> str:
    if _RESERVED_DOMAINS.fullmatch(match[1]):
        return match[0]
    return f"person-{hashlib.sha256(match[0].lower().encode()).hexdigest()[:6]}@example.com"
