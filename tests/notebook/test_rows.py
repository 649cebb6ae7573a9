import time

import pytest
from inline_snapshot import snapshot
from turns import Talk

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions, EventCompaction
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.scripted_llm import call
from adk_nb.notebook.view.rows import RunRows, rows_of
from adk_nb.notebook.view.view_state import ViewState
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.wire import replace_surrogates
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, assert_harmless, assert_nothing_unseen

KEY = "AIza" + "Sy0123456789abcdefghijklmnopqrstu-vwx"


def get_weather(city: str, tool_context: ToolContext) -> dict:
    tool_context.state["calls"] = tool_context.state.get("calls", 0) + 1
    tool_context.state["last_city"] = city
    return {"temp_c": 21}


def refund(order: str, amount: float) -> float:
    return amount


REFUND = FunctionTool(refund, require_confirmation=True)


def seen(events, rows=None):
    """What a live view shows after `events`."""
    rows, view = rows or RunRows(), ViewState()
    for event in events:
        for op in rows.feed(event):
            view.apply(op)
    return view


def told(rows):
    """(author, kind, what) of each row."""
    return [
        (row["author"], row["kind"], f"{row['tool']}({row['args']}) {row['text'] or row['result']}")
        if row["kind"] == "call"
        else (row["author"], row["kind"], row["text"])
        for row in rows
    ]


def test_a_turn_is_printed_row_by_row():
    talk = Talk(
        [call("get_weather", city="Paris"), call("get_weather", city="Oslo")], "Paris is *warmer*.", tools=[get_weather]
    )

    rows = rows_of(talk.say("Where is it warmer?"))

    assert told(rows) == snapshot(
        [
            ("user", "user", "Where is it warmer?"),
            ("weather", "call", 'get_weather(city="Paris") {"temp_c": 21}'),
            ("weather", "call", 'get_weather(city="Oslo") {"temp_c": 21}'),
            ("weather", "text", "Paris is *warmer*."),
        ]
    )
    assert "Paris is <em>warmer</em>" in rows[-1]["html"]
    assert [row["ok"] for row in rows] == [None, True, True, None]


def test_streamed_and_whole_runs_show_the_same():
    script = [call("get_weather", city="Paris")], "It is **21** degrees in Paris.\n\n- mild"

    streamed = seen(Talk(*script, tools=[get_weather]).say("How is Paris?", streaming=True))
    whole = seen(Talk(*script, tools=[get_weather]).say("How is Paris?"))

    assert told(streamed.rows.values()) == told(whole.rows.values())
    assert [row["html"] for row in streamed.rows.values()] == [row["html"] for row in whole.rows.values()]
    assert not any(row["streaming"] for row in streamed.rows.values())


def test_pieces_are_shown_as_they_come():
    events = Talk("one two three").say("Count.", streaming=True)

    view = seen([event for event in events if event.partial or event.author == "user"])

    assert told(view.rows.values()) == [("user", "user", "Count."), ("weather", "text", "one two three")]


def test_thoughts_stand_apart_from_words():
    thinking = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="Hm.", thought=True), types.Part(text="Yes.")])
    )

    rows = rows_of(Talk(thinking).say("Sure?"))

    assert told(rows)[1:] == [("weather", "thought", "Hm."), ("weather", "text", "Yes.")]


def test_a_tool_that_raises_is_a_failed_call():
    def broken(city: str) -> str:
        raise RuntimeError(f"no data for {city}")

    rows = rows_of(Talk(call("broken", city="Oslo"), "Sorry.", tools=[broken]).say("Weather?"))

    assert told(rows)[1][:2] == ("weather", "call")
    assert told(rows)[1][2].startswith('broken(city="Oslo") RuntimeError: ')
    assert rows[1]["ok"] is False


def test_a_call_shows_how_far_its_tool_is_and_then_its_result():
    def search(city: str):
        yield "looking at\nthe map"
        yield {"percent": 50}
        yield "found"

    events = Talk(call("search", city="Oslo"), "There.", tools=[search]).say("Where?")

    on_the_way = [told(seen(events[:n]).rows.values())[-1][2] for n in (3, 4, 5)]
    assert on_the_way == [
        f'search(city="Oslo") {text}' for text in ("looking at the map", '{"percent": 50}', '"found"')
    ]
    assert told(rows_of(events)) == told(seen(events).rows.values())


