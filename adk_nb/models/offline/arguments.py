"""Fills the arguments of a tool from a message: each value is scored for each parameter, and the best pairs win."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, product
from typing import Any, NamedTuple

from adk_nb.models.offline.words import NEGATIONS, PREPOSITIONS, STOP, like, likeness, tokenize, word_set, words_of

MAX_CALLS = 8
"""Of one tool for one message."""
_NAMES = {
    "date": word_set("day date time"),
    "code": word_set("id code number no ref ticket isbn sku zip order invoice serial"),
    "text": word_set("query question text topic search keyword message prompt body content note comment task todo"),
}
"""Words in the name of a parameter that tell the kind of its values."""
_FITS = {
    "number": {"number": 2},
    "mention": {"mention": 5},
    "date": {"date": 5, "quoted": 5},
    "code": {"quoted": 6, "code": 5, "number": 2},
    "text": {"quoted": 6, "text": 4.5, "code": 3},
    "any": {"quoted": 6, "code": 3, "name": 3, "word": 1},
}
"""How well a value of a kind fits a parameter of a kind."""
_JOINS = word_set(", and & or vs versus than")
_LINKS = word_set("a an the my our is equals named called number no nr id of # : =")
_TARGETS = word_set("to into target destination end new")
_ROLES = {"from": word_set("from source origin start old"), "to": _TARGETS, "into": _TARGETS, "in": _TARGETS}
"""Parameters whose values follow a preposition."""


class Parameter:
    """One argument of a tool."""

    def __init__(self, name: str, schema: dict[str, Any], *, required: bool) -> None:
        self.name, self.required, self.words = name, required, words_of(name)
        self.is_list, self.description = schema.get("type") == "array", str(schema.get("description", ""))
        inner: dict[str, Any] = schema.get("items", {}) if self.is_list else schema
        self.type, self.values = inner.get("type"), list[Any](inner.get("enum", []))
        kinds = {"mention": bool(self.values) or self.type == "boolean", "number": self.type in ("integer", "number")}
        kinds |= {kind: not names.isdisjoint(self.words) for kind, names in _NAMES.items()}
        self.kind = next((kind for kind, fits in kinds.items() if fits), "date" if "format" in inner else "any")


class Span(NamedTuple):
    """A value in a message, from its first to its last token; of a token's kind, a `mention` or a `text`."""

    kind: str
    value: Any
    first: int
    last: int


class Plan(NamedTuple):
    """A tool, and what a message has for its arguments; several values of a parameter make several calls."""

    tool: str
    values: dict[str, list[Any]]
    missing: list[Parameter]
    used: set[str]
    """Kinds of the values that are arguments."""
    spare: list[str]
    """Kinds of the other values in the message."""

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """At most MAX_CALLS."""
        rows = islice(product(*self.values.values()), MAX_CALLS)
        return [(self.tool, dict(zip(self.values, row, strict=True))) for row in rows]


