"""Every answer stands right behind its call, however late and however often it came."""

from adk_nb import types
from tests.support.histories import answer, call, says, seen, text
from tests.support.transcripts import call_line, result_line


def test_of_several_results_of_one_call_the_newest_stands():
    events = [call("1", long_running_tool_ids={"1"}), *(answer("1", says_=how) for how in ("10%", "50%", "done"))]

    assert seen(text("go"), *events) == [
        ("user", "go"),
        ("model", "calls f({'of': '1'})"),
        ("user", "answers {'done': '1'}"),
    ]
    assert seen(text("go"), *events, text("thanks"))[-2:] == [("user", "answers {'done': '1'}"), ("user", "thanks")]


def test_a_result_that_comes_twice_in_one_message_is_taken_once():
    twice = answer("1", "1", author="user")

    assert seen(call("1"), twice) == [("model", "calls f({'of': '1'})"), ("user", "answers {'ok': '1'}")]


def test_a_message_with_late_results_of_two_calls_shows_both_where_they_belong():
    events = [
        text("go"),
        call("1", long_running_tool_ids={"1"}),
        text("and?"),
        call("2", long_running_tool_ids={"2"}),
        text("hm", "me"),
    ]
    expected = [
        ("user", "go"),
        ("model", "calls f({'of': '1'})"),
        ("user", "answers {'ok': '1'}"),
        ("user", "and?"),
        ("model", "calls f({'of': '2'})"),
        ("user", "answers {'ok': '2'}"),
    ]

    assert seen(*events, answer("1", "2", author="user")) == expected
    assert seen(*events, answer("2", "1", author="user")) == expected
    assert seen(*events, answer("2", "1", author="user"), text("done", "me"))[-2:] == [
        ("model", "hm"),
        ("model", "done"),
    ]


def test_the_newest_call_is_not_hidden_by_a_late_result_beside_its_own():
    events = [call("1", long_running_tool_ids={"1"}), text("and?"), call("2"), answer("2", "1")]

    assert seen(*events) == [
        ("model", "calls f({'of': '1'})"),
        ("user", "answers {'ok': '1'}"),
        ("user", "and?"),
        ("model", "calls f({'of': '2'})"),
        ("user", "answers {'ok': '2'}"),
    ]


def test_what_comes_with_a_late_result_stays_with_it():
    late = answer("1", author="user")
    assert late.content and late.content.parts
    late.content.parts.append(types.Part(text="see there"))

    assert seen(call("1", long_running_tool_ids={"1"}), text("hm", "me"), late)[-1] == (
        "user",
        f"{result_line(ok='1')}; see there",
    )


def test_a_result_without_an_id_answers_the_call_of_its_name():
    assert seen(text("go"), call(None), answer(None)) == [
        ("user", "go"),
        ("model", "calls f({'of': None})"),
        ("user", "answers {'ok': None}"),
    ]
    assert seen(text("go"), answer(None)) == [("user", "go")]
    assert seen(call(None), text("hm", "me"), answer(None), text("so")) == [
        ("model", "calls f({'of': None})"),
        ("user", "answers {'ok': None}"),
        ("model", "hm"),
        ("user", "so"),
    ]


def test_calls_without_ids_may_share_a_name():
    assert seen(call(None, None), answer(None, None)) == [
        ("model", "; ".join([call_line("f", of=None), call_line("f", of=None)])),
        ("user", "; ".join([result_line(ok=None), result_line(ok=None)])),
    ]
    assert seen(call(None), text("stopped")) == [("model", "calls f({'of': None})"), ("user", "stopped")]


def test_an_id_that_stands_twice_in_one_message_is_no_trouble():
    assert seen(call("1", "1"), answer("1")) == [
        ("model", "; ".join([call_line("f", of="1"), call_line("f", of="1")])),
        ("user", "answers {'ok': '1'}"),
    ]


def test_of_a_dropped_call_no_bare_thought_is_left():
    thinks = says(
        "me",
        types.Part(text="hm", thought=True),
        types.Part(function_call=types.FunctionCall(id="1", name="f", args={})),
    )

    assert seen(text("go"), thinks, text("stopped")) == [("user", "go"), ("user", "stopped")]
