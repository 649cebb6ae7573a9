"""What waits for an answer from outside as a reader sees it: a question with its options, or work under way."""

import json
from typing import Any, cast

from adk_nb.notebook.view.call_shown import MOST_ON_PAGE, call_line
from adk_nb.notebook.view.event_words import Verdict, decision_line
from adk_nb.notebook.view.markdown import markdown_cell, markdown_line
from adk_nb.notebook.view.plain_text import (
    abridged,
    arguments_text,
    call_text,
    cleaned,
    exact_text,
    json_text,
    name_text,
    one_line,
    shortened,
    with_escapes,
)
from adk_nb.notebook.view.safe_html import Html, code, element
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import without_known
from adk_nb.runtime.interrupts import Interrupt

Ways = tuple[str, str]
"""What to type as the answer to a question, and with the outcome of what takes long."""

_ASKED = 2_000
"""Characters of a question."""


def ways(magic: str) -> Ways:
    """`magic`: the `%confirm` of the session; empty where only Python has the chat."""
    if not magic:
        return "chat.ask('...')", "chat.answer(...)"
    return f"{magic.replace('%confirm', '%chat', 1)} ...", "_run.answer(...)"


def needs(one: Interrupt) -> str:
    """Who needs what, on one line."""
    asks = " · ".join(filter(None, (_message(one), _payload(one))))
    if one.is_question:
        return f"{one_line(one.agent, 100)} asks: {asks}" if asks else f"{one_line(one.agent, 100)} asks"
    return f"waits for the outcome of {call_text(name_text(one.call.name), arguments_text(one.call.args or {}))}"


def _message(one: Interrupt) -> str:
    if one.kind == "node_approval":
        return " ".join(abridged(with_escapes(without_known(one.prompt)), _ASKED).split())
    return one_line(one.prompt, _ASKED)


def _payload(one: Interrupt) -> str:
    """The call that waits for approval; of any other question what is shown with it."""
    if node := _node(one):
        tool, args, beside = node
        return call_line(tool, args) + (f" · {abridged(exact_text(beside), _ASKED)}" if beside else "")
    return "" if one.payload is None else f"payload: {shortened(json_text(one.payload), _ASKED)}"


def _node(one: Interrupt) -> tuple[str, Json, Json] | None:
    """The name and the arguments of a node that waits for approval, and the rest of the payload."""
    payload = one.payload
    if one.kind != "node_approval" or not isinstance(payload, dict):
        return None
    beside = dict(cast(Json, payload))
    tool, args = beside.pop("tool_name", ""), beside.pop("args", None)
    return (str(tool), cast(Json, args), beside) if isinstance(args, dict) else None


def row_text(one: Interrupt) -> str:
    """The question in a log."""
    options = f"({', '.join(option for _, option in _options(one))})" if one.options else ""
    return " ".join(filter(None, ("asks:", " · ".join(filter(None, (_message(one), _payload(one)))), options)))


def card(one: Interrupt, magic: str) -> Json:
    """A card of the live view. `magic`: as for `ways`."""
    node = _node(one)
    tool, args, beside = node or ("", {} if one.payload is None else {"payload": one.payload}, {})
    return {
        "id": one.id,
        "kind": "input",
        "agent": one_line(one.agent, 100),
        "tool": tool and name_text(tool),
        "hint": abridged(with_escapes(without_known(one.prompt)), _ASKED),
        "args": {**args, **beside},
        "answer_schema": _answer_schema(one),
        "how": _way(one, ways(magic)),
        "state": "asked",
        "note": "",
    }


def _answer_schema(one: Interrupt) -> Json:
    """The JSON schema of what the page is to send; empty for text, also where the schema is too large for a page."""
    if one.kind == "node_approval":
        choices = {"Approve": {"confirmed": True}, "Reject": {"confirmed": False}}
        return {"oneOf": [{"title": title, "const": value} for title, value in choices.items()]}
    schema = {"enum": one.options} if one.options else one.response_schema
    return schema if len(json.dumps(schema, default=str)) <= MOST_ON_PAGE else {}


