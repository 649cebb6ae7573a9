import json
import threading
from collections.abc import Iterator
from typing import Any

import comm
import pytest
from wire import WAIT, Wire

from adk_nb.events import Event, EventActions
from adk_nb.notebook.view import widget
from adk_nb.notebook.view.rows import RunRows
from adk_nb.notebook.view.widget import STUB, VIEW_MIME, LiveView
from adk_nb.redaction import HIDDEN, remember


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveView]:
    monkeypatch.setattr(comm, "create_comm", Wire)
    view = LiveView(title="demo")
    yield view
    view.close_run()
    view.close()


@pytest.fixture
def wire(view: LiveView) -> Wire:
    assert isinstance(view.comm, Wire)
    view.comm.sent.clear()
    return view.comm


def row(id: str = "r", **fields: Any) -> dict[str, Any]:
    return {"op": "append", "row": {"id": id, "author": "a", "kind": "text", **fields}}


def text(s: str, id: str = "r") -> dict[str, Any]:
    return {"op": "text", "id": id, "s": s}


CARD = {"id": "c", "agent": "a", "tool": "refund", "args": {"order": "17", "amount": 250}}


def asked(view: LiveView, **card: Any) -> list[dict[str, Any]]:
    received: list[dict[str, Any]] = []
    view.on_answer(received.append)
    view.push({"op": "card", "card": {**CARD, **card}})
    view.flush()
    return received


def card(view: LiveView) -> tuple[str, str]:
    view.close_run()
    [only] = view.snapshot["cards"]
    return only["state"], only["note"]


def test_what_is_pushed_is_sent_without_a_flush_and_then_as_a_snapshot(view: LiveView, wire: Wire):
    view.push(row(text="hello"))

    wire.wait_for(lambda wire: wire.batches and wire.snapshots)
    assert [op["op"] for op in wire.batches[0]["ops"]] == ["append"]
    assert wire.snapshots[-1]["rows"][0]["text"] == "hello"
    assert wire.snapshots[-1]["seq"] == wire.batches[-1]["seq"] == 1


def test_ten_thousand_tokens_are_a_handful_of_messages(view: LiveView, wire: Wire):
    tokens = [f"w{i} " for i in range(10_000)]

    view.push(row())
    for token in tokens:
        view.push(text(token))
    view.close_run()

    assert wire.text("r") == "".join(tokens) == view.snapshot["rows"][0]["text"]
    assert len(wire.sent) <= 50
    assert sum(len(batch["ops"]) for batch in wire.batches) <= 51


def test_two_rows_that_stream_at_once_keep_their_own_words_in_few_ops(view: LiveView, wire: Wire):
    view.push(row("r1"))
    view.push(row("r2"))
    for i in range(1000):
        view.push(text(f"{i},", "r1"))
        view.push(text(f"{i};", "r2"))
    view.close_run()

    assert wire.text("r1") == "".join(f"{i}," for i in range(1000))
    assert wire.text("r2") == "".join(f"{i};" for i in range(1000))
    assert sum(len(batch["ops"]) for batch in wire.batches) < 200


def test_a_patch_between_two_pieces_stays_between_them(view: LiveView, wire: Wire):
    for op in (row(), text("a"), {"op": "patch", "id": "r", "text": ""}, text("b")):
        view.push(op)
    view.close_run()

    assert view.snapshot["rows"][0]["text"] == "b"
    assert [op["op"] for batch in wire.batches for op in batch["ops"]] == ["append", "text", "patch", "text"]


def test_threads_that_push_at_once_lose_nothing_and_batches_are_numbered_without_gaps(view: LiveView, wire: Wire):
    view.push(row())

    def push() -> None:
        for _ in range(500):
            view.push(text("x"))
            view.flush()

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view.close_run()

    assert wire.text("r") == "x" * 2000
    assert [batch["seq"] for batch in wire.batches] == list(range(1, len(wire.batches) + 1))
    assert view.snapshot["seq"] == len(wire.batches)


def test_the_caller_keeps_his_ops(view: LiveView):
    first, second = text("a"), text("b")
    view.push(row())
    view.push(first)
    view.push(second)
    view.close_run()

    assert (first, second) == (text("a"), text("b"))


