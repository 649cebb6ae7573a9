"""What stands for a conversation once summaries have taken the place of its older events."""

from typing import Any

from adk_nb import types
from adk_nb.events import Event, EventActions
from adk_nb.events.event_actions import EventCompaction
from adk_nb.flow.history.contents import contents_for
from adk_nb.flow.history.current_events import current_events
from adk_nb.sessions import Session
from tests.support.talk import content_summaries
from tests.support.transcripts import call_line, result_line


def text_event(at: float, text: str, author: str = "user", **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, content=content, timestamp=at, **more)


def called(at: float, *keys: str, author: str = "guide", **more: Any) -> Event:
    parts = [types.Part(function_call=types.FunctionCall(id=key, name="look", args={"of": key})) for key in keys]
    return Event(author=author, content=types.Content(role="model", parts=parts), timestamp=at, **more)


def result_event(at: float, *results: tuple[str, str], author: str = "guide") -> Event:
    parts = [
        types.Part(function_response=types.FunctionResponse(id=key, name="look", response={"result": result}))
        for key, result in results
    ]
    return Event(author=author, content=types.Content(role="user", parts=parts), timestamp=at)


def summary(start: float, end: float, text: str, at: float = 100.0, **more: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    told = EventCompaction(start_timestamp=start, end_timestamp=end, compacted_content=content)
    return Event(author="user", actions=EventActions(compaction=told), timestamp=at, **more)


def undo(invocation_id: str) -> Event:
    return Event(author="user", actions=EventActions(rewind_before_invocation_id=invocation_id))


def current_texts(*events: Event, agent: str = "guide") -> list[tuple[str, str]]:
    """What the agent is sent; the same whether the events are looked at one by one or all at once."""
    whole, growing = Session(id="s"), Session(id="s")
    for event in events:
        whole.events.append(event)
        growing.events.append(event)
        contents_for(growing, agent, None)
    told = content_summaries(contents_for(whole, agent, None))
    assert content_summaries(contents_for(growing, agent, None)) == told
    return told


def test_a_summary_takes_the_place_of_the_events_in_its_range():
    assert current_texts(
        text_event(1, "a"),
        text_event(2, "b", "guide"),
        text_event(3, "c"),
        summary(1, 2, "ab"),
        text_event(4, "d", "guide"),
    ) == [
        ("model", "ab"),
        ("user", "c"),
        ("model", "d"),
    ]


def test_a_summary_is_the_own_words_of_whichever_agent_reads_it():
    assert current_texts(text_event(1, "a"), summary(1, 1, "A"), agent="other") == [("model", "A")]


def test_what_comes_after_a_summary_is_not_covered_by_it_whatever_its_time():
    assert current_texts(text_event(1, "a"), summary(1, 5, "A"), text_event(3, "b")) == [("model", "A"), ("user", "b")]


def test_a_summary_of_a_summary_replaces_it():
    assert current_texts(
        text_event(1, "a"), summary(1, 1, "A"), text_event(2, "b"), summary(1, 2, "AB"), text_event(3, "c")
    ) == [
        ("model", "AB"),
        ("user", "c"),
    ]


def test_an_older_summary_of_more_stays_and_of_two_alike_the_newer():
    assert current_texts(text_event(1, "a"), text_event(2, "b"), summary(1, 2, "AB"), summary(2, 2, "B")) == [
        ("model", "AB")
    ]
    assert current_texts(text_event(1, "a"), summary(1, 1, "A"), summary(1, 1, "A again")) == [("model", "A again")]


def test_summaries_that_overlap_both_stay_in_the_order_of_what_they_tell():
    assert current_texts(
        text_event(1, "a"),
        text_event(2, "b"),
        summary(1, 2, "AB"),
        text_event(3, "c"),
        text_event(4, "d"),
        summary(2, 3, "BC"),
    ) == [
        ("model", "AB"),
        ("model", "BC"),
        ("user", "d"),
    ]


def test_a_range_may_leave_events_before_it_as_they_are():
    assert current_texts(text_event(1, "a"), text_event(2, "b"), text_event(3, "c"), summary(2, 2, "B")) == [
        ("user", "a"),
        ("model", "B"),
        ("user", "c"),
    ]


def test_a_call_in_the_range_that_waits_stays_behind_the_summary_and_gets_its_response():
    told = [text_event(1, "a"), called(2, "f1", long_running_tool_ids={"f1"}), text_event(3, "b"), summary(1, 3, "AB")]

    assert current_texts(*told, text_event(4, "c")) == [
        ("model", "AB"),
        ("model", call_line("look", of="f1")),
        ("user", "c"),
    ]
    assert current_texts(*told, text_event(4, "c"), result_event(5, ("f1", "done")), text_event(6, "d")) == [
        ("model", "AB"),
        ("model", call_line("look", of="f1")),
        ("user", "answers {'result': 'done'}"),
        ("user", "c"),
        ("user", "d"),
    ]


def test_a_call_that_was_answered_in_part_comes_back_when_another_response_does():
    pending = called(2, "f1", long_running_tool_ids={"f1"})
    begun = result_event(3, ("f1", "begun"))

    assert current_texts(
        text_event(1, "a"), pending, begun, summary(1, 3, "A"), text_event(4, "b"), result_event(5, ("f1", "done"))
    ) == [
        ("model", "A"),
        ("user", "b"),
        ("model", call_line("look", of="f1")),
        ("user", "answers {'result': 'done'}"),
    ]


def test_a_call_comes_back_with_what_its_fellows_were_answered():
    asked = called(2, "f1", "f2", long_running_tool_ids={"f2"})
    first = result_event(3, ("f1", "one"), ("f2", "wait"))

    assert current_texts(text_event(1, "a"), asked, first, summary(1, 3, "A"), result_event(4, ("f2", "two"))) == [
        ("model", "A"),
        ("model", "; ".join([call_line("look", of="f1"), call_line("look", of="f2")])),
        ("user", "; ".join([result_line(result="one"), result_line(result="two")])),
    ]


def test_a_call_that_came_back_goes_with_its_response_into_the_next_summary():
    pending = called(2, "f1", long_running_tool_ids={"f1"})

    assert current_texts(
        text_event(1, "a"),
        pending,
        summary(1, 2, "A"),
        result_event(4, ("f1", "done")),
        text_event(5, "b"),
        summary(3, 4, "D"),
    ) == [("model", "A"), ("model", "D"), ("user", "b")]


def test_a_response_to_another_agents_call_brings_nothing_back():
    pending = called(2, "f1", author="other", long_running_tool_ids={"f1"})

    told = current_texts(
        text_event(1, "a"),
        pending,
        summary(1, 2, "A"),
        result_event(4, ("f1", "done"), author="user"),
        text_event(5, "b"),
    )

    assert not any("calls look" in words for _, words in told)


def test_a_rewind_brings_back_what_an_undone_summary_covered():
    events = [
        text_event(1, "a", invocation_id="one"),
        text_event(2, "b", invocation_id="two"),
        summary(1, 2, "AB", invocation_id="two"),
        text_event(3, "c", invocation_id="three"),
    ]

    assert current_texts(*events, undo("three"), text_event(4, "d")) == [("model", "AB"), ("user", "d")]
    assert current_texts(*events, undo("two"), text_event(4, "d")) == [("user", "a"), ("user", "d")]
    assert current_texts(*events, undo("one"), text_event(4, "d")) == [("user", "d")]


def test_a_summary_covers_only_its_own_scope():
    assert current_texts(
        text_event(1, "a"), text_event(2, "b", isolation_scope="task"), summary(1, 2, "A", isolation_scope="task")
    ) == [("user", "a")]


def test_only_new_events_are_looked_at():
    session = Session(id="s", events=[text_event(at, str(at)) for at in range(1, 50)])
    kept = current_events(session)
    session.events.append(summary(1, 48, "S"))
    session.events[:40] = [Event(author="nobody")] * 40  # nothing reads these again

    assert current_events(session) is kept
    assert [event.author for event in kept.events] == ["user", "user"]
    assert kept.read_count == 50
