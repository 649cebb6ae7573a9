"""What ADK's pages on the runtime and its configuration say, and the settings that its page on LLM agents shows."""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import Field, ValidationError

from adk_nb import RunConfig, StreamingMode, types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent
from adk_nb.agents.callback_context import CallbackContext
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event, EventActions
from adk_nb.models import LlmRequest, LlmResponse, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import ToolContext
from tests.support.polling import SECONDS
from tests.support.talk import SESSION_KEY, Talk, guide, summaries


def words(text: str) -> types.Content:
    return types.Content(parts=[types.Part(text=text)])


# ---- the loop of the runner, written out


class Greeter(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, content=words("hello"), actions=EventActions(state_delta={"greeted": True}))


def test_the_loop_can_be_written_by_hand():
    """`append_event` without await and without an invocation's id, then the agent's own generator."""
    service = InMemorySessionService()
    session = service.create_session(app_name="app", user_id="u", session_id="s")
    agent = Greeter(name="greeter")
    runner = Runner(agent=agent, app_name="app", session_service=service)

    service.append_event(session, Event(author="user", content=words("hi")))

    async def loop() -> list[Event]:
        ctx = InvocationContext(
            agent=agent, session=session, session_service=service, plugin_manager=runner.plugin_manager
        )
        seen: list[Event] = []
        async for event in agent.run_async(ctx):
            service.append_event(session, event)
            seen.append(event)
        return seen

    [event] = asyncio.run(loop())
    stored = service.get_session(app_name="app", user_id="u", session_id="s")
    assert [(one.author, one.text) for one in stored.events] == [("user", "hi"), ("greeter", "hello")]
    assert stored.events[1] == event and stored.state == session.state == {"greeted": True}


# ---- what an agent may rely on between its events


class Watchful(BaseAgent):
    """Notes what the store holds before and after each event it gives away."""

    service: Any = None
    seen: list[Any] = Field(default_factory=list)

    def stored(self) -> tuple[int, dict[str, Any]]:
        session = self.service.get_session(app_name="app", **SESSION_KEY)
        return len(session.events), session.state

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        self.seen.append(self.stored())
        delta = {"field_1": "value_2"}
        yield Event(author=self.name, actions=EventActions(state_delta=delta), content=words("State updated."))
        self.seen += [self.stored(), ctx.session.state["field_1"]]

        ctx.session.state["status"] = "processing"
        self.seen.append(self.stored())
        yield Event(author=self.name, actions=EventActions(state_delta={"status": "processing"}))
        self.seen += [self.stored(), ctx.session.state["status"]]


def test_an_event_is_committed_before_the_agent_goes_on():
    agent = Watchful(name="watchful")
    talk = Talk(agent)
    agent.service = talk.service
    talk.say()

    both = {"field_1": "value_2", "status": "processing"}
    assert agent.seen == [
        (1, {}),
        (2, {"field_1": "value_2"}),
        "value_2",
        (2, {"field_1": "value_2"}),  # what no event carries is not kept yet
        (3, both),
        "processing",
    ]


def test_the_reader_sees_an_event_when_it_is_history():
    def my_tool() -> str:
        """Looks a capital up."""
        return "Paris"

    talk = Talk(guide(call("my_tool"), "It is Paris.", tools=[my_tool]))
    counts: list[int] = []

    async def read() -> list[Event]:
        events: list[Event] = []
        async for event in talk.runner.run_async(**SESSION_KEY, new_message=words("the capital of France?")):
            counts.append(len((await talk.service.get_session(app_name="app", **SESSION_KEY)).events))  # pyright: ignore[reportOptionalMemberAccess]
            events.append(event)
        return events

    events = asyncio.run(read())

    assert counts == [2, 3, 4]
    assert summaries(events) == [
        ("guide", "calls my_tool({})"),
        ("guide", "answers {'result': 'Paris'}"),
        ("guide", "It is Paris. ."),
    ]
    assert {event.invocation_id for event in talk.stored().events} == {events[0].invocation_id}
    assert events[1].content and events[1].content.role == "user"


