"""The rows, state and cards of a run, built from its events as ops for a view; and rows as tables."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.notebook import settings
from adk_nb.notebook.view import answers, event_text, interrupt_text, results
from adk_nb.notebook.view.cards import card_of
from adk_nb.notebook.view.document import Markdown, Table
from adk_nb.notebook.view.event_text import StateTexts, change_text
from adk_nb.notebook.view.interrupt_text import Decision, Verdict
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
from adk_nb.notebook.view.view_state import Json, ViewState
from adk_nb.notebook.view.writers import html
from adk_nb.runtime import approvals, credentials
from adk_nb.runtime.branches import calls_to, lane_of
from adk_nb.runtime.cancellation import INVOCATION_ABORTED
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import Interrupt, input_of, opened_by, unreadable_requests
from adk_nb.runtime.open_calls import TRANSFER

SchemaOf = Callable[[Interrupt], dict[str, Any] | None]
"""An approval -> the JSON schema of its tool's parameters."""
_ANSWERED = (*REQUESTS, INPUT_REQUEST)
"""Names of requests that the user answers."""
NOTEBOOK = "notebook"
"""Author of the notebook's own events, such as a note on a changed definition."""


@dataclass
class _Call:
    """A call without a response."""

    tool: str
    args: dict[str, Any] | None
    """None: unknown."""
    called_at: float | None
    row: str | None
    """Id of its row. None: the row is in another view, and the response gets a row of its own."""
    note: str = ""
    """Follows its result."""


@dataclass
class _RowOps:
    """The ops of one event, and the last row that they change."""

    ops: list[Json] = field(default_factory=list[Json])
    row: str | None = None
    is_transfer: bool = False

    @property
    def rows(self) -> list[str]:
        """The ids of the rows that it has added or changed, in order."""
        ids = (op["row"]["id"] if op["op"] == "append" else op.get("id") for op in self.ops)
        return [id for id in ids if id]

    def append(self, row: str, author: str, kind: str, **fields: Any) -> None:
        """Add a row; later ops of the event may refer to it."""
        self.ops.append({"op": "append", "row": {"id": row, "author": one_line(author, 100), "kind": kind, **fields}})
        self.row = row

    def patch(self, row: str, **fields: Any) -> None:
        """Change fields of a row."""
        self.ops.append({"op": "patch", "id": row, **fields})
        self.row = row


