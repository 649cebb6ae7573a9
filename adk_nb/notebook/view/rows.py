"""A run's events become what a reader sees of them: rows, state and approval cards, as ops for a view."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook import settings
from adk_nb.notebook.view import event_words, grounding, interrupt_text, results
from adk_nb.notebook.view.document import Markdown
from adk_nb.notebook.view.interrupt_card import card_of
from adk_nb.notebook.view.interrupt_text import Decision, Verdict
from adk_nb.notebook.view.plain_text import (
    arguments_text,
    cleaned,
    json_text,
    name_text,
    one_line,
    shortened,
)
from adk_nb.notebook.view.spending import row_usage
from adk_nb.notebook.view.state_changes import ShownState
from adk_nb.notebook.view.view_state import Json, ViewState
from adk_nb.notebook.view.writers import html
from adk_nb.runtime import approvals, credentials
from adk_nb.runtime.branches import calls_to, lane_of
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, input_of, opened_by
from adk_nb.runtime.nested_calls import TRANSFER

SchemaOf = Callable[[Interrupt], dict[str, Any] | None]
"""What waits -> the JSON schema of its tool's parameters."""
_ANSWERED = (*REQUESTS, INPUT_REQUEST)
"""Names of requests that the user answers."""
NOTEBOOK = "notebook"
"""Author of events that say what happened beside the conversation."""


@dataclass
class _Call:
    """A call that waits for its response."""

    tool: str
    args: dict[str, Any] | None
    """None: not known, since the call was never seen."""
    asked_at: float | None
    row: str | None
    """None: the call was shown elsewhere; its response gets a row of its own."""


@dataclass
class _Told:
    """The ops of one event, and the row that they end with."""

    ops: list[Json] = field(default_factory=list[Json])
    row: str | None = None
    is_transfer: bool = False
    """A row says that the event hands over."""

    def append(self, row: str, author: str, kind: str, **fields: Any) -> None:
        self.ops.append({"op": "append", "row": {"id": row, "author": one_line(author, 100), "kind": kind, **fields}})
        self.row = row

    def patch(self, row: str, **fields: Any) -> None:
        self.ops.append({"op": "patch", "id": row, **fields})
        self.row = row


