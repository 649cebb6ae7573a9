"""Tokens of a message, and the likeness of words: by their stems, and by a few hints."""

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_CHARS = 1_000
"""Read of a message."""


def word_set(text: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(text.split())


NEGATIONS = word_set("don't not never without no cannot can't except skip")
PREPOSITIONS = word_set("in for of at on about near with by to from into between as per")
STOP = (NEGATIONS | PREPOSITIONS) | word_set(
    "a an the my our your this that its than and or but is are was were be been do does did done can could would will "
    "i me we us you he she it they them their his her these those there here what what's whats which when where how "
    "how's much many often want need please like some any all each every both also then now so if because off out up "
    "too very has have had why let's should compare versus vs show tell give get find check look go try again who"
)
"""Words that name neither a tool nor a value."""
CHANGING = word_set(
    "add approve book borrow buy cancel change create delete deploy drop edit execute insert kill move order pay post "
    "publish put refund remove rename replace reset restart save sell send set start stop submit update"
)
"""Verbs of tools that change something."""
_OPENERS = CHANGING | word_set("convert count describe ignore list print read roll search translate write")
"""Begin a sentence with a capital letter, and are no names."""
_DAYS = word_set("today tomorrow tonight monday tuesday wednesday thursday friday saturday sunday")
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "ten": "10"}
_HINTS = """heavy heavier heaviest weigh: mass weight
warm warmer hot hotter hottest cold colder coldest: temperature weather
temperature rain raining sunny wind windy: weather
big bigger biggest large larger largest small smaller smallest: size area diameter
far farther: distance
old older oldest: age
turn switch put: set add
sum plus +: add
times *: multiply"""
_SYNONYMS = {
    source: targets.split()
    for sources, targets in (h.split(": ") for h in _HINTS.split("\n"))
    for source in sources.split()
}
"""Words of a message, and words of tools and results that they may mean."""
_TOKEN = re.compile(
    r"""["“`](?P<q1>[^"”`\n]+)["”`] | (?<!\w)'(?P<q2>[^'\n]+)'(?!\w) | (?P<date>\d{4}-\d\d-\d\d(?!\w) | \b\d\d?:\d\d\b)
    | (?P<number>(?:(?<![\w)])[-\u2212+])?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-+]?\d+)?(?![-_]\w))
    | (?P<word>\w(?:[\w'\u2019-]|[.@](?=\w)|:?/+(?=\w))*) | (?P<mark>\S)""",
    re.VERBOSE,
)


def tokenize(message: str) -> list[tuple[str, str]]:
    """Kinds and texts: `quoted`, `date`, `number`, `code` (as `A-17`, `a.txt`), `name`, `word`, `stop` or `mark`."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(message[:MAX_CHARS].replace("\u2019", "'").replace("\u2212", "-")):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        low = text.lower()
        if kind == "number" or (kind == "word" and low in _NUMBERS):
            kind, text = "number", _NUMBERS.get(low, text.replace(",", ""))
        elif kind == "word":
            text = text.removesuffix("'s") if low not in STOP else text
            is_name = text[0].isupper() and low not in _OPENERS
            kinds = {"stop": low in STOP, "date": low in _DAYS, "code": re.search(r"[\d_./@]", text), "name": is_name}
            kind = next((kind for kind, matches in kinds.items() if matches), kind)
        tokens.append(("quoted" if kind[0] == "q" else kind, text))
    return tokens


def words_of(text: str) -> list[str]:
    """The words of an identifier or a text, in small letters."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """The word without its commonest English endings."""
    return re.sub(r"(?<=\w\w\w)(es|s|ing|ed|e)$", "", re.sub(r"(?<=\w\w)ies$", "y", word))


@lru_cache(maxsize=16_384)
def likeness(word: str, known: str) -> float:
    """How surely a word of a message means a known one: 1 for the same stem, less for a hint or a beginning, or 0."""
    word_stem, known_stem = stem(word), stem(known)
    is_hint = known_stem in map(stem, _SYNONYMS.get(word, ()))
    return (
        1.0
        if word_stem == known_stem
        else 0.6
        if is_hint or (word_stem[:6] == known_stem[:6] and len(word_stem) > 5)
        else 0.0
    )


def like(word: str, known: Iterable[str]) -> float:
    """The likeness of a word and the likest of those known, which have two letters or more."""
    return max((likeness(word, candidate) for candidate in known if len(candidate) > 1), default=0.0)
