"""Cuts a message into words, numbers, quotes, dates and codes, and says which words are the same word."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice

from adk_nb.models.offline.vocabulary import NUMBERS, STOP

MAX_CHARS = 4_000
"""Of a message that are read; a matcher by words gains nothing from more."""
MAX_TOKENS = 700
"""Of a message: as many as its characters hold when they are words."""

_TOKEN = re.compile(
    r"""
      "(?P<q1>[^"\n]{1,500})" | “(?P<q2>[^”\n]{1,500})” | «(?P<q3>[^»\n]{1,500})» | `(?P<q4>[^`\n]{1,500})`
    | (?<!\w)'(?P<q5>[^'\n]{1,200})'(?!\w)
    | (?P<link>https?://[^\s<>"']+ | [\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5})
    | (?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?(?!\w) | \b\d{1,2}:\d\d\b)
    | (?P<file>(?<![\w-])[^\W\d][\w-]{0,60}(?:[./][\w-]{1,60}){0,5}\.(?-i:[a-z])[a-z0-9]{0,5}(?![\w/]))
    | (?P<code>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b
        | \#\w+ | \b[^\W\d_]+(?:[-_]?\d)[\w-]* | \b\d+[-_][^\W_][\w-]* )
    | (?P<number>(?<![\w.])[-\u2212+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(?:\.\d+)?(?:[eE][-+]?\d+)?)
    | (?P<word>[^\W\d]\w*(?:['\u2019-][^\W\d]\w*)*)
    | (?P<mark>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Token:
    """One piece of a message."""

    kind: str
    """`word`, `number`, `quoted`, `date`, `file` (it has an ending), `code` (letters with digits), `link` or `mark`."""
    text: str
    """Without its quotes, and without a genitive's `'s`."""
    start: int
    """Where in the message, in characters."""
    end: int

    @property
    def low(self) -> str:
        """In small letters."""
        return self.text.lower()

    @property
    def number(self) -> int | float | None:
        """The number it is, or None."""
        if self.kind == "word":
            return NUMBERS.get(self.low)
        if self.kind != "number":
            return None
        plain = self.text.replace(",", "").replace("\u2212", "-")
        found = float(plain)
        return int(found) if found.is_integer() and abs(found) < 1e15 and "." not in plain else found

    @property
    def capital(self) -> bool:
        """It is a word that starts with a capital letter."""
        return self.kind == "word" and self.text[0].isupper()


def tokens(message: str) -> list[Token]:
    """The pieces of the first 4,000 characters of `message`, in order, at most 700."""
    found: list[Token] = []
    for match in islice(_TOKEN.finditer(message[:MAX_CHARS]), MAX_TOKENS):
        kind = match.lastgroup or "mark"
        text = match[kind]
        if kind == "word":
            text = _word(text)
        found.append(Token("quoted" if kind.startswith("q") else kind, text, match.start(), match.end()))
    return found


def _word(text: str) -> str:
    text = text.replace("\u2019", "'")
    return text if text.lower() in STOP else text.removesuffix("'s")


def words_of(name: str) -> list[str]:
    """The words of an identifier or a text, in small letters: `fromUnit`, `from_unit` and `from unit` are the same."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """The word without its commonest English endings."""
    word = word.lower()
    for ending, put in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + put
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 3:
            word = word.removesuffix(ending)
            word = word[:-1] if word[-1] == word[-2] and word[-1] not in "ls" else word
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


@lru_cache(maxsize=16_384)
def likeness(one: str, other: str) -> float:
    """How surely two words are the same one: 1 for one stem, less for a shared beginning or a slip of the pen, or 0."""
    one, other = stem(one), stem(other)
    if one == other:
        return 1.0
    longest = max(len(one), len(other))
    if min(len(one), len(other)) < 5 or longest > 40:
        return 0.0
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if shared >= 6 and shared >= 0.6 * longest:
        return 0.8
    return 0.7 if SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.86 else 0.0