def test_an_unknown_op_is_refused_where_it_is_pushed(view: LiveView):
    with pytest.raises(ValueError, match="'apend'"):
        view.push({"op": "apend"})


def test_a_malformed_op_does_not_take_the_others_with_it(view: LiveView, wire: Wire, caplog: pytest.LogCaptureFixture):
    view.push({"op": "append"})
    view.push(row(text="fine"))
    view.close_run()

    assert [r["text"] for r in view.snapshot["rows"]] == ["fine"]
    assert "the op 'append'" in caplog.text


def test_a_page_that_asks_gets_the_whole_even_when_it_was_sent_before(view: LiveView, wire: Wire):
    view.push(row(text="hello"))
    view.close_run()
    wire.sent.clear()

    wire.says(kind="resync")

    assert [snapshot["rows"][0]["text"] for snapshot in wire.snapshots] == ["hello"]


def test_an_answer_is_handed_on_once_per_card(view: LiveView, wire: Wire):
    requests = asked(view)

    wire.says(kind="answer", id="c", decision="approve", args=None, reason=None)
    wire.says(kind="answer", id="c", decision="reject", args=None, reason="second thoughts")

    assert requests == [{"kind": "answer", "id": "c", "value": {"confirmed": True}}]
    assert card(view) == ("approved", "")


def test_edited_arguments_come_whole_and_are_shown_as_a_difference(view: LiveView, wire: Wire):
    requests = asked(view, args={"order": "17", "amount": 250, "big": 2**60})

    wire.says(kind="answer", id="c", decision="approve", args={"amount": 100}, reason=None)

    assert requests[0]["value"]["args"] == {"order": "17", "amount": 100, "big": 2**60}
    assert card(view) == ("edited", "amount 250 → 100")


def test_arguments_edited_back_to_what_they_were_are_a_plain_approval(view: LiveView, wire: Wire):
    requests = asked(view)

    wire.says(kind="answer", id="c", decision="approve", args={"amount": 250}, reason=None)

    assert requests[0]["value"] == {"confirmed": True}
    assert card(view) == ("approved", "")


def test_a_rejection_carries_its_reason_and_no_arguments(view: LiveView, wire: Wire):
    requests = asked(view)

    wire.says(kind="answer", id="c", decision="reject", args={"amount": 1}, reason="too much")

    assert requests == [{"kind": "answer", "id": "c", "value": {"confirmed": False, "reason": "too much"}}]
    assert card(view) == ("rejected", "too much")


def test_a_card_asked_again_can_be_answered_again_once(view: LiveView, wire: Wire):
    requests = asked(view)
    edit = {"kind": "answer", "id": "c", "decision": "approve", "args": {"amount": -1}, "reason": None}
    wire.says(**edit)
    view.push({"op": "card", "card": {"id": "c", "state": "asked", "note": "amount: at least 0"}})
    view.flush()

    wire.says(**{**edit, "args": {"amount": 1}})
    wire.says(**{**edit, "args": {"amount": 2}})

    assert [request["value"]["args"]["amount"] for request in requests] == [-1, 1]
    assert card(view) == ("edited", "amount 250 → 1")


@pytest.mark.parametrize("state", ["approved", "rejected", "superseded"])
def test_a_card_that_was_answered_elsewhere_hears_no_click(view: LiveView, wire: Wire, state: str):
    requests = asked(view)
    view.push({"op": "card", "card": {"id": "c", "state": state}})

    wire.says(kind="answer", id="c", decision="approve", args=None, reason=None)

    assert requests == []
    assert card(view)[0] == state


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "answer", "id": "nobody", "decision": "approve"},
        {"kind": "answer", "id": "c", "decision": "maybe"},
        {"kind": "answer", "id": "c", "decision": "approve", "args": [1]},
        {"kind": "answer", "id": ["c"], "decision": "approve"},
        {"kind": "answer", "decision": "approve"},
        {"kind": ["answer"], "id": "c", "decision": "approve"},
        {"kind": "something"},
        {},
    ],
)
def test_words_that_mean_nothing_are_ignored(view: LiveView, wire: Wire, message: dict[str, Any]):
    requests = asked(view)

    wire.says(**message)

    assert requests == []
    assert card(view)[0] == "asked"


