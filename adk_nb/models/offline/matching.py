"""Picks the tools whose names, descriptions and parameters best match the words of a message."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adk_nb.models.offline.arguments import Filled, fill
from adk_nb.models.offline.tools import OfferedTool
from adk_nb.models.offline.vocabulary import CHANGING, NEGATIONS, STOP, WEAK, vocabulary
from adk_nb.models.offline.words import likeness, stem, tokens, words_of

ENOUGH = 1.4
"""The score from which a tool is meant: one word of its name or of its description's first sentence does."""
_NAME, _NAME_WEAK, _PURPOSE, _PARAMETER, _ENUM, _MORE = 3.0, 0.6, 1.5, 1.0, 1.2, 0.7
_CLAUSES = re.compile(r"[.?!;\n]\s+|\s*,?\s+(?:and\s+then|then|and\s+also|and|also)\s+", re.IGNORECASE)
_HARMLESS = vocabulary("know understand see remember have")
"""`I do not know the weather` asks for the weather."""


@dataclass(frozen=True)
class Plan:
    """A tool, and what a message gives for its arguments."""

    tool: OfferedTool
    filled: Filled
    score: float

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Tool name and arguments of each call; empty while a required argument is missing."""
        return [] if self.filled.missing else [(self.tool.name, args) for args in self.filled.calls()]


def plans(offered: Sequence[OfferedTool], message: str) -> list[Plan]:
    """What to call for `message`, in its order. Several tools only if each has a clause that says all it needs.

    Returns:
        Empty when no tool's words are in it. A plan may lack arguments; then it is the only one.
    """
    whole = _best(offered, message)
    parts = [one for one in _CLAUSES.split(message) if one.strip()]
    if len(parts) > 1 and len(offered) > 1:
        each = [one for one in (_best(offered, part) for part in parts) if one and not one.filled.missing]
        if len({one.tool.name for one in each}) > 1:
            return each
    return [whole] if whole else []


def negates(message: str) -> bool:
    """Whether it says not to do something; then nothing is called that its words do not clearly ask for."""
    return any(one.low in NEGATIONS for one in tokens(message))


def only_fit(offered: Sequence[OfferedTool], message: str) -> Plan | None:
    """The tool that `message` gives arguments to and says nothing else: `Compare Oslo and Paris`.

    None when two fit equally well, and never a tool whose name says that it changes something.
    """
    found = [Plan(tool, fill(tool, message), 0) for tool in offered if not changes(tool)]
    fitting = [one for one in found if one.calls and one.filled.values and not (one.filled.spare or one.filled.guessed)]
    fitting.sort(key=lambda one: len(one.tool.parameters))
    rival = len(fitting) > 1 and len(fitting[0].tool.parameters) == len(fitting[1].tool.parameters)
    return fitting[0] if fitting and not rival else None


def changes(tool: OfferedTool) -> bool:
    """Whether its name says that it changes something: sends, deletes, pays."""
    return not CHANGING.isdisjoint(tool.words)


def _best(offered: Sequence[OfferedTool], message: str) -> Plan | None:
    said = _Said(message)
    meant = [(score, tool) for tool in offered if (score := _score(tool, said, offered)) > 0]
    found: list[Plan] = []
    for score, tool in sorted(meant, key=lambda pair: -pair[0])[:5]:
        filled = fill(tool, message)
        score += len(filled.values) * (0.1 if filled.guessed else 0.4) - 0.3 * len(filled.missing)
        found.append(Plan(tool, filled, score))
    best = max(found, key=lambda one: one.score, default=None)
    return best if best and best.score >= ENOUGH else None


class _Said:
    """The words of a message that can speak for a tool: not those in quotes, and not the empty ones."""

    def __init__(self, message: str) -> None:
        self.all = [one.low if one.kind in ("word", "code") else "" for one in tokens(message)]
        pairs = {a + b: n for n, (a, b) in enumerate(zip(self.all, self.all[1:], strict=False)) if a and b}
        single: dict[str, int] = {}
        for n, word in enumerate(self.all):
            for part in words_of(word):
                if part not in STOP:
                    single.setdefault(part, n)
        self.places = pairs | single
        """Word -> where it stands first; two neighbours also count as one word, as in `look up`."""

    def negated(self, place: int) -> bool:
        """Whether a negation stands right before the word."""
        before = self.all[max(0, place - 3) : place]
        for back, word in enumerate(reversed(before)):
            if word in NEGATIONS:
                return not _HARMLESS & set(before[len(before) - back :])
        return False


def _score(tool: OfferedTool, said: _Said, offered: Sequence[OfferedTool]) -> float:
    weights = _vocabulary(tool)
    if len(tool.words) > 1 and tool.name.lower() in said.places and not said.negated(said.places[tool.name.lower()]):
        return 10.0
    score, named = 0.0, False
    for word, place in said.places.items():
        found = [(weight * likeness(word, known), known) for known, weight in weights.items()]
        weight, known = max(found, default=(0.0, ""))
        if weight <= 0:
            continue
        if weights[known] >= _NAME_WEAK and known in _stems(tool.words):
            if said.negated(place):
                return 0.0
            if not named and weights[known] == _NAME:
                named = True
                score += 0.5 * (1 - place / len(said.all))
        sharing = sum(known in _vocabulary(other) for other in offered)
        score += weight / sharing**0.5
    return score


def _vocabulary(tool: OfferedTool) -> dict[str, float]:
    """Stem -> how much it says for the tool."""
    found: dict[str, float] = {}
    parameters = {word for one in tool.parameters for word in one.words}
    strong = [word for word in tool.words if word not in WEAK]
    for weight, words in (
        (_MORE, [*words_of(tool.description), *(w for one in tool.parameters for w in words_of(one.description))]),
        (_PURPOSE, [word for word in words_of(tool.purpose) if word not in parameters]),
        (_PARAMETER, list(parameters)),
        (_ENUM, [w for one in tool.parameters for value in one.enum for w in words_of(str(value)) if len(w) > 2]),
        (_NAME, strong or list(tool.words)),
    ):
        for word in words:
            if word not in STOP or weight == _NAME:
                weak = word in WEAK and weight != _NAME
                found[stem(word)] = max(found.get(stem(word), 0), min(weight, _NAME_WEAK) if weak else weight)
    for word in set(tool.words) - set(strong):
        found[stem(word)] = max(found.get(stem(word), 0), _NAME_WEAK)
    return {word: weight for word, weight in found.items() if len(word) > 1}


def _stems(words: Sequence[str]) -> set[str]:
    return {stem(one) for one in words}
