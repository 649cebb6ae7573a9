from adk_nb.notebook.view.view_state import MAX_ROWS, ViewState
from adk_nb.notebook.view.writers.markdown_html import to_html


def told(*ops):
    state = ViewState("t")
    for op in ops:
        state.apply(op)
    return state.snapshot(1)


def row(id, **fields):
    return {"op": "append", "row": {"id": id, **fields}}


def changed(kind, old, new, *, key="k"):
    entries = [] if new is None else [{"key": key, "value": new}]
    return {
        "op": "state",
        "event": "r",
        "changes": [{"key": key, "kind": kind, "old": old, "new": new}],
        "state": entries,
    }


def marks(*ops):
    return [(entry["kind"], entry["old"], entry["value"]) for entry in told(*ops)["state"]]


def test_a_call_and_its_answer_are_one_row():
    [only] = told(row("r", kind="call", tool="add"), {"op": "patch", "id": "r", "result": "3", "ok": True})["rows"]

    assert (only["tool"], only["result"], only["ok"]) == ("add", "3", True)


def test_streamed_text_grows_until_the_whole_event_comes():
    pieces = [row("r"), {"op": "text", "id": "r", "s": "a"}, {"op": "text", "id": "r", "s": "b"}]
    whole = {"op": "patch", "id": "r", "html": "<p>ab</p>"}

    assert [(r["text"], r["streaming"]) for r in told(*pieces)["rows"]] == [("ab", True)]
    assert [(r["html"], r["streaming"]) for r in told(*pieces, whole)["rows"]] == [("<p>ab</p>", False)]


def test_a_page_is_not_sent_again_what_it_has_seen_stream():
    state, text = ViewState("t"), "First *one*.\n\nThen\n\n- this\n- and that."
    state.apply(row("r", html=""))
    for piece in (text[:9], text[9:20], text[20:]):
        state.apply({"op": "text", "id": "r", "s": piece})

    sent = state.apply({"op": "patch", "id": "r", "text": text, "html": to_html(text), "ms": 3})

    assert sent == {"op": "patch", "id": "r", "ms": 3}
    shown = state.rows["r"]
    assert (shown["text"], shown["tail"]) == (text, "")
    assert shown["html"].replace("\n", "") == to_html(text).replace("\n", "")
    other = state.apply({"op": "patch", "id": "r", "text": "Else.", "html": "<p>Else.</p>"})
    assert (
        other == {"op": "patch", "id": "r", "text": "Else.", "html": "<p>Else.</p>"}
        and state.rows["r"]["text"] == "Else."
    )


def test_nothing_streams_once_a_run_has_stopped():
    stopped = {"op": "status", "status": "cancelled", "text": ""}

    assert not told(row("r"), {"op": "text", "id": "r", "s": "a"}, stopped)["rows"][0]["streaming"]


def test_old_rows_are_counted_and_what_is_said_of_them_is_dropped():
    many = [row(str(i)) for i in range(MAX_ROWS + 3)]
    snapshot = told(*many, {"op": "text", "id": "0", "s": "late"}, {"op": "patch", "id": "1", "ms": 1})

    assert (len(snapshot["rows"]), snapshot["rows"][0]["id"], snapshot["earlier"]) == (MAX_ROWS, "3", 3)


def test_state_is_marked_against_what_it_was_when_the_view_began():
    assert marks(changed("+", None, "1")) == [("+", None, "1")]
    assert marks(changed("~", "1", "2"), changed("~", "2", "3")) == [("~", "1", "3")]
    assert marks(changed("+", None, "1"), changed("~", "1", "2")) == [("+", None, "2")]
    assert marks(changed("~", "1", "2"), changed("-", "2", None)) == [("-", "1", None)]
    assert marks(changed("-", "1", None), changed("+", None, "2")) == [("~", "1", "2")]
    assert marks(changed("+", None, "1"), changed("-", "1", None)) == []


def test_untouched_state_is_unmarked_and_the_event_keeps_its_changes():
    op = changed("~", "1", "2")
    op["state"].append({"key": "other", "value": "x"})
    snapshot = told(row("r"), op)

    assert [entry["kind"] for entry in snapshot["state"]] == ["~", ""]
    assert snapshot["rows"][0]["changes"] == op["changes"]


def test_an_answered_card_is_never_asked_again():
    asked = {"op": "card", "card": {"id": "c", "tool": "refund", "state": "asked"}}
    approved = {"op": "card", "card": {"id": "c", "state": "approved"}}

    [card] = told(asked, approved, asked)["cards"]

    assert (card["tool"], card["state"]) == ("refund", "approved")


def test_an_answer_that_did_not_fit_is_asked_for_again_with_the_reason():
    asked = {"op": "card", "card": {"id": "c", "tool": "refund", "state": "asked"}}
    edited = {"op": "card", "card": {"id": "c", "state": "edited"}}
    again = {"op": "card", "card": {"id": "c", "state": "asked", "note": "amount: at most 200"}}

    [card] = told(asked, edited, again)["cards"]

    assert (card["tool"], card["state"], card["note"]) == ("refund", "asked", "amount: at most 200")


def test_a_snapshot_does_not_change_with_later_ops():
    state = ViewState("t")
    state.apply(row("r"))
    snapshot = state.snapshot(1)

    state.apply({"op": "text", "id": "r", "s": "later"})
    state.apply(row("r2"))
    state.apply({"op": "notice", "text": "later"})

    assert ([r["text"] for r in snapshot["rows"]], snapshot["notice"]) == ([""], "")


def test_a_drawing_is_kept_with_its_marks_for_a_page_that_comes_later():
    view = ViewState()

    view.apply({"op": "drawing", "drawing": {"title": "t", "width": 1, "height": 1, "shapes": []}})
    view.apply({"op": "mark", "marks": {"n:a": "now", "e:0": "was"}})
    view.apply({"op": "mark", "marks": {"n:a": "was"}})

    shown = view.snapshot(1)
    assert shown["drawing"]["title"] == "t"
    assert shown["marks"] == {"n:a": "was", "e:0": "was"}