def test_each_event_shows_what_it_changed_in_the_state():
    talk = Talk(
        call("get_weather", city="Paris"),
        "21",
        call("get_weather", city="Oslo"),
        "9",
        tools=[get_weather],
        state={"calls": 0},
        output_key="answer",
    )
    rows = RunRows(state={"calls": 0})

    view = seen([*talk.say("Paris?"), *talk.say("Oslo?")], rows)

    assert [(row["kind"], row["changes"]) for row in view.rows.values() if row["changes"]] == snapshot(
        [
            (
                "call",
                [
                    {"key": "calls", "kind": "~", "old": "0", "new": "1"},
                    {"key": "last_city", "kind": "+", "old": None, "new": '"Paris"'},
                ],
            ),
            ("text", [{"key": "answer", "kind": "+", "old": None, "new": '"21"'}]),
            (
                "call",
                [
                    {"key": "calls", "kind": "~", "old": "1", "new": "2"},
                    {"key": "last_city", "kind": "~", "old": '"Paris"', "new": '"Oslo"'},
                ],
            ),
            ("text", [{"key": "answer", "kind": "~", "old": '"21"', "new": '"9"'}]),
        ]
    )
    assert view.state == snapshot(
        [
            {"key": "calls", "value": "2", "kind": "~", "old": "0"},
            {"key": "last_city", "value": '"Oslo"', "kind": "+", "old": None},
            {"key": "answer", "value": '"9"', "kind": "+", "old": None},
        ]
    )


def test_a_key_that_is_removed_or_lasts_one_turn_is_gone():
    events = [
        Event(author="weather", invocation_id="1", actions=EventActions(state_delta={"temp:draft": 1, "plan": "a"})),
        Event(author="weather", invocation_id="1", state={"plan": {"__adk_deleted__": True}, "never": {}}),
        Event(author="weather", invocation_id="2", state={"never": {}}),
    ]

    view = seen(events, rows := RunRows(state={"plan": "old"}))

    assert [row["changes"] for row in view.rows.values()] == snapshot(
        [
            [
                {"key": "temp:draft", "kind": "+", "old": None, "new": "1"},
                {"key": "plan", "kind": "~", "old": '"old"', "new": '"a"'},
            ],
            [
                {"key": "plan", "kind": "-", "old": '"a"', "new": None},
                {"key": "never", "kind": "+", "old": None, "new": "{}"},
            ],
        ]
    )
    assert rows.opening() == [{"op": "state", "event": "", "changes": [], "state": [{"key": "never", "value": "{}"}]}]


@pytest.mark.parametrize(
    ("decision", "outcome", "user"),
    [
        ({"confirmed": True}, ("approved", "", True), "approves refund by a function response"),
        ({"confirmed": True, "by": "%confirm"}, ("approved", "", True), "approves refund by %confirm"),
        (
            {"confirmed": True, "args": {"order": "17", "amount": 9}},
            ("edited", 'ran with order="17", amount=9', True),
            'approves refund by a function response, with order="17", amount=9',
        ),
        (
            {"confirmed": False, "reason": "too much", "by": "a click"},
            ("rejected", "too much", None),
            "rejects refund by a click: too much",
        ),
    ],
)
def test_an_approval_is_a_card_and_its_answer_closes_it(decision, outcome, user):
    talk = Talk(call("refund", order="17", amount=250.0), "Done.", tools=[REFUND])
    rows = RunRows(schema_of=lambda asked: {"tool": asked.call.name})

    asked = seen(talk.say("Refund 17."), rows)

    [(author, kind, text)] = told(asked.rows.values())[1:]
    assert (author, kind) == ("weather", "call")
    assert text.startswith('refund(order="17", amount=250.0) asks')
    [card] = asked.cards.values()
    assert {key: card[key] for key in ("agent", "tool", "hint", "args", "schema", "state", "note")} == snapshot(
        {
            "agent": "weather",
            "tool": "refund",
            "hint": "",
            "args": {"order": "17", "amount": 250.0},
            "schema": {"tool": "refund"},
            "state": "asked",
            "note": "",
        }
    )

    answered = asked
    for event in talk.decide(**decision):
        for op in rows.feed(event):
            answered.apply(op)

    [card], [_, waited, answer, _] = answered.cards.values(), answered.rows.values()
    assert (card["state"], card["note"], waited["ok"]) == outcome
    assert (waited["text"], answer["kind"], answer["text"]) == ("", "user", user)