class Reader:
    """A message, read for the parameters of one tool; words of its `topic` are no values."""

    def __init__(self, parameters: Sequence[Parameter], topic: Sequence[str], message: str) -> None:
        tokens = tokenize(message)
        self.parameters, self.texts, self.used = parameters, [text for _, text in tokens], list[Span]()
        self.low = [text.lower() for text in self.texts]
        topic = [*topic, *(word for parameter in parameters for word in parameter.words)]
        own = [kind not in ("quoted", "stop") and like(text.lower(), topic) > 0 for kind, text in tokens]
        idle = [own[n] or kind in ("stop", "mark") for n, (kind, _) in enumerate(tokens)]
        # Names, or words, that stand together are one value.
        kinds = [kind if kind in ("name", "word") else str(n) for n, (kind, _) in enumerate(tokens)]
        runs = [list(run) for _, run in groupby(range(len(own)), lambda n: "" if idle[n] else kinds[n])]
        self.spans = [self._span(tokens[run[0]][0], run[0], run[-1]) for run in runs if not idle[run[0]]]
        start = self.low.index(":") + 1 if ":" in self.low else 0
        if rest := [n for n in range(start, len(own)) if not idle[n]]:
            # `Add buy milk to my list`: the tool's own words around a text are no part of it.
            last = rest[-1] if any(own[rest[-1] :]) or self.low[-1] in (".", "!") else len(own) - 1
            self.spans.append(self._span("text", rest[0], last))

    def _span(self, kind: str, first: int, last: int) -> Span:
        return Span(kind, re.sub(r" ([,.;:!?])", r"\1", " ".join(self.texts[first : last + 1])), first, last)

    def plan(self, tool: str) -> Plan:
        """The arguments that are in the message: nothing is made up, and defaults are left out."""
        values = dict[str, list[Any]]()
        while pair := max(self._pairs(values), key=lambda pair: pair[0], default=None):
            _, each, span = pair
            spans = self._series(each, span)
            found = [_number(span.value) if each.kind == "number" else span.value for span in spans]
            values[each.name] = [found] if each.is_list else list(dict.fromkeys(found))
            self.used += spans
        ordered = {each.name: values[each.name] for each in self.parameters if each.name in values}
        missing = [each for each in self.parameters if each.required and each.name not in values]
        spare = [span.kind for span in self.spans if self._is_free(span) and span.kind != "text"]
        return Plan(tool, ordered, missing, {span.kind for span in self.used}, spare)

    def _pairs(self, values: dict[str, list[Any]]) -> Iterator[tuple[float, Parameter, Span]]:
        """Each open parameter with each free value that fits it; an optional one takes only what is meant for it."""
        alone = sum(each.kind == "number" for each in self.parameters) == 1
        for rank, each in enumerate(self.parameters):
            for span in self._candidates(each) if each.name not in values else []:
                fit = _FITS[each.kind][span.kind] + (2 if alone and each.kind == "number" else 0)
                if (fit := fit + self._named(each, span)) >= (1 if each.required else 4):
                    yield fit + 0.2 * each.required - 0.01 * (rank + span.first), each, span

    def _series(self, parameter: Parameter, span: Span) -> list[Span]:
        """`span` and what is joined to it, unless another required parameter wants a value of that kind."""
        others = [(each.kind, each.values) for each in self.parameters if each.required and each is not parameter]
        found = [span]
        for after in sorted(self._candidates(parameter), key=lambda each: each.first):
            between = set(self.low[found[-1].last + 1 : after.first])
            is_joined = "than" in between or (between & _JOINS and between <= _JOINS | STOP)
            if after.kind == span.kind and is_joined and (parameter.kind, parameter.values) not in others:
                found.append(after)
        return found

    def _candidates(self, parameter: Parameter) -> list[Span]:
        found = self.spans
        if parameter.kind == "mention":
            flag = [word for word in parameter.words if word not in ("include", "is", "with")]
            flags = [(True, flag), (False, ["off"] if flag == ["on"] else [])]
            values = [(value, words_of(str(value))) for value in parameter.values] or flags
            found = [
                Span("mention", value if value is not True else self._is_on(n), n, n + len(words) - 1)
                for value, words in values
                for n in range(len(self.low) - len(words) + 1 if words else 0)
                if all(likeness(self.low[n + k], word) == 1 for k, word in enumerate(words))
                and (len(str(value)) > 1 or self.texts[n] == value)  # a single letter only as it is written
            ]
        elif parameter.kind == "number":
            form = r"[-+]?\d{1,15}" if parameter.type == "integer" else r"[-+]?\d{1,15}(\.\d+)?"
            found = [span for span in found if re.fullmatch(form, span.value)]
        return [span for span in found if span.kind in _FITS[parameter.kind] and self._is_free(span)]

    def _is_on(self, n: int) -> bool:
        return NEGATIONS.isdisjoint(self.low[max(0, n - 2) : n])

    def _is_free(self, span: Span) -> bool:
        return all(span.last < used.first or used.last < span.first for used in self.used)

    def _named(self, parameter: Parameter, span: Span) -> float:
        """For a parameter's own words beside a value: `order 17`, `the price column`, `to Rome`, `20 sides`."""
        low, words, about = [*self.low, ""], set(parameter.words), set(words_of(parameter.description)) - STOP
        before = next((word for word in reversed(low[: span.first]) if word not in _LINKS - words), "")
        after = low[span.last + 1]
        if like(before, words) or before in words or not words.isdisjoint(_ROLES.get(before, ())):
            return 3
        if like(after, words - STOP) or 1 in (like(before, about), like(after, about)):
            return 2.5 if like(after, words - STOP) else 2
        return span.kind in ("name", "word") and low[span.first - 1] in PREPOSITIONS


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