KEY_FIELD = {"apiKey": {"type": "string", "format": "password", "title": "key"}}
LET_IN = {
    "kind": "credential",
    "needs": "the key",
    "answer_schema": {"type": "object", "properties": KEY_FIELD, "required": ["apiKey"]},
}


def test_what_lets_a_tool_in_is_handed_on_once_and_kept_nowhere(view: LiveView, wire: Wire):
    requests = asked(view, **LET_IN)

    wire.says(kind="answer", id="c", decision="answer", value={"apiKey": " a-persons-key "})
    wire.says(kind="answer", id="c", decision="answer", value={"apiKey": "another"})

    assert requests == [{"kind": "answer", "id": "c", "value": {"apiKey": "a-persons-key"}}]
    assert card(view) == ("given", "")
    assert "a-persons-key" not in str(wire.sent) + str(view.get_state())


def test_a_tool_without_credentials_is_not_called(view: LiveView, wire: Wire):
    requests = asked(view, **LET_IN)

    wire.says(kind="answer", id="c", decision="refuse", value={"apiKey": "typed all the same"})

    assert requests == [{"kind": "answer", "id": "c", "value": None}]
    assert card(view) == ("refused", "")


@pytest.mark.parametrize(
    "response",
    [
        {"decision": "answer", "value": {"apiKey": "  "}},
        {"decision": "answer", "value": {"access_token": "x"}},
        {"decision": "answer", "value": {"apiKey": {"x": 1}}},
        {"decision": "answer", "value": "x"},
        {"decision": "answer"},
        {"decision": "approve", "args": None, "reason": None},
    ],
)
def test_what_lets_nobody_in_leaves_the_card_open(view: LiveView, wire: Wire, response: dict[str, Any]):
    requests = asked(view, **LET_IN)

    wire.says(kind="answer", id="c", **response)

    assert requests == [] and card(view)[0] == "asked"


def test_no_approval_is_given_by_what_lets_a_tool_in(view: LiveView, wire: Wire):
    requests = asked(view)

    wire.says(kind="answer", id="c", decision="answer", value={"confirmed": True})

    assert requests == [] and card(view)[0] == "asked"


def test_stop_is_handed_on(view: LiveView, wire: Wire):
    requests = asked(view)

    wire.says(kind="stop")

    assert requests == [{"kind": "stop"}]


def test_a_listener_that_raises_is_told_in_the_view(view: LiveView, wire: Wire, caplog: pytest.LogCaptureFixture):
    def listener(said: dict[str, Any]) -> None:
        raise RuntimeError("the loop is gone")

    view.on_answer(listener)

    wire.says(kind="stop")

    view.close_run()
    assert "the loop is gone" in view.snapshot["notice"]


def test_the_view_shows_itself_with_a_constant_stub_beside_it(view: LiveView):
    bundle, _ = view._repr_mimebundle_()

    assert bundle == {**STUB, VIEW_MIME: {"version_major": 2, "version_minor": 0, "model_id": view.model_id}}


def test_no_thread_stays_when_there_is_nothing_to_send(view: LiveView, wire: Wire):
    previous = set(threading.enumerate())
    view.push(row())
    [ticker] = set(threading.enumerate()) - previous
    view.close_run()

    ticker.join(WAIT)

    assert not ticker.is_alive()


def test_a_page_loads_the_code_of_all_views_once_and_it_is_small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(comm, "create_comm", Wire)
    monkeypatch.setattr(widget, "_codes", [])

    views = [LiveView(title="demo") for _ in range(50)]

    opened = [view.comm.sent[0] for view in views if isinstance(view.comm, Wire)]
    [code] = widget._codes
    assert {payload["state"]["code"] for payload in opened} == {code.model_id}
    assert 50_000 < len(code.js) + len(code.css) <= 150_000
    assert len(opened) == 50 and max(len(json.dumps(payload)) for payload in opened) <= 3_000
    for view in views:
        view.close()


def test_what_a_page_says_runs_no_hooks_of_cells(view: LiveView, wire: Wire, shell: Any):
    ran: list[str] = []
    received: list[Any] = []
    for name in ("pre_execute", "post_execute"):
        shell.ip.events.register(name, lambda name=name: ran.append(name))
    view.on_answer(received.append)

    wire.says(kind="stop")

    assert (len(received), ran) == (1, [])


