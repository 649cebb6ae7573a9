"""What a reader clicked on a card, as an answer to hand on, and what the card says of it afterwards."""

from typing import Any, cast

from adk_nb.errors import InputError
from adk_nb.notebook.decisions import ASKED_ANEW
from adk_nb.notebook.view.plain_text import exact_text, name_text, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import HIDDEN, without_known

_STATES = {
    ("approve", False): "approved",
    ("approve", True): "edited",
    ("reject", False): "rejected",
}


def answer_of(card: Json, message: Json) -> tuple[Json, Json] | None:
    """The answer to `card`, and the fields that the card has from now on; None if the message is no answer to it.

    Nothing that was typed to let a tool in is in those fields.

    Raises:
        InputError: Changed arguments hold the mark of a hidden secret where it does not stand for that secret.
    """
    if card["kind"] == "error":
        return _after_an_error(card, message)
    if card["kind"] == "input":
        return _answered(card, message)
    return _let_in(card, message) if card["kind"] == "credential" else _decided(card, message)


def _answered(card: Json, message: Json) -> tuple[Json, Json] | None:
    if message.get("decision") != "answer" or "value" not in message:
        return None
    return {"kind": "answer", "id": card["id"], "decision": "answer", "value": message["value"]}, {"state": "sent"}


def _after_an_error(card: Json, message: Json) -> tuple[Json, Json] | None:
    decision = str(message.get("decision"))
    if decision not in card["ways"]:
        return None
    state = {"retry": "retried", "drop": "dropped"}[decision]
    return {"kind": "answer", "id": card["id"], "decision": decision}, {"state": state, "note": ""}


def _let_in(card: Json, message: Json) -> tuple[Json, Json] | None:
    decision, given = message.get("decision"), message.get("given")
    if decision == "refuse":
        given = None
    elif decision != "let_in" or not isinstance(given, str) or not given.strip():
        return None
    answer = {"kind": "answer", "id": card["id"], "decision": decision, "given": given and given.strip()}
    return answer, {"state": "refused" if given is None else "given", "note": ""}


def _decided(card: Json, message: Json) -> tuple[Json, Json] | None:
    if card["changed"] and message.get("decision") in ("reask", "old"):
        return _of_a_changed_tool(card, message["decision"])
    if message.get("decision") not in ("approve", "reject") or not isinstance(message.get("args") or {}, dict):
        return None
    answer = _decision(card, message)
    state = _STATES[answer["decision"], answer["args"] is not None]
    return answer, {"state": state, "note": _note(card, answer)}


def _of_a_changed_tool(card: Json, decision: str) -> tuple[Json, Json]:
    """The call is asked anew of the tool as it is now, or made with the tool as it was."""
    answer = {"kind": "answer", "id": card["id"], "args": None, "reason": None}
    if decision == "old":
        note = " ".join(filter(None, ["as the tool was,", card["version"]])).rstrip(",")
        return {**answer, "decision": "approve", "as_asked": True}, {"state": "approved", "note": note}
    return {**answer, "decision": "reject", "reason": ASKED_ANEW}, {"state": "reasked", "note": ""}


def _decision(card: Json, message: Json) -> Json:
    """The reader's decision, its changed arguments laid over those that were asked about."""
    approved = message["decision"] == "approve"
    edited: Json = (message.get("args") or {}) if approved else {}
    edited = {name: _with_secrets(name, value, card["args"].get(name)) for name, value in edited.items()}
    reason = message.get("reason")
    args = {**card["args"], **edited}
    return {
        "kind": "answer",
        "id": card["id"],
        "decision": message["decision"],
        "args": args if args != card["args"] else None,
        "reason": None if approved else (isinstance(reason, str) and reason) or None,
    }


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


def _note(card: Json, answer: Json) -> str:
    args: Json = answer["args"] or {}
    changed = [
        f"{name_text(name)} {_short(card['args'].get(name))} → {_short(value)}"
        for name, value in args.items()
        if name not in card["args"] or card["args"][name] != value
    ]
    return answer["reason"] or ", ".join(changed)


def _short(value: Any) -> str:
    return "nothing" if value is None else shortened(exact_text(value), 80)