class RunRows:
    """The rows of one run: live with partial text and durations, or static and the same in every kernel."""

    def __init__(
        self,
        *,
        schema_of: SchemaOf | None = None,
        state: Mapping[str, Any] | None = None,
        history: Sequence[Event] | History = (),
        live: bool = True,
        magic: str = "",
        seconds_of: Callable[[str], float | None] = lambda _: None,
        open_interrupts: Callable[[], list[Interrupt]] = list,
    ) -> None:
        """Begin without rows.

        Args:
            schema_of: Returns the schema of the form that edits a card's arguments.
            state: The state before the first event. None: the state after `history`.
            history: The earlier events of the session, oldest first, or their read model; only needed if the run
                resumes from an approval requested in them.
            live: False leaves out durations.
            magic: The `%confirm` line of the session; empty for a chat that only Python code reaches.
            seconds_of: Returns the seconds that the tool of a call took; None: unknown.
            open_interrupts: Returns the open interrupts of the session, whose numbers cards show; without them cards
                show ids.
        """
        self._waiting = open_interrupts
        self._seconds_of = seconds_of
        self._magic = magic
        self._schema_of = schema_of
        self._live = live
        self._capacity = results.Capacity(live=True)
        self._kinds = ("thought", "text") if settings.now.show_thoughts else ("text",)
        self._state = StateTexts(state or {})
        self._calls: dict[str, _Call] = {}
        self._cards: dict[str, Json] = {}
        self.decisions: list[Decision] = []
        """Decided approvals and answered questions."""
        self._interrupts: dict[str, Interrupt] = {}
        """By the id of their cards."""
        self._card_of_call: dict[str, str] = {}
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
        """Return the ops for the state before the first event: the session's state, and the open cards."""
        ops: list[Json] = []
        if entries := self._state.entries():
            ops.append({"op": "state", "event": "", "changes": [], "state": entries})
        cards = [card for card in self._cards.values() if card["state"] == "asked"]
        self._add_commands(cards)
        return ops + [{"op": "card", "card": dict(card)} for card in cards]

    def feed(self, event: Event) -> list[Json]:
        """Return the ops for one more event."""
        if event.partial:
            return self._pieces(event)
        if event.invocation_id != self._invocation:
            self._invocation = event.invocation_id
            self._state.end_turn()
        row_ops = _RowOps()
        for index, attempt in enumerate(event_text.failed_attempts(event)):
            row_ops.append(f"{event.id}/attempt{index}", _author(event), "marker", text=attempt)
        self._text_rows(event, row_ops)
        for index, call in enumerate(event.get_function_calls()):
            if _is_request(event, call):
                continue
            tool, row = name_text(call.name), f"{event.id}/call{index}"
            if event_text.is_question(event, call):
                row_ops.append(row, _author(event), "question", text=interrupt_text.row_text(input_of(call, event)))
                continue
            args = call.args or {}
            self._calls[call.id or ""] = _Call(tool, args, event.timestamp, row, event_text.call_note(event))
            fields: Json = {"tool": tool, "args": arguments_text(args), "text": event_text.pending_outcome(event, call)}
            row_ops.append(row, _author(event), "call", **fields)
        self._responses(event, row_ops)
        self._card_ops(event, row_ops)
        self._failure_and_action_rows(event, row_ops)
        if changes := self._state.change(event.actions.state_delta):
            if row_ops.row is None:
                row_ops.append(f"{event.id}/state", _author(event), "marker", text="writes to the state")
            row_ops.ops.append({"op": "state", "event": row_ops.row, "changes": changes})
        if event.grounding_metadata and (sources := answers.grounding_of([event])):
            lines, pages = html.write(answers.source_lines(sources)), html.page_sources(sources.suggestions)
            source_ops = _RowOps()  # of their own: the usage below belongs to the row before
            source_ops.append(f"{event.id}/sources", event.author, "sources", text="", html=lines, pages=pages)
            row_ops.ops += source_ops.ops
        if self._live and row_ops.rows and (usage := row_usage(event)):
            row_ops.patch(row_ops.rows[0], usage=usage)  # of the model's own words, before those of its calls
        self._last_at = event.timestamp
        return row_ops.ops

    # -- text

    def _pieces(self, event: Event) -> list[Json]:
        row_ops = _RowOps()
        if (call := self._calls.get(_running_tool(event))) and call.row:
            row_ops.patch(call.row, text=one_line(event.text))  # progress of a tool, until its result replaces it
            return row_ops.ops
        for kind in self._kinds:
            if not (text := event_text.message_text(event, thoughts=kind == "thought")):
                continue
            row = f"{event.id}/{kind}"
            if row not in self._streamed:
                self._streamed.add(row)
                row_ops.append(row, _author(event), kind, text="", html="", streaming=True)
            row_ops.ops.append({"op": "text", "id": row, "s": cleaned(text)})
        return row_ops.ops

    def _text_rows(self, event: Event, row_ops: _RowOps) -> None:
        for kind in self._kinds:
            text, row = event_text.message_text(event, thoughts=kind == "thought"), f"{event.id}/{kind}"
            if not text and row not in self._streamed:
                continue
            fields: Json = {"text": cleaned(text).strip("\n"), "html": None}
            if event.author not in ("user", NOTEBOOK) and text:
                fields["html"] = html.write(
                    [Markdown(answers.cited_in(event, text) if event.grounding_metadata else text)]
                )
                fields |= self._timed(self._last_at, event)
            pieces = results.message_pieces(event, self._capacity) if self._live and kind == "text" else []
            fields["shown"] = html.for_view(pieces) or None
            if row in self._streamed:
                row_ops.patch(row, **fields)
            elif fields["text"].strip() or fields["shown"]:
                row_ops.append(row, _author(event), _KINDS.get(event.author, kind), **fields)

    def _timed(self, since: float | None, event: Event, took: float | None = None) -> Json:
        if not self._live or since is None:
            return {}
        return {"ms": max(0, round((event.timestamp - since if took is None else took) * 1000))}

    # -- calls

    def _responses(self, event: Event, row_ops: _RowOps) -> None:
        for index, response in enumerate(event.get_function_responses()):
            asks = response.name in _ANSWERED or response.id in self._interrupts
            if event.author == "user" and asks:
                self._answer_row(event, response, f"{event.id}/answer{index}", row_ops)
                continue
            call = self._call_of(response)
            fields = self._response_fields(event, response, call)
            if call.tool == TRANSFER and fields.get("ok") and (agent := event.actions.transfer_to_agent):
                fields |= {"kind": "marker", "tool": None, "result": None, "ok": None}
                fields["text"], row_ops.is_transfer = event_text.transfer_text(agent), True
            if skill := event_text.loaded_skill(response):
                fields = {"kind": "marker", "tool": None, "result": None, "ok": None, "text": skill}
            if call.row:
                row_ops.patch(call.row, **fields)
                continue
            call.row = f"{event.id}/call{index}"
            args = None if call.args is None else arguments_text(call.args)
            kind = str(fields.pop("kind", "call"))
            row_ops.append(call.row, _author(event), kind, **{"tool": call.tool, "args": args, **fields})

    def _call_of(self, response: types.FunctionResponse) -> _Call:
        key = response.id or ""
        if key not in self._calls:
            record = self._history.calls.newest(key)
            self._calls[key] = (
                _Call(
                    name_text(record.call.name),
                    record.call.args or {},
                    record.event.timestamp,
                    None,
                    event_text.call_note(record.event),
                )
                if record
                else _Call(name_text(response.name), None, None, None)
            )
        return self._calls[key]

    def _response_fields(self, event: Event, response: types.FunctionResponse, call: _Call) -> Json:
        if response.id in event.actions.requested_tool_confirmations:
            return {"text": "asks for approval"}
        if response.id in event.actions.requested_auth_configs:
            return {"text": interrupt_text.credential_state(event.actions.requested_auth_configs[response.id or ""])}
        if card := self._cards.get(self._card_of_call.get(response.id or "", "")):
            card["state"] = "superseded" if card["state"] == "asked" else card["state"]
        result, ok = event_text.result_text(response)
        shown = results.result_pieces(event, response, call.tool, self._capacity)
        if ok and shown and (text := results.shown_text(response, shown)) is not None:
            result = text if self._live or text else result
        result += event_text.failure_place(event, response.id) + event_text.repetition_note(event, response.id)
        result += call.note
        pieces = html.for_view(shown) if self._live else []
        timed = self._timed(call.called_at, event, self._seconds_of(response.id or ""))
        return {"text": "", "result": result, "ok": ok, "shown": pieces or None, **timed}

    # -- interrupts

    def _card_ops(self, event: Event, row_ops: _RowOps) -> None:
        opened = [interrupt for interrupt in opened_by(event) if interrupt.kind != "long_running"]
        for interrupt in opened:
            if interrupt.kind == "credential":
                row_ops.append(
                    f"{event.id}/{interrupt.id}", _author(event), "text", text=interrupt_text.request_line(interrupt)
                )
        for index, (request, reason) in enumerate(unreadable_requests(event)):
            text = interrupt_text.unreadable_text(request, reason)
            row_ops.append(f"{event.id}/unreadable{index}", _author(event), "marker", text=text)
        cards = [card for interrupt in opened for card in self._cards_of(interrupt)]
        self._add_commands(cards)
        row_ops.ops += [{"op": "card", "card": dict(card)} for card in cards]

    def _cards_of(self, interrupt: Interrupt) -> list[Json]:
        """Return the card of an interrupt, after those that it replaces."""
        is_approval = interrupt.kind == "approval"
        card = card_of(interrupt, self._schema_of(interrupt) if is_approval and self._schema_of else None)
        calls = [] if interrupt.is_question else interrupt.waiting_calls
        keys = [self._card_of_call.get(call.id or "", "") for call in calls if interrupt.kind == "credential"]
        replaced = [self._cards[key] for key in dict.fromkeys(keys) if key and self._cards[key]["state"] == "asked"]
        for old_card in replaced:
            old_card["state"] = "superseded"
        for call in calls:
            self._card_of_call[call.id or ""] = interrupt.id
            self._calls.setdefault(call.id or "", _Call(name_text(call.name), call.args or {}, None, None))
        self._cards[interrupt.id], self._interrupts[interrupt.id] = card, interrupt
        return [*replaced, card]

    def _add_commands(self, cards: list[Json]) -> None:
        """Add to open cards what can be typed instead of a click."""
        cards = [card for card in cards if card["state"] == "asked"]
        numbered = {interrupt.id: interrupt for interrupt in self._waiting()} if cards else {}
        own_interrupts = [self._interrupts[card["id"]] for card in self._cards.values() if card["state"] == "asked"]
        among = list(numbered.values()) or own_interrupts
        for card in cards:
            interrupt = numbered.get(card["id"]) or self._interrupts[card["id"]]
            typed = interrupt_text.commands(interrupt, self._magic, among)
            card["how"] = typed[0] if card["kind"] in ("approval", "doubt") else " or ".join(typed)

    def _answer_row(self, event: Event, response: types.FunctionResponse, row: str, row_ops: _RowOps) -> None:
        key, values = response.id or "", response.response or {}
        card = self._cards.get(key) or self._cards.get(self._card_of_call.get(key, ""))
        interrupt = self._interrupts[card["id"]] if card else None
        row_ops.append(
            row, event_text.author_of(event), "user", text=interrupt_text.answer_row_text(interrupt, response)
        )
        if card and interrupt:
            verdict = interrupt_text.verdict_of(interrupt, values)
            self._record_decision(interrupt, card, verdict._replace(place=interrupt_text.decision_origin(response)))
            for call_id, card_id in self._card_of_call.items():
                if card_id == card["id"]:
                    self._calls[call_id].called_at = event.timestamp
            if card["state"] == "asked":
                card |= verdict.fields
                row_ops.ops.append({"op": "card", "card": dict(card)})

    def _record_decision(self, interrupt: Interrupt, card: Json, verdict: Verdict) -> None:
        card["hint"] = interrupt_text.prompt_text(interrupt)
        self.decisions.append(interrupt_text.decision_of(interrupt, verdict))

    def close_card(self, key: str, verdict: Verdict, text: str) -> list[Json]:
        """Return the ops for a card that was closed by no event of this run.

        Args:
            key: The card's id.
            verdict: The new state and note of the card.
            text: The text for the rows of its calls.
        """
        if not (card := self._cards.get(key)):
            return []
        card |= verdict.fields
        call_rows = [self._calls[call_id].row for call_id, card_id in self._card_of_call.items() if card_id == key]
        rows: list[Json] = [{"op": "patch", "id": row, "text": text} for row in call_rows if row]
        return [{"op": "card", "card": dict(card)}, *rows]

    def answered_elsewhere(self, key: str, verdict: Verdict) -> list[Json]:
        """Return the ops for an answer in another cell."""
        place = verdict.place or "in another cell"
        note = ": ".join(filter(None, (place, verdict.note)))
        if card := self._cards.get(key):
            self._record_decision(self._interrupts[key], card, verdict)
        return self.close_card(key, Verdict(verdict.state, note), f"{verdict.state} {place}")

    # -- failures, actions, state

    def _failure_and_action_rows(self, event: Event, row_ops: _RowOps) -> None:
        if failure := event_text.failure_text(event):
            kind = "marker" if event.error_code == INVOCATION_ABORTED else "error"
            row_ops.append(f"{event.id}/{kind}", _author(event), kind, text=failure)
        if event.output is not None and not event.content:
            output = shortened(json_text(event.output))
            row_ops.append(
                f"{event.id}/output", _author(event), "text", text=f"→ {output}{event_text.repetition_note(event)}"
            )
        for index, action in enumerate(event_text.action_texts(event, with_transfer=not row_ops.is_transfer)):
            row_ops.append(f"{event.id}/deed{index}", _author(event), "marker", text=action)


