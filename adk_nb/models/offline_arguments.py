"""Arguments of a tool from the words of a message: each value is scored for each parameter, the best pairs win."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice, product
from typing import Any, NamedTuple

MAX_CHARS = 1_000
"""Length of a message that is read."""


def word_set(text: str) -> frozenset[str]:
    """The words of a line."""
    return frozenset(text.split())


NEGATIONS = word_set("don't not never without no cannot can't except skip")
PREPOSITIONS = word_set("in for of at on about near with by to from into between as per")
STOP = (NEGATIONS | PREPOSITIONS) | word_set(
    "a an the my our your this that its than and or but is are was were be been do does did done can could would will "
    "i me we us you he she it they them their his her these those there here what what's whats which when where how "
    "how's much many often want need please like some any all each every both also then now so if because off out up "
    "too very has have had why let's should compare versus vs show tell give get find check look go try again who"
)
"""Words that name neither a tool nor a value."""
CHANGING = word_set(
    "add approve book borrow buy cancel change create delete deploy drop edit execute insert kill move order pay post "
    "publish put refund remove rename replace reset restart save sell send set start stop submit update"
)
"""Verbs of tools that change something."""
_OPENERS = CHANGING | word_set("convert count describe ignore list print read roll search translate write")
"""Verbs that start a sentence with a capital letter and are not names."""
_DAYS = word_set("today tomorrow tonight monday tuesday wednesday thursday friday saturday sunday")
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "ten": "10"}
_HINTS = """heavy heavier heaviest weigh: mass weight
warm warmer hot hotter hottest cold colder coldest: temperature weather
temperature rain raining sunny wind windy: weather
big bigger biggest large larger largest small smaller smallest: size area diameter
far farther: distance
old older oldest: age
turn switch put: set add
sum plus +: add
times *: multiply"""
_SYNONYMS = {
    source: targets.split()
    for sources, targets in (h.split(": ") for h in _HINTS.split("\n"))
    for source in sources.split()
}
"""Word of a message -> words of tools and results that it may mean."""
_TOKEN = re.compile(
    r"""["“`](?P<q1>[^"”`\n]+)["”`] | (?<!\w)'(?P<q2>[^'\n]+)'(?!\w) | (?P<date>\d{4}-\d\d-\d\d(?!\w) | \b\d\d?:\d\d\b)
    | (?P<number>(?:(?<![\w)])[-\u2212+])?\d+(?:,\d{3}(?!\d))*(?:\.\d+)?(?:e[-+]?\d+)?(?![-_]\w))
    | (?P<word>\w(?:[\w'\u2019-]|[.@](?=\w)|:?/+(?=\w))*) | (?P<mark>\S)""",
    re.VERBOSE,
)


def tokenize(message: str) -> list[tuple[str, str]]:
    """Kinds and texts: `quoted`, `date`, `number`, `code` (as `A-17`, `a.txt`), `name`, `word`, `stop` or `mark`."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(message[:MAX_CHARS].replace("\u2019", "'").replace("\u2212", "-")):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        low = text.lower()
        if kind == "number" or (kind == "word" and low in _NUMBERS):
            kind, text = "number", _NUMBERS.get(low, text.replace(",", ""))
        elif kind == "word":
            text = text.removesuffix("'s") if low not in STOP else text
            is_name = text[0].isupper() and low not in _OPENERS
            kinds = {"stop": low in STOP, "date": low in _DAYS, "code": re.search(r"[\d_./@]", text), "name": is_name}
            kind = next((kind for kind, matches in kinds.items() if matches), kind)
        tokens.append(("quoted" if kind[0] == "q" else kind, text))
    return tokens


def words_of(text: str) -> list[str]:
    """The words of an identifier or a text, in lower case."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


@lru_cache(maxsize=4_096)
def stem(term: str) -> str:
    """The word without its commonest English endings."""
    return re.sub(r"(?<=\w\w\w)(es|s|ing|ed|e)$", "", re.sub(r"(?<=\w\w)ies$", "y", term))


@lru_cache(maxsize=16_384)
def likeness(term: str, known_term: str) -> float:
    """Likeness of two words: 1 for the same stem, 0.6 for a synonym or a common prefix, otherwise 0."""
    word_stem, known_stem = stem(term), stem(known_term)
    is_hint = known_stem in map(stem, _SYNONYMS.get(term, ()))
    return (
        1.0
        if word_stem == known_stem
        else 0.6
        if is_hint or (word_stem[:6] == known_stem[:6] and len(word_stem) > 5)
        else 0.0
    )


def best_likeness(term: str, known_terms: Iterable[str]) -> float:
    """Highest likeness of `term` and one of `known_terms`; single letters are ignored."""
    return max((likeness(term, candidate) for candidate in known_terms if len(candidate) > 1), default=0.0)


MAX_CALLS = 8
"""Maximum number of calls of one tool for one message."""
_NAME_WORDS = {
    "date": word_set("day date time"),
    "code": word_set("id code number no ref ticket isbn sku zip order invoice serial"),
    "text": word_set("query question text topic search keyword message prompt body content note comment task todo"),
}
"""Words in the name of a parameter that determine the kind of its values."""
_SCORES = {
    "number": {"number": 2},
    "mention": {"mention": 5},
    "date": {"date": 5, "quoted": 5},
    "code": {"quoted": 6, "code": 5, "number": 2},
    "text": {"quoted": 6, "text": 4.5, "code": 3},
    "any": {"quoted": 6, "code": 3, "name": 3, "word": 1},
}
"""Scores of values by kind, for each kind of parameter."""
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
    """A value in a message: its tokens `first` to `last`. Its kind is that of a token, or `mention`, or `text`."""

    kind: str
    value: Any
    first: int
    last: int


class Plan(NamedTuple):
    """A tool, and its arguments from a message; several values of a parameter make several calls."""

    tool: str
    values: dict[str, list[Any]]
    missing: list[Parameter]
    used: set[str]
    """Kinds of the values that became arguments."""
    spare: list[str]
    """Kinds of the other values in the message."""

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and arguments of each call, at most MAX_CALLS."""
        rows = islice(product(*self.values.values()), MAX_CALLS)
        return [(self.tool, dict(zip(self.values, row, strict=True))) for row in rows]


class ArgumentReader:
    """Reads the arguments of one tool from a message; words of the tool's `topic` are not values."""

    def __init__(self, parameters: Sequence[Parameter], topic: Sequence[str], message: str) -> None:
        tokens = tokenize(message)
        self.parameters, self.texts, self.used = parameters, [text for _, text in tokens], list[Span]()
        self.low = [text.lower() for text in self.texts]
        names = [term for parameter in parameters for term in parameter.words]
        for n in range(1, len(tokens)):
            # `the letter a in banana`, not `a letter a friend wrote`: a lone letter behind the name of a parameter.
            is_last = n + 1 == len(tokens) or tokens[n + 1][0] in ("stop", "mark")
            if tokens[n][0] == "stop" and len(self.low[n]) == 1 and self.low[n - 1] in names and is_last:
                tokens[n] = "word", self.texts[n]
        topic = [*topic, *names]
        is_topic = [kind not in ("quoted", "stop") and best_likeness(text.lower(), topic) > 0 for kind, text in tokens]
        is_skipped = [is_topic[n] or kind in ("stop", "mark") for n, (kind, _) in enumerate(tokens)]
        # Consecutive names or words are one value.
        kinds = [kind if kind in ("name", "word") else str(n) for n, (kind, _) in enumerate(tokens)]
        runs = [list(run) for _, run in groupby(range(len(is_topic)), lambda n: "" if is_skipped[n] else kinds[n])]
        self.spans = [self._span(tokens[run[0]][0], run[0], run[-1]) for run in runs if not is_skipped[run[0]]]
        start = self.low.index(":") + 1 if ":" in self.low else 0
        if rest := [n for n in range(start, len(is_topic)) if not is_skipped[n]]:
            # `Add buy milk to my list`: the tool's own words around a text are not part of it.
            last = rest[-1] if any(is_topic[rest[-1] :]) or self.low[-1] in (".", "!") else len(is_topic) - 1
            self.spans.append(self._span("text", rest[0], last))

    def _span(self, kind: str, first: int, last: int) -> Span:
        return Span(kind, re.sub(r" ([,.;:!?])", r"\1", " ".join(self.texts[first : last + 1])), first, last)

    def plan(self, tool: str) -> Plan:
        """The arguments in the message; defaults are left out."""
        values = dict[str, list[Any]]()
        # Greedy: the best pair of parameter and value, until none is good enough.
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
        """Score each free value for each open parameter; an optional parameter needs a higher score."""
        is_only_number = sum(parameter.kind == "number" for parameter in self.parameters) == 1
        for rank, parameter in enumerate(self.parameters):
            for span in self._candidates(parameter) if parameter.name not in values else []:
                score = _SCORES[parameter.kind][span.kind] + (2 if is_only_number and parameter.kind == "number" else 0)
                if (score := score + self._name_score(parameter, span)) >= (1 if parameter.required else 4):
                    # Of equal scores a required parameter, then the earlier parameter and value.
                    yield score + 0.2 * parameter.required - 0.01 * (rank + span.first), parameter, span

    def _series(self, parameter: Parameter, span: Span) -> list[Span]:
        """`span` and the values joined to it by `and`, unless another required parameter takes that kind of value."""
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
        """The free values that `parameter` can take."""
        candidates = self.spans
        if parameter.kind == "mention":
            flag = [term for term in parameter.words if term not in ("include", "is", "with")]
            flags = [(True, flag), (False, ["off"] if flag == ["on"] else [])]
            values = [(value, words_of(str(value))) for value in parameter.values] or flags
            candidates = [
                # A flag is off behind a negation: `without sound`.
                Span(
                    "mention",
                    NEGATIONS.isdisjoint(self.low[max(0, n - 2) : n]) if value is True else value,
                    n,
                    n + len(terms) - 1,
                )
                for value, terms in values
                for n in range(len(self.low) - len(terms) + 1 if terms else 0)
                if all(likeness(self.low[n + k], term) == 1 for k, term in enumerate(terms))
                and (len(str(value)) > 1 or self.texts[n] == value)  # a single letter only as it is written
            ]
        elif parameter.kind == "number":
            form = r"[-+]?\d{1,15}" if parameter.type == "integer" else r"[-+]?\d{1,15}(\.\d+)?"
            candidates = [span for span in candidates if re.fullmatch(form, span.value)]
        return [span for span in candidates if span.kind in _SCORES[parameter.kind] and self._is_free(span)]

    def _is_free(self, span: Span) -> bool:
        return all(span.last < used.first or used.last < span.first for used in self.used)

    def _name_score(self, parameter: Parameter, span: Span) -> float:
        """Score the words beside a value that name the parameter: `order 17`, `the price column`, `to Rome`."""
        low, name_terms = [*self.low, ""], set(parameter.words)
        description = set(words_of(parameter.description)) - STOP
        preceding = next((term for term in reversed(low[: span.first]) if term not in _LINKS - name_terms), "")
        following = low[span.last + 1]
        is_role = not name_terms.isdisjoint(_ROLES.get(preceding, ()))
        if is_role or preceding in name_terms or best_likeness(preceding, name_terms):
            return 3
        if best_likeness(following, name_terms - STOP):
            return 2.5
        if 1 in (best_likeness(preceding, description), best_likeness(following, description)):
            return 2
        return span.kind in ("name", "word") and low[span.first - 1] in PREPOSITIONS


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
