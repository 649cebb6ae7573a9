"""The result of a call in a sentence, from the names of tool, arguments and facts; it says nothing beyond them."""

import ast
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from adk_nb import mcp_results
from adk_nb.models.offline_arguments import CHANGING, PREPOSITIONS, STOP, likeness, stem, word_set, words_of

MAX_ROWS, MAX_COLUMNS, MAX_CHARS, MAX_ARGUMENT_CHARS = 12, 8, 1_500, 60
_REJECTED = "this call was rejected; it did not run"
_EDITED = "a person changed the arguments before approving them, to "
_READING = word_set(
    "calculate check compute describe determine estimate fetch find get list load look lookup query read retrieve "
    "search show tell"
)
_VERBS = (CHANGING | _READING) | word_set(
    "analyse analyze ask buy call close convert copy count divide download draw explain format generate leave lift "
    "make merge multiply open paint parse pick play plot print recommend record reserve reverse roll run say sort "
    "spell split subtract summarise summarize tag test transfer translate turn upload validate verify visit write"
)
_NOUNS_TOO = word_set("book call change check count list look move open order play post record report search set test")
"""Verbs that are nouns in `order_status`: then the description begins with another verb."""
_QUESTIONS = word_set("are can did do does has have is must should was were will")
_GENERIC = word_set("info information facts fact details detail data")
_MEASURES = word_set(
    "age area average balance cost date distance duration forecast height hours length level mean median number "
    "population price rate score size status sum temperature time total value weather weight"
)
"""`price for Anna`, but `customer Anna`."""
_UNNAMED = word_set("input item key keyword name query question request search text topic value prompt message")
"""Parameters whose name adds nothing to the value: `price for tea`."""
_NAMES = word_set("name id number title key path")
_PLACES = word_set("city country town place location region continent room")
_INSIDE = word_set("directory folder sentence string table word")
_BEFORE = PREPOSITIONS | word_set("over since under until with without")
_RELATIONS = {"origin": "from", "source": "from", "start": "from", "destination": "to", "target": "to", "end": "to"}
_UNITS = {
    **{
        name: name
        for name in word_set("kg km cm mm mg ms lb eur usd gbp chf euros dollars percent grams litres metres")
    },
    **{name: name for name in word_set("meters seconds minutes hours days weeks months years")},
    **{"m s2": "m/s²", "m s": "m/s", "kmh": "km/h", "km h": "km/h", "pct": "percent"},
    **{f"{name} {letter}": f"°{letter.upper()}" for name in ("temperature", "temp") for letter in "cf"},
}
"""Ends of the names of numbers."""
_SCALES = word_set("thousand million billion square cubic")


def describe_result(tool: str, purpose: str, args: Mapping[str, Any], response: Any, question: str) -> str:
    """Describe the result of a call; of several facts those that the question names.

    `purpose`: the first sentence of the tool's description; it shows whether its name begins with a verb.
    """
    answer = dict(cast(dict[str, Any], response)) if isinstance(response, dict) else {"result": response}
    # An approval notes which arguments a person changed; a tool may have a remark beside its bare result.
    edited = next((key for key in ("note", "approval_note") if str(answer.get(key)).startswith(_EDITED)), None)
    note = ""
    if edited:
        note = answer.pop(edited)
        args = _edited_args(note) or args
    elif answer.keys() == {"result", "note"}:
        note = answer.pop("note")
    # What the call names already chooses no fact of its result.
    call_terms = {term for text in [tool, *args.values()] for term in words_of(str(text))}
    question_terms = [term for term in words_of(question) if term not in call_terms | STOP]
    text = _sentence(_Call(tool, purpose, args), answer, args, question_terms)
    return f"{text}\n\nNote: {note}." if note else text


