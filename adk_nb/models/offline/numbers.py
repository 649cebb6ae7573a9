"""Which number of a message belongs to which parameter: by name, unit, currency, rank, or place."""

from collections.abc import Iterator, Sequence

from adk_nb.models.offline.tools import Parameter
from adk_nb.models.offline.values import Found, Reading
from adk_nb.models.offline.vocabulary import COINS, COUNTS, MONEY, RANKS, STOP, WEAK, YEARS
from adk_nb.models.offline.words import stem, words_of

_HINTED = 1.5
"""An optional parameter takes a number only when something hints at it."""


def paired(wanting: Sequence[Parameter], reading: Reading) -> Iterator[tuple[Parameter, Found]]:
    """Each numeric parameter with its number, the surest pair first; a number is used once."""
    years = any(one.about(YEARS) for one in wanting)
    pairs = [
        (_fit(one, found, reading, years) - 0.01 * (rank + place), one, found)
        for rank, one in enumerate(wanting)
        for place, found in enumerate(reading.numbers())
        if one.typed(str(found.value)) is not None
    ]
    given: set[str] = set()
    for fit, one, found in sorted(pairs, key=lambda pair: -pair[0]):
        if one.name not in given and found.first not in reading.used and fit >= (-1 if one.required else _HINTED):
            given.add(one.name)
            yield one, found


def series(found: Found, reading: Reading) -> list[Found]:
    """`found` and the numbers that a comma or an "and" joins to it."""
    all_found, n = [found], found.last + 1
    while reading.low(n) in (",", "and", "&", "or", "vs"):
        n += 1
        if n < len(reading.tokens) and (number := reading.tokens[n].number) is not None:
            all_found.append(Found(number, n, n))
            n += 1
    return all_found


def is_money(found: Found, reading: Reading) -> bool:
    """A currency stands beside it."""
    return not COINS.isdisjoint((reading.low(found.first - 1), reading.low(found.last + 1)))


def _fit(one: Parameter, found: Found, reading: Reading, years: bool) -> float:
    year = isinstance(found.value, int) and len(reading.tokens[found.first].text) == 4 and 1000 <= found.value < 3000
    if one.about(YEARS):
        return 3 if year else -2
    fit = -3.0 if year and years else 0.0
    if one.about(MONEY) and is_money(found, reading):
        fit += 2
    things = found.last + 1 in reading.topic | reading.described
    if one.about(COUNTS) and (things or reading.low(found.first - 1) in RANKS):
        fit += 2
    near = {stem(reading.low(found.first + step)) for step in (-2, -1, 1, 2)}
    about = {*one.words, *words_of(one.description)} - STOP - WEAK
    return fit + (0 if near.isdisjoint(stem(word) for word in about) else 2)
