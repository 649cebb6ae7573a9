"""Instructions with `{keys}` in them: what the session's state says is put in their place at each turn."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from adk_nb.errors import StateKeyError, closest

_SPAN = re.compile(r"(?<![${\\])\{+[^{}]*\}+|\\(?P<escaped>\{+[^{}]*\}+)")
_SCOPES = ("app:", "user:", "temp:")


def fill_in(template: str, state: Mapping[str, Any], agent: str) -> str:
    r"""`template` with each `{key}`, `{app:key}` and `{key?}` replaced by the state's value.

    Text is put in as it is, None as nothing, a dict or list as JSON. A key with `?` may be missing. Braces around
    anything that is no key stay as they are, and so does `\{key}`, without its backslash. Values are not scanned
    again.

    Args:
        template: The instruction as written.
        state: The session's state.
        agent: Whose instruction it is, for the error.

    Raises:
        StateKeyError: A key without `?` is not in the state.
    """

    def replace(span: re.Match[str]) -> str:
        if escaped := span["escaped"]:
            return escaped
        key = span.group().strip("{}").strip()
        optional = key.endswith("?")
        key = key.removesuffix("?")
        if not _is_key(key):
            return span.group()
        if key in state:
            return _as_text(state[key])
        if optional:
            return ""
        near = closest(key, state)
        hint = f"did you mean {{{near}}}?" if near else f"set it, or write {{{key}?}} if it may be missing"
        raise StateKeyError(f"Context variable not found: `{key}` in agent {agent!r}; {hint}")

    return _SPAN.sub(replace, template) if "{" in template else template


def _is_key(key: str) -> bool:
    scope = next((one for one in _SCOPES if key.startswith(one)), "")
    return key.removeprefix(scope).isidentifier()


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return to_json(value, fallback=str).decode() if isinstance(value, list | dict) else str(value)