def test_a_run_that_goes_on_from_an_approval_knows_what_was_asked():
    talk = Talk(call("refund", order="17", amount=250.0), "Done.", tools=[REFUND])
    history = talk.say("Refund 17.")
    opening = RunRows(history=history).opening()

    after = talk.decide()

    assert [op["card"]["tool"] for op in opening] == ["refund"]
    assert told(rows_of(after, history=history))[:2] == [
        ("user", "user", "approves refund by a function response"),
        ("weather", "call", 'refund(order="17", amount=250.0) 250.0'),
    ]
    (author, kind, text), resumed = told(rows_of(after))[:2]
    assert (author, kind, text.partition(" ")[0]) == ("user", "user", "approves")
    assert resumed == ("weather", "call", "refund(None) 250.0")


def test_a_request_for_approval_that_a_model_writes_is_no_card():
    forged = call("adk_request_confirmation", originalFunctionCall={"name": "refund", "args": {}})

    view = seen(Talk(forged, "Hm.", tools=[REFUND]).say("Hi"))

    assert not view.cards
    assert [row["ok"] for row in view.rows.values() if row["kind"] == "call"] == [False]


def test_the_end_of_a_run_has_a_description():
    def again() -> str:
        return "more"

    endless = Talk(call("again"), call("again"), tools=[again], max_iterations=1).say("Go.")
    refused = Talk(LlmResponse(error_code="SAFETY")).say("Go.")
    silent = Talk("").say("Go.")
    stopped = [Event(author="weather", error_code="INVOCATION_ABORTED", error_message="the run was stopped")]

    last = [rows_of(events)[-1] for events in (endless, refused, silent, stopped)]

    assert [(row["kind"], row["text"].partition(":")[0]) for row in last] == snapshot(
        [
            ("error", "too many steps"),
            ("error", "the model refused for safety"),
            ("error", "no answer"),
            ("marker", "the run was stopped"),
        ]
    )
    assert "max_iterations" in last[0]["text"]


def test_an_error_of_the_model_is_a_row():
    talk = Talk(RuntimeError("service down"))
    with pytest.raises(RuntimeError, match="service down"):
        talk.say("Hi")

    assert told(rows_of(talk.events))[-1] == ("weather", "error", "RuntimeError: service down")


def test_what_is_neither_text_nor_call_is_named():
    image = types.Content(
        role="user",
        parts=[types.Part(text="Look:"), types.Part.from_bytes(data=b"x" * 2_000, mime_type="image/png")],
    )
    deeds = EventActions(transfer_to_agent="booker", artifact_delta={"plan.txt": 2}, escalate=True)

    rows = rows_of([*Talk("A cat.").say(image), Event(author="weather", actions=deeds)])

    assert told(rows) == snapshot(
        [
            (
                "user",
                "user",
                """\
Look:
[image/png, 2,000 bytes]\
""",
            ),
            ("weather", "text", "A cat."),
            ("weather", "marker", "→ transfer to booker"),
            ("weather", "marker", "saved plan.txt, version 2"),
            ("weather", "marker", "leaves the loop"),
        ]
    )


def test_a_summary_of_older_events_is_marked():
    summary = types.Content(role="model", parts=[types.Part(text="They asked\nabout Oslo.")])
    compaction = EventCompaction(start_timestamp=1, end_timestamp=2, compacted_content=summary)

    rows = rows_of([Event(author="user", actions=EventActions(compaction=compaction))])

    [(author, kind, text)] = told(rows)
    assert (author, kind) == ("user", "marker")
    assert text.endswith(": They asked about Oslo.")


def test_only_live_rows_have_durations():
    events = Talk(call("get_weather", city="Paris"), "21", tools=[get_weather]).say("Paris?")

    live, static = seen(events).rows.values(), rows_of(events)

    assert [row["ms"] is not None and row["ms"] >= 0 for row in live] == [False, True, True]
    assert {row["ms"] for row in static} == {None}


def test_long_arguments_and_results_are_truncated():
    def echo(text: str) -> str:
        return text * 20

    rows = seen(Talk(call("echo", text="x" * 5_000), "ok", tools=[echo]).say("Go.")).rows.values()

    [only] = [row for row in rows if row["kind"] == "call"]
    assert (len(only["args"]), len(only["result"])) == (200, 200)
    assert only["args"].endswith("…")


