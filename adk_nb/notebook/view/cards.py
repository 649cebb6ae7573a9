"""Cards: requests to the user, failed turns and busy models, and the answers that clicks give."""

import json
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any, cast

from adk_nb import locations, types
from adk_nb.errors import InputError
from adk_nb.notebook.view import interrupt_text
from adk_nb.notebook.view.call_arguments import MOST_ON_PAGE, Schema, displayed_call
from adk_nb.notebook.view.event_text import error_text, result_text
from adk_nb.notebook.view.plain_text import cleaned, exact_text, json_text, name_text, one_line, shortened
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import HIDDEN, hidden, without_known
from adk_nb.runtime.interrupts import Interrupt

_STATES = {("approve", False): "approved", ("approve", True): "edited", ("reject", False): "rejected"}


def card_of(interrupt: Interrupt, schema: Schema | None = None) -> Json:
    """The card of an open interrupt. `schema`: of the arguments of the call that an approval is about."""
    card: Json = {
        "id": interrupt.id,
        "kind": "input" if interrupt.is_question else interrupt.kind,
        "agent": interrupt_text.agent_text(interrupt),
        "hint": interrupt_text.prompt_text(interrupt),
        "answer_schema": _form_schema(interrupt),
        "how": "",
        "state": "asked",
        "note": "",
        "in_doubt": interrupt.in_doubt,
    }
    if interrupt.kind == "credential":
        need = interrupt_text.credential_need(interrupt)
        need = "a name and a password" if need == "name:password" else need
        card |= {"tool": interrupt_text.credential_tools(interrupt), "needs": need}
        return card | {"link": interrupt_text.link(interrupt) or "", "note": interrupt_text.retry_note(interrupt)}
    if interrupt.kind == "approval":
        hint = interrupt_text.approval_prompt(interrupt)
        args = interrupt.call.args or {}
        documents = [{"title": title, "text": text} for title, text in interrupt_text.documents(interrupt)]
        card |= {"documents": documents} if documents else {}
        card |= {"told": interrupt.told} if interrupt.told else {}
        card |= {"action": interrupt.action} if interrupt.action else {}
        card |= {"for_turn": True} if interrupt.for_turn and not interrupt.in_doubt else {}
        card |= {"kind": "doubt"} if interrupt.in_doubt else {}
        return card | {"tool": name_text(interrupt.call.name), "hint": hint, "args": args, "schema": schema}
    payload = {} if interrupt.payload is None else {"payload": interrupt.payload}
    tool, args, more = interrupt_text.node_of(interrupt) or ("", payload, {})
    return card | {"tool": tool and name_text(tool), "args": {**args, **more}}


def _form_schema(interrupt: Interrupt) -> Json:
    """The JSON schema of the value that the page sends; empty for text, and if it is too large for a page."""
    schema = {} if interrupt.kind == "approval" else interrupt.schema
    return schema if len(json.dumps(schema, default=str)) <= MOST_ON_PAGE else {}


def answer_of(card: Json, message: Json) -> tuple[Json, Json] | None:
    """Convert a click on `card` to an answer, and to the card's new fields, which have no typed secret.

    The answer to an interrupt has a `value`, as `Chat.answer` takes it.

    Returns:
        None if the message does not answer the card.

    Raises:
        InputError: An edited argument has `[secret]` in a place where the original had no secret; or nothing is ticked.
    """
    decision, answer = message.get("decision"), {"kind": "answer", "id": card["id"]}
    if card["kind"] == "error":
        state = {"retry": "retried", "drop": "dropped"}.get(str(decision))
        is_offered = state is not None and decision in card["ways"]
        return ({**answer, "decision": decision}, {"state": state, "note": ""}) if is_offered else None
    if card["kind"] == UNSENT:
        is_offered = decision in card["ways"] and decision != "first"  # which only moves the focus
        return ({**answer, "decision": decision}, {"state": "resent", "note": ""}) if is_offered else None
    if card["kind"] in ("approval", "doubt"):
        answered = _approval_answer(card, message)
    elif card["kind"] == "credential":
        value: Any = message.get("value")
        fields = card["answer_schema"]["properties"]
        answered = None
        if decision == "refuse":
            answered = {"value": None}, {"state": "refused", "note": ""}
        elif decision == "answer" and isinstance(value, dict) and value.keys() == fields.keys():
            typed = cast(Json, value)
            if all(isinstance(text, str) and text.strip() for text in typed.values()):
                texts = {name: text.strip() for name, text in typed.items()}
                answered = {"value": texts}, {"state": "given", "note": ""}
    else:
        is_answer = decision == "answer" and "value" in message
        answered = ({"value": message["value"]}, {"state": "sent"}) if is_answer else None
    return ({**answer, **answered[0]}, answered[1]) if answered else None