# -- what a page gets of a call, and of the state

SECRET = "q7Zx-5bR1-mm2"


def sent_json(wire: Wire) -> str:
    return json.dumps(wire.sent)


def test_a_known_secret_is_not_sent_to_the_page_and_reaches_the_tool(view: LiveView, wire: Wire):
    remember(SECRET)
    login = {"user": "ada", "token": SECRET}
    requests = asked(view, args={"order": SECRET, "login": login, "tags": [SECRET, "a"]})
    view.close_run()

    wire.says(kind="need", what="call", id="c")
    edited = {"login": {"user": "bob", "token": HIDDEN}, "tags": [HIDDEN, "b"]}
    wire.says(kind="answer", id="c", decision="approve", args=edited, reason=None)

    assert requests[0]["value"]["args"] == {
        "order": SECRET,
        "login": {"user": "bob", "token": SECRET},
        "tags": [SECRET, "b"],
    }
    view.close_run()
    assert SECRET not in sent_json(wire) and HIDDEN in sent_json(wire)


def test_the_mark_of_a_hidden_secret_in_another_value_is_asked_again(view: LiveView, wire: Wire):
    remember(SECRET)
    requests = asked(view, args={"order": f"key {SECRET}"})

    wire.says(kind="answer", id="c", decision="approve", args={"order": f"other {HIDDEN}"}, reason=None)

    assert requests == []
    state, note = card(view)
    assert state == "asked" and note.startswith(f"order: {HIDDEN}")
    assert view.snapshot["cards"][0]["again"] == 1


@pytest.mark.slow
def test_a_call_of_a_megabyte_is_short_on_its_card_and_whole_when_the_page_asks(view: LiveView, wire: Wire):
    schema = {"properties": {"note": {"type": "string", "description": "d" * 50_000}, "amount": {"type": "integer"}}}
    for number in range(200):
        args = {"note": f"{number}" + "x" * 1_000_000, "amount": 9000}
        view.push({"op": "card", "card": {**CARD, "id": f"c{number}", "args": args, "schema": schema}})
    view.close_run()

    assert len(json.dumps(view.snapshot)) < 1_000_000
    assert len(sent_json(wire)) < 2_000_000
    [*_, last] = view.snapshot["cards"]
    assert [(argument["name"], argument["left_out"] > 900_000) for argument in last["arguments"]] == [
        ("note", True),
        ("amount", False),
    ]
    assert (last["args"], last["schema"]) == (None, None)
    wire.says(kind="need", what="call", id="c199")
    view.flush()
    [lines] = [op for batch in wire.batches for op in batch["ops"] if op["op"] == "panel"]
    assert lines["data"]["args"] == args and lines["data"]["schema"] == schema
    assert lines["data"]["texts"] == [json.dumps(args["note"]), "9000"]


def test_what_a_tool_does_not_have_and_cannot_be_seen_is_told_on_the_card(view: LiveView, wire: Wire):
    args = {"\u0430mount": "1", "amount": "\u202e00.1"}
    asked(view, args=args, schema={"properties": {"amount": {}, "days": {"default": 3}}})
    view.close_run()

    [card] = view.snapshot["cards"]

    display = [(argument["name"], argument["text"], argument["note"]) for argument in card["arguments"]]
    assert display == [
        ("amount", r'"\u202e00.1"', ""),
        (r"\u0430mount", '"1"', "unknown"),
        ("days", "3", "default"),
    ]
    [remark] = card["remarks"]
    assert remark.endswith(r" argument \u0430mount")


def test_a_write_to_the_state_sends_what_it_changes(view: LiveView, wire: Wire):
    rows = RunRows(state={"old": "x" * 100})
    for op in rows.opening():
        view.push(op)
    keys = [f"key{number}" for number in range(2_000)]
    for key in keys:
        for op in rows.feed(Event(author="a", actions=EventActions(state_delta={key: "x" * 100}))):
            view.push(op)
    view.close_run()

    ops = [op for batch in wire.batches for op in batch["ops"]]
    assert len(json.dumps(ops)) < 3_000_000
    assert [entry["key"] for entry in view.snapshot["state"]] == ["old", *keys]
    assert {entry["kind"] for entry in view.snapshot["state"][1:]} == {"+"}
