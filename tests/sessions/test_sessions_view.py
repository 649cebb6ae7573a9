"""`InMemorySessionService.sessions`: what is stored now, for reading."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.errors import InputError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService, Session

S = {"app_name": "shop", "user_id": "ada", "session_id": "s"}


@pytest.fixture
def service() -> InMemorySessionService:
    service = InMemorySessionService()
    service.create_session(**S, state={"step": 1, "user:name": "Ada", "items": [1]})
    return service


def stored(service: InMemorySessionService) -> Session:
    return service.sessions["shop"]["ada"]["s"]


def test_the_view_follows_what_is_stored(service: InMemorySessionService):
    users = service.sessions["shop"]
    service.append_event(service.get_session(**S), Event(author="user", message="hi", state={"step": 2}))
    service.create_session(app_name="shop", user_id="bob", session_id="t")

    assert (list(users), len(users["ada"]), "s" in users["ada"], users["ada"].get("t")) == (
        ["ada", "bob"],
        1,
        True,
        None,
    )
    assert (stored(service).state["step"], [event.text for event in stored(service).events]) == (2, ["hi"])
    service.delete_session(**S)
    assert "ada" not in users


@pytest.mark.parametrize("path", [("no",), ("shop", "no"), ("shop", "ada", "no")])
def test_what_is_not_stored_is_a_key_error(service: InMemorySessionService, path: tuple[str, ...]):
    sessions: Any = service.sessions
    with pytest.raises(KeyError, match="no"):
        for name in path:
            sessions = sessions[name]


@pytest.mark.parametrize(
    ("write", "state"),
    [
        (lambda state: state.__setitem__("step", 3), {"step": 3}),
        (lambda state: state.update(step=3, more=4), {"step": 3, "more": 4}),
        (lambda state: state.setdefault("unit", "C"), {"unit": "C"}),
        (lambda state: state.__ior__({"step": 5}), {"step": 5}),
        (lambda state: state.pop("step"), {"step": None}),
        (lambda state: state.clear(), {"step": None, "items": None, "user:name": None}),
        (lambda state: state.__setitem__("user:name", "Eva"), {"user:name": "Eva"}),
    ],
)
def test_a_write_to_the_state_is_stored_and_the_next_run_reads_it(
    service: InMemorySessionService, write: Callable[[Any], Any], state: dict[str, Any]
):
    write(stored(service).state)
    model = ScriptedLlm("ok")
    agent = LlmAgent(name="guide", model=model, instruction="unit {unit?} step {step?}")
    runner = Runner(app_name="shop", agent=agent, session_service=service)
    list(runner.run(user_id="ada", session_id="s", new_message="hi"))

    now = service.get_session(**S).state
    assert {key: now.get(key) for key in state} == state
    asked = str(model.requests[0].config.system_instruction)
    assert asked.startswith(f"unit {now.get('unit', '')} step {now.get('step', '')}")


def test_what_users_share_is_stored_for_all_their_sessions(service: InMemorySessionService):
    service.create_session(app_name="shop", user_id="ada", session_id="t")
    stored(service).state["user:name"] = "Eva"
    assert service.sessions["shop"]["ada"]["t"].state["user:name"] == "Eva"


def test_a_key_that_is_missing_is_a_key_error_and_nothing_is_changed(service: InMemorySessionService):
    state = stored(service).state
    with pytest.raises(KeyError):
        state.pop("nothing")
    assert state.pop("nothing", 7) == 7
    assert service.get_session(**S).state == {"step": 1, "user:name": "Ada", "items": [1]}


@pytest.mark.parametrize(
    "write", [lambda session: session.events.clear(), lambda session: session.events.append(Event(author="user"))]
)
def test_a_write_to_the_events_is_refused_with_what_to_write(
    service: InMemorySessionService, write: Callable[[Session], Any]
):
    with pytest.raises(InputError, match="append_event"):
        write(stored(service))

    assert service.get_session(**S).events == []


def test_a_copy_is_free_and_does_not_reach_the_store(service: InMemorySessionService):
    own_session = copy.deepcopy(stored(service))
    own_session.state["items"].append(2)
    stored(service).state["items"].append(3)

    assert service.get_session(**S).state["items"] == [1]
    assert type(own_session.state) is dict and type(own_session.events) is list
