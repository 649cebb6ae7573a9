"""Whose the signature of a thought is: a service takes its own alone, and refuses what another has signed."""

from adk_nb import types

_CLAUDE = b"claude:"
"""Before each signature of Claude's, which is text; those of Gemini are kept as they come, and are bytes."""


def signed_by_claude(signature: str) -> bytes | None:
    """As it is kept in a part; None if there is no signature."""
    return _CLAUDE + signature.encode() if signature else None


def claude_s(part: types.Part) -> str | None:
    """The signature that Claude gave `part`, if it did."""
    kept = part.thought_signature
    return kept.removeprefix(_CLAUDE).decode("ascii", "replace") if kept and kept.startswith(_CLAUDE) else None
