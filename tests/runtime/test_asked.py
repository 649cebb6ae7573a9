"""What a runner cannot work with is refused in one sentence, before anything happens."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import sync
from adk_nb.agents import LlmAgent, RunConfig
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.models import ScriptedLlm
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService, SqliteSessionService
from tests.support.talk import SESSION_KEY, Talk


def agent() -> LlmAgent:
    return LlmAgent(name="guide", model=ScriptedLlm("hello"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"agent": "guide"}, "'guide' … Runner(agent=LlmAgent(...))"),
        ({"agent": LlmAgent}, "not the class LlmAgent; … LlmAgent(...)"),
        (
            {"session_service": InMemorySessionService},
            "not the class InMemorySessionService; … InMemorySessionService(...)",
        ),
        (
            {"session_service": "nb.db"},
            "service objects, … path 'nb.db'; … session_service=SqliteSessionService('nb.db')",
        ),
    ],
)
def test_a_runner_of_what_cannot_run_is_refused(given: dict[str, Any], said: str):
    usual: dict[str, Any] = {"app_name": "app", "agent": agent(), "session_service": InMemorySessionService()}

    with pytest.raises(ConfigurationError) as caught:
        Runner(**usual | given)

    assert mentions(caught.value, said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"config": {"max_llm_calls": 3}}, "run_config … RunConfig, got {'max_llm_calls': 3}; write"),
        ({"abort_signal": threading.Event()}, "runner.cancel(invocation_id)"),
        ({"abort_signal": True}, "abort_signal must be an asyncio.Event, got True"),
        ({"config": RunConfig(support_cfc=True)}, "write streaming_mode=StreamingMode.SSE"),
    ],
)
def test_a_run_that_cannot_be_as_asked_stores_nothing(given: dict[str, Any], said: str):
    talk = Talk(agent())

    events = talk.say(**given)

    assert events == talk.stored().events == []
    assert isinstance(talk.error, ConfigurationError) and mentions(talk.error, said)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"session_id": ["s"]}, "session_id … text, got ['s']"),
        ({"user_id": 3}, "user_id … text, got 3"),
        ({"invocation_id": 5}, "invocation_id … text, got 5"),
        ({"invocation_id": " "}, "invocation_id=' ' is empty; … out"),
    ],
)
def test_an_id_that_is_none_is_refused_before_a_session_has_seen_it(given: dict[str, Any], said: str, tmp_path: Path):
    runner = Runner(app_name="app", agent=agent(), session_service=SqliteSessionService(tmp_path / "nb.db"))
    sync.run(runner.session_service.create_session(app_name="app", **SESSION_KEY))

    with pytest.raises(InputError) as caught:
        list(runner.run(**{**SESSION_KEY, "new_message": "hi", **given}))

    assert mentions(caught.value, said)
    assert [event.text for event in runner.run(**SESSION_KEY, new_message="hi")] == ["hello"]


@pytest.mark.parametrize("queue", [None, asyncio.Queue[Any]()])
def test_a_live_conversation_needs_its_own_kind_of_queue(queue: Any):
    talk = Talk(agent())
    asked: dict[str, Any] = SESSION_KEY | {"live_request_queue": queue}

    with pytest.raises(ConfigurationError, match=r"live_request_queue=LiveRequestQueue\(\)"):
        talk.runner.run_live(**asked)
