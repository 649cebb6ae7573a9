"""Elicitation: questions that an MCP server asks the user while one of its tools runs."""

import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from adk_nb import parts, sync, types
from adk_nb.events.event import Event
from adk_nb.lazy import require
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.mcp_tool.content import Question, clean_text
from adk_nb.tools.mcp_tool.mcp_connection import EXTRA

ElicitationCallback = Callable[..., Any]
"""`(context, params)`, sync or async, with the arguments of such callbacks in the package `mcp`: `params.message` and
`params.requested_schema`, or `params.url`. Returns an `mcp_types.ElicitResult`; or a dict with the answers, True for
yes, None or False to decline."""
MAX_FIELDS = 20
_TRIES = 3
_YES, _NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")


class _NoUser(Exception):
    """The user cannot be asked; the message says why."""


class _Declined(Exception):
    """The user declined."""


def notice_event(text: str, *, partial: bool | None = None, **metadata: Any) -> Event:
    """An event for the user that no model gets."""
    content = parts.content("model", [types.Part(text=text)])
    return Event(content=content, partial=partial, custom_metadata=metadata or None)


def question_event(params: Any, server: str) -> Event:
    """The question as a stored event; no model gets it."""
    prompt = f"the MCP server {server!r} asks: {clean_text(params.message)}"
    text = f"{prompt} ({clean_text(params.url)})" if params.mode == "url" else prompt
    return notice_event(text, elicitation=params.mode)


async def answer_question(callback: ElicitationCallback | None, question: Question, server: str) -> tuple[Any, str]:
    """Answer a server's question. Returns the answer, and a summary without the values that the user entered.

    Args:
        callback: None: ask by `input()`, if this process's main thread waits for the run.
        question: The server's question.
        server: The server's name in messages.
    """
    mcp_types = require("mcp_types", package=EXTRA)
    handler = callback or cast(ElicitationCallback, partial(_ask_by_input, server))
    try:
        if inspect.iscoroutinefunction(handler):
            reply = await handler(question.context, question.params)
        else:
            # On the main thread, if a cell waits there for the run: `input()` works only there.
            reply: Any = await sync.blocking(partial(handler, question.context, question.params))
            reply = await reply if inspect.isawaitable(reply) else reply
    except _NoUser as reason:
        hint = "McpToolset(elicitation_callback=...) can answer such questions"
        message = f"it was declined, because no user could be asked: {reason}; {hint}"
        return mcp_types.ElicitResult(action="decline"), message
    except Exception as error:  # the callback's fault: the server only learns that there is no answer
        message = f"the elicitation_callback raised {type(error).__name__}: {error}"
        return mcp_types.ErrorData(code=mcp_types.INTERNAL_ERROR, message="no answer"), message
    result = _result(reply, mcp_types)
    if isinstance(result, mcp_types.ElicitResult):
        return result, f"answered: {result.action}"
    return result, f"refused: {result.message}"


def _result(reply: Any, mcp_types: Any) -> Any:
    if isinstance(reply, mcp_types.ElicitResult | mcp_types.ErrorData):
        return reply
    if isinstance(reply, dict):
        return mcp_types.ElicitResult(action="accept", content=cast(dict[str, Any], reply))
    return mcp_types.ElicitResult(action="accept" if reply is True else "decline")


def _ask_by_input(server: str, _context: Any, params: Any) -> dict[str, Any] | bool | None:
    if threading.current_thread() is not threading.main_thread():
        raise _NoUser("no cell waits for this run")
    start = f"The MCP server {server!r} asks: {clean_text(params.message)}\n"
    try:
        if params.mode == "url":
            if not params.url.startswith(("https://", "http://")):
                raise _NoUser("the URL is not a web page")
            return _is_yes(input(f"{start}Open {clean_text(params.url)} in a browser. Done? [y/n] "))
        schema: dict[str, Any] = params.requested_schema
        fields: dict[str, dict[str, Any]] = schema.get("properties") or {}
        if not fields:
            return _is_yes(input(f"{start}Yes? [y/n] "))
        if len(fields) > MAX_FIELDS:
            raise _NoUser(f"it asks for {len(fields)} fields at once; the limit is {MAX_FIELDS}")
        start += "(To decline, leave a field empty that has to be filled.)\n"
        required = schema.get("required") or ()
        values: dict[str, Any] = {}
        for name, field in fields.items():
            values[name] = _ask_field(start, name, field, required=name in required)
            start = ""
        return {name: value for name, value in values.items() if value is not None}
    except _Declined:
        return None
    except (EOFError, OSError, RuntimeError, NotImplementedError) as error:  # e.g. a notebook run in batch mode
        raise _NoUser(f"there is no input ({type(error).__name__})") from error


def _is_yes(text: str) -> bool:
    return text.strip().lower() in _YES


def _ask_field(start: str, name: str, field: dict[str, Any], *, required: bool) -> Any:
    """Ask for the value of one field. None: left out."""
    description = clean_text(str(field.get("description") or field.get("title") or ""))[:500]
    offered: dict[str, Any] = field.get("items") or field
    options = [option.get("const") for option in offered.get("oneOf") or offered.get("anyOf") or ()]
    choices = ", ".join(clean_text(str(choice)) for choice in (*(offered.get("enum") or ()), *options))
    hints = [
        description,
        choices and f"one of {choices}",
        f"default {field['default']!r}" if "default" in field else "",
    ]
    prompt = f"{clean_text(name)} ({'; '.join(filter(None, hints)) or field.get('type', 'text')}): "
    for _ in range(_TRIES):
        text = input(start + prompt).strip()
        if not text:
            if required and "default" not in field:
                raise _Declined
            return field.get("default")
        value = _parse(text, field)
        error = JsonArguments({"properties": {name: field}}, EXTRA).error_message({name: value})
        if not error:
            return value
        start = f"{error}\n"
    raise _Declined


def _parse(text: str, field: dict[str, Any]) -> Any:
    """Parse `text` to the field's type; returns `text` itself if it does not parse, and validation reports it."""
    kind, low = field.get("type"), text.lower()
    if kind == "boolean":
        return True if low in _YES else False if low in _NO else text
    if kind == "array":
        return [item.strip() for item in text.split(",")]
    try:
        return int(text) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return text
