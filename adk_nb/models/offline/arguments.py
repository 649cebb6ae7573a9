"""Fills the arguments of a tool from a message: each value is scored for each parameter, and the best pairs win."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice, product
from typing import Any, NamedTuple

from adk_nb.models.offline.tools import OfferedTool, Parameter
from adk_nb.models.offline.words import (
    ARTICLES,
    FILLERS,
    NEGATIONS,
    PREPOSITIONS,
    STOP,
    likeness,
    tokenize,
    word_set,
    words_of,
)

MAX_CALLS = 8
"""Of one tool for one message."""
_CODES = word_set("id code number no ref reference ticket isbn sku zip order invoice serial")
_TEXTS = word_set("query question text topic search keyword message prompt body content sql note comment")
_JOINS = word_set(", and & or vs versus")
_LINKS = ARTICLES | word_set("is equals named called number no nr id of # : =")


class Span(NamedTuple):
    """A value in a message, from its first to its last token."""

    kind: str
    """A token's kind; `enum`, `flag`, `rest`."""
    value: Any
    first: int
    last: int


class Plan(NamedTuple):
    """A tool, and what a message gives for its arguments."""

    tool: OfferedTool
    values: dict[str, list[Any]]
    """Several values of a parameter make several calls."""
    spare: list[str]
    """The kinds of values in the message that are no arguments."""
    sure: bool
    """Every text is a name, or marked by quotes or by the parameter's own words."""

    @property
    def missing(self) -> list[Parameter]:
        return [one for one in self.tool.parameters if one.required and one.name not in self.values]

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        rows = islice(product(*self.values.values()), 0 if self.missing else MAX_CALLS)
        return [(self.tool.name, dict(zip(self.values, row, strict=True))) for row in rows]

    def completed(self, arguments: Mapping[str, Any]) -> "Plan":
        """This plan, with `arguments` for what the message does not give."""
        return self._replace(values={name: [value] for name, value in arguments.items()} | self.values)


