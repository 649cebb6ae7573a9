"""The read model of a session says the same however it came about, and reads each event once."""

from collections.abc import Callable
from typing import Any

import pytest

from adk_nb import parts, sync, types
from adk_nb.agents import LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.events import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.models.scripted_llm import ScriptedLlm, call
from adk_nb.runtime.history import History, history_of
from adk_nb.sessions import Session
from adk_nb.tools import FunctionTool, LongRunningFunctionTool, request_input
from adk_nb.workflow import Workflow
from tests.support.shop import Shop, delete_call
from tests.support.talk import SESSION_KEY, Talk, guide


def facts(history: History) -> Any:
    """All that it says."""
    ids = sorted(history.call_ids)
    return {
        "events": [event.id for event in history.events],
        "interrupts": history.interrupts(),
        "open calls": [(record.call.id, record.event_index) for record in history.calls.open()],
        "calls": {key: [record.event_index for record in history.calls.all(key)] for key in ids},
        "runs of calls": {key: history.calls.run_of(key) for key in ids},
        "without result": sorted(history.calls.without_result(ids)),
        "tasks": history.tasks({"a1", "expert", "books"}),
        "runs": {run: [event.id for event in history.run(run)] for run in history.run_ids()},
        "node": history.listening_node(),
        "last text": history.last_text_index,
        "last message": history.last_text(None),
        "turns": [(turn.message, turn.undone, [event.id for event in turn.events]) for turn in history.turns],
        "branches": list(history.branches),
        "pauses": [at for at, _ in history.pauses()],
        "answered": [key for key in ids if history.is_answered_since(key, 0)],
    }


def conversation() -> list[Event]:
    """Approvals that are answered and open, a question, work elsewhere, and words between them."""
    shop = Shop()
    tools = [FunctionTool(shop.dele, require_confirmation=True), request_input, LongRunningFunctionTool(shop.plain)]
    answers = [delete_call(), "deleted", call("plain"), "begun", [delete_call("/y"), delete_call("/z")], "waits"]
    talk = Talk(guide(*answers, call("adk_request_input", message="Which?"), tools=tools))
    talk.say("delete it")
    [asked] = history_of(talk.stored()).interrupts()
    talk.say([parts.result(asked.id, "adk_request_confirmation", {"confirmed": True})])
    talk.say("begin")
    talk.say("delete two")
    return talk.stored().events


def rewound() -> list[Event]:
    talk = Talk(guide("one", delete_call(), "three", tools=[FunctionTool(Shop().dele, require_confirmation=True)]))
    talk.say("m1")
    second = talk.say("m2")[0].invocation_id
    sync.run(talk.runner.rewind_async(**SESSION_KEY, rewind_before_invocation_id=second))
    talk.say("m3")
    return talk.stored().events


def team() -> list[Event]:
    """An approval and a credential are asked for inside a sub-agent."""
    mail = FunctionTool(Shop().plain, auth_config=AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key")))
    answers = [[delete_call(), call("plain")], "Done."]
    gated = FunctionTool(Shop().dele, require_confirmation=True)
    books = LlmAgent(name="books", mode="single_turn", model=ScriptedLlm(*answers), tools=[gated, mail])
    talk = Talk(LlmAgent(name="lead", model=ScriptedLlm(call("books", request="book"), "Booked."), sub_agents=[books]))
    talk.say("book")
    return talk.stored().events


def graph() -> list[Event]:
    """A node of a graph waits for an approval."""

    def order(node_input: str) -> dict[str, str]:
        return {"path": node_input}

    talk = Talk(Workflow(name="graph", edges=[("START", order, FunctionTool(Shop().dele, require_confirmation=True))]))
    talk.say("/x")
    return talk.stored().events


@pytest.mark.parametrize("events_of", [conversation, rewound, team, graph])
def test_reading_event_by_event_says_what_reading_all_says(events_of: Callable[[], list[Event]]):
    events = events_of()
    assert events
    grown = History()

    for count in range(1, len(events) + 1):
        grown.update(events[:count])
        assert facts(grown) == facts(History(events[:count]))


def test_what_waits_is_numbered_in_the_order_of_asking_whatever_it_is():
    found = [(asked.number, asked.kind, asked.agent, asked.call.name) for asked in History(conversation()).interrupts()]

    assert found == [
        (1, "long_running", "guide", "plain"),
        (2, "approval", "guide", "dele"),
        (3, "approval", "guide", "dele"),
    ]


class Watched(list[Event]):
    """A list that counts the events that are taken out of it."""

    taken = 0

    def __getitem__(self, at: Any) -> Any:
        self.taken += 1
        return super().__getitem__(at)


def test_what_was_read_is_not_read_again():
    session = Session(id="s", events=[])
    events = session.events = Watched(Event(author="user", message=f"m{number}") for number in range(1_000))
    history_of(session)
    events.taken = 0

    events.append(Event(author="user", message="one more"))
    history = history_of(session)

    assert len(history.events) == 1_001 and events.taken < 5


def test_a_copy_of_what_was_read_is_not_read_again():
    events = [Event(author="user", message=f"m{number}") for number in range(100)]
    history = History(events)
    copies = Watched([*(event.model_copy() for event in events), Event(author="user", message="one more")])

    history.update(copies)

    assert len(history.events) == 101 and copies.taken < 5


@pytest.mark.parametrize("edit", ["shorter", "longer", "last"])
def test_events_that_were_edited_by_hand_are_read_again(edit: str):
    session = Session(id="s", events=conversation())
    assert history_of(session).interrupts()

    if edit == "shorter":
        del session.events[2:]
    elif edit == "longer":
        session.events[:] = [Event(author="user", message=f"m{number}") for number in range(50)]
    else:
        session.events[-1] = Event(author="user", message="nothing is asked")

    assert facts(history_of(session))["interrupts"] == facts(History(session.events))["interrupts"]
    assert history_of(session).events == session.events


def test_an_id_that_a_rewind_hides_is_not_given_away_again():
    made = types.Content(role="model", parts=[parts.call("c1", "dele", {"p": "/x"})])
    events = [
        Event(author="user", invocation_id="e1", message="go"),
        Event(author="a", invocation_id="e1", content=made),
        Event(author="user", invocation_id="e2", actions=EventActions(rewind_before_invocation_id="e1")),
    ]

    history = History(events)

    assert history.events == [] and history.call_ids == {"c1"} and not list(history.calls.open())
