"""A run's events become what a reader sees of them: rows, state and approval cards, as ops for a view."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST
from adk_nb.notebook import settings
from adk_nb.notebook.view import credential_words, event_words, grounding, input_words, rich_results
from adk_nb.notebook.view.event_words import Verdict
from adk_nb.notebook.view.isolated_page import isolated_page
from adk_nb.notebook.view.markdown import to_html
from adk_nb.notebook.view.plain_text import (
    arguments_text,
    call_text,
    cleaned,
    json_text,
    name_text,
    one_line,
    shortened,
)
from adk_nb.notebook.view.spending import row_usage
from adk_nb.notebook.view.state_changes import ShownState
from adk_nb.notebook.view.view_state import Json, ViewState
from adk_nb.runtime import approvals, credentials
from adk_nb.runtime.branches import calls_to, lane_of
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import APPROVALS, CREDENTIALS, Interrupt, answered_value, input_of
from adk_nb.runtime.nested_calls import TRANSFER
from adk_nb.runtime.rewind import surviving

SchemaOf = Callable[[Interrupt], dict[str, Any] | None]
"""What waits -> the JSON schema of its tool's parameters."""
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
        history: Iterable[Event] = (),
        live: bool = True,
        magic: str = "",
        seconds_of: Callable[[str], float | None] = lambda _: None,
        waiting: Callable[[], list[Interrupt]] = list,
    ) -> None:
        """A run of which nothing is known yet.

        Args:
            schema_of: For the form in which a card's arguments are edited.
            state: As it is before the first event that is fed. None: what `history` left, which is nothing for `()`.
            history: Earlier events of the session, oldest first; needed only where the run goes on from an approval
                that this object did not see asked.
            live: False leaves out durations.
            magic: The `%confirm` that answers what is asked; empty: only Python has the chat.
            seconds_of: How long a call's own tool took, whose result comes with those of others; None: not known.
            waiting: The approvals that are open in the session now; by default their numbers are not known, and cards
                say ids.
        """
        self._waiting = waiting
        self._seconds_of = seconds_of
        self._magic = magic
        self._schema_of = schema_of
        self._live = live
        self._room = rich_results.Room(live=True)
        self._kinds = ("thought", "text") if settings.now.show_thoughts else ("text",)
        self._state = ShownState(state or {})
        self._calls: dict[str, _Call] = {}
        self._cards: dict[str, Json] = {}
        self._hints: dict[str, str] = {}
        """Approval id -> its hint without the payload that is offered."""
        self.decisions: list[str] = []
        """A line for each approval that was decided, and each question that was answered."""
        self._questions: dict[str, Interrupt] = {}
        """By the id of their cards."""
        self._asked_for: dict[str, str] = {}
        """Call id -> id of the card that asks for it."""
        self._streamed: set[str] = set()
        self._invocation = ""
        self._last_at: float | None = None
        for event in surviving(history):
            self._remember(event, with_state=state is None)

    def opening(self) -> list[Json]:
        """The ops that show how things stand before the first event: the state, and the cards that are open."""
        ops: list[Json] = []
        if entries := self._state.entries():
            ops.append({"op": "state", "event": "", "changes": [], "state": entries})
        asked = [card for card in self._cards.values() if card["state"] == "asked"]
        self._say_how([card for card in asked if card["kind"] == "approval"])
        return ops + [{"op": "card", "card": dict(card)} for card in asked]

    def state(self) -> list[Json]:
        """The state now, as `ShownState.whole`."""
        return self._state.whole()

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
                shown["html"] = to_html(grounding.cited_in(event, words) if event.grounding_metadata else words)
                shown |= self._timed(self._last_at, event)
            shown["shown"] = rich_results.of_words(event, self._room) if self._live and kind == "text" else None
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
                told.append(row, _who(event), "question", text=input_words.row_text(input_of(call, event)))
                continue
            args = call.args or {}
            self._calls[call.id or ""] = _Call(tool, args, event.timestamp, row)
            fields: Json = {"tool": tool, "args": arguments_text(args), "text": event_words.outcome_of(event, call)}
            told.append(row, _who(event), "call", **fields)

    def _responses(self, event: Event, told: _Told) -> None:
        for index, response in enumerate(event.get_function_responses()):
            if response.name == approvals.REQUEST and event.author == "user":
                self._answered(event, response, f"{event.id}/answer{index}", told)
                continue
            if response.name == credentials.REQUEST and event.author == "user":
                self._let_in(event, response, f"{event.id}/answer{index}", told)
                continue
            if event.author == "user" and (response.name == INPUT_REQUEST or response.id in self._questions):
                self._answered_question(event, response, f"{event.id}/answer{index}", told)
                continue
            call = self._calls.setdefault(response.id or "", _unseen(response))
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

    def _response_fields(self, event: Event, response: types.FunctionResponse, call: _Call) -> Json:
        if approvals.is_placeholder(event, response):
            return {"text": event_words.WAITS}
        if credentials.is_waiting(event, response):
            return {"text": "waits to be let in"}
        if card := self._cards.get(self._asked_for.get(response.id or "", "")):
            card["state"] = "superseded" if card["state"] == "asked" else card["state"]
        result, ok = event_words.result_text(response)
        result += event_words.failed_at(event, response.id) + event_words.repeated(event, response.id)
        shown = rich_results.of_result(event, response, call.tool, self._room) if self._live else None
        timed = self._timed(call.asked_at, event, self._seconds_of(response.id or ""))
        return {"text": "", "result": result, "ok": ok, "shown": shown, **timed}

    # -- credentials and approvals

    def _ask(self, event: Event, told: _Told) -> None:
        for one in _to_be_let_in(event):
            told.append(f"{event.id}/{one.id}", _who(event), "text", text=credential_words.needs(one))
        cards = self._cards_of(event)
        self._say_how([card for card in cards if _is_open_approval(card)])
        told.ops += [{"op": "card", "card": dict(card)} for card in cards]

    def _cards_of(self, event: Event) -> list[Json]:
        cards = [self._card(one) for one in _asked_in(event)]
        for one in _to_be_let_in(event):
            cards += self._credential_cards(one)
        return cards + [self._question_card(one) for one in _questions_in(event)]

    def _question_card(self, one: Interrupt) -> Json:
        self._questions[one.id] = one
        self._cards[one.id] = card = input_words.card(one, self._magic)
        return card

    def _answered_question(self, event: Event, response: types.FunctionResponse, row: str, told: _Told) -> None:
        value = answered_value(response)
        text = input_words.answer_text(value)
        if one := self._questions.get(response.id or ""):
            verdict = input_words.verdict_of(one, value)
            text = input_words.decision_row_text(one, verdict) or text
            self.decisions.append(input_words.answered_line(one, verdict))
            self._go_on(self._cards[one.id], event, verdict, told)
        told.append(row, event.author, "user", text=text)

    def _credential_cards(self, one: Interrupt) -> list[Json]:
        """The card of a request, after those that it takes the place of."""
        card = credential_words.card(one, credential_words.way(self._magic))
        keys = [waiting.call.id or "" for waiting in one.calls]
        older = {key: self._cards[key] for key in map(self._asked_for.get, keys) if key}
        over = [each for each in older.values() if each["state"] == "asked"]
        for each in over:
            each["state"] = "superseded"
        for waiting, key in zip(one.calls, keys, strict=True):
            self._asked_for[key] = one.id
            tool = name_text(waiting.call.name)
            self._calls.setdefault(key, _Call(tool, waiting.call.args or {}, None, None))
        self._cards[one.id] = card
        return [*over, card]

    def _let_in(self, event: Event, response: types.FunctionResponse, row: str, told: _Told) -> None:
        refused = credentials.refusal(response.response or {})
        told.append(row, event.author, "user", text="refuses the request" if refused else "answers the request")
        if card := self._cards.get(response.id or ""):
            self._go_on(card, event, Verdict("refused" if refused else "given"), told)

    def _say_how(self, cards: list[Json]) -> None:
        """Have open cards say what can be typed instead of a click; an only question needs neither number nor id."""
        alone = len(cards) == 1 == sum(map(_is_open_approval, self._cards.values()))
        numbers = {} if alone or not cards else {one.id: one.number for one in self._waiting()}
        for card in cards:
            which = "" if alone else numbers.get(card["id"]) or str(card["id"])
            if self._magic:
                card["how"] = " ".join(filter(None, (self._magic, str(which), "--yes")))
            else:
                card["how"] = f"chat.approve({which!r})" if which else "chat.approve()"

    def _card(self, one: Interrupt) -> Json:
        schema = self._schema_of(one) if self._schema_of else None
        card: Json = {
            "id": one.id,
            "kind": "approval",
            "agent": one_line(one.agent, 100),
            "tool": name_text(one.call.name),
            "hint": event_words.asks_text(one),
            "args": one.call.args or {},
            "schema": schema,
            "how": "",
            "state": "asked",
            "note": "",
        }
        self._cards[one.id] = card
        self._hints[one.id] = event_words.hint_text(one)
        self._asked_for[one.call.id or ""] = one.id
        self._calls.setdefault(one.call.id or "", _Call(card["tool"], card["args"], None, None))
        return card

    def _answered(self, event: Event, response: types.FunctionResponse, row: str, told: _Told) -> None:
        decided = approvals.read_answer(response.response or {})
        key = response.id or ""
        card = self._cards.get(key) or self._cards.get(self._asked_for.get(key, ""))
        words = event_words.decision_text(decided, card["tool"] if card else "the call")
        told.append(row, event.author, "user", text=words)
        if card:
            by = f"by {one_line(decided.by, 100)}" if decided.by else "by a function response"
            self._decided(card, event_words.verdict_of(decided, by))
            self._go_on(card, event, event_words.verdict_of(decided), told)

    def _decided(self, card: Json, verdict: Verdict) -> None:
        if one := self._questions.get(card["id"]):
            self.decisions.append(input_words.answered_line(one, verdict))
        if card["kind"] != "approval":
            return
        card["hint"] = self._hints.get(card["id"], card["hint"])
        self.decisions.append(event_words.decision_line(verdict, call_text(card["tool"], arguments_text(card["args"]))))

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
        if verdict.state == "answered":
            note = f"{verdict.note} ({where})"
        if card := self._cards.get(key):
            self._decided(card, verdict)
        return self.closed(key, Verdict(verdict.state, note), f"{verdict.state} {where}")

    def _remember(self, event: Event, *, with_state: bool) -> None:
        """Take in an event that is shown elsewhere."""
        for call in event.get_function_calls():
            if call.id and not _is_ask(event, call) and not event_words.is_question(event, call):
                self._calls[call.id] = _Call(name_text(call.name), call.args or {}, event.timestamp, None)
        self._cards_of(event)
        for response in event.get_function_responses():
            card = self._cards.get(self._asked_for.get(response.id or "", response.id or ""))
            waits = (
                approvals.is_placeholder(event, response)
                or credentials.is_waiting(event, response)
                or response.will_continue
            )
            if card and not waits:
                card["state"] = "superseded"
        if with_state:
            self._state.change(event.actions.state_delta)
        self._last_at = event.timestamp

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
    events: Iterable[Event], *, history: Iterable[Event] = (), elsewhere: Mapping[str, Verdict] | None = None
) -> list[Json]:
    """The rows of a run that is over, oldest first, at most `view_state.MAX_ROWS`, with nothing that changes from run
    to run but their ids. `elsewhere`: what was answered in another cell, by card id.
    """
    return rows_and_decisions(events, history=history, elsewhere=elsewhere)[0]


