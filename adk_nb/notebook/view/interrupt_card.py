"""The card of an interrupt: what a page shows and asks for, and what becomes of a click on it."""

import json
from typing import Any, cast

from adk_nb.errors import InputError
from adk_nb.notebook.view import interrupt_text
from adk_nb.notebook.view.call_shown import MOST_ON_PAGE, Schema
from adk_nb.notebook.view.plain_text import exact_text, name_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import HIDDEN, without_known
from adk_nb.runtime.interrupts import Interrupt

_STATES = {("approve", False): "approved", ("approve", True): "edited", ("reject", False): "rejected"}


def card_of(interrupt: Interrupt, schema: Schema | None = None) -> Json:
    """The card of an open interrupt. `schema`: of the arguments of the call that an approval is about."""
    card: Json = {
        "id": interrupt.id,
        "kind": "input" if interrupt.is_question else interrupt.kind,
        "agent": one_line(interrupt.agent, 100),
        "hint": interrupt_text.prompt_text(interrupt),
        "answer_schema": _form_schema(interrupt),
        "how": "",
        "state": "asked",
        "note": "",
    }
    if interrupt.kind == "credential":
        need = interrupt_text.credential_need(interrupt)
        need = "a name and a password" if need == "name:password" else need
        card |= {"tool": interrupt_text.credential_tools(interrupt), "needs": need}
        return card | {"link": interrupt_text.link(interrupt) or "", "note": interrupt_text.again(interrupt)}
    if interrupt.kind == "approval":
        hint = interrupt_text.approval_prompt(interrupt)
        args = interrupt.call.args or {}
        return card | {"tool": name_text(interrupt.call.name), "hint": hint, "args": args, "schema": schema}
    payload = {} if interrupt.payload is None else {"payload": interrupt.payload}
    tool, args, more = interrupt_text.node_of(interrupt) or ("", payload, {})
    return card | {"tool": tool and name_text(tool), "args": {**args, **more}}


def _form_schema(interrupt: Interrupt) -> Json:
    """The JSON schema of the value that the page is to send; empty for text, also where it is too large for a page."""
    schema = {} if interrupt.kind == "approval" else interrupt.schema
    return schema if len(json.dumps(schema, default=str)) <= MOST_ON_PAGE else {}


def answer_of(card: Json, message: Json) -> tuple[Json, Json] | None:
    """The answer that a click on `card` is, and the fields that the card has from now on.

    No secret that was typed is in those fields. An answer to an interrupt has its `value`, as `Chat.answer` takes it.

    Returns:
        None if the message is no answer to the card.

    Raises:
        InputError: Changed arguments hold the mark of a hidden secret where it does not stand for that secret.
    """
    decision, answer = message.get("decision"), {"kind": "answer", "id": card["id"]}
    if card["kind"] == "error":
        state = {"retry": "retried", "drop": "dropped"}.get(str(decision))
        is_offered = state is not None and decision in card["ways"]
        return ({**answer, "decision": decision}, {"state": state, "note": ""}) if is_offered else None
    if card["kind"] == "approval":
        answered = _decided(card, message)
    elif card["kind"] == "credential":
        answered = _given(card, message)
    else:
        is_answer = decision == "answer" and "value" in message
        answered = ({"value": message["value"]}, {"state": "sent"}) if is_answer else None
    return ({**answer, **answered[0]}, answered[1]) if answered else None


def _given(card: Json, message: Json) -> tuple[Json, Json] | None:
    if message.get("decision") == "refuse":
        return {"value": None}, {"state": "refused", "note": ""}
    value: Any = message.get("value")
    fields = card["answer_schema"]["properties"]
    if message.get("decision") != "answer" or not isinstance(value, dict) or value.keys() != fields.keys():
        return None
    typed = cast(Json, value)
    if not all(isinstance(text, str) and text.strip() for text in typed.values()):
        return None
    return {"value": {name: text.strip() for name, text in typed.items()}}, {"state": "given", "note": ""}


def _decided(card: Json, message: Json) -> tuple[Json, Json] | None:
    decision = message.get("decision")
    if card["changed"] and decision == "old":
        note = " ".join(filter(None, ["as the tool was,", card["version"]])).rstrip(",")
        return {"value": {"confirmed": True}, "as_asked": True}, {"state": "approved", "note": note}
    if card["changed"] and decision == "reask":
        return {"value": {"confirmed": False, "reason": interrupt_text.ASKED_ANEW}}, {"state": "reasked", "note": ""}
    if decision not in ("approve", "reject") or not isinstance(message.get("args") or {}, dict):
        return None
    reason = message.get("reason")
    args = _edited(card, message) if decision == "approve" else None
    value: Json = {"confirmed": decision == "approve"} | ({} if args is None else {"args": args})
    if decision == "reject" and isinstance(reason, str) and reason:
        value["reason"] = reason
    note = str(value.get("reason", "")) or ", ".join(_changes(card, args or {}))
    return {"value": value}, {"state": _STATES[decision, args is not None], "note": note}


def _edited(card: Json, message: Json) -> Json | None:
    """All arguments, with the reader's over those that were asked about; None if they are the same."""
    edited: Json = message.get("args") or {}
    edited = {name: _with_secrets(name, value, card["args"].get(name)) for name, value in edited.items()}
    args = {**card["args"], **edited}
    return args if args != card["args"] else None


def _with_secrets(name: str, edited: Any, asked: Any) -> Any:
    """An edited argument as the tool is to get it: the page had `[secret]` in place of each known secret."""
    shown = without_known(asked)
    if edited == shown:
        return asked
    if isinstance(edited, dict) and isinstance(asked, dict):
        parts, before = cast(Json, edited), cast(Json, asked)
        return {key: _with_secrets(name, part, before.get(key)) for key, part in parts.items()}
    if isinstance(edited, list) and isinstance(asked, list):
        items, items_before = cast(list[Any], edited), [*cast(list[Any], asked), *[None] * len(cast(list[Any], edited))]
        return [_with_secrets(name, item, before) for item, before in zip(items, items_before, strict=False)]
    if isinstance(edited, str) and HIDDEN in edited and shown != asked:
        raise InputError(f"{name}: {HIDDEN} stands for a hidden secret; leave the value as it is, or type all of it")
    return cast(Any, edited)


def _changes(card: Json, args: Json) -> list[str]:
    return [
        f"{name_text(name)} {_short(card['args'].get(name))} → {_short(value)}"
        for name, value in args.items()
        if name not in card["args"] or card["args"][name] != value
    ]


def _short(value: Any) -> str:
    return "nothing" if value is None else shortened(exact_text(value), 80)
