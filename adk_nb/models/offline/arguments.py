"""Fills the arguments of a tool from a message: each value is scored for each parameter, and the best pairs win."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, product
from typing import Any, NamedTuple

from adk_nb.models.offline.words import NEGATIONS, PREPOSITIONS, STOP, like, likeness, tokenize, word_set, words_of

MAX_CALLS = 8
"""Of one tool for one message."""
_NAME_WORDS = {
    "date": word_set("day date time"),
    "code": word_set("id code number no ref ticket isbn sku zip order invoice serial"),
    "text": word_set("query question text topic search keyword message prompt body content note comment task todo"),
}
"""Words in the name of a parameter that tell the kind of its values."""
_SCORES = {
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
        kinds |= {kind: not names.isdisjoint(self.words) for kind, names in _NAME_WORDS.items()}
        self.kind = next((kind for kind, matches in kinds.items() if matches), "date" if "format" in inner else "any")


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
        is_topic = [kind not in ("quoted", "stop") and like(text.lower(), topic) > 0 for kind, text in tokens]
        is_skipped = [is_topic[n] or kind in ("stop", "mark") for n, (kind, _) in enumerate(tokens)]
        # Names, or words, that stand together are one value.
        kinds = [kind if kind in ("name", "word") else str(n) for n, (kind, _) in enumerate(tokens)]
        runs = [list(run) for _, run in groupby(range(len(is_topic)), lambda n: "" if is_skipped[n] else kinds[n])]
        self.spans = [self._span(tokens[run[0]][0], run[0], run[-1]) for run in runs if not is_skipped[run[0]]]
        start = self.low.index(":") + 1 if ":" in self.low else 0
        if rest := [n for n in range(start, len(is_topic)) if not is_skipped[n]]:
            # `Add buy milk to my list`: the tool's own words around a text are no part of it.
            last = rest[-1] if any(is_topic[rest[-1] :]) or self.low[-1] in (".", "!") else len(is_topic) - 1
            self.spans.append(self._span("text", rest[0], last))

    def _span(self, kind: str, first: int, last: int) -> Span:
        return Span(kind, re.sub(r" ([,.;:!?])", r"\1", " ".join(self.texts[first : last + 1])), first, last)

    def plan(self, tool: str) -> Plan:
        """The arguments that are in the message: nothing is made up, and defaults are left out."""
        values = dict[str, list[Any]]()
        while pair := max(self._pairs(values), key=lambda pair: pair[0], default=None):
            _, parameter, span = pair
            spans = self._series(parameter, span)
            found_values = [_number(span.value) if parameter.kind == "number" else span.value for span in spans]
            values[parameter.name] = [found_values] if parameter.is_list else list(dict.fromkeys(found_values))
            self.used += spans
        ordered = {parameter.name: values[parameter.name] for parameter in self.parameters if parameter.name in values}
        missing = [parameter for parameter in self.parameters if parameter.required and parameter.name not in values]
        spare = [span.kind for span in self.spans if self._is_free(span) and span.kind != "text"]
        return Plan(tool, ordered, missing, {span.kind for span in self.used}, spare)

    def _pairs(self, values: dict[str, list[Any]]) -> Iterator[tuple[float, Parameter, Span]]:
        """Each open parameter with each free value that fits it; an optional one takes only what is meant for it."""
        is_only_number = sum(parameter.kind == "number" for parameter in self.parameters) == 1
        for rank, parameter in enumerate(self.parameters):
            for span in self._candidates(parameter) if parameter.name not in values else []:
                score = _SCORES[parameter.kind][span.kind] + (2 if is_only_number and parameter.kind == "number" else 0)
                if (score := score + self._name_score(parameter, span)) >= (1 if parameter.required else 4):
                    yield score + 0.2 * parameter.required - 0.01 * (rank + span.first), parameter, span

    def _series(self, parameter: Parameter, span: Span) -> list[Span]:
        """`span` and what is joined to it, unless another required parameter wants a value of that kind."""
        required_kinds = [
            (required.kind, required.values)
            for required in self.parameters
            if required.required and required is not parameter
        ]
        spans = [span]
        for following in sorted(self._candidates(parameter), key=lambda candidate: candidate.first):
            between = set(self.low[spans[-1].last + 1 : following.first])
            is_joined = "than" in between or (between & _JOINS and between <= _JOINS | STOP)
            if following.kind == span.kind and is_joined and (parameter.kind, parameter.values) not in required_kinds:
                spans.append(following)
        return spans

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
        return [span for span in found if span.kind in _SCORES[parameter.kind] and self._is_free(span)]

    def _is_on(self, n: int) -> bool:
        return NEGATIONS.isdisjoint(self.low[max(0, n - 2) : n])

    def _is_free(self, span: Span) -> bool:
        return all(span.last < used.first or used.last < span.first for used in self.used)

    def _name_score(self, parameter: Parameter, span: Span) -> float:
        """For a parameter's own words beside a value: `order 17`, `the price column`, `to Rome`, `20 sides`."""
        low, words, description = [*self.low, ""], set(parameter.words), set(words_of(parameter.description)) - STOP
        preceding = next((word for word in reversed(low[: span.first]) if word not in _LINKS - words), "")
        following = low[span.last + 1]
        if like(preceding, words) or preceding in words or not words.isdisjoint(_ROLES.get(preceding, ())):
            return 3
        if like(following, words - STOP) or 1 in (like(preceding, description), like(following, description)):
            return 2.5 if like(following, words - STOP) else 2
        return span.kind in ("name", "word") and low[span.first - 1] in PREPOSITIONS


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
