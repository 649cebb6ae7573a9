"""A notebook with a live view, and ops written by hand to feed it: no agent, no model."""

import json
from typing import Any

from chats import WAIT_FOR
from lab import Lab, Page

SETUP = (
    WAIT_FOR
    + """
import json, threading
from adk_nb.notebook.view.widget import LiveView

answers, counted = [], []
view = LiveView(title="weather ─ session main")
view.on_answer(lambda said: answers.append(said))
sent = view.comm.publish_msg
view.comm.publish_msg = lambda *said, **named: (counted.append(said), sent(*said, **named))

view
"""
)
ROWS = [
    {"id": "r1", "author": "user", "kind": "user", "text": "Is it warmer in Paris or Oslo?"},
    {"id": "r2", "author": "planner", "kind": "marker", "text": "→ transfer to weather", "ms": 12},
    {"id": "r3", "author": "weather", "kind": "thought", "text": "Two cities, so two calls."},
    {"id": "r4", "author": "weather", "kind": "call", "tool": "get_weather", "args": 'city="Paris"'},
    {"id": "r5", "author": "weather", "kind": "call", "tool": "get_weather", "args": 'city="Oslo"'},
]
SCHEMA = {
    "type": "object",
    "required": ["order_id", "amount"],
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"type": "number", "description": "euros", "minimum": 0},
        "method": {"enum": ["card", "bank"]},
        "notify": {"type": "boolean"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
CARD = {
    "id": "c1",
    "agent": "planner",
    "tool": "refund",
    "hint": "rule: amount > 100",
    "args": {"order_id": "17", "amount": 250, "method": "card", "notify": False, "days": 3, "tags": ["late"]},
    "schema": SCHEMA,
}


def ops(*args: dict[str, Any]) -> str:
    """A cell that pushes these ops and sends them."""
    return f"for op in json.loads(r'''{json.dumps(list(args))}'''): view.push(op)\nview.close_run()"


def story() -> list[dict[str, Any]]:
    """A run with every kind of row, some of it still open."""
    fine = "<p>Paris is <strong>warmer</strong>: <code>21</code> against <code>9</code> degrees.</p>"
    return [
        {"op": "status", "status": "running", "text": "running 3.2 s"},
        {"op": "notice", "text": "offline: not a language model"},
        *({"op": "append", "row": row} for row in ROWS),
        {
            "op": "patch",
            "id": "r4",
            "result": '{"temp_c": 21}',
            "ok": True,
            "ms": 210,
            "detail": '{\n  "city": "Paris"\n}',
        },
        {"op": "patch", "id": "r5", "result": "no such city: 'Osl'", "ok": False, "ms": 1900},
        {
            "op": "append",
            "row": {"id": "r6", "author": "weather", "kind": "text", "html": fine, "text": "Paris is warmer"},
        },
        {"op": "append", "row": {"id": "r7", "author": "weather", "kind": "error", "text": "the model did not answer"}},
        {
            "op": "state",
            "event": "r4",
            "changes": [
                {"key": "last_city", "kind": "+", "old": None, "new": '"Oslo"'},
                {"key": "calls", "kind": "~", "old": "1", "new": "2"},
                {"key": "temp:draft", "kind": "-", "old": '"Dear"', "new": None},
            ],
            "state": [
                {"key": "budget", "value": "400"},
                {"key": "calls", "value": "2"},
                {"key": "last_city", "value": '"Oslo"'},
            ],
        },
        {"op": "append", "row": {"id": "r8", "author": "weather", "kind": "text"}},
        {"op": "text", "id": "r8", "s": "Shall I refund the ticket to Os"},
        {"op": "usage", "text": "2 model calls · 1,204 in / 96 out (cached 800) · offline"},
        {"op": "card", "card": CARD},
    ]


def shown(lab: Lab, *args: dict[str, Any]) -> Page:
    """A page whose live view has been told these ops."""
    page = lab.open(lab.write("view.ipynb", SETUP, ops(*args), "print(json.dumps(answers))"))
    page.run_cell(0)
    page.wait(".adknb-head")
    page.run_cell(1)
    return page


def answers(page: Page) -> list[dict[str, Any]]:
    """What the view handed to Python."""
    page.run_cell(2)
    return json.loads(page.text(2))