_KINDS = {"user": "user", NOTEBOOK: "marker"}


def rows_of(events: Iterable[Event], *, history: Sequence[Event] = ()) -> list[Json]:
    """Return the last `view_state.MAX_ROWS` rows of a run that is over; the same in every kernel but for their ids."""
    return rows_and_decisions(events, history=history)[0]


def rows_and_decisions(
    events: Iterable[Event], *, history: Sequence[Event] = (), elsewhere: Mapping[str, Verdict] | None = None
) -> tuple[list[Json], list[Decision]]:
    """Return `rows_of`, and the decisions on approvals and the answers to questions.

    `elsewhere`: answers in other cells, by card id.
    """
    rows, view = RunRows(history=history, live=False), ViewState()
    ops = [op for event in events if not event.partial for op in rows.feed(event)]
    for key, verdict in (elsewhere or {}).items():
        ops += rows.answered_elsewhere(key, verdict)
    for op in ops:
        view.apply(op)
    return list(view.rows.values()), rows.decisions


def _running_tool(event: Event) -> str:
    """Return the id of the call whose tool reports progress; empty for an event of an agent."""
    calls = calls_to(event.branch, event.node_info.path)
    return calls[-1][1] if calls and calls[-1][1] != event.isolation_scope else ""


def _author(event: Event) -> str:
    """Return the author with a mark for each agent call on its path, after the lane."""
    path = event.node_info.path
    depth = len(calls_to(event.branch, path)) - bool(_running_tool(event))
    name = event_text.author_of(event)
    author = "↳ " * depth + name
    if not (lane := lane_of(event.branch, path)):
        return author
    return f"∥ {author}" if lane == name else f"∥ {lane} / {author}"


