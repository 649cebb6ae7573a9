"""An agent that is to see the present turn only: where a turn begins, and what stays with it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adk_nb import types
from adk_nb.events import Event, EventActions
from adk_nb.events.requests import APPROVAL_REQUEST
from adk_nb.flow.history.contents import contents_for
from adk_nb.models import call as calls
from adk_nb.sessions import Session
from adk_nb.tools import FunctionTool
from tests.support.histories import answer, call, heard, seen, session_of, text, told
from tests.support.talk import Talk, guide, requests
from tests.support.transcripts import quoted_call, quoted_result


def current_turn(*events: Event, **kwargs: Any) -> list[tuple[str, str]]:
    return told(seen(*events, this_turn=True, **kwargs))


def transfer(author: str = "other") -> list[Event]:
    return [
        call("t", author=author, name="transfer_to_agent"),
        answer("t", author=author, name="transfer_to_agent", actions=EventActions(transfer_to_agent="me")),
    ]


def test_the_newest_message_of_the_user_begins_the_turn():
    old = [text("first"), call("0"), answer("0"), text("one", "me")]

    assert current_turn(*old, text("second"), call("1"), answer("1")) == [
        ("user", "second"),
        ("model", "calls f({'of': '1'})"),
        ("user", "answers {'ok': '1'}"),
    ]


def test_so_does_what_another_agent_said_last():
    message = [
        text("go"),
        text("A", "other"),
        call("1", author="other"),
        answer("1", author="other"),
        text("B", "other"),
    ]

    assert current_turn(*message) == [("user", "[other] said: <B>")]
    assert current_turn(*message, text("mine", "me")) == [("user", "[other] said: <B>"), ("model", "mine")]


def test_a_transfer_starts_no_bar_and_is_reported():
    assert current_turn(text("old"), text("go"), *transfer()) == [
        ("user", "go"),
        ("user", quoted_call("other", {"of": "t"}, "transfer_to_agent")),
        ("user", quoted_result("other", {"ok": "t"}, "transfer_to_agent")),
    ]


def test_what_was_said_before_a_transfer_begins_one():
    assert current_turn(text("go"), text("ask B", "other"), *transfer())[0] == ("user", "[other] said: <ask B>")


def test_a_message_that_the_agent_cannot_see_begins_none():
    hidden = [
        text("elsewhere", "other", branch="p.other"),
        text("inner", isolation_scope="c1"),
        text("progress", "f", branch="p.me.f@1"),
        text("", "other"),
    ]

    assert current_turn(text("go"), call("1", branch="p.me"), *hidden, answer("1", branch="p.me"), branch="p.me") == [
        ("user", "go"),
        ("model", "calls f({'of': '1'})"),
        ("user", "answers {'ok': '1'}"),
    ]


def test_a_result_that_comes_later_goes_on_with_the_turn_of_its_call():
    request = [text("old"), text("buy"), call("1", long_running_tool_ids={"1"}), text("waiting", "me")]
    bought = [("user", "buy"), ("model", "calls f({'of': '1'})"), ("user", "answers {'ok': '1'}")]

    assert current_turn(*request, answer("1", author="user")) == bought
    assert current_turn(*request, text("hi?"), text("sure", "me")) == [("user", "hi?"), ("model", "sure")]
    assert current_turn(*request, text("hi?"), text("sure", "me"), answer("1", author="user")) == bought
    assert current_turn(*request, text("hi?"), answer("1", author="user"), text("done", "me"))[:3] == bought
    assert current_turn(*request, text("hi?"), answer("1", author="user"), text("done", "me"), text("next")) == [
        ("user", "next")
    ]


def test_a_result_of_no_call_begins_none():
    assert current_turn(text("go"), answer("9", author="user"), text("yes", "me")) == [("user", "go"), ("model", "yes")]


def test_a_transcript_in_pieces_is_one_message():
    assert current_turn(text("old"), heard("What"), heard(" time?")) == [("user", "What time?")]


def test_what_was_undone_is_not_gone_back_to():
    events = [
        text("a", invocation_id="1"),
        call("c", long_running_tool_ids={"c"}, invocation_id="1"),
        Event(author="user", actions=EventActions(rewind_before_invocation_id="1")),
        text("b", invocation_id="2"),
        answer("c", author="user", invocation_id="2"),
    ]

    assert current_turn(*events) == [("user", "b")]


def test_an_approved_call_is_shown_with_the_message_that_led_to_it():
    def pay() -> str:
        """Pays."""
        return "paid"

    agent = guide(calls("pay"), "sure", "done", tools=[FunctionTool(pay, require_confirmation=True)])
    agent.include_contents = "none"
    talk = Talk(agent)
    events = talk.say("pay it")
    talk.say("are you there?")
    [call] = [call for event in events for call in event.get_function_calls() if call.name == APPROVAL_REQUEST]

    yes = types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": True})
    talk.say([types.Part(function_response=yes)])

    assert talk.error is None
    assert requests(agent)[1] == [("user", "are you there?")]
    assert requests(agent)[2] == [
        ("user", "pay it"),
        ("model", "calls pay({})"),
        ("user", "answers {'result': 'paid'}"),
    ]


AUTHORS = st.sampled_from(["user", "me", "other"])
IDS = st.sampled_from("12")
RUNS = st.sampled_from("xy")
EVENT = st.one_of(
    st.builds(text, st.sampled_from(["a", "b", ""]), AUTHORS, invocation_id=RUNS),
    st.builds(call, IDS, author=st.sampled_from(["me", "other"]), invocation_id=RUNS),
    st.builds(answer, IDS, author=AUTHORS, invocation_id=RUNS),
    st.builds(heard, st.just("x"), AUTHORS, invocation_id=RUNS),
    st.builds(lambda run: Event(author="user", actions=EventActions(rewind_before_invocation_id=run)), RUNS),
    st.sampled_from(transfer()),
)


@given(st.lists(EVENT, max_size=12), st.lists(st.integers(1, 4), max_size=12))
def test_a_view_of_the_turn_kept_up_to_date_is_the_one_made_anew(events: list[Event], steps: list[int]):
    session = Session(id="s")

    for step in [*steps, len(events)]:
        new, events = events[:step], events[step:]
        session.events.extend(new)
        stored_contents = contents_for(session, "me", None, this_turn=True)
        assert stored_contents == contents_for(session_of(session.events), "me", None, this_turn=True)


@given(st.lists(EVENT, max_size=12))
def test_a_turn_is_the_end_of_the_history(events: list[Event]):
    whole = contents_for(session_of(events), "me", None)
    turn = contents_for(session_of(events), "me", None, this_turn=True)

    assert len(turn) <= len(whole)
    assert not turn or whole[-1:] == turn[-1:]
