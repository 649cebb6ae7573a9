"""Fills a tool's arguments from the words of a message, by type, name, description and place in the sentence."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from adk_nb.models.offline import numbers as quantities
from adk_nb.models.offline import texts
from adk_nb.models.offline.tools import OfferedTool, Parameter
from adk_nb.models.offline.values import Found, Reading
from adk_nb.models.offline.vocabulary import (
    ARTICLES,
    CODES,
    DATES,
    DAYS,
    GENERIC,
    JOINS,
    LINKS,
    NEGATIONS,
    NOT_NAMES,
    PREPOSITIONS,
    QUERIES,
    SOURCES,
    STOP,
    TARGETS,
    WEAK,
)
from adk_nb.models.offline.words import likeness, words_of

MAX_CALLS = 8
"""Of one tool in one answer."""


@dataclass(frozen=True)
class Filled:
    """What a message gives for a tool's parameters."""

    values: dict[str, list[Any]]
    """Parameter -> its values; several make one call each."""
    missing: list[Parameter]
    """Required, and not in the message."""
    spare: int
    """How many words of the message say something that is neither an argument nor a name of the tool."""
    guessed: bool = False
    """A text was taken from its place alone, with neither quotes nor a name's capital to mark it."""

    def calls(self) -> list[dict[str, Any]]:
        """The arguments of each call, at most eight."""
        every = product(*self.values.values())
        return [dict(zip(self.values, one, strict=True)) for one in islice(every, MAX_CALLS)]


def fill(tool: OfferedTool, message: str) -> Filled:
    """Read the arguments of `tool` from `message`. A default is left out, and nothing is made up."""
    return _Filler(tool, message).fill()