def verdict_of(one: Interrupt, value: Any, where: str = "") -> Verdict:
    """The verdict of an answer. `value`: as `inputs.answered` has it."""
    if one.kind == "node_approval" and isinstance(value, dict):
        decided = cast(Json, value)
        return Verdict("approved" if decided.get("confirmed") else "rejected", str(decided.get("reason") or ""), where)
    return Verdict("answered", answer_text(value), where)


def answer_text(value: Any) -> str:
    """An answer in a log: text as it is, any other value as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cleaned(value) if isinstance(value, str) else shortened(json_text(value), _ASKED)


def decision_row_text(one: Interrupt, verdict: Verdict) -> str:
    """The decision on a node in a log; empty for the answer to any other question."""
    return f"{verdict.state} {_payload(one)}" if one.kind == "node_approval" else ""


def answered_line(one: Interrupt, verdict: Verdict) -> str:
    """An answer, with its question, and where it was given."""
    if one.kind == "node_approval":
        return decision_line(verdict, _payload(one))
    question = f'"{one_line(one.prompt, 200)}"' if one.prompt else one_line(one.agent, 100)
    return f"✓ You answered {question} {verdict.where}".rstrip() + f": {one_line(verdict.note, _ASKED)}"


def plain(one: Interrupt, typed: Ways) -> list[str]:
    """Lines of text."""
    options = [f"    {number}  {option}" for number, option in _options(one)]
    return [needs(one), *options, f"    {_then(one)} {_way(one, typed)}"]


def markdown(one: Interrupt, typed: Ways) -> list[str]:
    """Blocks of markdown."""
    options = "\n".join(f"{number}. {markdown_cell(option)}" for number, option in _options(one))
    way = _way(one, typed).replace("`", "'")
    return [
        f"**{markdown_line(needs(one))}**",
        *([options] if options else []),
        f"{markdown_cell(_capitalized(_then(one)))} `{way}`.",
    ]


def html(one: Interrupt, typed: Ways) -> list[Html]:
    """Paragraphs, and a list of the options."""
    options = [element("li", option) for _, option in _options(one)]
    listed = [element("ol", *options)] if options else []
    how = element("p", f"{_capitalized(_then(one))} ", element("code", code(_way(one, typed))), ".")
    return [element("p", element("strong", needs(one))), *listed, how]


def _options(one: Interrupt) -> list[tuple[int, str]]:
    return list(enumerate((one_line(cleaned(option)) for option in one.options), 1))


def _then(one: Interrupt) -> str:
    if one.options:
        return "choose one, by its words or its number, with"
    if not one.is_question:
        return "send it with"
    expected = "" if one.kind == "node_approval" else _expected(one.response_schema)
    return f"answer ({expected}) with" if expected else "answer with"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


_KINDS = {"boolean": "yes or no", "integer": "a whole number", "number": "a number", "array": "a list as JSON"}


def _expected(schema: Json) -> str:
    """What fits a schema, on one line; empty for text, and where only the schema could tell."""
    if isinstance(choices := schema.get("enum"), list):
        return one_line(f"one of {', '.join(map(answer_text, cast(list[Any], choices)))}")
    if isinstance(fields := schema.get("properties"), dict):
        return one_line(f"JSON with {', '.join(cast(Json, fields))}")
    return _KINDS.get(str(schema.get("type")), "")


def _way(one: Interrupt, typed: Ways) -> str:
    if one.kind == "node_approval" and typed[0].startswith("%chat"):
        confirm = typed[0].replace("%chat", "%confirm", 1).removesuffix(" ...")
        return f"{confirm} --yes or {confirm} --no"
    if one.kind == "node_approval":
        return "chat.approve() or chat.reject()"
    return typed[0] if one.is_question else typed[1]
