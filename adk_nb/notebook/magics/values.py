"""Words of a magic's line and their values: how a line is split, `key=value` pairs, and numbers."""

import argparse
import io
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from adk_nb.errors import InputError

_KEY = re.compile(r"((?:[^\W\d]\w*:)?[^\W\d]\w*)\s*=")
_BEFORE_VALUE = re.compile(r"\s+(?=\S)(?!#|--?[^\W\d]|[\w:]+\s*=)")
_JSON = json.JSONDecoder()


# ---- words


def split_words(line: str, mark: str, *, comments: bool = True, start: int = 0) -> Iterator[tuple[str, int, int]]:
    """The words of `line` by the shell's rules, each with its start and end. `#` before a word ends the line.

    Raises:
        InputError: A quote is not closed.
    """
    stream = io.StringIO(line)
    stream.seek(start)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    while (at := next_word(line, stream.tell())) < len(line):
        if comments and line[at] == "#":
            return
        try:
            word = lexer.get_token()
        except ValueError as error:
            raise InputError(f"{mark}: a quote is opened and not closed in: {line}") from error
        yield word or "", at, stream.tell()


def next_word(line: str, start: int) -> int:
    """Where the next word begins, from `start` on."""
    return len(line) - len(line[start:].lstrip())


def is_option(word: str) -> bool:
    """Whether `word` is written as an option; `-5` and `- a list` are not."""
    return word.startswith("-") and len(word) > 1 and not (word[1].isspace() or word[1].isdigit())


# ---- key=value


def join_pairs(line: str, mark: str) -> str:
    """`line` without blanks around each `=`, and JSON behind it quoted, so that the shell's rules leave it whole.

    Raises:
        InputError: A value begins like JSON and is none, or a quote is not closed.
    """
    joined = ""
    start = 0
    while (start := next_word(line, start)) < len(line) and line[start] != "#":
        if key := _KEY.match(line, start):
            joined += f" {key[1]}="
            blanks = _BEFORE_VALUE.match(line, key.end())
            start = blanks.end() if blanks else key.end()
            end = _end_of_json(line, start)
            if end is None and line[start : start + 1] in ("{", "["):
                raise _no_json(mark, key[1], line[start:])
            if end is not None:
                joined += shlex.quote(line[start:end])
                start = end
            if end is not None or not line[start : start + 1].strip():
                continue
        else:
            joined += " "
        _, at, end = next(split_words(line, mark, comments=False, start=start))
        joined += line[at:end].rstrip()
        start = end
    return joined + " " + line[start:]


def _end_of_json(line: str, start: int) -> int | None:
    """Where the object, list or text in double quotes that begins at `start` ends; None if none does."""
    if line[start : start + 1] not in ("{", "[", '"'):
        return None
    try:
        _, end = _JSON.raw_decode(line, start)
    except ValueError:
        return None
    return None if line[end : end + 1].strip() else end


def pairs(words: Iterable[str], mark: str) -> dict[str, Any]:
    """`key=value` words as a dict; a value is JSON, else text.

    Raises:
        InputError: There is no `=`, nothing before it, or a value begins like JSON and is none.
    """
    values: dict[str, Any] = {}
    for word in words:
        key, text = split_pair(word, mark)
        values[key] = json_or_text(text)
        if text[:1] in ("{", "[") and isinstance(values[key], str):
            raise _no_json(mark, key, text)
    return values


def split_pair(word: str, mark: str, example: str = "key=value") -> tuple[str, str]:
    """Key and value of a `key=value` word; both are text.

    Raises:
        InputError: There is no `=`, or nothing before it.
    """
    key, sign, value = word.partition("=")
    if not (key and sign):
        raise InputError(f"{mark}: {word!r:.60} is not of the form key=value; write {example}")
    if value.startswith("="):
        plain = value.lstrip("=") or "VALUE"
        hint = f'write {key}={plain}, or for a text that begins with =, {key}="{value}"'
        raise InputError(f"{mark}: {word!r:.60} has more than one =; {hint}")
    return key, value


def json_or_text(text: str) -> Any:
    """`text` as JSON, else as it is."""
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except ValueError:
        return text


def _no_json(mark: str, key: str, value: str) -> InputError:
    return InputError(
        f"{mark}: {key}={value:.80} begins like JSON and is none; write names and text in double quotes, as "
        f'{key}={{"x": ["y"]}}, or the whole value in double quotes if it is text'
    )


# ---- values of options


def names(text: str) -> list[str]:
    """`a,b` as a list of names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def positive_integer(text: str) -> int:
    """A number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A time."""
    return _positive(text, text, "number of seconds")


def dollars(text: str) -> float:
    """US dollars; the sign may stand before them."""
    return _positive(text, text.removeprefix("$"), "number of US dollars, such as 0.10")


def _positive(text: str, number: str, what: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive {what}, got {text!r}")
    return value


def either(values: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
