"""Untrusted values as text that is safe to show: no escape sequences, no invisible marks, no keys, no addresses."""

import json
import re
from typing import Any

from adk_nb.redaction import redacted

SHORT = 200
"""Characters of an argument list, a result or a state value that a row shows."""
LONG = 20_000
"""Characters of an opened row's details."""

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, hyperlinks
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reading direction: text that reads otherwise than it is
    "\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # text that is not seen
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile("\r\n?|[\u2028\u2029]")


def cleaned(text: str) -> str:
    """`text` without terminal sequences, control and direction marks, and keys; lines end as in Python."""
    if _is_plain(text):
        return redacted(text)
    return redacted(visible(_SEQUENCES.sub("", _BREAKS.sub("\n", text))))


def visible(text: str) -> str:
    """`text` without control and direction marks, and without halves of characters."""
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def one_line(text: str, limit: int = SHORT) -> str:
    """`text` cleaned, its white space single blanks, at most `limit` characters."""
    return shortened(" ".join(cleaned(text).split()), limit)


def shortened(text: str, limit: int = SHORT) -> str:
    """At most `limit` characters; an ellipsis says that there was more."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def json_text(value: Any, *, name: str = "", indent: int | None = None) -> str:
    """`value` as JSON in which keys are masked and invisible characters are spelled out.

    Args:
        value: JSON; anything else in it stands as `<its type>`, so no memory address is ever shown.
        name: What the value is called: the value of a field named like a secret is masked.
        indent: Blanks per level; None puts all on one line.
    """
    try:
        text = json.dumps(redacted(value, name), ensure_ascii=False, indent=indent, default=_type_of)
    except (TypeError, ValueError, RecursionError):  # odd keys, a list inside itself
        text = _type_of(value)
    return text if _is_plain(text) else _SURROGATES.sub(_spelled, _INVISIBLE.sub(_spelled, text))


def arguments_text(args: dict[str, Any], limit: int = SHORT) -> str:
    """`city="Paris", day="today"`, at most `limit` characters."""
    said = [f"{one_line(name, 80)}={json_text(value, name=name)}" for name, value in args.items()]
    return shortened(", ".join(said), limit)


def call_text(tool: str, args: str | None) -> str:
    """`get_weather(city="Paris")`; with an ellipsis where the arguments are not known."""
    return f"{tool}({'…' if args is None else args})"


def _is_plain(text: str) -> bool:
    """Most is, and to see it costs less than to look for each thing that may be in the rest."""
    return text.isascii() and text.isprintable()


def _type_of(value: Any) -> str:
    return f"<{type(value).__qualname__}>"


def _spelled(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