def rows_and_decisions(
    events: Iterable[Event], *, history: Iterable[Event] = (), elsewhere: Mapping[str, Verdict] | None = None
) -> tuple[list[Json], list[str]]:
    """`rows_of`, and a line for each approval that was decided and each question that was answered."""
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


def _asked_in(event: Event) -> list[Interrupt]:
    return open_interrupts([event], APPROVALS) if event.long_running_tool_ids else []


def _looked_up(event: Event) -> list[Json]:
    """A row of its own, under what was said."""
    if not (found := grounding.grounding_of([event])):
        return []
    told = _Told()
    words = "\n".join(grounding.words(found))
    pages = [isolated_page(one) for one in found.suggestions]
    told.append(f"{event.id}/sources", event.author, "sources", text="", html=words, pages=pages)
    return told.ops


def _questions_in(event: Event) -> list[Interrupt]:
    return [input_of(call, event) for call in event.get_function_calls() if event_words.is_question(event, call)]


def _to_be_let_in(event: Event) -> list[Interrupt]:
    return open_interrupts([event], CREDENTIALS) if event.long_running_tool_ids else []


def _is_open_approval(card: Json) -> bool:
    return card["kind"] == "approval" and card["state"] == "asked"


def _unseen(response: types.FunctionResponse) -> _Call:
    return _Call(name_text(response.name), None, None, None)