def _edited_args(note: Any) -> dict[str, Any] | None:
    """The arguments that ran, if `note` says that an approval changed them."""
    try:
        return dict(ast.literal_eval(str(note).removeprefix(_EDITED)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # another note, or a shortened one
        return None


class _Call:
    """A call in words: as what is done, `looking up customer Anna`, and as what is looked up, `customer Anna`."""

    action: str
    """`looking up customer Anna`, `adding 2 and 3`, `refunding order A-17 with amount 5`."""
    label: str
    """The name of the result: `customer Anna`, `price for tea`; for a tool that looks nothing up, the action."""
    has_label: bool
    """The label is a noun, not the action."""
    reads: bool
    """It looks something up: its result is an answer. Other tools report what they have done."""
    is_question: bool
    """Its name asks, as `is_open`."""
    is_plural: bool
    """It names several things, as `open_orders`."""
    is_thing: bool
    """An argument names the thing itself: `customer Anna`, not `price for Anna`."""

    def __init__(self, tool: str, purpose: str, args: Mapping[str, Any]) -> None:
        verb, particle, nouns = _words_of_name(tool, purpose)
        self.reads, self.is_question = not verb or verb in _READING, bool(nouns) and nouns[0] in _QUESTIONS
        # Of `orders of customer` the orders are counted.
        counted = next((noun for noun, following in pairwise([*nouns, "of"]) if following in _BEFORE), "")
        self.is_plural, self.is_thing = _is_plural(counted), False
        last = nouns[-1] if nouns else ""
        argument_terms = {term for name in args for term in words_of(name)}
        may_be_thing = bool(nouns) and not _is_plural(last) and last not in _MEASURES | argument_terms
        wants_value = last in _BEFORE  # `price_of`: the first value follows
        # Each value joins the nouns, or is an object, `for tea`, or a relation, `in Oslo`.
        objects, relations = list[str](), list[str]()
        for name, value in args.items():
            terms, text, noun = words_of(name) or [name], _argument(value), nouns[-1] if nouns else ""
            is_qualified = len(terms) > 1 and terms[-1] in ("id", "name", "number", "no", "code")
            kind = terms[:-1] if is_qualified else terms  # `customer_id` is of a customer
            if wants_value:
                nouns, wants_value = [*nouns, text], False
            elif relation := _relation(terms, value, has_object=bool(nouns or objects)):
                relations.append(relation)
            elif _is_plural(noun) and _is_number(value) and terms[-1] in (noun, "count", "n"):
                nouns = [*nouns[:-1], text, noun]  # `buying 3 stamps`
            elif noun and not self.is_thing and (kind[-1] == noun or (may_be_thing and name in _NAMES)):
                nouns, self.is_thing = [*nouns, text], True
            else:
                objects.append(_object(name, " ".join(kind), value, {*nouns}, is_first=not (nouns or objects)))
        thing, relation = " ".join(nouns), "".join(f" {text}" for text in relations)
        self.has_label = self.reads and bool(thing)
        about = f"{thing}{f' for {_listed(objects)}' if objects else ''}{relation}"
        # How many objects follow the verb itself: all of `adding 2 and 3`, but of `refunding order A-17 with amount 5`
        # none, since the order does.
        direct = 0 if thing else len(objects) if all(len(name) == 1 for name in args) else 1
        link = " for" if verb in ("search", "look", "ask") and objects and not (thing or particle) else ""
        done = " ".join(text for text in [f"{_gerund(verb)}{particle}{link}", thing, _listed(objects[:direct])] if text)
        rest = f" with {_listed(objects[direct:])}" if objects[direct:] else ""
        self.action = f"{done}{rest}{relation}" if verb else f"asking for {about}"
        self.label = about if self.has_label else self.action


def _words_of_name(tool: str, purpose: str) -> tuple[str, str, list[str]]:
    """Verb, particle and nouns of `look_up_customer`; a prefix of a toolset stands before the noun."""
    terms, doc_verb = words_of(tool.replace("lookup", "look_up")) or [tool], stem((words_of(purpose) or [""])[0])
    at = next((n for n in (0, 1) if _is_verb(terms, n, doc_verb)), None)
    if at is None:
        return "", "", _without_generic(terms)
    nouns = terms[at + 1 :]
    particle = f" {nouns.pop(0)}" if nouns and nouns[0] in ("up", "out", "off", "back") else ""
    return terms[at], particle, _without_generic([*terms[:at], *nouns])


def _without_generic(nouns: list[str]) -> list[str]:
    return nouns[:-1] if len(nouns) > 1 and nouns[-1] in _GENERIC else nouns


def _relation(terms: Sequence[str], value: Any, *, has_object: bool) -> str:
    """A place, a time or a preposition and its value: `in Oslo`, `on Friday`, `to Anna`; "" for any other argument."""
    text, last = _argument(value), terms[-1]
    if isinstance(value, bool):
        return ""
    if terms[0] in _BEFORE:
        return f"{' '.join(terms) if len(terms) > 2 or _is_number(value) else terms[0]} {text}"
    if len(terms) == 1 and last in _RELATIONS:
        return f"{_RELATIONS[last]} {text}"
    if last in ("day", "date") and not _is_number(value):
        return text if text.lower() in ("today", "tomorrow", "tonight", "yesterday", "now") else f"on {text}"
    if last in (*_PLACES, "year", "month", "language") and has_object:
        return f"in {text}"
    return f"in {' '.join(terms)} {text}" if last in _INSIDE and has_object else ""


def _object(name: str, kind: str, value: Any, nouns: set[str], *, is_first: bool) -> str:
    """An argument that is no relation; its name is left out where it adds nothing."""
    if isinstance(value, bool):
        return kind if value else f"not {kind}"
    if kind.rpartition(" ")[2] in _UNNAMED | nouns or name in "abxyz" or (is_first and name == "amount"):
        return _argument(value)
    return _fact(kind, value) if _is_number(value) else f"{kind} {_argument(value)}"


def _is_verb(terms: Sequence[str], n: int, doc_verb: str) -> bool:
    """True if the name's word `n` is its verb. `doc_verb`: the stem of the first word of the description."""
    if n >= len(terms) or terms[0] in _QUESTIONS or (n > 0 and n == len(terms) - 1):
        return False
    if n == 0 and stem(terms[0]) == doc_verb and not _is_plural(terms[0]):
        return True
    # Where the description begins with another verb, `order` in `order_status` is a noun.
    has_other_verb = doc_verb in map(stem, _VERBS) and stem(terms[n]) != doc_verb
    return terms[n] in _VERBS and not (terms[n] in _NOUNS_TOO and has_other_verb)


def _gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return f"{verb[:-1]}ing"
    is_doubled = re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]|cancel|submit", verb) and verb != "add"
    return f"{verb}{verb[-1] if is_doubled else ''}ing"


def _sentence(call: _Call, answer: dict[str, Any], args: Mapping[str, Any], question: Sequence[str]) -> str:
    """A call and its result as a sentence. `question`: the words that a fact is chosen by."""
    action, label = _capital(call.action), _capital(call.label)
    if error := answer.get("error"):
        if str(error).startswith(_REJECTED):
            text = f"was not approved and did not run: {str(error).partition('the reason given: ')[2]}"
        else:
            text = f"did not work: {_inline(error)}"
        return f"{action} {text.rstrip(': .')}."
    value: Any = mcp_results.value_of(answer)
    if value is answer and list(answer) == ["result"]:
        value = answer["result"]
    if value in (None, "", [], {}):
        return f"{action} {'returned nothing' if call.reads else 'is done; it returned nothing'}."
    if isinstance(value, dict) and (shown := _media(cast(dict[str, Any], value))):
        return f"{label}: {shown}." if call.has_label else f"{label} gives {shown}."
    if isinstance(value, dict):
        facts = cast(dict[str, Any], value)
        new = {key: fact for key, fact in facts.items() if key not in args or fact != args[key]} or facts
        candidates = [key for key in new if key not in args and new[key] not in args.values()]
        if keys := _named_keys(candidates, question):
            chosen = _listed([_fact(key, facts[key], "is") for key in keys])
            return f"{label}: {chosen}{f' ({len(keys)} of {len(facts)} values)' if len(keys) < len(facts) else ''}."
        return _rows(label, [f"- {_readable(key)}: " for key in new], list(new.values()), _inline(new))
    if isinstance(value, list):
        items = cast(list[Any], value)
        if table := _table(items):
            return f"{label}, {len(items)} results:\n\n{table}"
        return _rows(label, [f"{n}. " for n in range(1, len(items) + 1)], items, _inline(items))
    if isinstance(value, str):
        text = _cut(value.strip(), MAX_CHARS)
        if "\n" in text:
            return f"{label}:\n\n{text}"
        return _stop(_capital(text) if _stands_alone(text, args) else f"{label}: {text}")
    if isinstance(value, bool) or call.is_question or (call.has_label and call.is_thing):
        return f"{label}: {_inline(value)}."
    if not call.has_label:
        return f"{label} gives {_inline(value)}."
    return f"The {call.label} {'are' if call.is_plural else 'is'} {_inline(value)}."


def _media(value: Mapping[str, Any]) -> str:
    """The name of a picture or another piece of media that stands beside the result; empty for any other value."""
    media = value.get("media")
    if not isinstance(media, str) or not {"bytes", "uri", "repr"} & value.keys():
        return ""
    return "a picture" if media.startswith("image/") else f"something to look at ({media})"


def _table(items: Sequence[Any]) -> str:
    """Records with the same few flat fields as a markdown table; empty for any other list."""
    names = list(cast(dict[str, Any], items[0])) if isinstance(items[0], dict) else []
    is_table = 1 < len(names) <= MAX_COLUMNS and len(items) > 1
    if not is_table or not all(isinstance(item, dict) and list(cast(Any, item)) == names for item in items):
        return ""
    rows = [[item[name] for name in names] for item in items[:MAX_ROWS]]
    if any(isinstance(value, dict | list) for row in rows for value in row):
        return ""
    head = [names, ["---:" if all(_is_number(row[n]) for row in rows) else "---" for n in range(len(names))]]
    lines = [" | ".join(_inline(value).replace("|", "\\|") for value in row) for row in (*head, *rows)]
    rest = f"\n\nand {len(items) - MAX_ROWS} more" if len(items) > MAX_ROWS else ""
    return "\n".join(f"| {line} |" for line in lines) + rest


def _stands_alone(text: str, args: Mapping[str, Any]) -> bool:
    """True for a short text of several words that names every value it was asked with, yes and no apart."""
    values = [_inline(value).lower() for value in args.values() if not isinstance(value, bool)]
    return (
        bool(values)
        and re.search(r"\s", text) is not None
        and len(text) <= 300
        and all(re.search(rf"(?<!\w){re.escape(value)}(?!\w|[.,]\d)", text.lower()) for value in values)
    )


def _named_keys(keys: Sequence[str], question: Sequence[str]) -> list[str]:
    """The keys that a question names: for each word the key that most other words name, too."""
    scores = [{key: score for key in keys if (score := _score(term, key))} for term in question]
    totals = {key: sum(word_scores.get(key, 0) for word_scores in scores) for key in keys}
    best_keys = {max(word_scores, key=lambda key: totals[key]) for word_scores in scores if word_scores}
    return [key for key in keys if key in best_keys]


def _score(term: str, key: str) -> float:
    """Likeness of a word and a key: highest for its first word, lowest for a unit at its end."""
    return max((likeness(term, key_word) * 0.9**n for n, key_word in enumerate(words_of(key))), default=0.0)


def _rows(label: str, names: Sequence[str], values: Sequence[Any], short: str) -> str:
    """A short flat value, or one short row, in one line, any other with one line per item."""
    is_flat = not any(isinstance(value, dict | list) for value in values) or names == ["1. "]
    if len(names) <= MAX_ROWS and len(short) < 160 and is_flat:
        return _stop(f"{label}: {short}")
    lines = [name + _inline(value) for name, value in zip(names, values, strict=True)]
    rest = [f"\nand {len(lines) - MAX_ROWS} more"] if len(lines) > MAX_ROWS else []
    count = f", {len(lines)} results" if "2. " in names else ""
    return "\n".join([f"{label}{count}:", "", *lines[:MAX_ROWS], *rest])


def _readable(key: str) -> str:
    """A field's name as words; a name that is data, or has a figure in it, as it is."""
    return " ".join(words_of(key)) if re.fullmatch(r"[a-z][A-Za-z_]*", key) else key


def _fact(key: str, value: Any, link: str = "") -> str:
    """A name and its value: `sky clear`, `6.7 euros`, `day length 9.9 hours`; with a link `the day length is ...`."""
    readable, text, unit = _readable(key), _inline(value), ""
    if _is_number(value):
        terms = words_of(key)
        if len(terms) == 1 and _is_plural(key):
            return f"{text} {key[:-1] if value == 1 and key[-1] == 's' else key}"
        for length in (2, 1):  # `speed_km_h`, `length_km`
            found = _UNITS.get(" ".join(terms[-length:]), "")
            if not found:
                continue
            rest = terms[:-1] if found.startswith("°") else terms[:-length]  # the temperature itself is no unit
            scale = f" {rest.pop()}" if rest and rest[-1] in _SCALES else ""
            rest = rest[:-1] if rest[-1:] == ["in"] else rest  # `age_in_years`
            # `price_per_kg` and `mass_1e24_kg` have no unit that could stand behind the number.
            if rest and rest[-1] not in _BEFORE and not any(re.search(r"\d", term) for term in rest):
                readable, unit = " ".join(rest), f"{scale} {found}"
                break
    return f"the {readable} {link} {text}{unit}" if link else f"{readable} {text}{unit}"


def _is_plural(noun: str) -> bool:
    """`hours`, `children`; not `status`, `class` or `is`."""
    return noun in ("children", "people") or bool(re.fullmatch(r"[a-z]{2,}[^siu]s", noun))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _argument(value: Any) -> str:
    """A value in the name of a call: long text is cut, a phrase is quoted."""
    text = _inline(value)
    text = text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[:MAX_ARGUMENT_CHARS].rstrip()}…"
    return f"“{text}”" if isinstance(value, str) and len(text.split()) > 2 else text


def _listed(texts: Sequence[str]) -> str:
    return " and ".join([", ".join(texts[:-1]), *texts[-1:]] if len(texts) > 1 else texts)


def _capital(text: str) -> str:
    """Only a plain word is changed: `iPhone`, `x = 3` and `a.txt` stay as they are."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]{2,}(?![\w./(=_])", text) else text


def _stop(text: str) -> str:
    return text if text[-1:] in ".!?…:;" or "… (" in text[-40:] else f"{text}."


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        value = ", ".join(_fact(str(key), item) for key, item in cast(dict[Any, Any], value).items())
    elif isinstance(value, list):
        value = ", ".join(_inline(item) for item in cast(list[Any], value)[: 2 * MAX_ROWS])
    elif isinstance(value, float):
        value = f"{value:.4g}" if abs(value) < 0.01 else f"{round(value, 4):.15g}"
    elif value is None or isinstance(value, bool):
        value = {None: "nothing", True: "yes", False: "no"}[value]
    return _cut(" ".join(str(value).split()), 300)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