def _approval_answer(card: Json, message: Json) -> tuple[Json, Json] | None:
    decision = message.get("decision")
    if card["changed"] and decision == "old":
        note = " ".join(filter(None, ["as the tool was,", card["version"]])).rstrip(",")
        note = card["version"] if card["gone"] else note
        return {"value": {"confirmed": True}, "as_asked": True}, {"state": "approved", "note": note}
    if card["changed"] and not card["gone"] and decision == "reask":
        return {"value": {"confirmed": False, "reason": interrupt_text.REASK_REASON}}, {"state": "reasked", "note": ""}
    if decision not in ("approve", "reject") or not isinstance(message.get("args") or {}, dict):
        return None
    reason = message.get("reason")
    args = _edited_args(card, message) if decision == "approve" else None
    value: Json = {"confirmed": decision == "approve"} | ({} if args is None else {"args": args})
    if decision == "approve" and card.get("for_turn") and message.get("for_turn") is True:
        value["for_turn"] = True
    if decision == "reject" and isinstance(reason, str) and reason:
        value["reason"] = reason
    keys, more = message.get("alike"), Json()
    if card["alike"] and isinstance(keys, list):
        ticked = [calls for calls in card["alike"] if calls["key"] in keys]
        if not ticked:
            raise InputError("no call is ticked; tick what is to be answered")
        value["alike"], more = [calls["key"] for calls in ticked], {"alike": ticked}
    note = str(value.get("reason", "")) or ", ".join(_changes(card, args or {}))
    note = "; ".join(filter(None, (note, interrupt_text.FOR_TURN if "for_turn" in value else "")))
    return {"value": value}, {"state": _STATES[decision, args is not None], "note": note, **more}


def _edited_args(card: Json, message: Json) -> Json | None:
    """All arguments, with the approver's edits; None if they are the same."""
    edited: Json = message.get("args") or {}
    edited = {name: _with_secrets(name, value, card["args"].get(name)) for name, value in edited.items()}
    args = {**card["args"], **edited}
    return args if args != card["args"] else None


def _with_secrets(name: str, edited: Any, original: Any) -> Any:
    """An edited argument with the secrets that the page showed as `[secret]`."""
    masked = without_known(original)
    if edited == masked:
        return original
    if isinstance(edited, dict) and isinstance(original, dict):
        parts, original_parts = cast(Json, edited), cast(Json, original)
        return {key: _with_secrets(name, part, original_parts.get(key)) for key, part in parts.items()}
    if isinstance(edited, list) and isinstance(original, list):
        items, items_before = (
            cast(list[Any], edited),
            [*cast(list[Any], original), *[None] * len(cast(list[Any], edited))],
        )
        return [
            _with_secrets(name, item, original_item) for item, original_item in zip(items, items_before, strict=False)
        ]
    if isinstance(edited, str) and HIDDEN in edited and masked != original:
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


UNSENT = "unsent"
"""Id and kind of the card of a message that was not sent."""


def unsent_card(waiting: str, text: str, *, can_refuse: bool) -> Json:
    """The card of the message `text`, which was not sent since a request of the message `waiting` is open.

    `can_refuse`: the reader may refuse that request and send the message.
    """
    return {
        "id": UNSENT,
        "kind": UNSENT,
        "title": "Your new message was not sent",
        "texts": [shortened(cleaned(each), _MAX_MESSAGE) for each in (waiting, text)],
        "ways": ["refuse", "first"] if can_refuse else ["first"],
        "state": "asked",
        "note": "",
    }


def unsent_note(text: str) -> str:
    """For the saved file: what the cell says was not sent by this run of it."""
    return f"not sent when this cell ran: {one_line(text, _MAX_MESSAGE)}"


FAILED = "failed"
"""The text of an error's row beside the error card, which has the message."""
_MAX_MESSAGE = 300
"""Characters of a message that was not sent."""
_MAX_TRACEBACK = 8_000
"""Characters; the end is kept, which has the error."""
_PLACE = re.compile(r"\s*\((In\[\d+\] line \d+)\)$")