class _Message:
    """A message, read for one tool."""

    def __init__(self, tool: OfferedTool, message: str) -> None:
        self.tool, self.tokens, self.used = tool, tokenize(message), set[int]()
        self.low = [token.low for token in self.tokens]
        own = [*tool.words, *(word for one in tool.parameters for word in one.words)]
        self.own = {n for n, word in enumerate(self.low) if word not in STOP and _like(word, own)}
        told = {n for n, word in enumerate(self.low) if _like(word, words_of(tool.purpose))}
        self.spans = list(self._spans(self.own | told))

    def _spans(self, topic: set[int]) -> Iterator[Span]:
        """The values of the message: names or words that stand together are one value, the topic's words are none."""
        span: Span | None = None
        for n, token in enumerate(self.tokens):
            idle = (n in topic or token.low in STOP | FILLERS) and token.kind != "quoted"
            kind = "mark" if idle else token.kind
            between = self.low[span.last + 1 : n] if span else []
            if span and span.kind == kind and kind in ("name", "word") and between in ([], ["de"]):
                span = span._replace(value=" ".join(each.text for each in self.tokens[span.first : n + 1]), last=n)
            elif kind != "mark":
                yield from [span] if span else []
                span = Span(kind, token.text, n, n)
        yield from [span] if span else []

    def plan(self) -> Plan:
        values, sure = dict[str, list[Any]](), True
        while pair := max(self._pairs(values), key=lambda pair: pair[0], default=None):
            fit, one, span = pair
            sure &= fit >= 2.5
            spans = self._series(one, span)
            found = list(dict.fromkeys(one.number(each.value) if one.numeric else each.value for each in spans))
            values[one.name] = [found] if one.is_list else found
            self.used |= {n for each in spans for n in range(each.first, each.last + 1)}
        ordered = {one.name: values[one.name] for one in self.tool.parameters if one.name in values}
        return Plan(self.tool, ordered, [span.kind for span in self.spans if span.first not in self.used], sure)

    def _pairs(self, values: Collection[str]) -> Iterator[tuple[float, Parameter, Span]]:
        """Each open parameter with each free value that fits it; an optional one takes only what is meant for it."""
        for rank, one in enumerate(self.tool.parameters):
            for span in self._candidates(one) if one.name not in values else []:
                if (fit := self._fit(one, span)) >= (1 if one.required else 3):
                    yield fit + (0.2 if one.required else 0) - 0.01 * (rank + span.first), one, span

    def _candidates(self, one: Parameter) -> list[Span]:
        found = self._mentions(one) if one.enum else self._flags(one) if one.kind == "boolean" else self.spans
        if _TEXTS.intersection(one.words) and one.required:  # what follows a colon or the tool's own words
            start = self.low.index(":") if ":" in self.low else max(self.own, default=-1)
            rest = [span for span in self.spans if span.first > start and span.first not in self.used]
            first = start + 1 if ":" in self.low else min((span.first for span in rest), default=0)
            text = " ".join(token.text for token in self.tokens[first : rest[-1].last + 1]) if rest else ""
            found = [*found, Span("rest", text, first, rest[-1].last)] if rest else found
        return [span for span in found if self.used.isdisjoint((span.first, span.last))]

    def _mentions(self, one: Parameter) -> Iterator[Span]:
        """Where a value of its enum is said, or a unit that it shortens, such as `km`."""
        for n, word in enumerate(self.low):
            placed = self._counted(n) or self._before(n) or self._at(n - 1) in ("many", "much")
            said = [
                value for value in one.enum if self._says(n, words_of(str(value))) and (placed or len(str(value)) > 1)
            ]
            unit = placed and word not in STOP and len(word) > 2
            patterns = {value: ".*?".join(str(value).lower()) for value in one.enum if unit and str(value).isalpha()}
            ends = {value: found.end() for value, pattern in patterns.items() if (found := re.match(pattern, word))}
            if said or ends:
                value = said[0] if said else min(ends, key=lambda value: ends[value])
                yield Span("enum", value, n, n + len(words_of(str(value))) - 1)

    def _flags(self, one: Parameter) -> Iterator[Span]:
        """Where a yes or a no is said: `glossy`, `without wind`, `off`."""
        words = [word for word in one.words if word not in ("include", "is", "with")]
        for n, word in enumerate(self.low):
            if self._says(n, words) or (word == "off" and words == ["on"]):
                yes = word != "off" and NEGATIONS.isdisjoint(self.low[max(0, n - 2) : n])
                yield Span("flag", yes, n, n + len(words) - 1)

    def _says(self, n: int, words: list[str]) -> bool:
        """Whether `words` stand at token `n`."""
        return bool(words) and all(likeness(self._at(n + k), word) == 1 for k, word in enumerate(words))

    def _counted(self, n: int) -> bool:
        """Whether a number stands before token `n`."""
        return self._at(n - 1) == "°" or [token.kind for token in self.tokens[max(n - 1, 0) : n]] == ["number"]

    def _at(self, n: int) -> str:
        return self.low[n] if 0 <= n < len(self.low) else ""

    def _before(self, n: int) -> str:
        """The preposition before token `n`."""
        n = next(k for k in range(n - 1, -2, -1) if self._at(k) not in ARTICLES)
        return self._at(n) if self._at(n) in PREPOSITIONS else ""

    def _fit(self, one: Parameter, span: Span) -> float:
        """How well a value fits a parameter; below 1: not at all."""
        words, after = set(one.words), self._before(span.first)
        if one.numeric:
            alone = sum(other.numeric for other in self.tool.parameters) == 1 or "year" in words
            odd = span.kind != "number" or one.number(span.value) is None or ("year" in words and len(span.value) != 4)
            fit = 0 if odd else 4 if alone else 2
        elif one.form and not one.enum:
            fit = 5 if span.kind in ("date", "quoted") and (one.form == "day" or span.value[0].isdigit()) else 0
        else:
            code, plain = words & _CODES, 0 if words & (_CODES | _TEXTS) else 2 if after else 1
            name = plain and (2 if words & {"column", "field"} else plain + 2)
            fits = {"enum": 5, "flag": 5, "quoted": 6, "rest": 2, "code": 5 if code else 3, "word": plain, "name": name}
            fit = fits.get(span.kind, 2 if code and span.kind == "number" else 0)
        unit = self._counted(span.first) and span.kind != "number" and _like("from", one.words)
        return fit and fit + (2 if unit else 0) + self._named(one, span)

    def _named(self, one: Parameter, span: Span) -> float:
        """For a parameter's own words beside a value: `order 17`, `the price column`, `to Rome`, `20 sides`."""
        n = span.first - 1
        while self._at(n) in _LINKS and self._at(n) not in one.words:
            n -= 1
        before, after = "" if n in self.used else self._at(n), self._at(span.last + 1)
        about = set(words_of(one.description)) - STOP
        if _like(before, one.words) or before == one.name:
            return 3
        if _like(after, set(one.words) - STOP):
            return 2.5
        listed = str(span.value).lower() in about - set(words_of(self.tool.purpose))
        return 2 if listed or (_like(before, about) == 1) or _like(after, about) == 1 else 0

    def _series(self, one: Parameter, span: Span) -> list[Span]:
        """`span` and what a comma or an "and" joins to it, unless another parameter wants a value of that kind."""
        others = [other for other in self.tool.parameters if other is not one and other.required]
        found = [span]
        for after in sorted(self._candidates(one), key=lambda each: each.first):
            between = set(self.low[found[-1].last + 1 : after.first])
            if after.kind == span.kind and between & _JOINS and between <= _JOINS | ARTICLES | PREPOSITIONS:
                found.append(after)
        return [span] if any((one.kind, one.enum) == (other.kind, other.enum) for other in others) else found


def fill(tool: OfferedTool, message: str) -> Plan:
    """The arguments for `tool` in `message`; nothing is made up, and defaults are left out."""
    return _Message(tool, message).plan()


def _like(word: str, known: Collection[str]) -> float:
    """The likeness of a word and the likest of those known, which have two letters or more."""
    return max((likeness(word, one) for one in known if len(one) > 1), default=0.0)
