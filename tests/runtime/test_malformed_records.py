"""Events that others wrote into a store: what cannot be read opens nothing, and never stops the session."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig
from adk_nb.events import Event, RequestInput
from adk_nb.events.usage import usages_of
from adk_nb.models.scripted_llm import call
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runtime.history import History, open_interrupts
from adk_nb.runtime.interrupts import ALL
from adk_nb.sessions.session_file import remove_decisions
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.tools.request_input_tool import request_input
from adk_nb.workflow import Workflow
from tests.support.talk import SESSION_KEY, Talk, guide

JUNK: tuple[Any, ...] = (None, "x", 7, ["x"], [[1]], {"x": 1})
METADATA = {
    "adk_nb_run": "k",
    "sent_by": "client",
    "failed_at": {"c": "cell 1"},
    "repeated": {"c": 2},
    "nested_usage": {"c": [{"model": "m", "usage": {"totalTokenCount": 3}, "replayed": False}]},
    "a2a:calls": {"x": ["", ""]},
}


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def book(tool_context: ToolContext) -> str:
    """Book with a key."""
    scheme = APIKey(in_=APIKeyIn.header, name="X-Key")
    tool_context.request_credential(AuthConfig(auth_scheme=scheme))
    return "asks"


def ask() -> RequestInput:
    """Ask in a graph."""
    return RequestInput(message="Which city?", payload={"near": "Oslo"})


def waiting(name: str) -> Talk:
    """A conversation that waits: for an approval, a credential, an answer, or an answer in a graph."""
    if name == "graph":
        talk = Talk(Workflow(name="graph", edges=[("START", ask)]))
    else:
        wanted, tool = {
            "approval": (call("pay", amount=5), FunctionTool(pay, require_confirmation=True)),
            "credential": (call("book"), book),
            "question": (
                call("adk_request_input", message="Which?", response_schema={"type": "object"}),
                request_input,
            ),
        }[name]
        talk = Talk(guide(wanted, "Hello again.", tools=[tool]))
    talk.say("Go.")
    return talk


def append(talk: Talk, event: Event) -> None:
    async def write() -> None:
        session = await talk.service.get_session(app_name="app", **SESSION_KEY)
        assert session is not None
        await talk.service.append_event(session, event)

    sync.run(write())


def replaced(value: Any) -> Iterator[Any]:
    """`value` with one place in it replaced by something else, or missing; all of these."""
    yield from JUNK
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        others = [replacement for replacement in replaced(item) if replacement != item]
        if isinstance(value, dict):
            yield {name: kept for name, kept in value.items() if name != key}
            yield from ({**value, key: other} for other in others)
        else:
            yield from ([*value[:key], other, *value[key + 1 :]] for other in others)


def damaged(events: list[Event]) -> Iterator[list[Event]]:
    """The events of a session, with one place of one of them damaged that any JSON may be in."""
    stored = [json.loads(event.model_dump_json(by_alias=True, exclude_none=True)) for event in events]
    for index, event in enumerate(stored):
        parts = event.get("content", {}).get("parts", [])
        calls = [(part["functionCall"], "args") for part in parts if "functionCall" in part]
        states = [(event["actions"], "agentState")] if "agentState" in event.get("actions", {}) else []
        for record, key in [*calls, *states, (event, "customMetadata")]:
            original = record.get(key, METADATA)
            for replacement in replaced(original):
                if not isinstance(replacement, dict):
                    continue  # no event has that: it cannot be read at all
                record[key] = replacement
                yield [*events[:index], Event.model_validate(event), *events[index + 1 :]]
            record[key] = original


@pytest.mark.parametrize("name", ["approval", "credential", "question", "graph"])
def test_whatever_is_in_an_event_the_session_can_be_read(name: str):
    for events in damaged(waiting(name).stored().events):
        for asked in History(events).interrupts(kinds=ALL):
            assert isinstance(asked.schema, dict) and isinstance(asked.names, list)
        assert rows_of(events)
        History(remove_decisions(events)[0])
        assert all(usage.tokens for event in events for usage in usages_of(event))


MALFORMED: dict[str, tuple[str, dict[str, Any]]] = {
    "text for arguments": ("adk_request_confirmation", {"originalFunctionCall": {"name": "pay", "args": "x"}}),
    "a list for the call": ("adk_request_confirmation", {"originalFunctionCall": [1]}),
    "no function": ("adk_request_confirmation", {"originalFunctionCall": {"args": {}}}),
    "no call": ("adk_request_confirmation", {}),
    "a hint that is none": (
        "adk_request_confirmation",
        {"originalFunctionCall": {"name": "pay", "args": {}}, "toolConfirmation": "yes"},
    ),
    "no scheme": ("adk_request_credential", {"authConfig": {}}),
    "calls that are none": ("adk_request_credential", {"authConfig": {"authScheme": {"type": "http"}}, "calls": 5}),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_request_is_a_row_and_the_session_goes_on(what: str):
    name, args = MALFORMED[what]
    talk = Talk(guide("Hello.", "Still here.", tools=[FunctionTool(pay, require_confirmation=True)]))
    first = talk.say("Hi.")[0].invocation_id
    part = call(name, **args)
    part.function_call.id = "r1"
    event = Event(
        author="guide", invocation_id=first, content={"role": "model", "parts": [part]}, long_running_tool_ids={"r1"}
    )
    append(talk, event)

    assert open_interrupts(talk.stored().events) == []
    assert [row["kind"] for row in rows_of([event])] == ["marker"] and "r1" not in rows_of([event])[0]["text"]
    assert talk.say("And now?")[-1].text == "Still here." and talk.error is None
    sync.run(talk.runner.rewind_async(**SESSION_KEY, rewind_before_invocation_id=first))
    assert [turn.undone for turn in History(talk.stored().events).turns] == [True, True]


def test_a_readable_request_beside_a_malformed_one_is_open():
    talk = waiting("approval")
    [asked] = open_interrupts(talk.stored().events)
    part = call("adk_request_confirmation", originalFunctionCall={"name": "pay", "args": [5]})
    part.function_call.id = "r1"
    event = Event(author="guide", content={"role": "model", "parts": [part]}, long_running_tool_ids={"r1"})
    append(talk, event)

    assert [one.id for one in open_interrupts(talk.stored().events)] == [asked.id]


def test_a_graph_whose_checkpoint_cannot_be_read_begins_anew():
    talk = waiting("graph")
    event = talk.stored().events[-1].model_copy(update={"id": "other"})
    event.actions = event.actions.model_copy(update={"agent_state": {"workflow": {"waiting": 5}}})
    append(talk, event)

    events = talk.say("Once more.")

    assert talk.error is None
    assert len(open_interrupts(events)) == 1