class RunRows:
    """One run, event by event; live with pieces and durations, or static and the same on every run."""

    def __init__(
        self,
        *,
        schema_of: SchemaOf | None = None,
        state: Mapping[str, Any] | None = None,
        history: Sequence[Event] | History = (),
        live: bool = True,
        magic: str = "",
        seconds_of: Callable[[str], float | None] = lambda _: None,
        waiting: Callable[[], list[Interrupt]] = list,
    ) -> None:
        """A run of which nothing is known yet.

        Args:
            schema_of: For the form in which a card's arguments are edited.
            state: As it is before the first event that is fed. None: what `history` left, which is nothing for `()`.
            history: The earlier events of the session, oldest first, or their read model; needed only where the run
                goes on from an approval that this object did not see asked.
            live: False leaves out durations.
            magic: The `%confirm` that answers what is asked; empty: only Python has the chat.
            seconds_of: How long a call's own tool took, whose result comes with those of others; None: not known.
            waiting: Returns the interrupts that are open in the session now; by default their numbers are not known,
                and cards say ids.
        """
        self._waiting = waiting
        self._seconds_of = seconds_of
        self._magic = magic
        self._schema_of = schema_of
        self._live = live
        self._room = results.Room(live=True)
        self._kinds = ("thought", "text") if settings.now.show_thoughts else ("text",)
        self._state = ShownState(state or {})
        self._calls: dict[str, _Call] = {}
        self._cards: dict[str, Json] = {}
        self.decisions: list[Decision] = []
        """Of the approvals that were decided and the questions that were answered."""
        self._interrupts: dict[str, Interrupt] = {}
        """By the id of their cards."""
        self._asked_for: dict[str, str] = {}
        """Call id -> id of the card that asks for it."""
        self._streamed: set[str] = set()
        self._invocation = ""
        self._last_at: float | None = None
        self._history = history if isinstance(history, History) else History(history)
        for interrupt in self._history.interrupts():
            if interrupt.has_card:
                self._cards_of(interrupt)
        for event in self._history.events if state is None else ():
            self._state.change(event.actions.state_delta)
        for event in self._history.events[-1:]:
            self._last_at = event.timestamp

    def opening(self) -> list[Json]:
        """The ops that show how things stand before the first event: the state, and the cards that are open."""
        ops: list[Json] = []
        if entries := self._state.entries():
            ops.append({"op": "state", "event": "", "changes": [], "state": entries})
        asked = [card for card in self._cards.values() if card["state"] == "asked"]
        self._say_how(asked)
        return ops + [{"op": "card", "card": dict(card)} for card in asked]

    def feed(self, event: Event) -> list[Json]:
        """The ops that show one more event; a piece of a stream costs the time of its own length."""
        if event.partial:
            return self._pieces(event)
        if event.invocation_id != self._invocation:
            self._invocation = event.invocation_id
            self._state.end_turn()
        told = _Told()
        for index, attempt in enumerate(event_words.in_vain(event)):
            told.append(f"{event.id}/attempt{index}", _who(event), "marker", text=attempt)
        self._words(event, told)
        self._call_rows(event, told)
        self._responses(event, told)
        self._ask(event, told)
        self._failure_and_doings(event, told)
        self._state_change(event, told)
        if event.grounding_metadata:
            told.ops += _looked_up(event)
        if self._live and told.row and (usage := row_usage(event)):
            told.patch(told.row, usage=usage)
        self._last_at = event.timestamp
        return told.ops

    # -- words

    def _pieces(self, event: Event) -> list[Json]:
        told = _Told()
        if (call := self._calls.get(_tool_at_work(event))) and call.row:
            told.patch(call.row, text=one_line(event.text))  # how far a tool is; its result takes the place
            return told.ops
        for kind in self._kinds:
            if not (words := event_words.said(event, thoughts=kind == "thought")):
                continue
            row = f"{event.id}/{kind}"
            if row not in self._streamed:
                self._streamed.add(row)
                told.append(row, _who(event), kind, text="", html="", streaming=True)
            told.ops.append({"op": "text", "id": row, "s": cleaned(words)})
        return told.ops

    def _words(self, event: Event, told: _Told) -> None:
        for kind in self._kinds:
            words, row = event_words.said(event, thoughts=kind == "thought"), f"{event.id}/{kind}"
            if not words and row not in self._streamed:
                continue
            shown: Json = {"text": cleaned(words).strip("\n"), "html": None}
            if event.author not in ("user", NOTEBOOK) and words:
                shown["html"] = _html_of(grounding.cited_in(event, words) if event.grounding_metadata else words)
                shown |= self._timed(self._last_at, event)
            pieces = results.of_message(event, self._room) if self._live and kind == "text" else []
            shown["shown"] = html.for_view(pieces) or None
            if row in self._streamed:
                told.patch(row, **shown)
            elif shown["text"].strip() or shown.get("shown"):
                told.append(row, _who(event), _KINDS.get(event.author, kind), **shown)

    def _timed(self, since: float | None, event: Event, took: float | None = None) -> Json:
        if not self._live or since is None:
            return {}
        return {"ms": max(0, round((event.timestamp - since if took is None else took) * 1000))}

    # -- calls

    def _call_rows(self, event: Event, told: _Told) -> None:
        for index, call in enumerate(event.get_function_calls()):
            if _is_ask(event, call):
                continue
            tool, row = name_text(call.name), f"{event.id}/call{index}"
            if event_words.is_question(event, call):
                told.append(row, _who(event), "question", text=interrupt_text.row_text(input_of(call, event)))
                continue
            args = call.args or {}
            self._calls[call.id or ""] = _Call(tool, args, event.timestamp, row)
            fields: Json = {"tool": tool, "args": arguments_text(args), "text": event_words.outcome_of(event, call)}
            told.append(row, _who(event), "call", **fields)

    def _responses(self, event: Event, told: _Told) -> None:
        for index, response in enumerate(event.get_function_responses()):
            asks = response.name in _ANSWERED or response.id in self._interrupts
            if event.author == "user" and asks:
                self._answered(event, response, f"{event.id}/answer{index}", told)
                continue
            call = self._call_of(response)
            fields = self._response_fields(event, response, call)
            if call.tool == TRANSFER and fields.get("ok") and (agent := event.actions.transfer_to_agent):
                fields |= {"kind": "marker", "tool": None, "result": None, "ok": None}
                fields["text"], told.is_transfer = event_words.transfer(agent), True
            if call.row:
                told.patch(call.row, **fields)
                continue
            call.row = f"{event.id}/call{index}"
            args = None if call.args is None else arguments_text(call.args)
            kind = str(fields.pop("kind", "call"))
            told.append(call.row, _who(event), kind, **{"tool": call.tool, "args": args, **fields})

    def _call_of(self, response: types.FunctionResponse) -> _Call:
        key = response.id or ""
        if key not in self._calls:
            record = self._history.calls.newest(key)
            self._calls[key] = (
                _Call(name_text(record.call.name), record.call.args or {}, record.event.timestamp, None)
                if record
                else _Call(name_text(response.name), None, None, None)
            )
        return self._calls[key]

    def _response_fields(self, event: Event, response: types.FunctionResponse, call: _Call) -> Json:
        if approvals.is_placeholder(event, response):
            return {"text": "asks for approval"}
        if credentials.is_waiting(event, response):
            return {
                "text": interrupt_text.waits_for_credential(event.actions.requested_auth_configs[response.id or ""])
            }
        if card := self._cards.get(self._asked_for.get(response.id or "", "")):
            card["state"] = "superseded" if card["state"] == "asked" else card["state"]
        result, ok = event_words.result_text(response)
        result += event_words.failed_at(event, response.id) + event_words.repeated(event, response.id)
        shown = html.for_view(results.of_result(event, response, call.tool, self._room)) if self._live else []
        timed = self._timed(call.asked_at, event, self._seconds_of(response.id or ""))
        return {"text": "", "result": result, "ok": ok, "shown": shown or None, **timed}

    # -- interrupts

    def _ask(self, event: Event, told: _Told) -> None:
        opened = [interrupt for interrupt in opened_by(event) if interrupt.kind != "long_running"]
        for interrupt in opened:
            if interrupt.kind == "credential":
                told.append(f"{event.id}/{interrupt.id}", _who(event), "text", text=interrupt_text.needs(interrupt))
        cards = [card for interrupt in opened for card in self._cards_of(interrupt)]
        self._say_how(cards)
        told.ops += [{"op": "card", "card": dict(card)} for card in cards]

    def _cards_of(self, interrupt: Interrupt) -> list[Json]:
        """The card of an interrupt, after those that it takes the place of."""
        is_approval = interrupt.kind == "approval"
        card = card_of(interrupt, self._schema_of(interrupt) if is_approval and self._schema_of else None)
        calls = [] if interrupt.is_question else interrupt.waiting_calls
        asked = [self._asked_for.get(call.id or "", "") for call in calls if interrupt.kind == "credential"]
        over = [self._cards[key] for key in dict.fromkeys(asked) if key and self._cards[key]["state"] == "asked"]
        for each in over:
            each["state"] = "superseded"
        for call in calls:
            self._asked_for[call.id or ""] = interrupt.id
            self._calls.setdefault(call.id or "", _Call(name_text(call.name), call.args or {}, None, None))
        self._cards[interrupt.id], self._interrupts[interrupt.id] = card, interrupt
        return [*over, card]

    def _say_how(self, cards: list[Json]) -> None:
        """Have open cards say what can be typed instead of a click."""
        cards = [card for card in cards if card["state"] == "asked"]
        numbered = {interrupt.id: interrupt for interrupt in self._waiting()} if cards else {}
        shown = [self._interrupts[card["id"]] for card in self._cards.values() if card["state"] == "asked"]
        among = list(numbered.values()) or shown
        for card in cards:
            interrupt = numbered.get(card["id"]) or self._interrupts[card["id"]]
            typed = interrupt_text.ways(interrupt, self._magic, among)
            card["how"] = typed[0] if card["kind"] == "approval" else " or ".join(typed)

    def _answered(self, event: Event, response: types.FunctionResponse, row: str, told: _Told) -> None:
        key, values = response.id or "", response.response or {}
        card = self._cards.get(key) or self._cards.get(self._asked_for.get(key, ""))
        interrupt = self._interrupts[card["id"]] if card else None
        told.append(row, event.author, "user", text=interrupt_text.answer_row_text(interrupt, response))
        if card and interrupt:
            verdict = interrupt_text.verdict_of(interrupt, values)
            self._decided(interrupt, card, verdict._replace(where=interrupt_text.answered_by(response)))
            self._go_on(card, event, verdict, told)

    def _decided(self, interrupt: Interrupt, card: Json, verdict: Verdict) -> None:
        card["hint"] = interrupt_text.prompt_text(interrupt)
        self.decisions.append(interrupt_text.decision_of(interrupt, verdict))

    def _go_on(self, card: Json, event: Event, verdict: Verdict, told: _Told) -> None:
        for call_id, asked in self._asked_for.items():
            if asked == card["id"]:
                self._calls[call_id].asked_at = event.timestamp
        if card["state"] == "asked":
            card |= verdict.fields
            told.ops.append({"op": "card", "card": dict(card)})

    def closed(self, key: str, verdict: Verdict, text: str) -> list[Json]:
        """The ops that show how something which waited under `key` was closed by no event of this run.

        Args:
            key: The card's id.
            verdict: What the card says from now on.
            text: What the rows of the calls that waited say.
        """
        if not (card := self._cards.get(key)):
            return []
        card |= verdict.fields
        waited = [self._calls[call_id].row for call_id, asked in self._asked_for.items() if asked == key]
        rows: list[Json] = [{"op": "patch", "id": row, "text": text} for row in waited if row]
        return [{"op": "card", "card": dict(card)}, *rows]

    def answered_elsewhere(self, key: str, verdict: Verdict) -> list[Json]:
        """The ops that show what was answered in another cell."""
        where = verdict.where or "in another cell"
        note = ": ".join(filter(None, (where, verdict.note)))
        if card := self._cards.get(key):
            self._decided(self._interrupts[key], card, verdict)
        return self.closed(key, Verdict(verdict.state, note), f"{verdict.state} {where}")

    # -- failures, deeds, state

    def _failure_and_doings(self, event: Event, told: _Told) -> None:
        if failure := event_words.failure(event):
            kind = "marker" if event.error_code == event_words.STOPPED else "error"
            told.append(f"{event.id}/{kind}", _who(event), kind, text=failure)
        if event.output is not None and not event.content:
            output = shortened(json_text(event.output))
            told.append(f"{event.id}/output", _who(event), "text", text=f"→ {output}{event_words.repeated(event)}")
        for index, deed in enumerate(event_words.doings(event, with_transfer=not told.is_transfer)):
            told.append(f"{event.id}/deed{index}", _who(event), "marker", text=deed)

    def _state_change(self, event: Event, told: _Told) -> None:
        changes = self._state.change(event.actions.state_delta)
        if not changes:
            return
        if told.row is None:
            told.append(f"{event.id}/state", _who(event), "marker", text="writes to the state")
        told.ops.append({"op": "state", "event": told.row, "changes": changes})