class _Filler:
    def __init__(self, tool: OfferedTool, message: str) -> None:
        self.tool = tool
        names = {word for one in tool.parameters for word in one.words if len(word) > 1}
        self.reading = Reading(message, {*tool.words, *names} - STOP, set(words_of(tool.purpose)) - STOP)
        self.values: dict[str, list[Any]] = {}
        self.guessed = False

    def fill(self) -> Filled:
        for step in (self._explicit, self._enums, self._booleans, self._objects, self._dates, self._codes):
            for one in self._open():
                step(one)
        self._numbers()
        for step in (self._arrays, self._ends, self._texts, self._queries, self._optional):
            for one in self._open():
                step(one)
        missing = [one for one in self._open() if one.required]
        spare = sum(self.reading.content(n) for n in range(len(self.reading.tokens)))
        order = [one.name for one in self.tool.parameters if one.name in self.values]
        return Filled({name: self.values[name] for name in order}, missing, spare, self.guessed)

    def _open(self) -> list[Parameter]:
        return [one for one in self.tool.parameters if one.name not in self.values]

    def _set(self, one: Parameter, found: Sequence[Found]) -> None:
        values = list(dict.fromkeys(self.reading.take(each) for each in found))
        if values:
            self.values[one.name] = [values] if one.kind == "array" else values

    def _alone(self, one: Parameter) -> bool:
        """No other required parameter wants the same sort of value, so several values mean several calls."""
        others = (other for other in self.tool.parameters if other is not one and other.required)
        return all(other.sort != one.sort for other in others)

    def _several(self, one: Parameter, found: Found) -> list[Found]:
        return self.reading.series(found) if self._alone(one) else [found]

    def _explicit(self, one: Parameter) -> None:
        """`city=Oslo`, `city: Oslo`, `order 1234`, `column price`."""
        for first, last in self._spots(one):
            if self.reading.low(last + 1) in ("=", ":"):
                found = self._assigned(one, last + 2)
            else:
                skip = 2 if self.reading.low(last + 1) in LINKS else 1
                found = self._beside(one, last + skip)
            if found:
                self.reading.used.update(range(first, last + 1))
                several = self._several(one, found) if isinstance(found.value, str) and not one.enum else [found]
                self._set(one, several)
                return

    def _spots(self, one: Parameter) -> Iterator[tuple[int, int]]:
        """Where the parameter is named: its first and last token."""
        short = [word for word in one.words if word not in GENERIC]
        for n, token in enumerate(self.reading.tokens):
            if token.low == one.name.lower():
                yield n, n
                continue
            for words in (one.words, short):
                last = n + len(words) - 1
                if words and all(self.reading.low(n + k) == word for k, word in enumerate(words)):
                    yield n, last
                    break

    def _assigned(self, one: Parameter, n: int) -> Found | None:
        """All that stands behind `name=`, up to a comma or the next `name=`."""
        tokens, last = self.reading.tokens, n
        if n >= len(tokens) or one.kind in ("array", "object"):
            return None
        while last + 1 < len(tokens) and tokens[last].kind != "quoted":
            if tokens[last + 1].text in ",;)?!\n" or self.reading.low(last + 2) == "=":
                break
            last += 1
        value = one.typed(self.reading.said(n, last))
        return None if value is None else Found(value, n, last)

    def _beside(self, one: Parameter, n: int) -> Found | None:
        if one.enum or one.kind in ("array", "object", "boolean") or n >= len(self.reading.tokens):
            return None
        token = self.reading.tokens[n]
        if one.numeric:
            value = one.typed(token.text) if token.number is not None else None
            return None if value is None else Found(value, n, n)
        if one.about(DATES) or one.about(QUERIES):
            return Found(token.text, n, n) if token.kind in ("quoted", "date") else None
        if token.kind in ("code", "number") and one.about(CODES):
            return Found(token.text.removeprefix("#"), n, n)
        return self.reading.span(n)

    def _enums(self, one: Parameter) -> None:
        enum = one.enum or (one.items.enum if one.items else ())
        if not enum or one.kind == "boolean":
            return
        mentions = self.reading.mentions(enum)
        if one.kind == "array":
            return self._set(one, mentions)
        rivals = [other for other in self._open() if other is not one and other.enum == one.enum]
        if not rivals:
            joined = [each for n, each in enumerate(mentions) if n == 0 or self._joined(mentions[n - 1], each)]
            return self._set(one, joined if one.required or joined else [])
        if best := self._for_end(one, mentions):
            self._set(one, [best])

    def _joined(self, left: Found, right: Found) -> bool:
        between = {self.reading.low(n) for n in range(left.last + 1, right.first)} - ARTICLES - PREPOSITIONS
        return bool(between) and between <= JOINS | set(self.tool.words)

    def _for_end(self, one: Parameter, mentions: Sequence[Found]) -> Found | None:
        """Of two parameters with the same values, which mention belongs to this one."""
        source, target = one.about(SOURCES), one.about(TARGETS)
        if not mentions:
            return None
        if target:
            marked = [each for each in mentions if each.after in ("to", "into", "in", "as")]
            unmarked = [each for each in mentions if not self.reading.counted(each.first) and each.after != "from"]
            return (marked or unmarked or [None])[-1 if marked else 0]
        if source:
            marked = [each for each in mentions if each.after == "from" or self.reading.counted(each.first)]
            unmarked = [each for each in mentions if each.after not in ("to", "into")]
            return (marked or unmarked or [None])[0]
        return mentions[0]

    def _booleans(self, one: Parameter) -> None:
        if one.kind != "boolean":
            return
        wanted = [word for word in one.words if word not in GENERIC] or list(one.words)
        spots = [n for n in range(len(self.reading.tokens)) if likeness(self.reading.low(n), wanted[0]) == 1]
        for n in spots:
            if all(likeness(self.reading.low(n + k), word) == 1 for k, word in enumerate(wanted)):
                negated = any(self.reading.low(n - back) in NEGATIONS for back in (1, 2))
                self.values[one.name] = [not negated]
                return

    def _objects(self, one: Parameter) -> None:
        message = self.reading.message
        first, last = message.find("{"), message.rfind("}")
        if one.kind != "object" or not 0 <= first < last:
            return
        try:
            found: Any = json.loads(message[first : last + 1])
        except ValueError:
            return
        if isinstance(found, dict):
            self.values[one.name] = [found]
            inside = [n for n, each in enumerate(self.reading.tokens) if first <= each.start <= last]
            self.reading.used.update(inside)

    def _dates(self, one: Parameter) -> None:
        dated = one.form.startswith(("date", "time")) or one.about(DATES) or str(one.default).lower() in DAYS
        if not one.textual or not dated:
            return
        found = list(self.reading.of_kind("date"))
        if not one.form:
            for n, token in enumerate(self.reading.tokens):
                if token.low in DAYS and n not in self.reading.used and token.low not in ("now", "may"):
                    found.append(Found(token.text, n, n))
        self._set(one, found if self._alone(one) else found[:1])

    def _codes(self, one: Parameter) -> None:
        """Order numbers and the like: letters with digits first, then a bare number that nothing else needs."""
        if not one.textual or not one.about(CODES):
            return
        for kind in ("code", "quoted", "link"):
            if found := list(self.reading.of_kind(kind)):
                return self._set(one, self._several(one, found[0]))
        numbers = [
            each
            for each in self.reading.numbers()
            if isinstance(each.value, int) and not quantities.is_money(each, self.reading)
        ]
        needed = sum(other.required and other.numeric for other in self._open())
        if one.required and len(numbers) > needed:
            longest = max(numbers, key=lambda each: len(self.reading.tokens[each.first].text))
            self._set(one, [Found(self.reading.tokens[longest.first].text, longest.first, longest.last)])

    def _numbers(self) -> None:
        for one, found in quantities.paired([one for one in self._open() if one.numeric], self.reading):
            self._set(one, quantities.series(found, self.reading) if self._alone(one) else [found])

    def _arrays(self, one: Parameter) -> None:
        if one.kind != "array" or (one.items and one.items.enum):
            return
        kind = one.items.kind if one.items else "any"
        numbers = list(self.reading.numbers())
        if kind in ("integer", "number") or (kind == "any" and len(numbers) > 1):
            return self._set(one, [each for each in numbers if kind != "integer" or isinstance(each.value, int)])
        if kind not in ("string", "any"):
            return
        quotes = list(self.reading.quotes())
        first = next(self._candidates(one), None)
        self._set(one, quotes or (self.reading.series(first) if first else []))

    def _ends(self, one: Parameter) -> None:
        """`from` one `to` another."""
        if one.textual and (found := texts.end(one, self.reading)):
            self._set(one, [found])

    def _texts(self, one: Parameter) -> None:
        if not one.required or not one.textual or one.form.startswith("date") or one.about(QUERIES):
            return
        if one.kind == "string" and one.about(CODES):  # a name is no number of an order; what is one was read before
            return
        if found := next(self._candidates(one), None):
            self.guessed |= not found.capital or one.about(NOT_NAMES)
            self._set(one, self._several(one, found))
        elif one.kind == "any" and (number := next(self.reading.numbers(), None)):
            self._set(one, [number])

    def _candidates(self, one: Parameter) -> Iterator[Found]:
        spots = [first for first, _ in self._spots(one)]
        return texts.candidates(one, self.reading, spots, alone=self._alone(one))

    def _queries(self, one: Parameter) -> None:
        """A text to search for or work on: the quote, or what follows the tool's own word."""
        if not one.required or not one.textual or not one.about(QUERIES):
            return
        if found := next(self.reading.quotes(), None) or texts.rest(self.reading, self.tool.words):
            self.guessed = True
            self._set(one, [found])

    def _optional(self, one: Parameter) -> None:
        """A free word that the parameter's own description names."""
        if one.required or not one.textual:
            return
        known = set(words_of(one.description)) - set(words_of(self.tool.purpose)) - STOP - WEAK
        for n, token in enumerate(self.reading.tokens):
            if token.kind == "word" and self.reading.content(n) and token.low in known:
                return self._set(one, [Found(token.text, n, n)])
