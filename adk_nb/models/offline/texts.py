"""Which words of a message are the text that a parameter wants: by quotes, capitals, prepositions, or what is left."""

from collections.abc import Iterator, Sequence

from adk_nb.models.offline.tools import Parameter
from adk_nb.models.offline.values import Found, Reading
from adk_nb.models.offline.vocabulary import ADDRESSES, FILES, FILLERS, PLACES, PREPOSITIONS, SOURCES, STOP, TARGETS
from adk_nb.models.offline.words import likeness

_INTRODUCING = PREPOSITIONS - {"than", "as", "by", "with"}


def candidates(one: Parameter, reading: Reading, named_at: Sequence[int], *, alone: bool) -> Iterator[Found]:
    """What could be a text value, the surest first.

    Args:
        one: The parameter.
        reading: The message.
        named_at: The tokens that name the parameter: `the price column` has its value before one.
        alone: No other parameter wants a text; otherwise names come in the order in which they are said.
    """
    if one.form in ("email", "uri") or one.about(ADDRESSES):
        yield from reading.of_kind("link")
        return
    if one.about(FILES):
        yield from reading.of_kind("file")
    yield from reading.quotes()
    marked = list(reading.after(_INTRODUCING))
    if alone:
        yield from (each for each in marked if each.capital)
    yield from reading.names()
    if not one.about(PLACES):
        spans = (reading.span(n) for n in range(len(reading.tokens)))
        yield from (each for each in spans if each and "_" in each.value)
    yield from marked
    for n in named_at:
        if n and reading.content(n - 1):
            yield Found(reading.tokens[n - 1].text, n - 1, n - 1)
    if found := reading.leftover():
        yield found


def end(one: Parameter, reading: Reading) -> Found | None:
    """The value of a `from` or a `to` parameter: after that word, or as the unit of a number."""
    if one.about(TARGETS):
        return next(reading.after(("to", "into")), None) or next(reading.after(("in", "as")), None)
    if not one.about(SOURCES):
        return None
    counted = (reading.span(n) for n in range(len(reading.tokens)) if reading.counted(n))
    return next(reading.after(("from",)), None) or next((each for each in counted if each), None)


def rest(reading: Reading, tool_words: Sequence[str]) -> Found | None:
    """What follows the tool's own word, or stands before it: the text to search for or to work on."""
    tokens = reading.tokens
    named = [n for n, each in enumerate(tokens) if any(likeness(each.low, word) == 1 for word in tool_words)]
    if found := _trimmed(reading, named[0] + 1 if named else 0, len(tokens), named):
        return found
    return _trimmed(reading, 0, named[0], named) if named else None


def _trimmed(reading: Reading, start: int, stop: int, named: Sequence[int]) -> Found | None:
    def idle(n: int) -> bool:
        word = reading.low(n)
        return n in reading.used or n in named or word in STOP or word in FILLERS or word in ".?!,:;"

    while start < stop and (idle(start) or start in reading.described):
        start += 1
    while stop > start and idle(stop - 1):
        stop -= 1
    return Found(reading.said(start, stop - 1), start, stop - 1) if start < stop else None
