"""What waits for an answer from outside as a reader sees it: a question with its options, or work under way."""

from typing import Any, cast

from adk_nb.notebook.view.call_shown import call_line
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
from adk_nb.redaction import without_known
from adk_nb.runtime.inputs import PendingInput

Ways = tuple[str, str]
"""What to type as the answer to a question, and with the outcome of what takes long."""

_ASKED = 2_000
"""Characters of a question."""


def ways(magic: str) -> Ways:
    """`magic`: the `%confirm` of the session; empty where only Python has the chat."""
    if not magic:
        return "chat.ask('...')", "chat.answer(...)"
    return f"{magic.replace('%confirm', '%chat', 1)} ...", "_run.answer(...)"


def needs(one: PendingInput) -> str:
    """Who needs what, on one line."""
    asks = " · ".join(filter(None, (_message(one), _payload(one))))
    if one.is_question:
        return f"{one_line(one.author, 100)} asks: {asks}" if asks else f"{one_line(one.author, 100)} asks"
    return f"waits for the outcome of {call_text(name_text(one.call.name), arguments_text(one.call.args or {}))}"


def _message(one: PendingInput) -> str:
    if one.is_approval:
        return " ".join(abridged(with_escapes(without_known(one.message)), _ASKED).split())
    return one_line(one.message, _ASKED)


def _payload(one: PendingInput) -> str:
    """The call that waits for approval; of any other question what is shown with it."""
    payload = one.payload
    if one.is_approval and isinstance(payload, dict):
        beside = dict(cast(dict[str, Any], payload))
        tool, args = beside.pop("tool_name", ""), beside.pop("args", None)
        if isinstance(args, dict):
            rest = f" · {abridged(exact_text(beside), _ASKED)}" if beside else ""
            return call_line(str(tool), cast(dict[str, Any], args)) + rest
    return "" if payload is None else f"payload: {shortened(json_text(payload), _ASKED)}"


def plain(one: PendingInput, typed: Ways) -> list[str]:
    """Lines of text."""
    options = [f"    {number}  {option}" for number, option in _options(one)]
    return [needs(one), *options, f"    {_then(one)} {_way(one, typed)}"]


def markdown(one: PendingInput, typed: Ways) -> list[str]:
    """Blocks of markdown."""
    options = "\n".join(f"{number}. {markdown_cell(option)}" for number, option in _options(one))
    way = _way(one, typed).replace("`", "'")
    return [f"**{markdown_line(needs(one))}**", *([options] if options else []), f"{_then(one).capitalize()} `{way}`."]


def html(one: PendingInput, typed: Ways) -> list[Html]:
    """Paragraphs, and a list of the options."""
    options = [element("li", option) for _, option in _options(one)]
    listed = [element("ol", *options)] if options else []
    how = element("p", f"{_then(one).capitalize()} ", element("code", code(_way(one, typed))), ".")
    return [element("p", element("strong", needs(one))), *listed, how]


def _options(one: PendingInput) -> list[tuple[int, str]]:
    return list(enumerate((one_line(cleaned(option)) for option in one.options), 1))


def _then(one: PendingInput) -> str:
    if one.options:
        return "choose one, by its words or its number, with"
    return "answer with" if one.is_question else "send it with"


def _way(one: PendingInput, typed: Ways) -> str:
    if one.is_approval and typed[0].startswith("%chat"):
        confirm = typed[0].replace("%chat", "%confirm", 1).removesuffix(" ...")
        return f"{confirm} --yes or {confirm} --no"
    if one.is_approval:
        return "chat.approve() or chat.reject()"
    return typed[0] if one.is_question else typed[1]