class ErrorCards:
    """The error cards of one run.

    Args:
        push: Takes ops for the run's view.
    """

    def __init__(self, push: Callable[[list[Json]], None]) -> None:
        self._push = push
        self._error: BaseException | None = None
        self._failures: dict[str, Json] = {}
        """Id of a call -> cell and traceback of its error."""
        self._busy_count = 0
        self._is_busy = False

    def failed(self, error: BaseException) -> None:
        """As `RunView.failed`."""
        self._error = error

    def tool_failed(self, call_id: str, tool: str, args: dict[str, Any], error: Exception) -> None:
        """As `RunView.tool_failed`."""
        if place := locations.cell_location(error):
            arguments = [argument._asdict() for argument in displayed_call(tool, args).arguments]
            failure = {"tool": tool, "arguments": arguments, "where": place, "traceback": cell_traceback(error)}
            self._failures[call_id] = failure

    def model_busy(self, model: str, error: str, seconds: float) -> None:
        """As `RunView.model_busy`: a card without buttons, until `close_busy_card`."""
        self._wait(f"{one_line(model, 100)} is busy", hint=one_line(error, 100), seconds=seconds)

    def model_starts(self, text: str) -> None:
        """As `RunView.model_starts`: a card without buttons, until `close_busy_card`."""
        self._wait(one_line(text, 300), hint="", seconds=None)

    def _wait(self, title: str, *, hint: str, seconds: float | None) -> None:
        self.close_busy_card()
        self._busy_count, self._is_busy = self._busy_count + 1, True
        card: Json = {"id": f"wait{self._busy_count}", "kind": "wait", "state": "asked", "note": ""}
        card |= {"title": title, "hint": hint, "seconds": seconds}
        self._push([{"op": "card", "card": card}])

    def close_busy_card(self) -> None:
        """Close the card of a model that is busy or starts: it has answered or will not be asked again."""
        if self._is_busy:
            self._is_busy = False
            self._push([{"op": "card", "card": {"id": f"wait{self._busy_count}", "state": "over"}}])

    def add_failures(self, ops: list[Json], responses: Sequence[types.FunctionResponse]) -> None:
        """Add cell and traceback to the rows of failed calls; `ops` show `responses`, in their order."""
        if not self._failures:
            return
        rows = iter([fields for op in ops if (fields := op.get("row", op)).get("ok") is False])
        for response in responses:
            row = next(rows, None) if result_text(response)[1] is False else None
            if row is not None and (failure := self._failures.pop(response.id or "", None)):
                row["failure"] = {**failure, "sent": shortened(json_text(response.response))}

    def ended(self, agent: str, error: str, last: str) -> None:
        """The run of `agent` ended with an error; `last`: the id of its last event, empty if there is none."""
        exception, self._error = self._error, None
        ways = ("retry", "drop") if last else ()
        self._push([{"op": "patch", "id": f"{last}/error", "text": FAILED}])
        self._push([{"op": "card", "card": error_card(f"error/{last}", agent, error, exception, ways)}])


def error_card(key: str, agent: str, error: str, exception: BaseException | None, ways: Sequence[str]) -> Json:
    """The card of a turn of `agent` that ended with an error. `ways`: its buttons, of `retry` and `drop`."""
    sentence = error_text(error)
    place = _PLACE.search(sentence)
    return {
        "id": key,
        "kind": "error",
        "agent": agent,
        "title": hidden(cleaned(sentence[: place.start()] if place else sentence)),
        "where": place[1] if place else "",
        "traceback": cell_traceback(exception) if exception else "",
        "ways": list(ways),
        "state": "asked",
        "note": "",
    }


def cell_traceback(error: BaseException) -> str:
    """The traceback from the first line of a cell on, where there is one, with cells named as in the notebook."""
    start = error.__traceback__
    while start and locations.cell_of(start.tb_frame) is None:
        start = start.tb_next
    start = start or error.__traceback__
    text = "".join(traceback.TracebackException(type(error), error, start, compact=True).format())
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if cell := locations.cell_of(frame):
            text = text.replace(f'File "{frame.f_code.co_filename}", line ', f"{cell} line ")
    text = hidden(cleaned(text).rstrip())
    return text if len(text) <= _MAX_TRACEBACK else f"…{text[-_MAX_TRACEBACK:]}"
