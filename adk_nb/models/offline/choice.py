"""Chooses the calls for a message: the more of its words a tool's declaration has, the better."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from adk_nb.models.offline.arguments import Plan, fill
from adk_nb.models.offline.tools import OfferedTool
from adk_nb.models.offline.words import NEGATIONS, STOP, likeness, stem, tokenize, words_of

FOLLOWS = re.compile(r"\W*(and|or|now|then|also|same|again|(what|how) about)\b", re.IGNORECASE)
"""The beginning of a message that follows up on another."""
_CLAUSES = re.compile(r"[.?!;\n]\s+|\s*,?\s+(?:and\s+then|then|and\s+also|and|also)\s+", re.IGNORECASE)
_HARMLESS = frozenset(["know", "understand", "see", "remember"])
"""`I do not know the weather` asks for the weather."""


def plans(offered: Sequence[OfferedTool], message: str, calls: Mapping[str, Mapping[str, Any]]) -> list[Plan]:
    """What to call for `message`, in its order; a plan that lacks arguments is the only one.

    Args:
        offered: The tools.
        message: Of the user.
        calls: The latest arguments of each tool called before, the latest first; `And Paris?` changes one of these.
    """
    clauses = [best_plan(offered, clause) for clause in _CLAUSES.split(message) if clause.strip()]
    complete = [plan for plan in clauses if plan and not plan.missing]
    if len({plan.tool.name for plan in complete}) > 1:
        return complete
    best, follows = best_plan(offered, message), bool(FOLLOWS.match(message))
    if best and not (best.missing and follows):
        return [best]
    if any(token.low in NEGATIONS for token in tokenize(message)):
        return []
    found = [fill(tool, message) for tool in offered if not tool.changing]
    found = [plan for plan in found if plan.values and (plan.sure or follows)]
    again = [plan for name in calls for plan in found if plan.tool.name == name and not plan.spare]
    if again:
        return [again[0].completed(calls[again[0].tool.name])]
    who = message.lower().startswith("who ")
    fitting = [plan for plan in found if plan.sure and (plan.tool.looks_up or not (plan.spare or who))]
    fitting = [plan for plan in fitting if not plan.missing]
    return fitting if len(fitting) == 1 else [best] if best else []


def best_plan(offered: Sequence[OfferedTool], message: str) -> Plan | None:
    """The tool that shares most words with `message`, if these are enough, and uses most of its values."""
    best: tuple[float, Plan | None] = (1.0, None)
    for tool in offered:
        score = _score(tool, message, offered)
        plan = fill(tool, message) if score >= 0.5 else None
        if plan:
            unused = 0 if tool.is_agent else sum(kind != "word" for kind in plan.spare)
            score += 0.5 * len(plan.values) - 0.4 * len(plan.missing) - unused
            best = max(best, (score, plan), key=lambda pair: pair[0])
    return best[1]


def _score(tool: OfferedTool, message: str, offered: Sequence[OfferedTool]) -> float:
    tokens = [token.low if token.kind != "quoted" else "" for token in tokenize(message)]
    said = {word: n for n, token in reversed(list(enumerate(tokens))) for word in [token, *words_of(token)]}
    said |= {a + b: n for n, (a, b) in enumerate(pairwise(tokens)) if stem(a + b) in tool.weights}  # look up, lookup
    total, changes = 0.0, not tool.changing
    for word, place in said.items():
        fits = ((weight * likeness(word, known), known) for known, weight in tool.weights.items())
        weight, known = max(fits, default=(0.0, ""))
        if weight <= 0 or (word in STOP and likeness(word, known) == 1):
            continue
        before = set(tokens[max(0, place - 3) : place])
        if NEGATIONS & before and not _HARMLESS & before and known in map(stem, tool.words):
            return 0.0
        changes |= bool(tool.changing and likeness(word, tool.changing))
        total += weight / sum(known in other.weights for other in offered) ** 0.5
    return total if changes else 0.0
