"""Takes keys and passwords out of what is about to be written to a file that others will read."""

import re
from typing import Any, cast

REDACTED = "[redacted]"

_KEYS = re.compile(
    r"""(?<![\w-])(?:
          AIza[\w-]{30,}                              # Google API keys
        | AQ\.[\w-]{20,}                              # Google API keys of the newer kind
        | ya29\.[\w.-]{20,}                           # Google access tokens
        | sk-(?=[\w-]*\d)[\w-]{16,}                   # OpenAI, Anthropic, OpenRouter
        | (?:gh[pousr]_|github_pat_|hf_|glpat-)\w{16,}
        | xox[abeprs]-[\w-]{10,}                      # Slack
        | AKIA[0-9A-Z]{16}                            # AWS
        | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*          # JSON web tokens
        )
      | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_AUTH = re.compile(
    r"(\bbearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}"
    r"|(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer|token)\s+)?+)[\w.~+/=-]{6,}",
    re.IGNORECASE,
)
_SECRET_NAMES = re.compile(
    r"(?:.*[-_])?(?:api[-_]?key|authorization|password|passwd|secret|(?:access|refresh|auth|id)[-_]?token)",
    re.IGNORECASE,
)
_OPAQUE = {"data", "thoughtSignature", "thought_signature"}
"""Base64 of bytes: what looks like a key in there is chance."""


def redacted(value: Any, name: str = "") -> Any:
    """`value` (JSON) with keys, bearer tokens and the values of fields named like a secret replaced by `[redacted]`.

    E-mail addresses and other personal words stay: a recording is meant to be read before it is shared.
    """
    if isinstance(value, dict):
        return {key: redacted(one, key) for key, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [redacted(one, name) for one in cast(list[Any], value)]
    if not isinstance(value, str) or name in _OPAQUE:
        return value
    if value and _SECRET_NAMES.fullmatch(name):
        return REDACTED
    return _AUTH.sub(lambda found: f"{found[1] or found[2]}{REDACTED}", _KEYS.sub(REDACTED, value))
