"""What an MCP server asks a person while one of its tools runs, and how the person is asked."""

import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from adk_nb import parts, sync, types
from adk_nb.events.event import Event
from adk_nb.lazy import require
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.mcp_tool.content import plain
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA
from adk_nb.tools.mcp_tool.news import Question

Elicits = Callable[..., Any]
"""`(context, params)`, sync or async, with what the package `mcp` hands such callbacks: `params.message` and
`params.requested_schema`, or `params.url`. Returns an `mcp_types.ElicitResult`; or a dict: the answers; True: yes; None
or False: the person declines."""
MAX_FIELDS = 20
_TRIES = 3
_YES, _NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")


class _Nobody(Exception):
    """Why no person can be asked."""


class _Declined(Exception):
    """The person does not want to answer."""


def said(words: str, *, partial: bool | None = None, **more: Any) -> Event:
    """An event that tells a person something, and no model."""
    content = parts.content("model", [types.Part(text=words)])
    return Event(content=content, partial=partial, custom_metadata=more or None)


def question_of(params: Any, server: str) -> Event:
    """The question as an event that is kept. No model is told of it."""
    asks = f"the MCP server {server!r} asks: {plain(params.message)}"
    words = f"{asks} ({plain(params.url)})" if params.mode == "url" else asks
    return said(words, elicitation=params.mode)


async def answered(ask: Elicits | None, question: Question, server: str) -> tuple[Any, str]:
    """What the server is answered, and the same in words, without what the person said.

    Args:
        ask: None: the person is asked by `input()`, where one waits in this process's main thread.
        question: Of the server.
        server: Its name for people.
    """
    known = require("mcp_types", package=EXTRA)
    given = ask or cast(Elicits, partial(_by_input, server))
    try:
        if inspect.iscoroutinefunction(given):
            reply = await given(question.context, question.params)
        else:  # in the thread where the cell waits: `input()` works there
            reply: Any = await sync.blocking(partial(given, question.context, question.params))
            reply = await reply if inspect.isawaitable(reply) else reply
    except _Nobody as why:
        hint = "McpToolset(elicitation_callback=...) can answer such questions"
        return known.ElicitResult(action="decline"), f"nobody could be asked, and it was declined: {why}; {hint}"
    except Exception as error:  # the author's mistake: the server hears only that there is no answer
        words = f"the elicitation_callback raised {type(error).__name__}: {error}"
        return known.ErrorData(code=known.INTERNAL_ERROR, message="no answer"), words
    made = _result(reply, known)
    return made, f"answered: {made.action}" if isinstance(made, known.ElicitResult) else f"refused: {made.message}"


def _result(reply: Any, known: Any) -> Any:
    if isinstance(reply, known.ElicitResult | known.ErrorData):
        return reply
    if isinstance(reply, dict):
        return known.ElicitResult(action="accept", content=cast(dict[str, Any], reply))
    return known.ElicitResult(action="accept" if reply is True else "decline")


def _by_input(server: str, _context: Any, params: Any) -> dict[str, Any] | bool | None:
    if threading.current_thread() is not threading.main_thread():
        raise _Nobody("no cell waits for this run")
    start = f"The MCP server {server!r} asks: {plain(params.message)}\n"
    try:
        if params.mode == "url":
            return _opened(start, params.url)
        return _filled(start, params.requested_schema)
    except _Declined:
        return None
    except (EOFError, OSError, RuntimeError, NotImplementedError) as error:  # as where a notebook runs in a batch
        raise _Nobody(f"there is no input ({type(error).__name__})") from error


def _opened(start: str, url: str) -> bool:
    if not url.startswith(("https://", "http://")):
        raise _Nobody("it wants an address opened that is no web page")
    return input(f"{start}Open {plain(url)} in a browser. Done? [y/n] ").strip().lower() in _YES


def _filled(start: str, schema: dict[str, Any]) -> dict[str, Any] | bool:
    fields: dict[str, dict[str, Any]] = schema.get("properties") or {}
    if not fields:
        return input(f"{start}Yes? [y/n] ").strip().lower() in _YES
    if len(fields) > MAX_FIELDS:
        raise _Nobody(f"it wants to know {len(fields)} things at once; the limit is {MAX_FIELDS}")
    start += "(To decline, leave a field empty that has to be filled.)\n"
    found: dict[str, Any] = {}
    for name, field in fields.items():
        value = _asked(start, name, field, required=name in (schema.get("required") or ()))
        if value is not None:
            found[name] = value
        start = ""
    return found


def _asked(start: str, name: str, field: dict[str, Any], *, required: bool) -> Any:
    """One field's value. None: left out."""
    about = plain(str(field.get("description") or field.get("title") or ""))[:500]
    choices = ", ".join(plain(str(one)) for one in _choices(field))
    hints = [about, choices and f"one of {choices}", f"default {field['default']!r}" if "default" in field else ""]
    prompt = f"{plain(name)} ({'; '.join(filter(None, hints)) or field.get('type', 'text')}): "
    for _ in range(_TRIES):
        text = input(start + prompt).strip()
        if not text:
            if required and "default" not in field:
                raise _Declined
            return field.get("default")
        value = _read(text, field)
        wrong = JsonArguments({"properties": {name: field}}, EXTRA).wrong({name: value})
        if not wrong:
            return value
        start = f"{wrong}\n"
    raise _Declined


def _choices(field: dict[str, Any]) -> list[Any]:
    among: dict[str, Any] = field.get("items") or field
    return [*(among.get("enum") or ()), *(one.get("const") for one in among.get("oneOf") or among.get("anyOf") or ())]


def _read(text: str, field: dict[str, Any]) -> Any:
    """`text` as the field's type; itself if it is no such thing, which the check then tells."""
    kind, low = field.get("type"), text.lower()
    if kind == "boolean":
        return True if low in _YES else False if low in _NO else text
    if kind == "array":
        return [one.strip() for one in text.split(",")]
    try:
        return int(text) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return text
