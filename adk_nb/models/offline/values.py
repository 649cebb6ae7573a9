"""Finds in a message what could be a value: names, words after a preposition, numbers, mentions of an enum's values."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb.models.offline.vocabulary import ARTICLES, DAYS, FILLERS, JOINS, NAME_JOINERS, OPENERS, PREPOSITIONS, STOP
from adk_nb.models.offline.words import Token, likeness, stem, tokens, words_of

_MAX_WORDS = 4
_WHOLE = ("quoted", "file", "code", "link")


@dataclass(frozen=True)
class Found:
    """A value and where it stands."""

    value: Any
    first: int
    last: int
    """Of its tokens, both inclusive."""
    after: str = ""
    """The preposition before it."""
    capital: bool = False
    """A name, by its capital letter."""


class Reading:
    """A message cut to tokens, with a note of which are taken by an argument and which name the tool itself."""

    def __init__(self, message: str, topic: Collection[str], described: Collection[str] = ()) -> None:
        """Cut `message`.

        Args:
            message: As it was typed.
            topic: The words of the tool's and its parameters' names, which are no values.
            described: The words that say what the tool does; they are values only where a preposition says so.
        """
        self.message = message
        self.tokens: Sequence[Token] = tokens(message)
        self.topic = self._among(topic)
        self.described = self._among(described)
        self.used: set[int] = set()

    def _among(self, words: Collection[str]) -> set[int]:
        stems = {stem(word) for word in words}
        return {n for n, one in enumerate(self.tokens) if one.kind == "word" and stem(one.low) in stems}

    def take(self, found: Found) -> Any:
        """The value, its tokens marked as used."""
        self.used.update(range(found.first, found.last + 1))
        return found.value

    def low(self, n: int) -> str:
        """Token `n` in small letters, or nothing outside the message."""
        return self.tokens[n].low if 0 <= n < len(self.tokens) else ""

    def said(self, first: int, last: int) -> str:
        """The message from one token to another, as it was typed."""
        if first == last:
            return self.tokens[first].text
        return self.message[self.tokens[first].start : self.tokens[last].end]

    def preposition(self, n: int) -> str:
        """The preposition right before token `n`, articles skipped."""
        n -= 1
        while self.low(n) in ARTICLES:
            n -= 1
        return self.low(n) if self.low(n) in PREPOSITIONS else ""

    def content(self, n: int) -> bool:
        """Token `n` says something that nothing else has used."""
        token = self.tokens[n]
        return (
            token.kind != "mark"
            and n not in self.used
            and n not in self.topic
            and token.low not in STOP
            and token.low not in FILLERS
        )

    def span(self, n: int) -> Found | None:
        """The text value that starts at token `n`: a quote, a code, a name, or up to four plain words."""
        if not 0 <= n < len(self.tokens) or not self.content(n):
            return None
        token = self.tokens[n]
        if token.kind in _WHOLE:
            return Found(token.text, n, n, self.preposition(n), capital=token.kind == "quoted")
        if token.kind != "word" or token.low in DAYS:
            return None
        last = self._name_end(n) if token.capital else self._words_end(n)
        return Found(self.said(n, last), n, last, self.preposition(n), capital=token.capital)

    def _name_end(self, n: int) -> int:
        last = n
        while last + 1 < len(self.tokens) and last - n < 2 * _MAX_WORDS:
            after = last + 1
            if self.low(after) in NAME_JOINERS and after + 1 < len(self.tokens) and self.tokens[after + 1].capital:
                after += 1
            if not self.tokens[after].capital or not self.content(after) or self.low(after) in DAYS:
                break
            last = after
        return last

    def _words_end(self, n: int) -> int:
        last = n
        while last + 1 < len(self.tokens) and last - n < _MAX_WORDS - 1:
            token = self.tokens[last + 1]
            if token.kind != "word" or token.capital or token.low in DAYS or not self.content(last + 1):
                break
            last += 1
        return last

    def after(self, prepositions: Collection[str]) -> Iterator[Found]:
        """The text values that follow one of `prepositions`, in order."""
        for n, token in enumerate(self.tokens):
            if token.kind == "word" and token.low in prepositions:
                start = n + 1
                while self.low(start) in ARTICLES:
                    start += 1
                if found := self.span(start):
                    yield found

    def names(self) -> Iterator[Found]:
        """The capitalised names that open no sentence as a verb would, in order."""
        n = 0
        while n < len(self.tokens):
            found = self.span(n) if self.tokens[n].capital and self.low(n) not in OPENERS else None
            if found:
                yield found
            n = found.last + 1 if found else n + 1

    def quotes(self) -> Iterator[Found]:
        """The quoted texts that are free, in order."""
        for n, token in enumerate(self.tokens):
            if token.kind == "quoted" and n not in self.used:
                yield Found(token.text, n, n, capital=True)

    def numbers(self) -> Iterator[Found]:
        """The numbers that are free, in order."""
        for n, token in enumerate(self.tokens):
            if n not in self.used and (number := token.number) is not None:
                yield Found(number, n, n, self.preposition(n))

    def counted(self, n: int) -> bool:
        """A number stands right before token `n`, as before a unit."""
        before = n - 2 if self.low(n - 1) in ("°", "degrees") else n - 1
        return before >= 0 and self.tokens[before].number is not None

    def of_kind(self, kind: str) -> Iterator[Found]:
        """The free tokens of one kind, in order."""
        for n, token in enumerate(self.tokens):
            if token.kind == kind and n not in self.used:
                yield Found(token.text.removeprefix("#"), n, n, self.preposition(n))

    def leftover(self) -> Found | None:
        """The one run of words that nothing else has used; None when there is none or more than one."""
        free = [n for n in range(len(self.tokens)) if self.content(n) and n not in self.described]
        if not free or free[-1] - free[0] >= _MAX_WORDS or free != list(range(free[0], free[-1] + 1)):
            return None
        return Found(self.said(free[0], free[-1]), free[0], free[-1])

    def series(self, found: Found) -> list[Found]:
        """`found` and those that a comma or an "and" joins to it. `Paris, France` is one place, not two."""
        all_found, commas_only = [found], True
        while True:
            n = all_found[-1].last + 1
            start = n
            while self.low(n) in JOINS:
                commas_only &= self.low(n) == ","
                n += 1
            while n > start and self.low(n) in ARTICLES | PREPOSITIONS:
                n += 1
            following = self.span(n) if n > start else None
            if not following or following.capital != found.capital:
                break
            all_found.append(following)
        if len(all_found) == 2 and commas_only and self.tokens[found.first].kind == "word" and found.capital:
            return [Found(self.said(found.first, all_found[1].last), found.first, all_found[1].last, found.after)]
        return all_found

    def mentions(self, enum: Sequence[Any]) -> list[Found]:
        """Where one of `enum`'s values is named, in order; whole words first, then abbreviations."""
        found: list[Found] = []
        taken: set[int] = set()
        for exact in (True, False):
            for n in range(len(self.tokens)):
                if n in taken or n in self.used:
                    continue
                one = self._named(n, enum) if exact else self._abbreviated(n, enum)
                if one:
                    taken.update(range(one.first, one.last + 1))
                    found.append(one)
        return sorted(found, key=lambda one: one.first)

    def _named(self, n: int, enum: Sequence[Any]) -> Found | None:
        for value in sorted(enum, key=lambda one: -len(str(one))):
            words = words_of(str(value)) or [str(value)]
            last = n + len(words) - 1
            if last < len(self.tokens) and self._says(n, words, str(value)):
                return Found(value, n, last, self.preposition(n))
        whole = [one for one in enum if words_of(str(one)) == words_of(self.tokens[n].text)]
        return Found(whole[0], n, n, self.preposition(n)) if whole and self.low(n) not in STOP else None

    def _says(self, n: int, words: Sequence[str], value: str) -> bool:
        if len(words) > 1:
            return all(likeness(self.low(n + k), word) == 1 for k, word in enumerate(words))
        if len(value) == 1 or self.low(n) in STOP:
            beside = self.counted(n) or bool(self.preposition(n))
            return self.low(n) == value.lower() and (beside or (len(value) > 1 and self.tokens[n].kind == "quoted"))
        same = self.low(n) == f"{words[0]}s" or likeness(self.low(n), words[0]) == 1
        return same and self.tokens[n].kind != "mark"

    def _abbreviated(self, n: int, enum: Sequence[Any]) -> Found | None:
        """A word that one value shortens, such as `kg` for kilograms; only where a unit would stand."""
        word = self.low(n)
        counted = self.low(n - 1) in ("many", "much") or self.counted(n) or bool(self.preposition(n))
        if not counted or self.tokens[n].kind != "word" or word in STOP or len(word) < 4:
            return None
        ranks = [(-len(value), _reach(value, word), value) for value in enum if isinstance(value, str)]
        fitting = sorted(one for one in ranks if one[1] >= 0)
        return Found(fitting[0][2], n, n, self.preposition(n)) if fitting else None


def _reach(short: str, word: str) -> int:
    """Where in `word` the last letter of `short` stands, if all stand there in order from the first letter; else -1."""
    letters, at = short.lower(), -1
    if len(letters) >= len(word) or not letters.isalpha() or letters[0] != word[0]:
        return -1
    for letter in letters:
        at = word.find(letter, at + 1)
        if at < 0:
            return -1
    return at