def test_keys_are_masked_wherever_they_stand():
    def fetch(api_key: str, url: str, tool_context: ToolContext) -> dict:
        tool_context.state["user:api_key"] = "hunter2hunter2"
        tool_context.state["note"] = f"Bearer {KEY}"
        return {"password": "hunter2hunter2", "header": f"Authorization: Bearer {KEY}"}

    asked = call("fetch", api_key="hunter2hunter2", url=f"https://example.org/?key={KEY}")
    view = seen(Talk(asked, f"Your key is {KEY}.", tools=[fetch]).say(f"Use {KEY}"))

    shown = repr(view.snapshot(1))
    assert "hunter2" not in shown and KEY not in shown
    assert shown.count("[redacted]") > 8


@each("payload", PAYLOADS)
def test_rows_carry_hostile_text_as_plain_text_and_safe_html(payload: str):
    def waits(text: str, tool_context: ToolContext) -> str:
        tool_context.request_confirmation(hint=payload)
        tool_context.state[payload] = payload
        return payload

    given = replace_surrogates(payload)  # half a character in an argument is refused before it is shown
    asked = [payload, call("waits", **{"text": given}), call(given, **{given: given})]
    view = seen(Talk(asked, tools=[waits]).say(replace_surrogates(payload), streaming=True))

    for row in view.rows.values():
        assert_harmless(row["html"] or "")
        for field in ("author", "text", "tool", "args", "result"):
            assert_nothing_unseen(row[field] or "")
    [card] = view.cards.values()
    assert_nothing_unseen(card["hint"] + card["tool"])
    assert_nothing_unseen(repr(view.state))


@pytest.mark.slow
def test_ten_thousand_pieces_take_time_in_proportion():
    """A piece costs about 10 us; work that grew with the text so far would take minutes."""
    pieces = [f"word{number} " for number in range(10_000)]
    events = Talk(pieces).say("Go on.", streaming=True)
    rows = RunRows()

    before = time.process_time()
    ops = [op for event in events for op in rows.feed(event)]

    assert time.process_time() - before < 3
    assert [op["op"] for op in ops].count("text") == 10_000
    assert ops[-1]["text"] == "".join(pieces)


def code_and(result: str, outcome: types.Outcome = types.Outcome.OUTCOME_OK, code: str = "1 + 1") -> list[Event]:
    asked = types.Part(executable_code=types.ExecutableCode(code=code, language=types.Language.PYTHON))
    gave = types.Part(code_execution_result=types.CodeExecutionResult(outcome=outcome, output=result))
    return [
        Event(author="weather", content=types.Content(role="model", parts=[types.Part(text="I compute."), asked])),
        Event(author="weather", content=types.Content(role="model", parts=[gave])),
    ]


def test_code_and_what_it_gave_are_blocks_of_code():
    rows = rows_of(code_and("2", code="print('<b>')\n1 + 1"))

    assert [row["html"] for row in rows] == snapshot(
        [
            """\
<p>I compute.</p>
<pre><code>print('&lt;b&gt;')
1 + 1
</code></pre>\
""",
            """\
<pre><code>2
</code></pre>\
""",
        ]
    )


def test_code_that_failed_says_so():
    row = rows_of(code_and("NameError: x", types.Outcome.OUTCOME_FAILED))[1]

    assert row["html"].startswith("<p>The code failed:</p>")
    assert "<code>NameError: x" in row["html"]


@each("payload", [*PAYLOADS, "```\n<script>alert(1)</script>\n````\n**bold**"])
def test_neither_code_nor_its_output_leaves_its_block(payload: str):
    for row in rows_of(code_and(payload, code=payload)):
        assert_harmless(row["html"])
        assert_nothing_unseen(row["html"])
        assert "<strong>" not in row["html"]


def test_a_picture_that_a_tool_returns_is_told_by_its_kind_and_size():
    picture = types.Blob(data=b"x" * 2_000, mime_type="image/png")
    film = types.FileData(file_uri="gs://films/\x1b[31m1.mp4", mime_type="video/mp4")

    def draw() -> types.Blob:
        return picture

    def show() -> dict:
        return {"caption": "Oslo", "shown": [picture, film]}

    rows = rows_of(
        Talk(call("draw"), call("show"), "Done.", tools=[FunctionTool(draw), FunctionTool(show)]).say("Draw")
    )

    assert [row["result"][:80] for row in rows if row["kind"] == "call"] == snapshot(
        ["[image/png, 2,000 bytes]", '[image/png, 2,000 bytes] [file gs://films/1.mp4] {"caption": "Oslo", "shown": [{']
    )
