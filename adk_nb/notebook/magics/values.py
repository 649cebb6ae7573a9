"""Tokens of a magic's line: splitting, `key=value` pairs, and values of options."""

import argparse
import io
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from adk_nb.errors import InputError

_KEY = re.compile(r"((?:[^\W\d]\w*:)?[^\W\d]\w*)\s*=")
_BEFORE_VALUE = re.compile(r"\s+(?=\S)(?!#|--?[^\W\d]|[\w:]+\s*=)")
_JSON = json.JSONDecoder()


# ---- tokens


def split_tokens(
    line: str, mark: str, *, comments: bool = True, pairs: bool = False, start: int = 0
) -> Iterator[tuple[str, int]]:
    """Split `line` by the rules of a POSIX shell; yield each token and the position after it.

    Args:
        line: The line after the name of the magic.
        mark: The magic as typed, for errors.
        comments: A token that begins with `#` ends the line.
        pairs: Values of `key=value` may have blanks around `=`, and JSON without quotes around it.
        start: The position to start at.

    Raises:
        InputError: A quote is not closed, or a value begins like JSON and is invalid.
    """
    while (start := next_token(line, start)) < len(line) and not (comments and line[start] == "#"):
        key = _KEY.match(line, start) if pairs else None
        token, start = _pair(line, key, mark) if key else _shell_token(line, start, mark)
        yield token, start


def next_token(line: str, start: int) -> int:
    """Return the position of the next token, from `start` on."""
    return len(line) - len(line[start:].lstrip())


def is_option(token: str) -> bool:
    """Return True for `-m` and `--model`; not for `-5`, nor `- an item`."""
    return token.startswith("-") and len(token) > 1 and not (token[1].isspace() or token[1].isdigit())


def _shell_token(line: str, start: int, mark: str) -> tuple[str, int]:
    stream = io.StringIO(line)
    stream.seek(start)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return lexer.get_token() or "", stream.tell()
    except ValueError as error:
        raise InputError(f"{mark}: a quote is not closed: {line}") from error


def _pair(line: str, key: re.Match[str], mark: str) -> tuple[str, int]:
    blanks = _BEFORE_VALUE.match(line, key.end())
    start = blanks.end() if blanks else key.end()
    first = line[start : start + 1]
    if first in ("{", "[", '"'):
        with suppress(ValueError):
            _, end = _JSON.raw_decode(line, start)
            if not line[end : end + 1].strip():
                return f"{key[1]}={line[start:end]}", end
    if first in ("{", "["):
        raise _no_json(mark, key[1], line[start:])
    value, end = _shell_token(line, start, mark) if first.strip() else ("", start)
    return f"{key[1]}={value}", end


# ---- key=value


def pairs(tokens: Iterable[str], mark: str) -> dict[str, Any]:
    """Parse `key=value` tokens; a value is JSON, else text.

    Raises:
        InputError: A key or `=` is missing, or a value begins like JSON and is invalid.
    """
    values: dict[str, Any] = {}
    for token in tokens:
        key, text = split_pair(token, mark)
        values[key] = json_or_text(text)
        if text[:1] in ("{", "[") and isinstance(values[key], str):
            raise _no_json(mark, key, text)
    return values


def split_pair(token: str, mark: str, example: str = "key=value") -> tuple[str, str]:
    """Return key and value of a `key=value` token, both as text.

    Raises:
        InputError: A key or `=` is missing, or the value begins with `=`.
    """
    key, sign, value = token.partition("=")
    if not (key and sign):
        raise InputError(f"{mark}: expected {example}, got {token!r:.60}")
    if value.startswith("="):
        plain = value.lstrip("=") or "VALUE"
        hint = f'type {key}={plain}, or for a text that begins with =, {key}="{value}"'
        raise InputError(f"{mark}: {token!r:.60} has more than one =; {hint}")
    return key, value


def json_or_text(text: str) -> Any:
    """Parse `text` as JSON; return it unchanged if it is not JSON."""
    try:
        return json.loads(text, parse_constant=lambda token: token)
    except ValueError:
        return text


def _no_json(mark: str, key: str, value: str) -> InputError:
    return InputError(
        f"{mark}: {key}={value:.80} is not valid JSON; put names and text in double quotes, as "
        f'{key}={{"x": ["y"]}}, or the whole value if it is text'
    )


# ---- values of options


def names(text: str) -> list[str]:
    """Parse `a,b` as names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def positive_integer(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    return _positive(text, text, "number of seconds")


def dollars(text: str) -> float:
    """Parse a positive number of US dollars, with or without `$`."""
    return _positive(text, text.removeprefix("$"), "number of US dollars, such as 0.10")


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text!r}")
    return value


def _positive(text: str, number: str, noun: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive {noun}, got {text!r}")
    return value


def either(values: Sequence[str]) -> str:
    """Join `a, b or c`."""
    return " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