def _is_request(event: Event, call: types.FunctionCall) -> bool:
    """Return True for a request by the runtime. A model can write a call of that name, which is an ordinary call."""
    return call.name in (approvals.REQUEST, credentials.REQUEST) and call.id in (event.long_running_tool_ids or ())


# ---- rows as tables


def event_table(
    events: Iterable[Event],
    *,
    history: Sequence[Event] = (),
    only: Container[str] | None = None,
    undone: Container[str] = (),
    width: int | None = None,
) -> Table:
    """The numbered rows of `events`.

    Args:
        events: Oldest first; their rows are numbered from 1.
        history: The events before them.
        only: Ids of the events whose rows are shown. None: all.
        undone: Ids of events that were undone.
        width: As in `Table`.
    """
    rows = [
        (number, row["id"].partition("/")[0], row) for number, row in enumerate(rows_of(events, history=history), 1)
    ]
    rows = [row for row in rows if only is None or row[1] in only]
    table = row_table([row for *_, row in rows])
    lines = [[str(number), *line] for (number, *_), line in zip(rows, table.rows, strict=True)]
    if any(event_id in undone for _, event_id, _ in rows):
        marks = ["undone" if event_id in undone else "" for _, event_id, _ in rows]
        lines = [[*line, mark] for line, mark in zip(lines, marks, strict=True)]
        return Table(["#", *table.head, ""], lines, width)
    return Table(["#", *table.head], lines, width)


def row_table(rows: Iterable[Json]) -> Table:
    """Agent and event of each row, and a column of state changes if there are any."""
    lines = [
        [
            "you" if row["author"] == "user" else row["author"],
            row_text(row),
            "; ".join(map(change_text, row["changes"] or [])),
        ]
        for row in rows
    ]
    if any(changes for _, _, changes in lines):
        return Table(["who", "event", "state"], lines)
    return Table(["who", "event"], [line[:2] for line in lines])


def row_text(row: Json) -> str:
    """Return a row as one line of text."""
    if row["kind"] != "call":
        text = one_line(row["text"] if row["html"] is None else html.visible_text(row["html"]))
        return text if row["kind"] in ("user", "text", "marker", "question") else f"{row['kind']}: {text}"
    call = call_text(row["tool"], row["args"])
    if row["result"] is None:
        return f"{call}  {row['text']}".rstrip()
    return f"{call} → failed: {row['result']}" if row["ok"] is False else f"{call} → {row['result']}"
