"""Untrusted values as text that is safe to display: no escape sequences, invisible marks, keys or memory addresses."""

import json
import re
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, cast

from adk_nb.redaction import redacted, without_known

SHORT = 200
"""Characters of an argument list, a result or a state value in a row."""
LONG = 20_000
"""Characters of the details of an opened row."""
MOST_ARGUMENTS = 100
"""Arguments of one call that are listed."""
_LEAST = 12
"""Characters of a value in a row, however many arguments there are."""
_LONGEST_NAME = 80
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(:)?')
"""A JSON string; a colon behind it marks a key."""
_LATIN = re.compile("[A-Za-z]")
_PLAIN_NAME = re.compile(r"\w[\w.-]*")

_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles, hyperlinks
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
)
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reading direction: displayed order differs from stored order
    "\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # zero width, annotations and tags
)
_PICTOGRAM = "[\u00a9\u00ae\u203c\u2049\u2100-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
_EMOJI = f"{_PICTOGRAM}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
_NOT_ASCII = re.compile(f"(?P<emoji>{_EMOJI}(?:\u200d{_EMOJI})*)|[^\t\n\x20-\x7e]")
_NO_INK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks that are displayed as nothing, although Python counts them as printable."""
_VARIATIONS = ("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINK = re.compile(r"(?:https?://|mailto:)[^\s<>\"'`\\]+", re.IGNORECASE)
_BREAKS = re.compile("\r\n?|[\u2028\u2029]")


def cleaned(text: str) -> str:
    """`text` without terminal sequences, control and direction marks, and keys, with line ends as newlines."""
    if _is_plain(text):
        return redacted(text)
    return redacted(without_invisible(_SEQUENCES.sub("", _BREAKS.sub("\n", text))))


def without_invisible(text: str) -> str:
    """`text` without control and direction marks and lone surrogates."""
    return _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text))


def one_line(text: str, limit: int = SHORT) -> str:
    """`text` cleaned and on one line, at most `limit` characters."""
    return shortened(" ".join(cleaned(text).split()), limit)


def shortened(text: str, limit: int = SHORT) -> str:
    """At most `limit` characters, ending with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def json_text(value: Any, *, name: str = "") -> str:
    """`value` as JSON in which keys are masked and invisible characters are escaped.

    Args:
        value: JSON; other objects in it become `<their type>`, so no memory address is shown.
        name: Name of the value: the value of a field named like a secret is masked.
    """
    return _as_json(value, lambda: redacted(value, name))


def exact_text(value: Any) -> str:
    """`value` as JSON, as `json_text`, but masking only known secrets: an approver must see the other values."""
    text = _as_json(value, lambda: without_known(value))
    return (
        text if text.isascii() else _STRING.sub(lambda match: _plain_script(match[0]) if match[1] else match[0], text)
    )


def _as_json(value: Any, safe: Callable[[], Any]) -> str:
    try:
        text = json.dumps(safe(), ensure_ascii=False, default=_type_of)
    except (TypeError, ValueError, RecursionError):  # odd keys, a list inside itself
        text = _type_of(value)
    return with_escapes(text)


def with_escapes(text: str) -> str:
    r"""`text` with an escape, as `\u202e`, for each invisible character; tabs, line ends and emoji stay."""

    def escape(match: re.Match[str]) -> str:
        character = match[0]
        is_variation = any(first <= character <= last for first, last in _VARIATIONS)
        is_seen = match["emoji"] or (character.isprintable() and character not in _NO_INK and not is_variation)
        return character if is_seen else json.dumps(character)[1:-1]

    return text if _is_plain(text) else _NOT_ASCII.sub(escape, text)


def bounded_json(value: Any, limit: int) -> Any:
    """JSON whose strings have at most `limit` characters, with escapes for invisible ones."""
    if isinstance(value, str):
        return shortened(with_escapes(value[: limit + LONG]), limit)
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
        return {with_escapes(str(key)): bounded_json(part, limit) for key, part in items}
    return [bounded_json(part, limit) for part in cast(list[Any], value)] if isinstance(value, list) else value


def name_text(name: str | None) -> str:
    """The name of a tool or an argument on one line, in quotes unless it is a plain identifier."""
    text = _plain_script(with_escapes(json.dumps(name or "", ensure_ascii=False)))
    return abridged(text[1:-1] if _PLAIN_NAME.fullmatch(name or "") else text, _LONGEST_NAME)


def _plain_script(name: str) -> str:
    """`name` with escapes if it mixes scripts, as `amount` with a Cyrillic a."""
    others = (letter for letter in name if letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN"))
    return ascii_escaped(name) if _LATIN.search(name) and any(others) else name


def ascii_escaped(text: str) -> str:
    """`text` with an escape for each character that is not ASCII."""
    return text.encode("ascii", "backslashreplace").decode()


def abridged(text: str, limit: int) -> str:
    """About `limit` characters: the beginning, the number of omitted characters, and the end."""
    if len(text) <= limit:
        return text
    end = limit // 4
    return f"{text[: limit - end]} … {len(text) - limit:,} characters … {text[-end:]}"


def fair_length(lengths: Sequence[int], limit: int, least: int) -> int:
    """Characters for each of several texts so that together they have `limit`; at least `least`. Short texts share."""
    budget, remaining = limit, len(lengths)
    for length in sorted(lengths):
        if length * remaining > budget:
            return max(least, budget // remaining)
        budget, remaining = budget - length, remaining - 1
    return max(lengths, default=least)


def arguments_text(args: dict[str, Any]) -> str:
    """`city="Paris", day="today"`, about SHORT characters; each long value is shortened."""
    arguments = [(name_text(name), json_text(value, name=name)) for name, value in list(args.items())[:MOST_ARGUMENTS]]
    most = fair_length([len(f"{name}={text}, ") for name, text in arguments], SHORT + len(", "), _LEAST)
    texts = [f"{name}={shortened(text, max(_LEAST, most - len(f'{name}=, ')))}" for name, text in arguments]
    return ", ".join([*texts, *([f"… {omitted} more"] if (omitted := len(args) - len(arguments)) else [])])


def call_text(tool: str, args: str | None) -> str:
    """`get_weather(city="Paris")`, with an ellipsis if the arguments are unknown."""
    return f"{tool}({'…' if args is None else args})"


def _is_plain(text: str) -> bool:
    """True for printable ASCII, a fast check that lets most texts skip the regular expressions."""
    return text.isascii() and text.isprintable()


def _type_of(value: Any) -> str:
    return f"<{type(value).__qualname__}>"


def is_safe_link(url: str) -> bool:
    """True for http, https and mailto."""
    return _LINK.fullmatch(url) is not None


def quoted(name: str) -> str:
    """The name of a session as it is typed after a magic, so that it comes back equal."""
    # shlex leaves `=` bare, which makes a `key=value` there.
    return "'" + name.replace("'", "'\"'\"'") + "'" if "=" in name else shlex.quote(name)
