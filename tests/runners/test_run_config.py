"""What a run may be told, and what it refuses to be told."""

import asyncio
import logging
import sys
from typing import Any

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent, RunConfig, StreamingMode
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from adk_nb.sessions import GetSessionConfig
from tests.support.each import each
from tests.support.talk import Talk, content_summaries, summaries
from tests.support.transcripts import result_line


def test_defaults(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ADK_MAX_LLM_CALLS", raising=False)

    config = RunConfig()

    assert (config.streaming_mode, config.max_llm_calls, config.streams) == (StreamingMode.NONE, 500, False)


def test_the_environment_may_set_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ADK_MAX_LLM_CALLS", "7")

    assert RunConfig().max_llm_calls == 7
    assert RunConfig(max_llm_calls=8).max_llm_calls == 8


@pytest.mark.parametrize(
    ("value", "mode"),
    [
        (None, StreamingMode.NONE),
        ("sse", StreamingMode.SSE),
        (StreamingMode.SSE, StreamingMode.SSE),
        ("bidi", StreamingMode.BIDI),
    ],
)
def test_a_streaming_mode_may_be_given_by_its_value(value: Any, mode: StreamingMode):
    assert RunConfig(streaming_mode=value).streaming_mode is mode


@each(
    "given, said",
    [
        ({"max_lm_calls": 3}, r"RunConfig: .* no field 'max_lm_calls'; did you mean 'max_llm_calls'\?"),
        ({"max_llm_calls": sys.maxsize}, "not a limit; write 0"),
        ({"max_llm_calls": "many"}, "max_llm_calls"),
        ({"streaming_mode": "often"}, "streaming_mode"),
        ({"tool_errors": "ignore"}, "tool_errors"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("inf")}, "timeout"),
        ({"tool_thread_pool_config": {"max_workers": 0}}, "max_workers"),
        ({"custom_metadata": {"at": object()}}, "custom_metadata .* as JSON"),
        ({"labels": {"team": 7}}, "labels.team"),
        ({"service_tier": "deferred"}, "write 'flex'"),
        ({"speech_config": {"voice": "x"}}, "speech_config.voice"),
        ({"model_input_context": ["words"]}, "model_input_context"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError, match=said) as caught:
        RunConfig(**given)

    assert "\n" not in str(caught.value)


def test_a_limit_of_the_environment_that_is_no_number_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("ADK_MAX_LLM_CALLS", "many")

    assert RunConfig().max_llm_calls == 500
    assert "ADK_MAX_LLM_CALLS" in caplog.text and "'many'" in caplog.text


def test_the_settings_of_live_runs_are_google_genais_and_may_be_given_as_json():
    config = RunConfig.model_validate(
        {"response_modalities": ["AUDIO"], "speech_config": {"language_code": "de-DE"}, "session_resumption": {}}
    )

    assert config.response_modalities == [types.Modality.AUDIO]
    assert config.speech_config == types.SpeechConfig(language_code="de-DE")
    assert config.session_resumption == types.SessionResumptionConfig()
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_both_sides_of_a_live_run_are_written_down_unless_that_is_not_wanted():
    assert RunConfig().input_audio_transcription == RunConfig().output_audio_transcription
    assert RunConfig().output_audio_transcription == types.AudioTranscriptionConfig()
    assert RunConfig(output_audio_transcription=None).output_audio_transcription is None


def test_the_old_name_of_save_live_blob_is_read():
    assert RunConfig.model_validate({"save_live_audio": True}).save_live_blob


def test_what_a_run_says_of_every_request_stands_over_what_the_agent_says():
    model = ScriptedLlm("one", "two")
    own = types.GenerateContentConfig(
        temperature=0.5,
        labels={"team": "a", "kept": "yes"},
        http_options=types.HttpOptions(timeout=9_000, headers={"x-agent": "1", "x-both": "agent"}),
    )
    talk = Talk(LlmAgent(name="guide", model=model, generate_content_config=own))
    config = RunConfig(
        labels={"team": "b"},
        service_tier="flex",
        http_options=types.HttpOptions(headers={"x-both": "run"}, api_version="v1"),
    )

    talk.say(config=config)
    talk.say()

    first, second = (request.config for request in model.requests)
    assert (first.labels, first.service_tier) == ({"team": "b", "kept": "yes"}, types.ServiceTier.FLEX)
    assert first.temperature == 0.5
    assert first.http_options == types.HttpOptions(
        timeout=9_000, api_version="v1", headers={"x-agent": "1", "x-both": "run"}
    )
    assert (second.labels, second.http_options) == (own.labels, own.http_options)
    assert own.labels == {"team": "a", "kept": "yes"}


@pytest.mark.parametrize("limit", [0, -1])
def test_no_limit_is_warned_of(limit: int, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        RunConfig(max_llm_calls=limit)

    assert f"max_llm_calls={limit}" in caplog.text


def test_metadata_stands_on_every_event_of_the_run():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(["a", "b"], "c")))
    config = RunConfig(custom_metadata={"run": 1}, streaming_mode=StreamingMode.SSE)

    pieces = talk.say(config=config)
    talk.say()

    assert [event.custom_metadata for event in pieces] == [{"run": 1}] * 3
    assert [event.custom_metadata for event in talk.stored().events] == [{"run": 1}, {"run": 1}, None, None]


def test_metadata_stands_on_the_event_that_tells_of_an_error_and_on_the_one_that_closes_a_run():
    talk = Talk(LlmAgent(name="guide", model=ScriptedLlm(ValueError("bad"))))
    talk.say(config=RunConfig(custom_metadata={"run": 1}))

    async def stopped() -> None:
        signal = asyncio.Event()
        signal.set()
        await talk.asay(config=RunConfig(custom_metadata={"run": 2}), abort_signal=signal)

    asyncio.run(stopped())

    assert [(event.error_code, event.custom_metadata) for event in talk.stored().events] == [
        (None, {"run": 1}),
        ("ValueError", {"run": 1}),
        (None, {"run": 2}),
        ("INVOCATION_ABORTED", {"run": 2}),
    ]


def test_only_the_asked_for_part_of_the_history_is_loaded():
    model = ScriptedLlm("one", "two", "three", "four")
    talk = Talk(LlmAgent(name="guide", model=model))
    talk.say("first")
    talk.say("second")

    talk.say("third", config=RunConfig(get_session_config=GetSessionConfig(num_recent_events=2)))
    talk.say("fourth")

    assert [len(request.contents) for request in model.requests] == [1, 3, 3, 7]
    assert content_summaries(model.requests[2].contents) == [("user", "second"), ("model", "two"), ("user", "third")]


def boom() -> str:
    """Fails."""
    raise ValueError("bad")


def test_a_run_may_say_what_a_raising_tool_does():
    agent = LlmAgent(name="guide", model=ScriptedLlm(call("boom"), "oh", call("boom")), tools=[boom])
    talk = Talk(agent)

    returned = talk.say(config=RunConfig(tool_errors="return"))
    raised = talk.say(config=RunConfig(tool_errors="raise"))

    assert summaries(returned)[1:] == [("guide", result_line(error="ValueError: bad")), ("guide", "oh .")]
    assert summaries(raised)[1:] == [("guide", f"{result_line(error='ValueError: bad')} failed ValueError .")]
    assert isinstance(talk.error, ValueError)
