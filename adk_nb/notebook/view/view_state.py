"""The content of a live view as plain JSON, changed by ops, without widget or kernel."""

import time
from collections.abc import Callable
from typing import Any

from adk_nb.notebook.view.call_arguments import card_for_page
from adk_nb.notebook.view.writers.markdown_html import StreamedMarkdown

Json = dict[str, Any]

MAX_ROWS = 1000
"""Rows a view keeps; older ones are only counted."""
MAX_ROWS_OF_BOX = 4 * MAX_ROWS
"""Rows that a chat box keeps, which has many turns."""

_ROW: Json = {
    "author": "",
    "kind": "text",
    "lane": "",
    "text": "",
    "html": None,
    "tail": "",
    "pages": None,
    "tool": None,
    "args": None,
    "result": None,
    "ok": None,
    "ms": None,
    "detail": None,
    "changes": None,
    "usage": None,
    "shown": None,
    "failure": None,
    "streaming": False,
}
_CARD: Json = {
    "kind": "approval",
    "agent": "",
    "tool": "",
    "hint": "",
    "needs": "",
    "link": "",
    "args": {},
    "alike": [],
    "in_doubt": False,
    "documents": [],
    "schema": None,
    "answer_schema": None,
    "how": "",
    "title": "",
    "where": "",
    "traceback": "",
    "ways": [],
    "seconds": 0,
    "state": "asked",
    "note": "",
    "changed": "",
    "gone": False,
    "version": "",
    "again": 0,
}


class ViewState:
    """The rows, state, cards and status of one view.

    The front end has a copy that applies the same ops; a copy that missed some is replaced by a `snapshot`.
    """

    def __init__(self, title: str = "", box: Json | None = None, own_id: str = "", model: str = "") -> None:
        self.title = title
        self.model = model
        """Name of the model that answers; empty for a team."""
        self.own_id = own_id
        """The model id by which outputs refer to the view."""
        self.box = box
        """Of a chat box: its `height` in pixels, and what is told of its agent and its sessions. None: the view is of
        one run.
        """
        self._status: Json = {"status": "idle", "text": ""}
        self._ran = 0.0
        """Seconds of work before the current status, without pauses."""
        self._status_at = time.monotonic()
        self.notice = ""
        """An error beside the run, as of a click."""
        self.notices: list[Json] = []
        self.usage: Json = {"text": "", "title": "", "tokens": 0}
        self.earlier = 0
        """Rows that were dropped, oldest first."""
        self._state: dict[str, Json] = {}
        """By key; includes keys that were removed since the view began, with their mark."""
        self.rows: dict[str, Json] = {}
        self.cards: dict[str, Json] = {}
        """With all arguments as the tool gets them; pages get `_cards_on_page`."""
        self._cards_on_page: dict[str, Json] = {}
        self.drawing: Json | None = None
        self.marks: dict[str, str] = {}
        self.lanes: dict[str, Json] = {}
        self.streams: dict[str, StreamedMarkdown] = {}
        """By id of a row that streams markdown."""
        self.artifacts: dict[str, Json] = {}
        self.offers: list[str] = []
        """Requests that the page may send, as `waterfall` or `rerun`."""
        self.answer: Json | None = None
        """As `reply_view.answer_for_view`. None: the run is not over."""

    def apply(self, op: Json) -> Json:
        """Change the state by one op, and return the op for the front end; empty if a card stays as it is.

        Raises:
            KeyError: No such op, or one without a field it needs.
        """
        return _OPS[op["op"]](self, op)

    @property
    def state(self) -> list[Json]:
        """Each key with its change since the view began; removed keys come last."""
        return sorted(self._state.values(), key=lambda entry: entry["kind"] == "-")

    @property
    def status(self) -> Json:
        """`{"status", "text", "seconds"}`: seconds of work so far, without pauses."""
        now = time.monotonic() - self._status_at if self._status["status"] == "running" else 0.0
        return {**self._status, "seconds": round(self._ran + now, 2)}

    def change_status(self, status: str, text: str) -> Json:
        """Set the status; returns the op for the front end."""
        old = self.status
        begins = status == "running" and old["status"] not in ("pending", "running")
        self._ran, self._status_at = 0.0 if begins else old["seconds"], time.monotonic()
        self._status = {"status": status, "text": text}
        return {"op": "status", **self.status}

    def change_state(self, op: Json) -> Json:
        """Apply a `state` op; returns it with the changed entries, or with all entries if it has the whole state."""
        entries = [self._changed(change) for change in op["changes"]]
        if "state" not in op:
            return {**op, "entries": entries}
        now = {entry["key"]: _entry(entry, self._state.get(entry["key"])) for entry in op["state"]}
        self._state = {key: entry for key, entry in self._state.items() if entry["kind"] == "-"} | now
        return {**op, "state": self.state}

    def _changed(self, change: Json) -> Json:
        key, kind = change["key"], change["kind"]
        first_kind, old = _mark_of(self._state.get(key)) or (kind, change.get("old"))
        if first_kind == "+":
            kind = "" if kind == "-" else "+"
        elif kind == "+":
            kind = "~"
        entry = {"key": key, "value": change.get("new"), "kind": kind, "old": old}
        if kind:
            self._state[key] = entry
        else:  # added and removed since the view began
            self._state.pop(key, None)
        return entry

    def put_card(self, card: Json) -> Json:
        """Store a card; returns its form for the page."""
        self.cards[card["id"]] = card
        self._cards_on_page[card["id"]] = page_card = card_for_page(card)
        return dict(page_card)

    def snapshot(self, seq: int) -> Json:
        """A copy of the whole state after batch number `seq`, as JSON values."""
        return {
            "seq": seq,
            "title": self.title,
            "model": self.model,
            "own_id": self.own_id,
            "box": self.box,
            "status": self.status,
            "notice": self.notice,
            "notices": self.notices,
            "usage": self.usage,
            "earlier": self.earlier,
            "state": self.state,
            "rows": [dict(row) for row in self.rows.values()],
            "cards": [dict(card) for card in self._cards_on_page.values()],
            "drawing": self.drawing,
            "marks": dict(self.marks),
            "lanes": [dict(lane) for lane in self.lanes.values()],
            "artifacts": [dict(artifact) for artifact in self.artifacts.values()],
            "offers": self.offers,
            "answer": self.answer,
        }


