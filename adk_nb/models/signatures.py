"""Signatures of thoughts and calls: each service accepts only its own, and refuses those of others."""

import json
from typing import Any, cast

from adk_nb import types

_CLAUDE_PREFIX = b"claude:"
"""Prefix of Claude's signatures, which are text; Gemini's are bytes, stored without a prefix."""
_CHAT_PREFIX = b"chat:"
"""Prefix of the JSON that a chat completions server sent beside a thought or a call."""


def claude_signature(signature: str) -> bytes | None:
    """Claude's signature as stored in a part; None if it is empty."""
    return _CLAUDE_PREFIX + signature.encode() if signature else None


def claude_signature_of(part: types.Part) -> str | None:
    """Claude's signature of `part`; None if it has none."""
    signature = part.thought_signature
    return (
        signature.removeprefix(_CLAUDE_PREFIX).decode("ascii", "replace")
        if signature and signature.startswith(_CLAUDE_PREFIX)
        else None
    )


def chat_signature(server: str, fields: dict[str, Any]) -> bytes | None:
    """Fields to send back to a chat completions server, as stored in a part; None without fields."""
    return _CHAT_PREFIX + json.dumps({"server": server, "fields": fields}).encode() if fields else None


def chat_fields(part: types.Part, server: str) -> dict[str, Any]:
    """The fields that `server` sent beside `part`."""
    signature = part.thought_signature
    if not signature or not signature.startswith(_CHAT_PREFIX):
        return {}
    stored: Any = json.loads(signature.removeprefix(_CHAT_PREFIX))
    return cast(dict[str, Any], stored["fields"]) if stored["server"] == server else {}


def is_gemini_signature(part: types.Part) -> bool:
    """False if another service has signed `part`."""
    return not (part.thought_signature or b"").startswith((_CLAUDE_PREFIX, _CHAT_PREFIX))
