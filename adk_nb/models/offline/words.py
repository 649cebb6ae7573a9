"""Cuts a message into tokens, and compares words by their stems."""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import NamedTuple


def word_set(text: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(text.split())


MAX_CHARS, MAX_TOKENS = 4_000, 700
"""Read of a message."""
ARTICLES = word_set("the a an my our your this that its")
PREPOSITIONS = word_set("in for of at on about near with by to from into between as than per via over under")
NEGATIONS = word_set("don't not never without no cannot can't except excluding skip")
STOP = (ARTICLES | PREPOSITIONS | NEGATIONS) | word_set(
    "and or but is are was were be been am do does did done can could would should will i me we us you he she it they "
    "them their his her these those there here what what's whats which when where how how's much many often want "
    "please like some any all each every both also then now so if because yes out off up too very has have had why de"
)
"""Say nothing of their own."""
FILLERS = word_set("compare versus vs show tell give get find check look go try again let's need who")
OPENERS = FILLERS | word_set(
    "add book buy calculate call cancel compute convert count create delete describe explain list make open order pay "
    "plot print put read remove rename roll run save search send set sort start stop take translate turn use write"
)
"""Begin a sentence with a capital letter and are no names."""
DAYS = word_set("today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday sunday")
NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "ten": "10"}
_TOKEN = re.compile(
    r"""
      "(?P<q1>[^"\n]+)" | “(?P<q2>[^”\n]+)” | `(?P<q3>[^`\n]+)` | (?<!\w)'(?P<q4>[^'\n]+)'(?!\w)
    | (?P<code>https?://[^\s<>"']+ | [\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+)
    | (?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?(?!\w) | \b\d{1,2}:\d\d\b)
    | (?P<number>(?:(?<![\w)])[-\u2212+])?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-+]?\d+)?(?![-_]\w))
    | (?P<word>\w(?:[\w'\u2019-]|[./](?=\w))*) | (?P<mark>\S)
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of a message."""

    kind: str
    """`quoted`, `date`, `number`, `code` (an address, or it has digits or an ending), `name`, `word` or `mark`."""
    text: str
    low: str


def tokenize(message: str) -> list[Token]:
    """The tokens of a message's beginning, without quotes and genitives."""
    tokens: list[Token] = []
    for match in islice(_TOKEN.finditer(message[:MAX_CHARS]), MAX_TOKENS):
        kind = "quoted" if str(match.lastgroup)[0] == "q" else str(match.lastgroup)
        text = match[str(match.lastgroup)].replace("\u2019", "'").replace("\u2212", "-")
        if kind == "number" or (kind == "word" and text.lower() in NUMBERS):
            kind, text = "number", NUMBERS.get(text.lower(), text.replace(",", ""))
        elif kind == "word" and text.lower() not in STOP:
            text = text.removesuffix("'s")
            kind = "date" if text.lower() in DAYS else "code" if re.search(r"[\d_.]", text) else kind
            kind = "name" if kind == "word" and text[0].isupper() and text.lower() not in OPENERS else kind
        tokens.append(Token(kind, text, text.lower()))
    return tokens


def words_of(text: str) -> list[str]:
    """The words of an identifier or a text, in small letters."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """The word without its commonest English endings."""
    word = re.sub(r"ies$", "y", word) if len(word) > 4 else word
    word = re.sub(r"(?<=ss|ch|sh|.x)es$|(?<![sui])s$", "", word) if len(word) > 3 else word
    bare = re.sub(r"(ing|ed)$", "", word)
    word = re.sub(r"([^aeiouls])\1$", r"\1", bare) if bare != word and len(bare) > 3 else word
    return word.removesuffix("e") if len(word) > 3 else word


_HINTS = [
    (word_set(said), frozenset(map(stem, meant.split())))
    for said, _, meant in (
        line.partition(":")
        for line in """warm warmer hot hotter cold colder degrees: temperature weather
rain raining sunny wind snow umbrella temperature forecast: weather
heavy heavier weigh: mass weight
long take: length duration time minutes runtime
big bigger large larger: size area diameter
people live: population
old: age
expensive cost much: price cost total
far: distance
tall high: height
fast: speed
when: date time year day
where: place location address city
turn switch put: set add
plus sum total +: add
times product *: multiply
from: origin source start old
to into in: to target destination new""".splitlines()
    )
]
"""Words of a message: words of tools and results that they may mean."""


@lru_cache(maxsize=16_384)
def likeness(word: str, known: str) -> float:
    """How surely a word of a message means a known one: 1 for the same stem, less for a hint or a slip, or 0."""
    one, other = stem(word), stem(known)
    if one == other:
        return 1.0
    if any(word in words and other in meant for words, meant in _HINTS):
        return 0.6
    if min(len(one), len(other)) < 5 or max(len(one), len(other)) > 40:
        return 0.0
    near = one[:6] == other[:6] or SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.86
    return 0.7 if near else 0.0
