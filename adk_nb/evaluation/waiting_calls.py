"""The calls of a batch that wait for approval: those that are alike stand together, those to look at come first."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

from adk_nb.runtime.interrupts import Interrupt

_Place = tuple[str, ...]
"""The way to a value in the arguments."""


@dataclass(frozen=True, kw_only=True)
class AlikeCalls:
    """Calls that one tick answers: of one label, with equal arguments and the same question."""

    label: str
    """As of `approval_label`."""
    calls: Sequence[Interrupt]
    """Their open approvals; at least one."""

    @property
    def keys(self) -> list[str]:
        """As of `call_key`."""
        return list(map(call_key, self.calls))

    @property
    def key(self) -> str:
        """Names exactly these calls: with one more or one less it is another."""
        return blake2b("\0".join(self.keys).encode(), digest_size=8).hexdigest()


def approval_label(interrupt: Interrupt) -> str:
    """The name of the calls that one answer covers: all of a tool, or those whose shown documents are the same.

    A call that may have taken effect already has a name of its own.
    """
    name, fingerprint = interrupt.names[0], interrupt.tool_fingerprint or interrupt.id
    if interrupt.in_doubt:
        return f"{name}:in-doubt:{blake2b(call_key(interrupt).encode(), digest_size=4).hexdigest()}"
    if interrupt.earlier:  # an equal call has run in this turn, or waits, too
        return f"{name}:again"
    return f"{name}:{fingerprint[:8]}" if interrupt.documents else name


def call_key(interrupt: Interrupt) -> str:
    """Names an open approval among those of all runs; nodes of a graph ask under the same id in every run."""
    return f"{interrupt.invocation_id}/{interrupt.id}"


def chosen_calls(waiting: Iterable[Interrupt], tool: str | None) -> set[str]:
    """Keys of the approvals that an answer for `tool` covers, see `approval_label`. None: all that are not in doubt."""
    return {call_key(call) for call in waiting if (not call.in_doubt if tool is None else tool == approval_label(call))}


def alike_calls(waiting: Iterable[Interrupt]) -> dict[str, list[AlikeCalls]]:
    """The calls by label, alike ones together.

    First those with the largest number of an argument, then those whose values are rare, then larger numbers.
    """
    groups: dict[str, dict[str, list[Interrupt]]] = defaultdict(dict)
    for call in waiting:
        asked = [call.agent, call.names, call.asked_args, call.prompt, call.payload]
        key = json.dumps(asked, sort_keys=True, default=repr)
        groups[approval_label(call)].setdefault(key, []).append(call)
    return {
        label: _sorted([AlikeCalls(label=label, calls=calls) for calls in alike.values()])
        for label, alike in groups.items()
    }


def _sorted(groups: Sequence[AlikeCalls]) -> list[AlikeCalls]:
    values = [dict(_values((), group.calls[0].asked_args)) for group in groups]
    counts, total = Counter[tuple[_Place, str]](), sum(len(group.calls) for group in groups)
    numbers = defaultdict[_Place, set[float]](set)
    for group, by_place in zip(groups, values, strict=True):
        for place, value in by_place.items():
            counts[place, repr(value)] += len(group.calls)
            if (number := _number(value)) is not None:
                numbers[place].add(number)
    largest = {place: max(found) for place, found in numbers.items() if len(found) > 1}

    def rank(by_place: Mapping[_Place, Any]) -> tuple[bool, float, float]:
        own = {place: _number(value) for place, value in by_place.items()}
        is_largest = any(number is not None and largest.get(place) == number for place, number in own.items())
        rarity = sum(math.log(total / counts[place, repr(value)]) for place, value in by_place.items())
        return not is_largest, -round(rarity, 9), -max((n for n in own.values() if n is not None), default=-math.inf)

    order = sorted(range(len(groups)), key=lambda index: rank(values[index]))
    return [groups[index] for index in order]


def _values(place: _Place, value: Any) -> Iterator[tuple[_Place, Any]]:
    """The values of arguments, with the way to each."""
    if isinstance(value, dict) and value:
        for name, part in cast(dict[str, Any], value).items():
            yield from _values((*place, name), part)
    elif isinstance(value, list) and value:
        for index, part in enumerate(cast(list[Any], value)):
            yield from _values((*place, str(index)), part)
    else:
        yield place, value


def _number(value: Any) -> float | None:
    """The size of a number, also of one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = abs(float(value))
    except (ValueError, OverflowError):
        return None if isinstance(value, str) else math.inf
    return None if math.isnan(number) else number
