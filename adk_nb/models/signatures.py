"""Whose the signature of a thought or a call is: a service takes its own alone, and refuses what another has signed."""

import json
from typing import Any, cast

from adk_nb import types

_CLAUDE = b"claude:"
"""Before each signature of Claude's, which is text; those of Gemini are kept as they come, and are bytes."""
_CHAT = b"chat:"
"""Before what a server of chat completions gave beside a thought or a call, which is JSON."""


def signed_by_claude(signature: str) -> bytes | None:
    """As it is kept in a part; None if there is no signature."""
    return _CLAUDE + signature.encode() if signature else None


def claude_s(part: types.Part) -> str | None:
    """The signature that Claude gave `part`, if it did."""
    kept = part.thought_signature
    return kept.removeprefix(_CLAUDE).decode("ascii", "replace") if kept and kept.startswith(_CLAUDE) else None


def chat_signature(server: str, fields: dict[str, Any]) -> bytes | None:
    """Fields that a server of chat completions is to be sent back, as they are kept in a part; None without fields."""
    return _CHAT + json.dumps({"server": server, "fields": fields}).encode() if fields else None


def chat_fields(part: types.Part, server: str) -> dict[str, Any]:
    """The fields that `server` gave beside `part`."""
    kept = part.thought_signature
    if not kept or not kept.startswith(_CHAT):
        return {}
    told: Any = json.loads(kept.removeprefix(_CHAT))
    return cast(dict[str, Any], told["fields"]) if told["server"] == server else {}


def is_gemini_s(part: types.Part) -> bool:
    """True unless another service has signed `part`."""
    return not (part.thought_signature or b"").startswith((_CLAUDE, _CHAT))