def test_what_is_not_committed_yet_is_read_later_in_the_same_run():
    read: list[Any] = []

    def before(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        callback_context.state.setdefault("field_1", "value_1")

    def tool(tool_context: ToolContext) -> str:
        """Reads."""
        read.append(tool_context.state["field_1"])
        return "read"

    def after(tool: Any, args: Any, tool_context: ToolContext, tool_response: Any) -> None:
        tool_context.state["field_2"] = "value_2"

    def then(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        read.append(callback_context.state.get("field_2"))

    agent = guide(
        call("tool"), "done", tools=[tool],
        before_model_callback=before, after_tool_callback=after, after_model_callback=then,
    )  # fmt: skip
    talk = Talk(agent)
    talk.say()

    assert read == [None, "value_1", "value_2"]
    assert talk.stored().state == {"field_1": "value_1", "field_2": "value_2"}


def test_what_was_not_committed_when_a_run_failed_is_lost():
    def before(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        callback_context.state["field_1"] = "value_1"

    talk = Talk(guide(RuntimeError("down"), "up", before_model_callback=[before]))

    talk.say()

    assert isinstance(talk.error, RuntimeError) and talk.stored().state == {}


# ---- streaming


class Streamer(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for piece in ("Once ", "upon"):
            delta = EventActions(state_delta={"piece": piece})
            yield Event(author=self.name, content=words(piece), partial=True, actions=delta)
        yield Event(author=self.name, content=words("Once upon"), actions=EventActions(state_delta={"whole": True}))


def test_pieces_go_to_the_reader_and_only_the_whole_is_kept_with_what_it_does():
    talk = Talk(Streamer(name="streamer"))

    assert [(event.text, bool(event.partial)) for event in talk.say()] == [
        ("Once ", True),
        ("upon", True),
        ("Once upon", False),
    ]
    assert [event.text for event in talk.stored().events] == ["hi", "Once upon"]
    assert talk.stored().state == {"whole": True}


def test_without_streaming_there_is_one_event():
    assert [event.partial for event in Talk(guide("several words")).say()] == [None]


# ---- async first


def test_a_blocking_tool_does_not_hold_up_the_loop():
    release, begun = threading.Event(), threading.Event()

    def block() -> str:
        """Blocks until the loop lets it go."""
        begun.set()
        return "released" if release.wait(SECONDS) else "nobody came"

    talk = Talk(guide(call("block"), "done", tools=[block]))

    async def both() -> list[Event]:
        run = asyncio.ensure_future(talk.asay())
        assert await asyncio.to_thread(begun.wait, SECONDS)
        release.set()
        return await run

    assert summaries(asyncio.run(both()))[1] == ("guide", "answers {'result': 'released'}")


@pytest.mark.parametrize("is_async", [False, True])
def test_callbacks_and_tools_may_be_of_either_kind(is_async: bool):
    seen: list[str] = []

    def plain(callback_context: CallbackContext) -> None:
        seen.append("before")

    async def awaited(callback_context: CallbackContext) -> None:
        seen.append("before")

    def tool() -> str:
        """Works."""
        return "worked"

    async def atool() -> str:
        """Works."""
        return "worked"

    agent = guide(
        call("atool" if is_async else "tool"), "done",
        tools=[atool if is_async else tool], before_agent_callback=awaited if is_async else plain,
    )  # fmt: skip

    assert summaries(Talk(agent).say())[1] == ("guide", "answers {'result': 'worked'}")
    assert seen == ["before"]


# ---- RunConfig


def test_the_defaults_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ADK_MAX_LLM_CALLS", raising=False)
    config = RunConfig()

    assert (config.speech_config, config.response_modalities) == (None, None)
    assert (config.save_input_blobs_as_artifacts, config.support_cfc) == (False, False)
    assert (config.streaming_mode, config.max_llm_calls) == (StreamingMode.NONE, 500)


def test_a_run_without_streaming_and_with_a_limit():
    config = RunConfig(streaming_mode=StreamingMode.NONE, max_llm_calls=100)

    assert summaries(Talk(guide("a few words")).say(config=config)) == [("guide", "a few words .")]


def test_a_run_that_streams():
    config = RunConfig(streaming_mode=StreamingMode.SSE, max_llm_calls=200)

    assert summaries(Talk(guide("a few words")).say(config=config)) == [
        ("guide", "a ..."),
        ("guide", "few ..."),
        ("guide", "words..."),
        ("guide", "a few words ."),
    ]


def test_a_run_that_speaks_keeps_files_and_composes_calls():
    config = RunConfig(
        speech_config=types.SpeechConfig(
            language_code="en-US",
            voice_config=types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name="Kore")),
        ),
        response_modalities=["AUDIO", "TEXT"],
        save_input_blobs_as_artifacts=True,
        support_cfc=True,
        streaming_mode=StreamingMode.SSE,
        max_llm_calls=1000,
    )
    agent = guide("I saw it.")
    talk = Talk(agent)
    picture = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))

    events = talk.say([types.Part(text="look"), picture], config=config)

    assert talk.error is None and "I saw it." in [event.text for event in events]
    assert isinstance(agent.model, ScriptedLlm)
    live = agent.model.requests[0].live_connect_config
    assert live and live.speech_config and live.speech_config.voice_config == config.speech_config.voice_config  # pyright: ignore[reportOptionalMemberAccess]
    assert list(talk.stored().events[0].actions.artifact_delta.values()) == [0]


def test_composed_calls_need_a_stream():
    talk = Talk(guide("never"))
    talk.say(config=RunConfig(support_cfc=True, max_llm_calls=150))

    assert isinstance(talk.error, ConfigurationError) and "streaming_mode=StreamingMode.SSE" in str(talk.error)
    assert talk.stored().events == []


def test_the_configuration_is_checked():
    with pytest.raises(ValueError, match="max_llm_calls"):
        RunConfig(max_llm_calls=sys.maxsize)
    with pytest.raises(ValidationError, match="stream_mode"):
        RunConfig.model_validate({"stream_mode": "sse"})


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_is_warned_of_and_is_none(limit: int, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        config = RunConfig(max_llm_calls=limit)

    assert "without limit" in caplog.text
    assert summaries(Talk(guide("ok")).say(config=config)) == [("guide", "ok .")]


# ---- the settings of an LLM agent


def test_generation_is_tuned_by_google_genais_own_settings():
    agent = guide("ok", generate_content_config=types.GenerateContentConfig(temperature=0.2, max_output_tokens=250))
    Talk(agent).say()

    assert isinstance(agent.model, ScriptedLlm)
    config = agent.model.requests[0].config
    assert (config.temperature, config.max_output_tokens) == (0.2, 250)


def test_an_agent_is_defined_step_by_step():
    first = LlmAgent(model="gemini-2.0-flash", name="capital_agent", description="Knows capitals.")
    second = LlmAgent(model="gemini-2.0-flash", name="capital_agent", instruction="Answer.", include_contents="none")

    assert (first.name, first.instruction, first.tools) == ("capital_agent", "", [])
    assert second.include_contents == "none"
    with pytest.raises(ConfigurationError, match="named 'user'"):
        LlmAgent(model="gemini-2.0-flash", name="user")