_KINDS = {"user": "user", NOTEBOOK: "marker"}


def rows_of(
    events: Iterable[Event], *, history: Sequence[Event] = (), elsewhere: Mapping[str, Verdict] | None = None
) -> list[Json]:
    """The rows of a run that is over, oldest first, at most `view_state.MAX_ROWS`, with nothing that changes from run
    to run but their ids. `elsewhere`: what was answered in another cell, by card id.
    """
    return rows_and_decisions(events, history=history, elsewhere=elsewhere)[0]


def rows_and_decisions(
    events: Iterable[Event], *, history: Sequence[Event] = (), elsewhere: Mapping[str, Verdict] | None = None
) -> tuple[list[Json], list[Decision]]:
    """`rows_of`, and what was decided on approvals and answered to questions."""
    rows, view = RunRows(history=history, live=False), ViewState()
    ops = [op for event in events if not event.partial for op in rows.feed(event)]
    for key, verdict in (elsewhere or {}).items():
        ops += rows.answered_elsewhere(key, verdict)
    for op in ops:
        view.apply(op)
    return list(view.rows.values()), rows.decisions


def _tool_at_work(event: Event) -> str:
    """The id of the call whose tool says how far it is; empty if it is an agent that speaks."""
    calls = calls_to(event.branch, event.node_info.path)
    return calls[-1][1] if calls and calls[-1][1] != event.isolation_scope else ""


def _who(event: Event) -> str:
    """The author, with a mark for each agent that was called as a tool on the way to it; before it, of those that work
    at once, whose work it is.
    """
    path = event.node_info.path
    depth = len(calls_to(event.branch, path)) - bool(_tool_at_work(event))
    own = event_words.who_said(event)
    who = "↳ " * depth + own
    if not (lane := lane_of(event.branch, path)):
        return who
    return f"∥ {who}" if lane == own else f"∥ {lane} / {who}"


def _is_ask(event: Event, call: types.FunctionCall) -> bool:
    """True for the runtime's own question; a call of that name which a model wrote is a call like any other."""
    return call.name in (approvals.REQUEST, credentials.REQUEST) and call.id in (event.long_running_tool_ids or ())


def _html_of(markdown: str) -> str:
    return html.write([Markdown(markdown)])


def _looked_up(event: Event) -> list[Json]:
    """A row of its own, under what was said."""
    if not (found := grounding.grounding_of([event])):
        return []
    told = _Told()
    pages = html.page_sources(found.suggestions)
    lines = html.write(grounding.lines(found))
    told.append(f"{event.id}/sources", event.author, "sources", text="", html=lines, pages=pages)
    return told.ops