Op = Callable[[ViewState, Json], Json]


def card_is_open(card: Json) -> bool:
    """True if a card has no answer yet."""
    return card["state"] == "asked"


def is_op(name: str) -> bool:
    """True if there is an op `name`."""
    return name in _OPS


def _append(view: ViewState, op: Json) -> Json:
    row = {**_ROW, **op["row"]}
    view.rows[row["id"]] = row
    while len(view.rows) > (MAX_ROWS_OF_BOX if view.box else MAX_ROWS):
        oldest = next(iter(view.rows))
        del view.rows[oldest]
        view.streams.pop(oldest, None)
        view.earlier += 1
    return {**op, "row": dict(row)}


def _text(view: ViewState, op: Json) -> Json:
    row = view.rows.get(op["id"])
    if row is None:
        return op
    row["text"] += op["s"]
    row["streaming"] = True
    if row["html"] is None:
        return op
    complete, row["tail"] = view.streams.setdefault(op["id"], StreamedMarkdown()).feed(op["s"])
    row["html"] += complete
    return {**op, "html": complete, "tail": row["tail"]}


def _patch(view: ViewState, op: Json) -> Json:
    row = view.rows.get(op["id"])
    if row is None:
        return op
    # The page has what has streamed, so it is not sent again whole. Between blocks only line ends differ.
    before = {"text": row["text"], "html": row["html"] and row["html"] + row["tail"]}
    known = [field for field, old in before.items() if field in op and _is_same(old, op[field])]
    row |= {"streaming": False, "tail": "", "html": before["html"]}
    view.streams.pop(op["id"], None)
    row.update({field: value for field, value in op.items() if field not in ("op", "id")})
    return {field: value for field, value in op.items() if field not in known}


def _is_same(old: str | None, new: str | None) -> bool:
    return old == new or (old or "").replace(">\n<", "><") == (new or "").replace(">\n<", "><") != ""


def _state(view: ViewState, op: Json) -> Json:
    row = view.rows.get(op["event"])
    if row is not None:
        row["changes"] = [*(row["changes"] or []), *op["changes"]]
    return view.change_state(op)


def _entry(entry: Json, old_entry: Json | None) -> Json:
    kind, old = _mark_of(old_entry) or ("", None)
    return {**entry, "kind": kind, "old": old}


def _mark_of(entry: Json | None) -> tuple[str, str | None] | None:
    """The change of a key since the view began, and its earlier value. None: it is unchanged."""
    return (entry["kind"], entry["old"]) if entry and entry["kind"] else None


def _card(view: ViewState, op: Json) -> Json:
    old = view.cards.get(op["card"]["id"])
    card = {**(old or _CARD), **op["card"]}
    if old is not None and not card_is_open(old) and card_is_open(card):
        # An answered card opens again only with a note, the reason why its answer was refused.
        card = {**card, "again": old["again"] + 1} if op["card"].get("note") else old
    elif card == old:
        return {}
    return {**op, "card": view.put_card(card)}


def _status(view: ViewState, op: Json) -> Json:
    if op["status"] != "running":
        for row in view.rows.values():
            row["streaming"] = False
    return view.change_status(op["status"], op.get("text", ""))


def _usage(view: ViewState, op: Json) -> Json:
    view.usage = {"text": op["text"], "title": op.get("title", ""), "tokens": op.get("tokens", 0)}
    return op


def _set(name: str, field: str) -> Op:
    def apply(view: ViewState, op: Json) -> Json:
        setattr(view, name, op[field])
        return op

    return apply


def _set_by_id(name: str, field: str) -> Op:
    def apply(view: ViewState, op: Json) -> Json:
        getattr(view, name)[op[field]["id"]] = dict(op[field])
        return op

    return apply


def _mark(view: ViewState, op: Json) -> Json:
    view.marks |= op["marks"]
    return op


def _clear(view: ViewState, op: Json) -> Json:
    for content in (view.rows, view.cards, view._cards_on_page, view.streams, view.lanes, view.marks, view.artifacts):  # pyright: ignore[reportPrivateUsage]
        content.clear()
    view._state.clear()  # pyright: ignore[reportPrivateUsage]
    view.earlier, view.drawing, view.answer, view.notice = 0, None, None, ""
    view.usage = {"text": "", "title": "", "tokens": 0}
    return op


def _box(view: ViewState, op: Json) -> Json:
    view.box = {**(view.box or {}), **op["box"]}
    return op


_OPS: dict[str, Op] = {
    "clear": _clear,
    "box": _box,
    "append": _append,
    "text": _text,
    "patch": _patch,
    "state": _state,
    "card": _card,
    "status": _status,
    "usage": _usage,
    "model": _set("model", "name"),
    "notice": _set("notice", "text"),
    "notices": _set("notices", "notices"),
    "drawing": _set("drawing", "drawing"),
    "mark": _mark,
    "lane": _set_by_id("lanes", "lane"),
    "artifact": _set_by_id("artifacts", "artifact"),
    "offers": _set("offers", "what"),
    "answer": _set("answer", "answer"),
    "panel": lambda view, op: op,  # a response to one page, which keeps it
}
